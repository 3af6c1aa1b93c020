"""All values of many slices side by side in memory: two bits for each position, or its distance.

Builders and trainers, which may touch any position, read these; whoever needs a few positions probes the files.
"""

import mmap
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit

from ..bitboard import NUM_SQUARES, borrowed
from ..interrupts import map_threads
from ..memory import check_memory
from ..movegen import jumpers_of, new_moves
from .distance import KnownSlices, solve_distances
from .folder import default_folder
from .layout import NUM_KINDS, Layout, add_slice, code_of, layout_of, locate, lookup, no_slices
from .material import MAX_PIECES, MIN_PIECES, Material, materials_between, pairs_up_to
from .slice_file import SliceFile, file_name
from .solve import LOST, WON, free_places, grid_of, grids_of, place_fast, place_row, seen_by_mover, settle_position
from .solver import Workers, solve_pair
from .wdl_codec import BLOCK_WORDS, BlockCodec

_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0  # memory need not be there before it is used


def decode_file(file: SliceFile, layout: Layout, workers: Workers) -> np.ndarray:
    """What a file of values holds, uint32 [words, 2]; right only where ``wdl_codec`` keeps a value."""
    grid, priors = grid_of(layout, False), file.priors()
    values = np.zeros((file.header.blocks * BLOCK_WORDS, 2), np.uint32)
    edges = np.linspace(0, file.header.blocks, min(file.header.blocks, 4 * workers.threads) + 1).astype(int)

    def decode(low: int, high: int) -> None:
        codec = BlockCodec(grid, priors)
        for block in range(low, high):
            values[block * BLOCK_WORDS : (block + 1) * BLOCK_WORDS] = codec.decode(block, file.block(block))

    map_threads(workers, decode, edges[:-1].tolist(), edges[1:].tolist())
    return values[: layout.words]


@njit(cache=True, nogil=True)
def _complete_rows(low, high, grid, solved, kept, values, moves):
    """Fills ``values`` with the positions of the first side to move: captures settled, others from their kept copy.

    Args:
        solved: directory and values of the slices that captures lead to.
        kept: directory in which this slice begins at word 0, and what its file keeps (``decode_file``).
        values: uint32 [words, 2], set.
    """
    (slices, words), (here, there) = borrowed(solved), borrowed(kept)
    values, moves = borrowed(values), borrowed(moves)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    for row in range(low, high):
        taken_by_row, word_of_row = place_row(grid, row, ranks, pieces)
        for rank in range(grid.sizes[grid.order[NUM_KINDS - 1]]):
            word = word_of_row + rank
            taken = place_fast(grid, rank, taken_by_row, ranks, pieces)
            others = pieces[grid.roamer]
            places = free_places(grid.roamer, taken)
            while places != 0:
                bit = np.uint32(places & (~places + np.uint32(1)))
                places ^= bit
                pieces[grid.roamer] = others | bit
                own, opp, kings = seen_by_mover(grid, pieces)
                if jumpers_of(own, opp, kings) != 0:
                    state = settle_position(own, opp, kings, slices, words, moves)
                    won, lost = state == WON, state == LOST
                else:
                    at, place = locate(own, opp, kings, here)
                    won = there[at, 0] >> place & np.uint32(1) != 0
                    lost = there[at, 1] >> place & np.uint32(1) != 0
                values[word, 0] |= bit if won else np.uint32(0)
                values[word, 1] |= bit if lost else np.uint32(0)
            pieces[grid.roamer] = others


def restore_pair(
    file: SliceFile, layout: Layout, slices: np.ndarray, words: np.ndarray, workers: Workers
) -> np.ndarray:
    """All values of a pair from its file: uint32 [2, words, 2], see ``solver.solve_pair``.

    Args:
        slices, words: directory and values of every slice that captures and promotions can lead to.
    """
    values, todo = np.zeros((2, layout.words, 2), np.uint32), np.zeros((layout.words, 2), np.uint32)
    first, second = grids_of(layout)
    here = slices.copy()
    add_slice(here, layout.material, 0)
    tables = (slices, words), (here, decode_file(file, layout, workers))
    workers.over_rows(first, lambda low, high: _complete_rows(low, high, first, *tables, values[0], new_moves()))
    workers.settle(second, slices, words, values[1], todo)
    workers.sweep(second, values[1], todo, values[0])
    return values


def _reserve(size: int, pieces: int) -> mmap.mmap:
    private = {} if os.name == "nt" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE}
    try:
        return mmap.mmap(-1, size, **private)
    except OSError as error:
        raise ValueError(f"2-{pieces} pieces take up to {size / 1e9:.0f} GB of memory, more than there is") from error


class _Dense:
    """An array with a row for each word of all slices of 2 to ``pieces`` pieces; memory is taken as they are filled in.

    Attributes:
        slices: [NUM_CODES] of ``layout.SLICE``, the directory; a slice that is not filled in has no entry.

    Raises:
        ValueError: ``pieces`` is out of range, or the tables take more memory than there is.
    """

    row: ClassVar[np.dtype[Any]]  # of one word

    def __init__(self, pieces: int) -> None:
        if not MIN_PIECES <= pieces <= MAX_PIECES:
            raise ValueError(f"tables have {MIN_PIECES} to {MAX_PIECES} pieces, not {pieces}")
        self.pieces = pieces
        self.slices = no_slices()
        self._starts: dict[Material, int] = {}
        total = 0
        for material in materials_between(MIN_PIECES, pieces):
            self._starts[material] = total
            total += layout_of(material).words
        self._memory = _reserve(total * self.row.itemsize, pieces)
        self._rows = np.frombuffer(self._memory, self.row.base).reshape(-1, *self.row.shape)

    def __contains__(self, material: object) -> bool:
        return isinstance(material, Material) and bool(self.slices["start"][material.code] >= 0)

    def slice_rows(self, material: Material) -> np.ndarray:
        """The rows of one slice: a view."""
        start = self._starts[material]
        return self._rows[start : start + layout_of(material).words]

    def fill(self, pair: Material, rows: np.ndarray) -> None:
        """Fills in both slices of a pair from [2, words, ...]: with the first and the second side to move."""
        for side, material in enumerate([pair] if pair.symmetric else [pair, pair.swapped()]):
            self.slice_rows(material)[:] = rows[side]
            add_slice(self.slices, material, self._starts[material])

    def drop(self, pair: Material) -> None:
        """Takes a pair out again and gives its memory back where the system can do that."""
        for material in {pair, pair.swapped()}:
            self.slices["start"][material.code] = -1
            if hasattr(self._memory, "madvise"):
                page, row, start = mmap.PAGESIZE, self.row.itemsize, self._starts[material]
                low = -(-start * row // page) * page
                high = (start + layout_of(material).words) * row // page * page
                if high > low:
                    self._memory.madvise(mmap.MADV_DONTNEED, low, high - low)


class DenseTables(_Dense):
    """Values of the slices filled in so far.

    Attributes:
        words: uint32 [words, 2], won and lost positions: 53 MB for 2-5 pieces, 1.1 GB for 2-6.
    """

    row = np.dtype((np.uint32, 2))

    def __init__(self, pieces: int) -> None:
        super().__init__(pieces)
        self.words = self._rows

    def solve(self, pair: Material, workers: Workers) -> np.ndarray:
        """Solves a pair from the slices filled in, and fills it in. Returns its values, see ``solver.solve_pair``."""
        values = solve_pair(layout_of(pair), self.slices, self.words, workers)
        self.fill(pair, values)
        return values

    def restore(self, file: SliceFile, workers: Workers) -> np.ndarray:
        """Fills a pair in from its file and the slices filled in. Returns its values, see ``solver.solve_pair``."""
        values = restore_pair(file, layout_of(file.pair), self.slices, self.words, workers)
        self.fill(file.pair, values)
        return values

    def fill_from(self, folder: Path, pair: Material, workers: Workers) -> tuple[np.ndarray, bool]:
        """Fills a pair in from the folder's file or, without one, by solving it; returns its values and whether it was.

        Raises:
            TableFileError: the file is damaged or foreign.
        """
        path = folder / file_name(pair, "wdl")
        if not path.exists():
            return self.solve(pair, workers), True
        with SliceFile(path, checked=True) as file:
            return self.restore(file, workers), False

    def lookup(self, positions: np.ndarray) -> np.ndarray:
        """Values int8 [N] (1 win, 0 draw, -1 loss, for the side to move) of positions uint32 [N, 3 or more].

        Both sides have pieces.

        Raises:
            KeyError: a position's slice is not filled in.
        """
        values = np.zeros(len(positions), np.int8)
        if not _lookup_many(positions, self.slices, self.words, values):
            raise KeyError("a position lies outside the tables that are filled in")
        return values


class DenseDistances(_Dense):
    """Half distances (``distance``) of the slices filled in so far.

    Attributes:
        halves: uint8 [words, 32]: 0.2 GB for 2-5 pieces.
    """

    row = np.dtype((np.uint8, NUM_SQUARES))

    def __init__(self, pieces: int) -> None:
        super().__init__(pieces)
        self.halves = self._rows

    def solve(self, pair: Material, tables: DenseTables, values: np.ndarray, workers: Workers) -> np.ndarray:
        """Dates a pair's values and fills it in. Returns uint8 [2, words, 32], see ``distance.solve_distances``."""
        known = KnownSlices(tables.slices, tables.words, self.halves)
        halves = solve_distances(layout_of(pair), known, values, workers)
        self.fill(pair, halves)
        return halves


class Step(NamedTuple):
    """One pair that has just been done.

    Attributes:
        done, total: words of pairs done and to do.
        solved: it was solved just now, not found in the folder.
    """

    pair: Material
    done: int
    total: int
    solved: bool

    @property
    def words(self) -> int:
        return layout_of(self.pair).words


def in_steps(pairs: list[Material], work: Callable[[Material], bool]) -> Iterator[Step]:
    """Does ``work`` for pair after pair; it returns whether the pair was solved just now."""
    done, total = 0, sum(layout_of(pair).words for pair in pairs)
    for pair in pairs:
        solved = work(pair)
        done += layout_of(pair).words
        yield Step(pair, done, total, solved)


def load_tables(
    folder: Path | None, pieces: int, threads: int | None = None, report: Callable[[Step], None] = lambda step: None
) -> DenseTables:
    """All values of 2 to ``pieces`` pieces: read from a folder's files where they are there, otherwise solved.

    Nothing is written. 2-5 pieces take 53 MB and a few seconds, 2-6 pieces 1.1 GB and some minutes.

    Args:
        folder: may be absent; ``default_folder()`` if None.
        report: told of every pair that has been filled in.

    Raises:
        TableFileError: a file in the folder is damaged or foreign.
        ValueError: there is not so much memory.
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
