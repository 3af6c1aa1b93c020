"""What tables cost: bytes of files, time of a processor's core, memory; and what is there of them already."""

from collections.abc import Container, Iterable
from pathlib import Path
from typing import NamedTuple, TypedDict

from .layout import layout_of
from .material import MAX_PIECES, MIN_PIECES, Material, materials
from .plan import peak_bytes
from .store import find_files


class _Measured(NamedTuple):
    """A build of all values of one number of pieces, on a core of an AMD EPYC Zen 4, 2026-11-26 (docs/measured.md)."""

    file_bytes: int  # the same on every machine
    seconds: float


_MEASURED = {
    2: _Measured(2_167, 0.01),
    3: _Measured(3_522, 0.05),
    4: _Measured(109_006, 1.0),
    5: _Measured(515_765, 15.0),
    6: _Measured(17_919_783, 375.0),
    7: _Measured(141_552_997, 4656.0),
}


class TableCosts(TypedDict):
    """What tables of the values of one number of pieces cost.

    ``pairs`` of slices there are, of which files of ``pairs_there`` are there already, with ``bytes_there``. The others
    would take about ``bytes_more`` and, of one core's time, ``core_seconds_more``: measured for all on one machine, and
    divided by the numbers of positions; of eight pieces it is extrapolated. ``memory`` is what a build of all from the
    fewest pieces on takes at its most, or of the disk where memory does not suffice.
    """

    pieces: int
    pairs: int
    pairs_there: int
    bytes_there: int
    bytes_more: int
    core_seconds_more: float
    memory: int


def table_costs(folders: Iterable[Path], pieces: int = MAX_PIECES) -> list[TableCosts]:
    """What tables of 2 to ``pieces`` pieces cost beyond those that the folders have; raises ``StorageError``."""
    files = {pair: path for (pair, kind), path in find_files(folders).items() if kind == "wdl"}
    there = {pair: path.stat().st_size for pair, path in files.items()}
    return [_costs(number, there) for number in range(MIN_PIECES, pieces + 1)]


def _costs(pieces: int, there: dict[Material, int]) -> TableCosts:
    pairs = [material for material in materials(pieces) if material.leads]
    missing = _share(pairs, [pair for pair in pairs if pair not in there])
    all_of_them = _costs_of_all(pieces)
    return {
        "pieces": pieces,
        "pairs": len(pairs),
        "pairs_there": sum(pair in there for pair in pairs),
        "bytes_there": sum(there.get(pair, 0) for pair in pairs),
        "bytes_more": round(all_of_them.file_bytes * missing),
        "core_seconds_more": round(all_of_them.seconds * missing, 2),
        "memory": peak_bytes(pieces, False),
    }


def _costs_of_all(pieces: int) -> _Measured:
    """Measured or, of more pieces, what is measured of the most, for as many words more."""
    if pieces in _MEASURED:
        return _MEASURED[pieces]
    most = max(_MEASURED)
    more = _num_words(pieces) / _num_words(most)
    return _Measured(round(_MEASURED[most].file_bytes * more), _MEASURED[most].seconds * more)


def _num_words(pieces: int) -> int:
    return sum(layout_of(pair).words for pair in materials(pieces) if pair.leads)


def _share(pairs: Iterable[Material], some: Container[Material]) -> float:
    """The share of positions that some of the pairs have."""
    words = {pair: layout_of(pair).words for pair in pairs}
    return sum(count for pair, count in words.items() if pair in some) / sum(words.values())
