"""A range of bytes that takes memory or disk only where it is written, and can give it back."""

import mmap
import os
import sys
from pathlib import Path

import numpy as np

from ..files import StorageError

_LINUX = sys.platform == "linux"
_NO_RESERVE = 0x4000 if _LINUX else 0  # memory is not reserved before it is used
PAGE = mmap.PAGESIZE


class Arena:
    """Bytes that are zero until they are written to.

    Args:
        size: number of bytes.
        file: sparse file that holds them; in memory if None. The content of an existing file of this size is kept.

    Raises:
        ValueError: the address space or memory does not suffice.
        StorageError: the file cannot be made.
    """

    def __init__(self, size: int, file: Path | None = None) -> None:
        self._on_disk = file is not None
        try:
            self._map = _map_memory(size) if file is None else _map_file(size, file)
        except OSError as error:
            if file is not None:
                raise StorageError(error.errno, f"cannot keep tables in {file}: {error.strerror}") from error
            raise ValueError(f"tables of {size / 1e9:.0f} GB do not fit into memory") from error
        self.bytes = np.frombuffer(self._map, np.uint8)

    def clear(self, low: int, high: int) -> None:
        """Sets the bytes ``low`` to ``high - 1`` to zero. On Linux, gives whole pages of memory or disk back."""
        first, last = -(-low // PAGE) * PAGE, high // PAGE * PAGE
        if not (_LINUX and first < last and self._give_back(first, last)):
            self.bytes[low:high] = 0
            return
        self.bytes[low:first] = 0
        self.bytes[last:high] = 0

    def _give_back(self, low: int, high: int) -> bool:
        try:
            self._map.madvise(mmap.MADV_REMOVE if self._on_disk else mmap.MADV_DONTNEED, low, high - low)
        except OSError:  # the file system has no sparse files
            return False
        return True

    def save(self, low: int, high: int) -> None:
        """Writes the bytes ``low`` to ``high - 1`` to disk, and waits for it."""
        first = low // PAGE * PAGE
        self._map.flush(first, high - first)


def _map_memory(size: int) -> mmap.mmap:
    private = {} if os.name == "nt" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE}
    return mmap.mmap(-1, size, **private)


def _map_file(size: int, path: Path) -> mmap.mmap:
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
        file.truncate(size)
        return mmap.mmap(file.fileno(), size)
