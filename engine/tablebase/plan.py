"""Which slices lead to which, and therefore what a build must hold in memory at a time."""

import shutil
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ..memory import available_memory
from .dense import DenseDistances, DenseTables
from .layout import Layout, layout_of
from .material import Material, slices_of
from .parts import parts_of, waves_of
from .solver import NO_MARKS, solved_parts

_OPEN_BYTES = 2 * (DenseTables.row.itemsize + NO_MARKS.itemsize)  # per word being solved: open positions, and marks
_DATING_BYTES = 2 * 2 * DenseTables.row.itemsize  # same, for distances: seeds and dated positions of both sides


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


def to_fill(pairs: Sequence[Material], lacking: Collection[Material], there: Container[Material]) -> list[Material]:
    """The pairs to fill in so that all pairs of ``lacking`` can be solved, if slices in ``there`` are filled in."""
    wanted: set[Material] = set()
    filled = []
    for pair in reversed(pairs):
        if pair in lacking or any(material in wanted and material not in there for material in slices_of(pair)):
            filled.append(pair)
            wanted |= needs([pair])
    return filled[::-1]


def drop_spent(later: list[Material], *memories: DenseTables | DenseDistances | None) -> None:
    """Removes the slices from memory that are of none of the ``later`` pairs, and that none of these needs."""
    needed = needs(later) | {material for pair in later for material in slices_of(pair)}
    for memory in memories:
        if memory is not None:
            memory.drop(*memory.filled() - needed)


class Needs(NamedTuple):
    """Bytes that a build needs at the most: of memory, and of its folder's disk beside the tables."""

    memory: int
    disk: int


class Room(NamedTuple):
    """Where a build or a check keeps what it works on.

    Attributes:
        values_on_disk, distances_on_disk: whether these lie in files of the folder, else in memory.
    """

    values_on_disk: bool = False
    distances_on_disk: bool = False


IN_MEMORY = Room()


class Task(NamedTuple):
    """What is to be built, or checked.

    Attributes:
        pairs: pairs of slices, in an order in which they can be solved.
        distances: largest number of pieces whose distances are wanted, too; 0 for none.
        whole_sides: whether the second sides of symmetric pairs are kept whole even on disk, as a check does.
    """

    pairs: tuple[Material, ...]
    distances: int = 0
    whole_sides: bool = False

    def __str__(self) -> str:
        what = "values and distances" if self.distances else "values"
        return f"{what} of 2-{self.pairs[-1].pieces} pieces"


@cache
def needed_bytes(task: Task, room: Room = IN_MEMORY) -> Needs:
    """What a task needs from nothing."""
    pairs, places = task.pairs, [0, 0]
    places[0] += max(solved_parts(layout_of(pair)).words for pair in pairs) * _OPEN_BYTES
    second_side = _three_waves if room.values_on_disk and not (task.whole_sides or task.distances) else _all_words
    places[room.values_on_disk] += _held_bytes(pairs, DenseTables.row.itemsize, second_side)
    if dated := [pair for pair in pairs if pair.pieces <= task.distances]:
        places[0] += max(layout_of(pair).words for pair in dated) * _DATING_BYTES
        places[room.distances_on_disk] += _held_bytes(dated, DenseDistances.row.itemsize, _all_words)
    return Needs(*places)


def _held_bytes(pairs: Sequence[Material], row: int, second_side: Callable[[Layout], int]) -> int:
    """Most bytes of all slices that something still leads to, and of the second side of a symmetric pair.

    Args:
        row: bytes of a word. second_side: number of words of a symmetric pair's second side.
    """
    held, peak = set[Material](), 0
    for number, pair in enumerate(pairs):
        held |= {*slices_of(pair)}
        words = sum(layout_of(material).words for material in held)
        words += second_side(layout_of(pair)) if pair.symmetric else 0
        peak = max(peak, words * row)
        held &= needs(pairs[number + 1 :])
    return peak


def rooms(task: Task) -> list[Room]:
    """The possible places, those that take most memory first."""
    return [IN_MEMORY, Room(False, True), Room(True, True)] if task.distances else [IN_MEMORY, Room(True)]


def room_for(task: Task) -> Room:
    """The first of ``rooms`` in which memory suffices; raises ``ValueError`` if none does."""
    there, possible = available_memory(), rooms(task)
    if there is None:
        return IN_MEMORY
    for room in possible:
        if needed_bytes(task, room).memory <= there:
            return room
    raise ValueError(f"{_costs(task)}; {there / 1e9:.1f} GB of memory are free: choose fewer pieces")


def disk_suffices(folder: Path, task: Task, room: Room, taken: int = 0, tables: int = 0) -> bool:
    """Whether a folder's disk has room for what does not lie in memory, and for the tables: the system ends a process
    whose rows find no room.

    Args:
        taken: bytes of disk that files of an earlier build take already.
        tables: bytes of the tables that will be written.
    """
    needed = needed_bytes(task, room).disk
    return needed == 0 or needed + tables <= shutil.disk_usage(folder).free + taken


def check_disk(folder: Path, task: Task, room: Room, taken: int = 0, tables: int = 0) -> None:
    """Raises ``ValueError`` unless ``disk_suffices``."""
    if not disk_suffices(folder, task, room, taken, tables):
        free = shutil.disk_usage(folder).free + taken
        files = f", beside {tables / 1e9:.1f} GB of tables" if tables else ""
        raise ValueError(
            f"{_costs(task)}{files}; there is less memory, and {free / 1e9:.1f} GB of disk are free: "
            "choose fewer pieces"
        )


def _costs(task: Task) -> str:
    memory, (least, disk) = needed_bytes(task).memory, needed_bytes(task, rooms(task)[-1])
    return f"{task} take {memory / 1e9:.1f} GB of memory, or {least / 1e9:.1f} GB and {disk / 1e9:.1f} GB of disk"


def _all_words(layout: Layout) -> int:
    return layout.words


def _three_waves(layout: Layout) -> int:
    """Most words that ``DiskTables`` hold of a symmetric pair's second side: of the last two waves, and of the one that
    a killed build needs to go on."""
    sizes = [0, *(len(wave) for wave in waves_of(layout))]
    return parts_of(layout).words * (max(sizes) + max(one + other for one, other in pairwise(sizes)))
