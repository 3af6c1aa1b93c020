"""Saves games automatically after every move, so that a crash loses nothing. Several windows may share a folder."""

import contextlib
import secrets
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from os.path import isdir
from pathlib import Path
from typing import BinaryIO, NamedTuple

import platformdirs

from engine.errors import DraughtsError
from engine.files import StorageError, atomic_write, make_folder, open_locked, read_text, remove_stale_temporaries
from engine.pdn import PdnGame, format_game, read_game

from ..threads import in_thread
from .pdn_files import title_of
from .seats import Seats, seats_path
from .session import GameSession

SUFFIX = ".pdn"
_LOCK = "window.lock"  # lock file, locked by the first window until its process ends, and then by another
_LOOK_S = 1.0  # seconds between two tries of a window to get the lock
_LOOKED_AT = 10  # newest files that are searched for a game to recover
LISTED = 50  # newest games that are offered


class SavedGame(NamedTuple):
    """A game that was saved automatically.

    Attributes:
        title: ``A - B, 1-0, 43 moves``, or the file's name if it cannot be read; ``error`` says why, in one line.
        modified: time of the last write (``time.time()``).
        result: PDN result, Black first; ``*`` if the game is not finished.
    """

    path: Path
    title: str
    modified: float
    plies: int = 0
    result: str = "*"
    error: str = ""


class Autosave:
    """Writes each game to its own file, in a thread: a slow disk never blocks the window.

    Attributes:
        folder: folder of the games; it is made with the first one.
        keep: number of games to keep; a new game removes the oldest ones beyond it.
        error: why the last game could not be written, in one line; "" if it could.
    """

    def __init__(self, folder: Path | None = None, keep: int = 1000) -> None:
        self.folder = folder or platformdirs.user_data_path("crownhead", appauthor=False) / "games"
        self.keep = keep
        self.error = ""
        self._path: Path | None = None
        self._game: int | None = None  # number of the session's game; None: the one that is saved next
        self._ended: PdnGame | None = None  # the game in ``_path`` once it is over: its file is not changed any more
        self._looked_over = False  # whether the file is for later changes to a game that was over
        self._shown: PdnGame | None = None  # a game from elsewhere, which is not saved until it is changed
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="autosave")
        self._pending: Future[None] | None = None
        self._pending_path: Path | None = None
        self._closed = False
        self._known: tuple[Path, bytes] | None = None  # file and content that this window wrote or read last
        self._beside: tuple[Path, bytes | None] | None = None  # file and seats that this window wrote last
        self._moved: dict[Path, Path] = {}  # old → new file of games whose file another window is writing, too
        self._lock: BinaryIO | None = None
        self._heir: Future[None] | None = None  # tries to get the lock that another window has
        self._closing, self._trying = threading.Event(), threading.Lock()

    def begin(self) -> None:
        """Makes the next game that is saved use a new file. (A new game of the session does so anyway.)"""
        self._path, self._ended, self._looked_over, self._shown = None, None, False, None

    def show(self, session: GameSession) -> None:
        """Does not save the session's game, which comes from a collection, until it is changed; then to a new file."""
        self.begin()
        self._game, self._shown = session.game, session.to_game()

    def resume(self, path: Path) -> None:
        """Makes the next game that is saved use this file, from which it was recovered."""
        self.begin()
        self._path, self._game = path, None
        known = (path, _content(path))
        self._writer.submit(setattr, self, "_known", known)  # after the pending writes of an earlier game

    def save(self, session: GameSession, seats: Seats | None = None) -> None:
        """Starts writing the game, and ``seats`` next to it, and returns at once. A game without a move is not saved.

        The file of a game that is over is not changed any more. Later variations and comments are saved with the game
        to another file.
        """
        if not session.nodes or self._closed:
            return
        if self._game not in (None, session.game):
            self.begin()
        self._game = session.game
        game = session.to_game()
        if game == self._shown:
            return
        if self._shown is not None:  # a changed copy: later changes go to the same file
            self._shown, self._looked_over = None, True
        if self._ended is not None and game != self._ended:
            self._path, self._ended, self._looked_over = None, None, True
        elif game.result != "*" and not self._looked_over:
            self._ended = game
        if self._path is None:
            self._path = self.new_path()
        if self._pending is not None and self._pending_path == self._path:
            self._pending.cancel()  # if it has not begun: the new write contains everything
        self._pending_path = self._path
        self._pending = self._writer.submit(self._write, game, seats, self._path)

    def new_path(self, suffix: str = SUFFIX) -> Path:
        """The path of a new file."""
        return self.folder / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{secrets.token_hex(3)}{suffix}"

    def flush(self, timeout_s: float | None = None) -> None:
        """Waits until the last saved game is on the disk; raises ``TimeoutError`` after ``timeout_s``."""
        if self._pending is not None and not self._pending.cancelled():
            self._pending.result(timeout_s)

    def close(self) -> None:
        """Waits for pending writes; later calls of ``save`` are ignored."""
        self._closed = True
        self._writer.shutdown(wait=True)
        self._closing.set()
        if self._heir is not None:
            self._heir.result()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def games(self, limit: int = LISTED) -> list[SavedGame]:
        """The newest games, newest first; an empty list if there is no folder yet."""
        return [_look_at(path, modified) for modified, path in self._files()[:limit]]

    def recover(self) -> SavedGame | None:
        """The newest readable game if it is not finished, because the window was closed during it; else None.

        None also while another window is open, which may be playing it.
        """
        if isdir(self.folder) and not self._hold():
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
            if not new and self._known != (path, _content(path)):  # another window has written it meanwhile
                path = self._moved.setdefault(path, self.new_path())
            if beside is not None:  # first, so that a game never exists without its players
                atomic_write(seats_path(path), beside)
            if self._known != (path, data):
                atomic_write(path, data)
            self._known, self._beside, self.error = (path, data), (path, beside), ""
            if new:
                self._remove_oldest(path)
        except (OSError, ValueError) as error:
            self.error = f"the game is not being saved: {error}"

    def _hold(self) -> bool:
        """Tries to lock the folder; returns whether this window has the lock. It is released when the process ends.

        While another window has it, a thread goes on trying: the other may end first, and the game here would be taken.
        """
        self._try_to_lock()
        if self._lock is None and self._heir is None:
            self._heir = in_thread("lock", self._wait_for_lock)
        return self._lock is not None

    def _try_to_lock(self) -> None:
        with self._trying, contextlib.suppress(OSError):
            if self._lock is None:
                self._lock = open_locked(self.folder / _LOCK)

    def _wait_for_lock(self) -> None:
        while self._lock is None and not self._closing.wait(_LOOK_S):
            self._try_to_lock()

    def _remove_oldest(self, newest: Path) -> None:
        remove_stale_temporaries(self.folder)
        others = [path for _, path in self._files() if path != newest]
        for path in others[max(0, self.keep - 1) :]:
            path.unlink(missing_ok=True)
            seats_path(path).unlink(missing_ok=True)


def _content(path: Path) -> bytes:
    """The content of a file, b"" if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _look_at(path: Path, modified: float) -> SavedGame:
    try:
        game = read_game(read_text(path))
    except (DraughtsError, StorageError) as error:
        return SavedGame(path, path.name, modified, error=str(error))
    return SavedGame(path, title_of(game), modified, len(game.moves), game.result)
