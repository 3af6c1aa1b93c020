"""The file of one pair of slices: a header, blocks that can be read one at a time, and checksums.

    8 bytes magic | uint32 length of the header | uint32 CRC of all from the header to the blocks |
    header, JSON | priors | uint32 length of each block | uint32 CRC of each block | blocks | SHA-256 of all before

Two kinds of file: ``2111.wdl`` (values, ``wdl_codec``) and ``2111.distance`` (half distances, ``distance``),
named after the slice with the pair's first side to move. Numbers are little-endian.
"""

import mmap
import os
import struct
import zlib
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import zstandard
from pydantic import BaseModel, ConfigDict, ValidationError

from ..files import atomic_write, cannot_read
from ..frames import decompressed
from .distance import decode_distances
from .folder import build_advice
from .layout import layout_of
from .material import Material, parse_name
from .wdl_codec import BLOCK_BYTES, BLOCK_WORDS, NUM_MODELS, num_blocks

MAGIC = b"CRWNTAB1"
FORMAT = 1
RULES = "English draughts; repetition and the 80-ply rule are not looked at"
Kind = Literal["wdl", "distance"]
_MAX_HEADER = 1 << 16
_PREFIX = "<II"
_START = len(MAGIC) + struct.calcsize(_PREFIX)
_DIGEST_BYTES = 32
_MAX_PRIORS = 1 << 16


class TableFileError(ValueError):
    """A file is damaged, has another format, or is not a table; the message names it."""


class SliceCounts(BaseModel):
    """Numbers of won, drawn and lost positions of a slice for its side to move.

    ``longest_win`` is in plies, ``longest_fen`` a position (Black to move) with this distance; None without distances.
    """

    model_config = ConfigDict(extra="forbid")

    win: int
    draw: int
    loss: int
    longest_win: int | None = None
    longest_fen: str | None = None


class Header(BaseModel):
    """The header of a file; ``slices``: counts of both slices of the pair by name."""

    model_config = ConfigDict(extra="forbid")

    format: int
    kind: Kind
    slice: str
    rules: str
    block_words: int
    blocks: int
    priors_bytes: int
    slices: dict[str, SliceCounts]


def file_name(pair: Material, kind: Kind) -> str:
    """Name of the file of a pair; ``pair`` may be either of its slices."""
    return f"{pair.pair.name}.{kind}"


def write_slice(
    folder: Path,
    pair: Material,
    kind: Kind,
    slices: dict[str, SliceCounts],
    priors: np.ndarray | None,
    blocks: list[bytes],
) -> None:
    """Writes a pair's file, completely or not at all; raises ``StorageError`` if the folder cannot be written."""
    packed = b"" if priors is None else zstandard.ZstdCompressor(level=19).compress(priors.T.tobytes())
    header = Header(
        format=FORMAT,
        kind=kind,
        slice=pair.name,
        rules=RULES,
        block_words=BLOCK_WORDS,
        blocks=len(blocks),
        priors_bytes=len(packed),
        slices=slices,
    )
    text = header.model_dump_json().encode()
    lengths = np.array([len(block) for block in blocks], "<u4").tobytes()
    checks = np.array([zlib.crc32(block) for block in blocks], "<u4").tobytes()
    index = text + packed + lengths + checks

    def write(file: BinaryIO) -> None:
        digest = sha256()
        for part in [MAGIC, struct.pack(_PREFIX, len(text), zlib.crc32(index)), index, *blocks]:
            file.write(part)
            digest.update(part)
        file.write(digest.digest())

    atomic_write(folder / file_name(pair, kind), write)


def rebuild_advice(path: Path) -> str:
    """The part of an error message that says what to do about a bad file: what it needs may be all that is there."""
    name, _, kind = path.name.partition(".")
    try:
        advice = build_advice(path.parent, parse_name(name).pieces, kind == "distance", [name])
    except ValueError:  # not named like a table
        advice = build_advice(path.parent, None, kind == "distance")
    return f"remove it and build it again with {advice}"


class SliceFile:
    """An open file, mapped into memory. Close it, or use it as a context manager.

    Args:
        checked: whether to check the checksum of the whole file now, not only that of each block when it is read.

    Raises:
        TableFileError: the file is not a table of this format, is cut short, or is damaged.
        FileNotFoundError: the file does not exist.
        StorageError: the file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], checked: bool = False) -> None:
        self.path = Path(path)
        try:
            with open(self.path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < _START + _DIGEST_BYTES:
                    raise self._error("is too short for a table")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise cannot_read(self.path, error) from error
        try:
            self.header = self._read_header(size)
            try:
                self.pair = parse_name(self.header.slice)
            except ValueError as error:
                raise self._error("is damaged: its header names no slice") from error
            if self.pair != self.pair.pair or self.path.name != file_name(self.pair, self.header.kind):
                raise self._error(f"holds slice {self.header.slice} ({self.header.kind}), which its name is not")
            self._read_index(size)
            if checked:
                self.check()
        except BaseException:
            self._map.close()
            raise

    def _error(self, what: str) -> TableFileError:
        return TableFileError(f"{self.path} {what}; {rebuild_advice(self.path)}")

    def _read_header(self, size: int) -> Header:
        if self._map[: len(MAGIC)] != MAGIC:
            raise self._error("is not a table of this version")
        length, self._check = struct.unpack_from(_PREFIX, self._map, len(MAGIC))
        self._start = _START + length
        if length > _MAX_HEADER or self._start + _DIGEST_BYTES > size:
            raise self._error("is damaged: its header does not fit")
        try:
            header = Header.model_validate_json(self._map[_START : self._start])
        except ValidationError as error:
            raise self._error("is damaged: its header cannot be read") from error
        for what, there, ours in (
            ("format", header.format, FORMAT),
            ("the rules", header.rules, RULES),
            ("block words", header.block_words, BLOCK_WORDS),
        ):
            if there != ours:
                raise self._error(f"is a table of {what} {there}, not of {ours}")
        return header

    def _read_index(self, size: int) -> None:
        header = self.header
        if header.blocks != num_blocks(layout_of(self.pair)):
            raise self._error(f"is damaged: it says that it has {header.blocks} blocks")
        index = self._start + header.priors_bytes
        self._first = index + 8 * header.blocks
        if not 0 <= header.priors_bytes <= _MAX_PRIORS or self._first + _DIGEST_BYTES > size:
            raise self._error("is damaged: it is cut short")
        if zlib.crc32(self._map[_START : self._first]) != self._check:
            raise self._error("is damaged: its header does not match its checksum")
        lengths = np.frombuffer(self._map[index : index + 4 * header.blocks], "<u4").astype(np.int64)
        self._checks = np.frombuffer(self._map[index + 4 * header.blocks : self._first], "<u4")
        self._edges = np.cumsum(np.concatenate([[self._first], lengths]))
        if self._edges[-1] + _DIGEST_BYTES != size:
            raise self._error("is damaged: its blocks do not fit its size")

    @property
    def digest(self) -> str:
        """The checksum of the whole file, as it says."""
        return bytes(self._map[-_DIGEST_BYTES:]).hex()

    def check(self) -> None:
        """Checks the checksum of the whole file; raises ``TableFileError`` if it is wrong."""
        with memoryview(self._map) as view:
            if sha256(view[:-_DIGEST_BYTES]).digest() != bytes(view[-_DIGEST_BYTES:]):
                raise self._error("is damaged: it does not match its checksum")

    def priors(self) -> np.ndarray:
        """Priors of a file of values, int8 [NUM_MODELS, 2]; raises ``TableFileError`` if they are damaged."""
        packed = self._map[self._start : self._start + self.header.priors_bytes]
        try:
            odds, counts = np.frombuffer(decompressed(packed, 2 * NUM_MODELS), np.int8).reshape(2, NUM_MODELS)
        except ValueError as error:
            raise self._error("is damaged: its table of probabilities cannot be read") from error
        if counts.min() < 0:
            raise self._error("is damaged: its table of probabilities has counts below 0")
        return np.stack([odds, counts], axis=1)

    def block(self, number: int) -> bytes:
        """The bytes of one block; raises ``TableFileError`` if they do not match their checksum, or are no block's."""
        start, end = self._edges[number : number + 2].tolist()
        data = self._map[start : min(end, start + BLOCK_BYTES + 1)]
        if len(data) > BLOCK_BYTES:
            raise self._error(f"is damaged: block {number} is too long")
        if zlib.crc32(data) != self._checks[number]:
            raise self._error(f"is damaged: block {number} does not match its checksum")
        return data

    def distances(self, number: int) -> np.ndarray:
        """The half distances of one block, see ``distance.decode_distances``; raises ``TableFileError``."""
        data = self.block(number)
        try:
            return decode_distances(data)
        except ValueError as error:
            raise self._error(f"is damaged: block {number} cannot be decompressed ({error})") from error

    def close(self) -> None:
        self._map.close()

    def __enter__(self) -> "SliceFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
