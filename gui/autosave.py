"""Automatic saving of games after every move, so that a crash loses nothing. Several windows may share a folder."""

import contextlib
import secrets
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, NamedTuple

import platformdirs

from engine.errors import DraughtsError
from engine.files import StorageError, atomic_write, lock, make_folder, read_text, remove_stale_temporaries
from engine.pdn import PdnGame, format_game, read_game

from .pdn_files import title_of
from .seats import Seats, seats_path
from .session import GameSession

SUFFIX = ".pdn"
_LOCK = "window.lock"  # held by the first window, as long as it lives
_LOOKED_AT = 10  # files in which a game to recover is looked for


class SavedGame(NamedTuple):
    """A game that saved itself.

    Attributes:
        title: ``A - B, 1-0, 43 moves``, or the file's name if it cannot be read; ``error`` says why, in one line.
        modified: when it was last written (``time.time()``).
        result: PDN result, Black first; ``*`` if it is not finished.
    """

    path: Path
    title: str
    modified: float
    plies: int = 0
    result: str = "*"
    error: str = ""


class Autosave:
    """Writes games, each to a file of its own, in a thread: a slow disk never holds up the window.

    Attributes:
        folder: for the games; it is made with the first one.
        keep: how many games stay; when a new one begins, the oldest beyond these are removed.
        error: why the last game could not be written, in one line; "" if it could.
    """

    def __init__(self, folder: Path | None = None, keep: int = 1000) -> None:
        self.folder = folder or platformdirs.user_data_path("crownhead", appauthor=False) / "games"
        self.keep = keep
        self.error = ""
        self._path: Path | None = None
        self._game: int | None = None  # number of the session's game; None: whichever is saved next
        self._ended: PdnGame | None = None  # the game in ``_path``, once it is over: that file stays as it is
        self._looked_over = False  # the file is for what is made of a game that was over before
        self._shown: PdnGame | None = None  # a game from elsewhere: it is not saved as long as it is as it was
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="autosave")
        self._pending: Future[None] | None = None
        self._pending_path: Path | None = None
        self._closed = False
        self._known: tuple[Path, bytes] | None = None  # what this window wrote or read last
        self._beside: tuple[Path, bytes | None] | None = None  # the players that this window wrote last
        self._moved: dict[Path, Path] = {}  # games whose file another window has taken up go on in one of their own
        self._lock: IO[bytes] | None = None

    def begin(self) -> None:
        """The next game that is saved goes into a file of its own, as another game of the session does by itself."""
        self._path, self._ended, self._looked_over, self._shown = None, None, False, None

    def show(self, session: GameSession) -> None:
        """The session's game comes from a collection: it is saved, as a game of its own, once something is changed."""
        self.begin()
        self._game, self._shown = session.game, session.to_game()

    def resume(self, path: Path) -> None:
        """The game saved next, and while it is played on, goes into this file: it has been recovered from there."""
        self.begin()
        self._path, self._game = path, None
        known = (path, _content(path))
        self._writer.submit(setattr, self, "_known", known)  # behind what of an earlier game is not written yet

    def save(self, session: GameSession, seats: Seats | None = None) -> None:
        """Has the game written, and ``seats`` beside it, and returns at once. A game without a move is not saved.

        The file of a game that is over is not changed any more: variations and comments go into another one with it.
        """
        if not session.nodes or self._closed:
            return
        if self._game not in (None, session.game):
            self.begin()
        self._game = session.game
        game = session.to_game()
        if game == self._shown:
            return
        self._shown = None
        if self._ended is not None and game != self._ended:
            self._path, self._ended, self._looked_over = None, None, True
        elif game.result != "*" and not self._looked_over:
            self._ended = game
        if self._path is None:
            self._path = self.new_path()
        if self._pending is not None and self._pending_path == self._path:
            self._pending.cancel()  # not begun yet: what is written now holds all of it
        self._pending_path = self._path
        self._pending = self._writer.submit(self._write, game, seats, self._path)

    def new_path(self, suffix: str = SUFFIX) -> Path:
        """Where a new file may lie."""
        return self.folder / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{secrets.token_hex(3)}{suffix}"

    def flush(self, timeout_s: float | None = None) -> None:
        """Waits until what was saved is on the disk; raises ``TimeoutError`` if ``timeout_s`` does not suffice."""
        if self._pending is not None and not self._pending.cancelled():
            self._pending.result(timeout_s)

    def close(self) -> None:
        """Waits for the last writing; what is saved afterwards is ignored."""
        self._closed = True
        self._writer.shutdown(wait=True)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def games(self, limit: int = 50) -> list[SavedGame]:
        """The newest games, newest first; an empty list if there is no folder yet."""
        return [_look_at(path, modified) for modified, path in self._files()[:limit]]

    def recover(self) -> SavedGame | None:
        """The newest game that can be read, if it is not finished: the window closed in the middle of it.

        None while another window is open, which may be playing it.
        """
        if self.folder.is_dir() and not self._hold():
            return None
        newest = next((game for game in self.games(_LOOKED_AT) if not game.error), None)
        return newest if newest is not None and newest.result == "*" else None

    def _files(self) -> list[tuple[float, Path]]:
        files = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            try:
                files.append((path.stat().st_mtime, path))
            except OSError:
                continue  # removed by another window just now
        return sorted(files, reverse=True)

    def _write(self, game: PdnGame, seats: Seats | None, path: Path) -> None:
        try:
            data, beside = format_game(game).encode(), None if seats is None else seats.data()
            path = self._moved.get(path, path)
            if self._known == (path, data) and (beside is None or self._beside == (path, beside)):
                return  # only the cursor has moved
            make_folder(path.parent)
            self._hold()
            new = not path.exists()
            if not new and self._known != (path, _content(path)):  # another window plays on with it
                path = self._moved.setdefault(path, self.new_path())
            if beside is not None:  # first: a game is never there without its players
                atomic_write(seats_path(path), beside)
            if self._known != (path, data):
                atomic_write(path, data)
            self._known, self._beside, self.error = (path, data), (path, beside), ""
            if new:
                self._remove_oldest(path)
        except (OSError, ValueError) as error:
            self.error = f"the game is not being saved: {error}"

    def _hold(self) -> bool:
        """Whether this is the first window that uses the folder; the lock ends with the process, however it ends."""
        if self._lock is None:
            with contextlib.suppress(OSError):
                self._lock = _locked(self.folder / _LOCK)
        return self._lock is not None

    def _remove_oldest(self, newest: Path) -> None:
        remove_stale_temporaries(self.folder)
        others = [path for _, path in self._files() if path != newest]
        for path in others[max(0, self.keep - 1) :]:
            path.unlink(missing_ok=True)
            seats_path(path).unlink(missing_ok=True)


def _content(path: Path) -> bytes:
    """What is in a file, b"" if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _locked(path: Path) -> IO[bytes]:
    """A file with a lock on it; ``OSError`` if another process holds that."""
    file = open(path, "a+b")  # noqa: SIM115 - open as long as the lock is held
    try:
        lock(file)
    except OSError:
        file.close()
        raise
    return file


def _look_at(path: Path, modified: float) -> SavedGame:
    try:
        game = read_game(read_text(path))
    except (DraughtsError, StorageError) as error:
        return SavedGame(path, path.name, modified, error=str(error))
    return SavedGame(path, title_of(game), modified, len(game.moves), game.result)
