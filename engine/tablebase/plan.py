"""Which slices lead to which, and therefore what a build must hold in memory at a time."""

import shutil
from collections.abc import Collection, Container, Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

from ..memory import available_memory
from .dense import DenseDistances, DenseTables
from .layout import Layout, layout_of
from .material import Material, pairs_up_to, slices_of
from .parts import parts_of, waves_of

_OPEN_BYTES = 2 * DenseTables.row.itemsize  # bytes per word being solved: open positions of both sides
_DATING_BYTES = 2 * (2 * DenseTables.row.itemsize + DenseDistances.row.itemsize)  # same, for distances


@cache
def successors(material: Material) -> frozenset[Material]:
    """The slices that captures and promotions lead to, with the other side to move."""
    men, kings, opp_men, opp_kings = material
    after = set()
    for crowned in range(min(men, 1) + 1):
        mine = men - crowned, kings + crowned
        left = [(m, k) for m in range(opp_men + 1) for k in range(opp_kings + 1) if 0 < m + k < opp_men + opp_kings]
        after |= {Material(*theirs, *mine) for theirs in left}
        after |= {Material(opp_men, opp_kings, *mine)} if crowned else set()
    return frozenset(after)


def promotions(pair: Material) -> set[Material]:
    """The pairs that a promotion leads to."""
    return {after.pair for material in slices_of(pair) for after in successors(material) if after.pieces == pair.pieces}


def needs(pairs: Iterable[Material]) -> set[Material]:
    """The slices that captures and promotions from these pairs lead to."""
    return {after for pair in pairs for material in slices_of(pair) for after in successors(material)}


def to_fill(pairs: list[Material], lacking: Collection[Material], there: Container[Material]) -> list[Material]:
    """The pairs to fill in so that all pairs of ``lacking`` can be solved, if slices in ``there`` are filled in."""
    wanted: set[Material] = set()
    filled = []
    for pair in reversed(pairs):
        if pair in lacking or any(material in wanted and material not in there for material in slices_of(pair)):
            filled.append(pair)
            wanted |= needs([pair])
    return filled[::-1]


def drop_spent(later: list[Material], *memories: DenseTables | DenseDistances | None) -> None:
    """Removes the slices from memory that none of the ``later`` pairs needs."""
    needed = needs(later)
    for memory in memories:
        if memory is not None:
            memory.drop(*memory.filled() - needed)


@cache
def peak_bytes(pieces: int, distance: bool, on_disk: bool = False) -> int:
    """Peak memory, or disk, in bytes of a build from nothing: slices needed, and data of the pair being solved."""
    pairs, held, peak = pairs_up_to(pieces), set[Material](), 0
    row = DenseTables.row.itemsize + (DenseDistances.row.itemsize if distance else 0)
    for number, pair in enumerate(pairs):
        layout = layout_of(pair)
        held |= {*slices_of(pair)}
        second_side = _two_waves(layout) if on_disk else layout.words
        extra = second_side * DenseTables.row.itemsize if pair.symmetric else 0
        extra += layout.words * _DATING_BYTES if distance else parts_of(layout).words * _OPEN_BYTES
        peak = max(peak, sum(layout_of(material).words for material in held) * row + extra)
        held &= needs(pairs[number + 1 :])
    return peak


def fits_memory(pieces: int) -> bool:
    """Whether a build of values from nothing fits into memory."""
    there = available_memory()
    return there is None or peak_bytes(pieces, False) <= there


def check_disk(folder: Path, pieces: int, needed: int, taken: int = 0) -> None:
    """Raises ``ValueError`` if values that do not fit into memory do not fit on a folder's disk, either.

    Args:
        needed: bytes of disk.
        taken: bytes of these that the files take already.
    """
    free = shutil.disk_usage(folder).free + taken
    if needed > free:
        either = f"{peak_bytes(pieces, False) / 1e9:.1f} GB of memory or {needed / 1e9:.1f} GB of disk"
        raise ValueError(
            f"values of 2-{pieces} pieces take {either}; "
            f"there is less memory, and {free / 1e9:.1f} GB of disk are free: choose fewer pieces"
        )


def _two_waves(layout: Layout) -> int:
    """Most words of two consecutive waves, which ``DiskTables`` hold of a symmetric pair's second side."""
    sizes = [0, *(len(wave) for wave in waves_of(layout))]
    return parts_of(layout).words * max(one + other for one, other in pairwise(sizes))
