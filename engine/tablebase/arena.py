"""A range of addresses whose memory, or disk, is taken where it is written to and can be given back."""

import mmap
import os
import sys
from pathlib import Path

import numpy as np

from ..files import StorageError

_LINUX = sys.platform == "linux"
_NO_RESERVE = 0x4000 if _LINUX else 0  # memory need not be there before it is used
PAGE = mmap.PAGESIZE


class Arena:
    """Bytes that are zero until they are written to.

    Args:
        size: in bytes. file: where they are kept, with holes for what is zero; in memory if None. An existing file
            of this size is gone on with.

    Raises:
        ValueError: there are fewer addresses.
        StorageError: the file cannot be made.
    """

    def __init__(self, size: int, file: Path | None = None) -> None:
        self._on_disk = file is not None
        try:
            self._map = _map_memory(size) if file is None else _map_file(size, file)
        except OSError as error:
            if file is not None:
                raise StorageError(error.errno, f"cannot keep tables in {file}: {error.strerror}") from error
            raise ValueError(f"tables of {size / 1e9:.0f} GB are more than there is memory for") from error
        self.bytes = np.frombuffer(self._map, np.uint8)

    def clear(self, low: int, high: int) -> None:
        """Sets bytes to zero. On Linux, whole pages of memory or disk are given back."""
        first, last = -(-low // PAGE) * PAGE, high // PAGE * PAGE
        if not (_LINUX and first < last and self._give_back(first, last)):
            self.bytes[low:high] = 0
            return
        self.bytes[low:first] = 0
        self.bytes[last:high] = 0

    def _give_back(self, low: int, high: int) -> bool:
        try:
            self._map.madvise(mmap.MADV_REMOVE if self._on_disk else mmap.MADV_DONTNEED, low, high - low)
        except OSError:  # a file system without holes
            return False
        return True

    def save(self, low: int, high: int) -> None:
        """Returns when the disk has these bytes."""
        first = low // PAGE * PAGE
        self._map.flush(first, high - first)


def _map_memory(size: int) -> mmap.mmap:
    private = {} if os.name == "nt" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE}
    return mmap.mmap(-1, size, **private)


def _map_file(size: int, path: Path) -> mmap.mmap:
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
        file.truncate(size)
        return mmap.mmap(file.fileno(), size)
