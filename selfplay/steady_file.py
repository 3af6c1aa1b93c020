"""A file that is rewritten soon after each change of its content."""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from engine.files import StorageError, atomic_write, open_locked

_PAUSE_FACTOR = 20  # pause after writing, as a multiple of the time that writing took
_HELD = errno.EACCES, errno.EAGAIN, errno.EDEADLK  # what ``lock`` says if another process holds a lock


class FileInUseError(ValueError):
    """Another process keeps a file up to date; the message names it."""


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Inside this context no other process may claim the file, by a lock beside it that ends with the process.

    Raises ``FileInUseError`` if another has claimed it, ``StorageError`` if its folder cannot be written.
    """
    place = Path(os.path.realpath(path))  # a link stays one, and its file is written
    beside = place.with_name(f".{place.name}.lock")
    with ExitStack() as held:
        try:
            while not _is_there(file := held.enter_context(open_locked(beside)), beside):
                file.close()  # the process that held it has removed it
        except StorageError as error:
            raise StorageError(error.errno, str(error).replace(str(beside), str(path))) from error
        except OSError as error:
            if error.errno in _HELD:
                raise FileInUseError(f"{path} is in use by another process: wait for it, or name another") from None
        try:  # without a lock where the file system has none
            yield
        finally:
            with suppress(OSError):  # Windows does not remove what is open
                beside.unlink()


def _is_there(file: BinaryIO, path: Path) -> bool:
    """Whether an open file still has this name."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


class SteadyFile:
    """Keeps a file up to date and complete, with at most about 5 % of the time spent on writing.

    Args:
        content: returns the content of the file; called with ``lock`` held, perhaps in another thread.

    Attributes:
        lock: must be held while the content changes.
    """

    def __init__(self, path: Path, content: Callable[[], bytes]) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._content = content
        self._timer: threading.Timer | None = None
        self._next = 0.0  # time of the next writing
        self._failure: StorageError | None = None

    def changed(self) -> None:
        """Writes the file now or soon; raises ``StorageError`` if writing fails or has failed since the last call."""
        with self.lock:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            delay = self._next - time.monotonic()
            if delay <= 0:
                self.write()
            elif self._timer is None:
                self._timer = threading.Timer(delay, self._write_later)
                self._timer.daemon = True
                self._timer.start()

    def write(self) -> None:
        """Writes the file now; raises ``StorageError``."""
        with self.lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            begun = time.monotonic()
            atomic_write(self.path, self._content())
            self._failure = None
            self._next = time.monotonic() + _PAUSE_FACTOR * (time.monotonic() - begun)

    def _write_later(self) -> None:
        with self.lock:
            if self._timer is threading.current_thread():  # else the file was written meanwhile
                try:
                    self.write()
                except StorageError as error:
                    self._failure = error
