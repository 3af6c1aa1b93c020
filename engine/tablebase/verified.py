"""What a check of tables has found right so far, in a file beside them: a check that ended early goes on from there."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from ..files import StorageError, atomic_write, read_bytes
from ..sealed import sealed, unsealed

VERIFIED_FILE = "verified.json"
_FORMAT = 1


class Verified:
    """The files of a folder that a check has found right, known by their checksums.

    Raises:
        ValueError: the file is there, but is none of this format.
        StorageError: it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / VERIFIED_FILE
        self._digests: dict[str, str] = {}
        if self._path.exists():
            self._digests = self._read()

    def _read(self) -> dict[str, str]:
        try:
            fields = unsealed(read_bytes(self._path))
            if set(fields) == {"format", "files"} and fields["format"] == _FORMAT:
                return {str(name): str(digest) for name, digest in fields["files"].items()}
        except StorageError:
            raise
        except (AttributeError, TypeError, ValueError):
            pass
        raise ValueError(f"{self._path} does not say which tables were found right: remove it")

    def holds(self, digests: Mapping[str, str]) -> bool:
        """Whether all these files (name and checksum) were found right."""
        return all(self._digests.get(name) == digest for name, digest in digests.items())

    def add(self, digests: Mapping[str, str]) -> None:
        """Notes files that are right; raises ``StorageError`` if the folder cannot be written to."""
        self._digests.update(digests)
        atomic_write(self._path, sealed({"format": _FORMAT, "files": self._digests}))

    def close(self, checked: Collection[str]) -> None:
        """Removes the file after a check of the files named ``checked``, unless it also holds others: a check of more
        pieces has not ended."""
        others = (self._path.with_name(name) for name in self._digests if name not in checked)
        if not any(other.exists() for other in others):
            with suppress(OSError):
                self._path.unlink()
