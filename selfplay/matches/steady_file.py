"""A file that is rewritten soon after each change of its content."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from engine.files import StorageError, atomic_write

_PAUSE_FACTOR = 20  # pause after writing, as a multiple of the time that writing took


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
