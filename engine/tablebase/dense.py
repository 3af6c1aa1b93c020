"""All values of many slices in one array in memory: two bits, or a distance, for each position.

These are for builders and trainers, which need all positions. To look up single positions, probe the files.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit

from ..bitboard import NUM_SQUARES, borrowed
from ..game import ENGLISH, check_game
from ..interrupts import map_threads
from ..memory import check_memory
from ..movegen import new_moves
from ..outcomes import LOSS, WIN
from .arena import PAGE, Arena
from .captures import capture_places
from .distance import Halves, KnownSlices, solve_distances
from .folder import default_folder
from .layout import NUM_KINDS, Layout, add_slice, code_of, layout_of, locate, lookup, no_slices
from .material import MAX_PIECES, MIN_PIECES, Material, materials_between, pairs_up_to, slices_of
from .slice_file import SliceFile, file_name
from .solve import free_places, grid_of, place_fast, place_row, seen_by_mover, settle_capture
from .solver import Problem, Values, Workers, problem_of, restore_second, solve_pair
from .wdl_codec import BLOCK_WORDS, BlockCodec


def decode_file(file: SliceFile, layout: Layout, workers: Workers, values: np.ndarray) -> None:
    """Decodes a file into ``values``, uint32 [words, 2]; valid only where ``wdl_codec`` stores a value."""
    grid, priors = grid_of(layout, False), file.priors()
    edges = np.linspace(0, file.header.blocks, min(file.header.blocks, 4 * workers.threads) + 1).astype(int)

    def decode(low: int, high: int) -> None:
        codec = BlockCodec(grid, priors)
        for block in range(low, high):
            here = values[block * BLOCK_WORDS : (block + 1) * BLOCK_WORDS]
            here[:] = codec.decode(block, file.block(block))[: len(here)]

    map_threads(workers, decode, edges[:-1].tolist(), edges[1:].tolist())


@njit(cache=True, nogil=True)
def _complete_rows(low, high, grid, solved, kept, values, moves):
    """Completes the values of rows ``low`` to ``high - 1`` with the first side to move, from those that a file stores.

    Positions with a capture are settled by its results; the others get the value of their stored copy.

    Args:
        solved: directory and values of the slices that captures lead to.
        kept: directory in which this slice begins at word 0.
        values: uint32 [words, 2], the stored values (``decode_file``); completed. Stored values never change, so
            several threads may read them.
    """
    (slices, words), kept = borrowed(solved), borrowed(kept)
    values, moves, grid = borrowed(values), borrowed(moves), borrowed(grid)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    for row in range(low, high):
        taken_by_row, word_of_row = place_row(grid, row, ranks, pieces)
        for rank in range(grid.sizes[grid.order[NUM_KINDS - 1]]):
            word = word_of_row + rank
            taken = place_fast(grid, rank, taken_by_row, ranks, pieces)
            others = pieces[grid.roamer]
            places = free_places(grid.roamer, taken)
            captures = capture_places(grid, pieces, taken)
            all_won, all_lost = np.uint32(0), np.uint32(0)
            while places != 0:
                bit = np.uint32(places & (~places + np.uint32(1)))
                places ^= bit
                pieces[grid.roamer] = others | bit
                own, opp, kings = seen_by_mover(grid, pieces)
                if captures & bit != 0:
                    state = settle_capture(own, opp, kings, slices, words, moves)
                    won, lost = state == WIN, state == LOSS
                else:
                    at, place = locate(own, opp, kings, kept)
                    won = values[at, 0] >> place & np.uint32(1) != 0
                    lost = values[at, 1] >> place & np.uint32(1) != 0
                all_won |= bit if won else np.uint32(0)
                all_lost |= bit if lost else np.uint32(0)
            values[word, 0] = all_won
            values[word, 1] = all_lost
            pieces[grid.roamer] = others


def restore_pair(file: SliceFile, problem: Problem, workers: Workers) -> None:
    """Sets all values of a pair from its file; they must be zero before."""
    layout, first, values = problem.layout, problem.grids[0], problem.values[0]
    kept = no_slices()
    add_slice(kept, layout.material, 0)
    decode_file(file, layout, workers, values)
    known = (problem.slices, problem.words), kept, values
    workers.over_rows(first, lambda low, high: _complete_rows(low, high, first, *known, new_moves()))
    restore_second(problem, workers)


def check_pieces(pieces: int) -> None:
    """Raises ``ValueError`` if ``pieces`` is not a number of pieces with tables."""
    if not MIN_PIECES <= pieces <= MAX_PIECES:
        raise ValueError(f"tables have {MIN_PIECES} to {MAX_PIECES} pieces, not {pieces}")


def _reserved_words(material: Material) -> int:
    """Words to reserve for a slice, so that each begins on a page in tables of values and of distances."""
    return -(-layout_of(material).words // PAGE) * PAGE


class Dense:
    """An array with a row for each word of all slices of 2 to ``pieces`` pieces; memory is used as slices are filled
    in.

    Args:
        file: file that holds the array; in memory if None.

    Attributes:
        slices: [NUM_CODES] of ``layout.SLICE``, the directory; ``start`` is -1 for a slice that is not filled in.

    Raises:
        ValueError: ``pieces`` is out of range, or there is not enough memory.
        StorageError: the file cannot be made.
    """

    row: ClassVar[np.dtype[Any]]  # dtype of one word

    def __init__(self, pieces: int, file: Path | None = None) -> None:
        check_game("the set of endgame tables", ENGLISH)
        check_pieces(pieces)
        self.pieces = pieces
        self.slices = no_slices()
        self._starts: dict[Material, int] = {}
        total = 0
        for material in materials_between(MIN_PIECES, pieces):
            self._starts[material] = total
            total += _reserved_words(material)
        self._arena = Arena(self.size(pieces), file)
        rows = self._arena.bytes.view(self.row.base).reshape(-1, *self.row.shape)
        self._rows, self._second_side = rows[:total], rows[total:]

    @classmethod
    def size(cls, pieces: int) -> int:
        """Bytes of the array: rows of all slices of 2 to ``pieces`` pieces, and a symmetric pair's second side."""
        slices = materials_between(MIN_PIECES, pieces)
        second_side = max(_reserved_words(material) for material in slices if material.symmetric)
        return (sum(map(_reserved_words, slices)) + second_side) * cls.row.itemsize

    def __contains__(self, material: object) -> bool:
        return isinstance(material, Material) and bool(self.slices["start"][material.code] >= 0)

    def slice_rows(self, material: Material) -> np.ndarray:
        """The rows of one slice, as a view."""
        start = self._starts[material]
        return self._rows[start : start + layout_of(material).words]

    def pair_rows(self, pair: Material) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a pair with the first and with the second side to move, as views.

        A symmetric pair is one slice. Its second rows are a temporary array, which the next symmetric pair overwrites.
        """
        second = self._second_side[: layout_of(pair).words] if pair.symmetric else self.slice_rows(pair.swapped())
        return self.slice_rows(pair), second

    def _place(self, rows: np.ndarray) -> tuple[int, int]:
        """First byte and end of a view's bytes in the arena."""
        low = rows.ctypes.data - self._arena.bytes.ctypes.data
        return low, low + rows.nbytes

    def _clear(self, rows: np.ndarray) -> None:
        """Sets rows (a view) to zero, and gives their memory back if the system can do that."""
        self._arena.clear(*self._place(rows))

    def _vacate(self, *materials: Material) -> None:
        """Takes slices out, whose rows are about to change."""
        for material in materials:
            self.slices["start"][material.code] = -1

    def _empty_rows(self, pair: Material) -> None:
        """Takes a pair out and sets its rows to zero."""
        self._vacate(*slices_of(pair))
        for side in self.pair_rows(pair):
            self._clear(side)

    def fill(self, pair: Material, rows: Iterable[np.ndarray]) -> None:
        """Fills in a pair from ``rows`` [2, words, ...]: with the first and with the second side to move."""
        for material, mine in zip(slices_of(pair), rows, strict=False):
            self.slice_rows(material)[:] = mine
        self._enter(pair)

    def _enter(self, pair: Material) -> None:
        self._add(*slices_of(pair))

    def _add(self, *materials: Material) -> None:
        for material in materials:
            add_slice(self.slices, material, self._starts[material])

    def filled(self) -> set[Material]:
        """The set of slices that are filled in."""
        return {Material.of_code(int(code)) for code in np.flatnonzero(self.slices["start"] >= 0)}

    def drop_second(self, pair: Material) -> None:
        """Gives back the memory of a symmetric pair's second rows, which nothing needs any more."""
        if pair.symmetric:
            self._clear(self.pair_rows(pair)[1])

    def drop(self, *materials: Material) -> None:
        """Removes slices, and gives their memory back if the system can do that."""
        self._vacate(*materials)
        for material in materials:
            self._clear(self.slice_rows(material))


class DenseTables(Dense):
    """Values of the slices filled in so far.

    Attributes:
        words: uint32 [words, 2], won and lost positions: 53 MB for 2-5 pieces, 1.1 GB for 2-6.
        report: called with the pair being solved and the fraction of it, 0 to 1, that is solved.
    """

    row = np.dtype((np.uint32, 2))

    def __init__(self, pieces: int, file: Path | None = None) -> None:
        super().__init__(pieces, file)
        self.words = self._rows
        self.report: Callable[[Material, float], None] = lambda pair, part: None

    def _problem(self, pair: Material) -> Problem:
        return problem_of(layout_of(pair), self.slices, self.words, self.pair_rows(pair))

    def _empty(self, pair: Material) -> Problem:
        self._empty_rows(pair)
        return self._problem(pair)

    def solve(self, pair: Material, workers: Workers) -> Values:
        """Solves a pair and fills it in; returns its values, see ``pair_rows``.

        The slices that it needs must be filled in.
        """
        problem, solved = self._begin(pair)
        self._tell(problem, solved)
        solve_pair(problem, workers, solved, partial(self._solved, problem))
        self._enter(pair)
        return problem.values

    def _begin(self, pair: Material) -> tuple[Problem, int]:
        """The problem of a pair, and the number of its waves that are solved already."""
        return self._empty(pair), 0

    def _solved(self, problem: Problem, waves: int) -> None:
        """Called when the first ``waves`` waves of a pair are solved."""
        self._tell(problem, waves)

    def _tell(self, problem: Problem, waves: int) -> None:
        parts = sum(map(len, problem.waves()[:waves]))
        self.report(problem.layout.material, parts / problem.parts.total)

    def restore(self, file: SliceFile, workers: Workers) -> Values:
        """Fills in a pair from its file; returns its values, see ``pair_rows``.

        The slices that it needs must be filled in.
        """
        problem = self._empty(file.pair)
        restore_pair(file, problem, workers)
        self._enter(file.pair)
        return problem.values

    def fill_from(self, folder: Path, pair: Material, workers: Workers) -> tuple[Values, bool]:
        """Fills in a pair from the folder's file or, without one, by solving it.

        Returns its values, and whether it was solved. Raises ``TableFileError`` if the file is damaged or foreign.
        """
        path = folder / file_name(pair, "wdl")
        if not path.exists():
            return self.solve(pair, workers), True
        with SliceFile(path, checked=True) as file:
            return self.restore(file, workers), False

    def values_of(self, pair: Material, workers: Workers) -> Values:
        """The values of a pair that is filled in, see ``pair_rows``; the slices that it needs must be filled in."""
        problem = self._problem(pair)
        if pair.symmetric:  # the second side may be another pair's, and on disk parts of it are released
            self._clear(problem.values[1])
            restore_second(problem, workers)
        return problem.values

    def lookup(self, positions: np.ndarray) -> np.ndarray:
        """Values int8 [N] (1 win, 0 draw, -1 loss, for the side to move) of positions uint32 [N, 3 or more].

        Both sides must have pieces. Raises ``KeyError`` if a position's slice is not filled in.
        """
        values = np.zeros(len(positions), np.int8)
        if not _lookup_many(positions, self.slices, self.words, values):
            raise KeyError("a position's slice is not filled in")
        return values


class DenseDistances(Dense):
    """Half distances (see ``distance``) of the slices filled in so far: 0.2 GB for 2-5 pieces."""

    row = np.dtype((np.uint8, NUM_SQUARES))

    def solve(self, pair: Material, tables: DenseTables, values: Values, workers: Workers) -> Halves:
        """Computes a pair's half distances and fills it in; returns them, see ``pair_rows``."""
        self._empty_rows(pair)
        known, halves = KnownSlices(tables.slices, tables.words, self._rows), self.pair_rows(pair)
        solve_distances(layout_of(pair), known, values, halves, workers)
        self._enter(pair)
        return halves


class Step(NamedTuple):
    """One finished pair of several.

    Attributes:
        done, total: numbers of words in the finished pairs and in all pairs.
        solved: whether the pair was solved, not found in the folder.
    """

    pair: Material
    done: int
    total: int
    solved: bool

    @property
    def words(self) -> int:
        return layout_of(self.pair).words


def in_steps(pairs: list[Material], work: Callable[[Material], bool]) -> Iterator[Step]:
    """Calls ``work`` for one pair after another; it returns whether it has solved the pair."""
    done, total = 0, sum(layout_of(pair).words for pair in pairs)
    for pair in pairs:
        solved = work(pair)
        done += layout_of(pair).words
        yield Step(pair, done, total, solved)


def load_tables(
    folder: Path | None, pieces: int, threads: int | None = None, report: Callable[[Step], None] = lambda step: None
) -> DenseTables:
    """Loads all values of 2 to ``pieces`` pieces: from a folder's files if they exist, otherwise by solving.

    Writes no files. 2-5 pieces take 53 MB and a few seconds, 2-6 pieces 1.1 GB and some minutes.

    Args:
        folder: need not exist; ``default_folder()`` if None.
        report: called after every pair.

    Raises:
        TableFileError: a file in the folder is damaged or foreign.
        ValueError: there is not enough memory.
    """
    place, tables = folder or default_folder(), DenseTables(pieces)
    check_memory(tables.words.nbytes, f"values of 2-{pieces} pieces", "choose fewer pieces")
    with Workers(threads) as workers:
        for step in in_steps(pairs_up_to(pieces), lambda pair: tables.fill_from(place, pair, workers)[1]):
            report(step)
    return tables


@njit(cache=True, nogil=True)
def _lookup_many(positions, slices, words, values):
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        if slices[code_of(own, opp, kings)].start < 0:
            return False
        values[i] = lookup(own, opp, kings, slices, words)
    return True
