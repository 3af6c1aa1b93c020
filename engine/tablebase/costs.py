"""Costs of tables: bytes of files, seconds of one core, memory; and which tables exist already."""

from collections.abc import Container, Iterable
from pathlib import Path
from typing import NamedTuple, TypedDict

from .layout import layout_of
from .material import MAX_PIECES, MIN_PIECES, Material, pairs_of, pairs_up_to
from .plan import Task, needed_bytes
from .store import KINDS, find_files


class _Measured(NamedTuple):
    """Costs of all values or distances of one number of pieces, in processor time of a Zen 4 (docs/measured.md)."""

    file_bytes: int  # the same on every machine
    seconds: float


_MEASURED = {
    2: _Measured(2_167, 0.01),
    3: _Measured(3_522, 0.05),
    4: _Measured(109_006, 1.0),
    5: _Measured(515_765, 15.0),
    6: _Measured(17_919_783, 375.0),
    7: _Measured(141_552_997, 3138.0),
    8: _Measured(2_201_057_503, 19_400.0),
}
_MEASURED_DISTANCES = {  # seconds are shares of those of 2 to 6 together, in proportion to words
    2: _Measured(1_585, 0.01),
    3: _Measured(31_810, 0.04),
    4: _Measured(763_735, 1.5),
    5: _Measured(26_962_642, 37.0),
    6: _Measured(370_393_736, 792.0),
    7: _Measured(5_740_000_000, 12_270.0),  # as many bytes and seconds a word of pairs as with six
    8: _Measured(33_600_000_000, 71_900.0),
}


class TableCosts(TypedDict):
    """Costs of the values of one number of pieces.

    Attributes:
        pairs: number of pairs of slices.
        pairs_there, bytes_there: number and bytes of the files that exist.
        bytes_more: estimated bytes of the other files.
        core_seconds_more: estimated seconds of one core to build the other files. Both estimates are measured costs of
            all pairs, in proportion to numbers of words.
        memory: peak bytes of a build from two pieces up to this number, in memory.
    """

    pieces: int
    pairs: int
    pairs_there: int
    bytes_there: int
    bytes_more: int
    core_seconds_more: float
    memory: int


def table_costs(folders: Iterable[Path], pieces: int = MAX_PIECES) -> list[TableCosts]:
    """Costs of tables of 2 to ``pieces`` pieces, given the files in the folders; raises ``StorageError``."""
    files = {pair: path for (pair, kind), path in find_files(folders).items() if kind == "wdl"}
    there = {pair: path.stat().st_size for pair, path in files.items()}
    return [_costs(number, there) for number in range(MIN_PIECES, pieces + 1)]


def distance_costs(folders: Iterable[Path], pieces: int) -> tuple[int, float]:
    """Estimated bytes, and seconds of one core, of the distances of 2 to ``pieces`` pieces that the folders lack.

    Raises ``StorageError``.
    """
    there = {pair for pair, kind in find_files(folders) if kind == "distance"}
    size, seconds = 0.0, 0.0
    for number in range(MIN_PIECES, pieces + 1):
        missing = _share(number, {*pairs_of(number)} - there)
        size += _MEASURED_DISTANCES[number].file_bytes * missing
        seconds += _MEASURED_DISTANCES[number].seconds * missing
    return round(size), seconds


def lacking_bytes(folder: Path, task: Task) -> int:
    """Estimated bytes of the files of a task's pairs that a folder lacks; raises ``StorageError``."""
    there = find_files([folder])
    size = 0.0
    for number in range(MIN_PIECES, task.pairs[-1].pieces + 1):
        values, distances = (
            _share(number, [pair for pair in task.pairs if (pair, kind) not in there]) for kind in KINDS
        )
        size += _MEASURED[number].file_bytes * values
        size += _MEASURED_DISTANCES[number].file_bytes * distances if number <= task.distances else 0
    return round(size)


def _costs(pieces: int, there: dict[Material, int]) -> TableCosts:
    pairs, all_of_them = pairs_of(pieces), _MEASURED[pieces]
    missing = _share(pieces, {*pairs} - there.keys())
    return {
        "pieces": pieces,
        "pairs": len(pairs),
        "pairs_there": sum(pair in there for pair in pairs),
        "bytes_there": sum(there.get(pair, 0) for pair in pairs),
        "bytes_more": round(all_of_them.file_bytes * missing),
        "core_seconds_more": round(all_of_them.seconds * missing, 2),
        "memory": needed_bytes(Task(tuple(pairs_up_to(pieces)))).memory,
    }


def _share(pieces: int, some: Container[Material]) -> float:
    """The fraction of the words of all pairs of ``pieces`` pieces that ``some`` of these have."""
    words = {pair: layout_of(pair).words for pair in pairs_of(pieces)}
    return sum(count for pair, count in words.items() if pair in some) / sum(words.values())
