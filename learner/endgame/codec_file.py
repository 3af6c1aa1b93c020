"""All tables of 2 to N pieces in one file, and back: a network, and corrections of its errors (``codec``).

The content of the file (``engine.coded_file``) are the weights, then the corrections.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field

from engine.coded_file import CodedFile
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

FORMAT: Literal[2] = 2


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


_FILE = CodedFile(b"CRWNNEU2", CodecHeader, CodecError, "neurally coded tables")


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
    _FILE.write(path, header, weights + coded.data)
    return header


def read_header(path: Path) -> tuple[CodecHeader, bytes, bytes]:
    """Header, weights and corrections; raises ``CodecError`` if they are damaged, ``StorageError`` if unreadable."""
    header, content = _FILE.read(path)
    if header.rules != RULES or header.weights_bytes + header.corrections_bytes != len(content):
        raise CodecError(f"{path} is of other rules, or its parts do not fit its size")
    return header, content[: header.weights_bytes], content[header.weights_bytes :]


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
