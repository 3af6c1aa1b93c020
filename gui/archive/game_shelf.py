"""The open collections of games: the user's own, the file opened last, and one from the preferences. No pygame."""

from collections.abc import Iterable
from os.path import exists, isdir
from pathlib import Path

from .game_library import GameLibrary


class GameShelf:
    """Opens and closes libraries of games.

    Args:
        own: folder of the games that are saved automatically.
        indexes: folder for indexes; None: the default of ``GameLibrary``.

    Attributes:
        library: library of the file or folder opened last; None before the first.
    """

    def __init__(self, own: Path, indexes: Path | None = None) -> None:
        self.library: GameLibrary | None = None
        self._own, self._indexes = own, indexes
        self._opened: list[GameLibrary] = []
        self._others: dict[Path, GameLibrary] = {}

    def open(self, path: Path, shown: Iterable[GameLibrary] = ()) -> GameLibrary:
        """Begins to read a file or folder, and closes the libraries opened before, except those in ``shown``."""
        kept = list(shown)
        for library in self._opened:
            if library not in kept:
                library.close()
        self.library = GameLibrary(path, self._indexes)
        self._opened = [*(library for library in self._opened if library in kept), self.library]
        return self.library

    def collections(self, kept: str) -> list[GameLibrary]:
        """The current games of the user, the library opened last, and the library of another path.

        Args:
            kept: the other path, "" for none; left out if it is one of the first two.
        """
        found = []
        if isdir(self._own):
            if own := self._others.pop(self._own, None):
                own.close()
            found.append(self._other(self._own))
        library = self.library
        if library is not None and library.path.resolve() != self._own.resolve() and not library.failed:
            found.append(library)
        path = Path(kept)
        for other in self._others.keys() - {self._own, path}:
            self._others.pop(other).close()
        if kept and exists(path) and all(path != known.path.resolve() for known in found):
            found.append(self._other(path))
        return found

    def reopen(self, path: Path) -> None:
        """Has a collection read again, which may have changed, failed or been stopped, when it is asked for next."""
        if known := self._others.pop(path, None):
            known.close()
        if self.library is not None and self.library.path.resolve() == path:
            self.library = GameLibrary(self.library.path, self._indexes)
            self._opened.append(self.library)

    def _other(self, path: Path) -> GameLibrary:
        if path not in self._others:
            self._others[path] = GameLibrary(path, self._indexes)
        return self._others[path]

    def close(self) -> None:
        """Closes all libraries."""
        for library in [*self._opened, *self._others.values()]:
            library.close()
