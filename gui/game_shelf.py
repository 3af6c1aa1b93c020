"""The collections of games that are at hand: the user's own, the file opened last, and one to keep. No pygame."""

from pathlib import Path
from typing import NamedTuple

from .game_library import GameLibrary


class Collection(NamedTuple):
    """Games with a name that is short enough for a button."""

    label: str
    library: GameLibrary


class GameShelf:
    """Opens libraries and closes them.

    Args:
        own: folder of the games that save themselves.
        indexes: folder for indexes; None: the usual place.

    Attributes:
        library: the file, or folder, that was opened last.
    """

    def __init__(self, own: Path, indexes: Path | None = None) -> None:
        self.library: GameLibrary | None = None
        self._own, self._indexes = own, indexes
        self._others: dict[Path, GameLibrary] = {}

    def open(self, path: Path) -> GameLibrary:
        """Begins to read a file or folder, in the place of the one that was open."""
        if self.library is not None:
            self.library.close()
        self.library = GameLibrary(path, self._indexes)
        return self.library

    def collections(self, kept: str) -> list[Collection]:
        """The user's games as they are now, the library opened last, and that of a path, unless it is one of these.

        Args:
            kept: the path, "" for none.
        """
        found = []
        if self._own.is_dir():
            if own := self._others.pop(self._own, None):
                own.close()
            found.append(Collection("Your games", self._other(self._own)))
        if self.library is not None and self.library.path != self._own:
            found.append(Collection(self.library.path.name, self.library))
        path = Path(kept)
        if kept and path.exists() and all(path != known.library.path for known in found):
            found.append(Collection(path.name, self._other(path)))
        return found

    def _other(self, path: Path) -> GameLibrary:
        if path not in self._others:
            self._others[path] = GameLibrary(path, self._indexes)
        return self._others[path]

    def close(self) -> None:
        """Stops all reading."""
        for library in [self.library, *self._others.values()]:
            if library is not None:
                library.close()
