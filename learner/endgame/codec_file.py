"""All tables of 2 to N pieces in one file, and back: a network, and corrections of its errors (``codec``).

    8 bytes magic | uint32 length | header, JSON | weights | corrections | SHA-256 of all before

Numbers are little-endian.
"""

import struct
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from engine.files import StorageError, atomic_write
from engine.memory import check_memory
from engine.tablebase.build import write_values
from engine.tablebase.dense import DenseTables, Step
from engine.tablebase.material import MAX_PIECES, MIN_PIECES, pairs_up_to
from engine.tablebase.slice_file import RULES, file_name
from engine.tablebase.solver import Workers

from .codec import CodecError, code_tables, coding_bytes
from .features import slice_table
from .integer_network import MAX_STEP, IntegerNetworkError, pack, quantise, unpack
from .networks import PairConfig, PairNetwork

MAGIC = b"CRWNNEU2"
FORMAT: Literal[2] = 2
_DIGEST_BYTES = 32
_MAX_HEADER = 1 << 16


class CodecHeader(BaseModel, frozen=True, extra="forbid"):
    """What a file says about itself.

    Attributes:
        network, step: sizes of the network, and the step of its pairs (``integer_network``).
        weights_bytes, corrections_bytes: lengths of the two parts.
        positions: coded. exceptions: bits that the mixed prediction held for less likely.
        digest: SHA-256 of all values, in hexadecimal.
    """

    format: Literal[2] = FORMAT
    rules: str = RULES
    pieces: int = Field(ge=MIN_PIECES, le=MAX_PIECES)
    network: PairConfig
    step: int = Field(ge=1, le=MAX_STEP)
    weights_bytes: int = Field(ge=0)
    corrections_bytes: int = Field(ge=0)
    positions: int
    exceptions: int
    digest: str


def write_coded(
    path: Path,
    tables: DenseTables,
    pieces: int,
    network: PairNetwork,
    threads: int | None = None,
    report: Callable[[Step], object] = lambda step: None,
) -> CodecHeader:
    """Codes the values of 2 to ``pieces`` pieces with a network, into one file that is whole or not there.

    Raises:
        CodecError: the tables contradict themselves.
        StorageError: the file cannot be written.
    """
    config = network.config
    slices = slice_table(config.pieces)
    rows = np.array([2 * slices[pair.code] + parity for pair in pairs_up_to(pieces) for parity in range(2)])
    step, quantised = quantise(network, rows)
    weights = pack(quantised)
    coded = code_tables(tables, pieces, unpack(config, step, weights), threads=threads, report=report)
    header = CodecHeader(
        pieces=pieces,
        network=config,
        step=step,
        weights_bytes=len(weights),
        corrections_bytes=len(coded.data),
        positions=coded.positions,
        exceptions=coded.exceptions,
        digest=coded.digest,
    )
    text = header.model_dump_json().encode()
    content = b"".join([MAGIC, struct.pack("<I", len(text)), text, weights, coded.data])
    atomic_write(path, content + sha256(content).digest())
    return header


def read_header(path: Path) -> tuple[CodecHeader, bytes, bytes]:
    """Header, weights and corrections; raises ``CodecError`` if they are damaged, ``StorageError`` if unreadable."""
    try:
        with path.open("rb") as file:
            data = file.read(len(MAGIC))
            if data != MAGIC:  # a foreign file may be larger than the memory
                raise CodecError(f"{path} holds no neurally coded tables of this version")
            data += file.read()
    except OSError as error:
        raise StorageError(error.errno, f"{path} cannot be read: {error.strerror or error}") from error
    start = len(MAGIC) + 4
    if len(data) < start + _DIGEST_BYTES or sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
        raise CodecError(f"{path} is damaged: it does not match its checksum; encode it again")
    (length,) = struct.unpack_from("<I", data, len(MAGIC))
    try:
        header = CodecHeader.model_validate_json(data[start : start + min(length, _MAX_HEADER)])
    except ValidationError as error:
        raise CodecError(f"{path} is of another format: its header cannot be read") from error
    middle = start + length + header.weights_bytes
    if header.rules != RULES or middle + header.corrections_bytes + _DIGEST_BYTES != len(data):
        raise CodecError(f"{path} is of other rules, or its parts do not fit its size")
    return header, data[start + length : middle], data[middle:-_DIGEST_BYTES]


def read_coded(
    path: Path, threads: int | None = None, report: Callable[[Step], object] = lambda step: None
) -> tuple[DenseTables, CodecHeader]:
    """All values of a file, compared with their checksum, and its header.

    Raises:
        CodecError, StorageError: as ``read_header``.
        ValueError: there is not enough memory.
    """
    header, weights, corrections = read_header(path)
    try:
        network = unpack(header.network, header.step, weights)
    except IntegerNetworkError as error:
        raise CodecError(f"{path} is damaged: {error}") from error
    tables = DenseTables(header.pieces)
    needed = coding_bytes(header.pieces)
    check_memory(needed, f"{path}: values of 2-{header.pieces} pieces", "close other programs")
    decoded = code_tables(tables, header.pieces, network, corrections, threads, report)
    if decoded.digest != header.digest:
        raise CodecError(f"{path} decodes to other values than were encoded: it was written by another version")
    return tables, header


def write_tables(folder: Path, tables: DenseTables, pieces: int) -> int:
    """Writes the ordinary table files of 2 to ``pieces`` pieces, as a build would; returns their size in bytes."""
    total = 0
    with Workers() as workers:
        for pair in pairs_up_to(pieces):
            values = tables.slice_rows(pair), tables.slice_rows(pair.swapped())
            write_values(folder, pair, values, workers)
            total += (folder / file_name(pair, "wdl")).stat().st_size
    return total
