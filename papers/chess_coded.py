"""All chess endings of three and four men in one file (``engine.coded_file``), and back (``chess_codec``)."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from engine.coded_file import CodedFile

from .chess_codec import ChessCodecError, code_endings
from .chess_endings import Endings


class ChessHeader(BaseModel, frozen=True, extra="forbid"):
    """What a file says about itself.

    Attributes:
        positions: positions coded by bits; the others follow from them and the rules.
        digest: SHA-256 of all values, in hexadecimal.
    """

    format: Literal[1] = 1
    positions: int
    digest: str


CHESS_FILE = CodedFile(b"CRWNCHS1", ChessHeader, ChessCodecError, "coded chess endings")


def write_coded(path: Path, tables: Endings, report: Callable[[float], object] = lambda share: None) -> ChessHeader:
    """Codes all endings into one file; raises ``StorageError`` if it cannot be written."""
    coded = code_endings(tables, report=report)
    header = ChessHeader(positions=coded.positions, digest=coded.digest)
    CHESS_FILE.write(path, header, coded.data)
    return header


def read_coded(path: Path, report: Callable[[float], object] = lambda share: None) -> tuple[Endings, ChessHeader]:
    """All endings of a file, compared with their checksum, and its header; takes a minute.

    Raises:
        ChessCodecError: it is damaged, foreign or of another version.
        StorageError: it cannot be read.
    """
    header, data = CHESS_FILE.read(path)
    tables = Endings()
    if code_endings(tables, data, report).digest != header.digest:
        raise ChessCodecError(f"{path} decodes to other values than were encoded: it was written by another version")
    return tables, header
