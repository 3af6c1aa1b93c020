"""Files of coded values, which are read as a whole, and are whole or not there.

    8 bytes magic | uint32 length | header, JSON | content | SHA-256 of all before

Numbers are little-endian.
"""

import struct
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from .files import atomic_write, cannot_read

_DIGEST_BYTES = 32
_MAX_HEADER = 1 << 16

Header = TypeVar("Header", bound=BaseModel)


@dataclass(frozen=True)
class CodedFile(Generic[Header]):
    """A kind of such files.

    Attributes:
        magic: 8 bytes, other ones for each kind and version.
        header: class of its headers.
        error: raised for files that are damaged, foreign or of another version.
        what: what they hold, in words.
    """

    magic: bytes
    header: type[Header]
    error: type[ValueError]
    what: str

    def write(self, path: Path, header: Header, content: bytes) -> None:
        """Writes a file; raises ``StorageError`` if it cannot be written."""
        text = header.model_dump_json().encode()
        data = b"".join([self.magic, struct.pack("<I", len(text)), text, content])
        atomic_write(path, data + sha256(data).digest())

    def read(self, path: Path) -> tuple[Header, bytes]:
        """Header and content of a file; raises ``error``, or ``StorageError`` if it cannot be read."""
        try:
            with path.open("rb") as file:
                data = file.read(len(self.magic))
                if data != self.magic:  # a foreign file may be larger than the memory
                    raise self.error(f"{path} holds no {self.what} of this version")
                data += file.read()
        except OSError as error:
            raise cannot_read(path, error) from error
        start = len(self.magic) + 4
        if len(data) < start + _DIGEST_BYTES or sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
            raise self.error(f"{path} is damaged: it does not match its checksum; encode it again")
        (length,) = struct.unpack_from("<I", data, len(self.magic))
        try:
            header = self.header.model_validate_json(data[start : start + min(length, _MAX_HEADER)])
        except ValidationError as error:
            raise self.error(f"{path} is of another format: its header cannot be read") from error
        return header, data[start + length : -_DIGEST_BYTES]
