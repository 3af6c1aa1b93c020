"""Files and folders that one process at a time may write."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .files import StorageError, open_locked

_HELD = errno.EACCES, errno.EAGAIN, errno.EDEADLK  # what ``lock`` says if another process holds a lock


class FileInUseError(ValueError):
    """Another process writes this file or folder; the message names it."""


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Inside this context no other process may claim the file or folder; its lock, beside it, ends with the process.

    Raises ``FileInUseError`` if another has claimed it, ``StorageError`` if the folder around it cannot be written.
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
