"""Retrograde analysis of one pair of slices, part by part, by threads that share the work."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from ..interrupts import map_threads
from ..movegen import new_moves
from .layout import Layout
from .parts import Parts, parts_of, waves_of
from .solve import Grid, grids_of, settle_rows, sweep_rows

Work = Callable[[int, int], int | None]  # on rows from one to before another
_CHUNKS_PER_THREAD = 16
WHOLE_WORDS = 1 << 20  # smaller pairs are solved as one part: two threads share its rows better than small parts
_JOB_WORDS = 1 << 18  # parts of fewer words are solved in one go


class Workers(ThreadPoolExecutor):
    """Threads that share the rows of a grid; as many as there are cores if None."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or os.cpu_count() or 1
        super().__init__(self.threads)

    def over_rows(self, grid: Grid, work: Work) -> int:
        """Runs ``work`` over all rows of a grid in chunks; returns the sum of the results."""
        return self.over(range(grid.rows), work)

    def over(self, rows: range, work: Work) -> int:
        """Runs ``work`` over these rows in chunks; returns the sum of the results."""
        chunks = min(len(rows), self.threads * _CHUNKS_PER_THREAD)
        edges = np.linspace(rows.start, rows.stop, chunks + 1).astype(int)
        return sum(n or 0 for n in map_threads(self, work, edges[:-1], edges[1:]))

    def settle(self, grid: Grid, slices: np.ndarray, words: np.ndarray, values: np.ndarray, todo: np.ndarray) -> None:
        """``settle_rows`` on all rows."""
        self.over_rows(grid, lambda low, high: settle_rows(low, high, grid, slices, words, values, todo, new_moves()))

    def sweep(self, grid: Grid, values: np.ndarray, todo: np.ndarray, theirs: np.ndarray) -> int:
        """``sweep_rows`` on all rows; returns the number of words that changed."""
        return self.over_rows(grid, lambda low, high: sweep_rows(low, high, grid, values, todo, theirs))


class Problem(NamedTuple):
    """A pair that is being solved.

    Attributes:
        parts: of the pair. grids: with the first and the second side to move.
        slices, words: directory [NUM_CODES] of ``SLICE`` and values uint32 [words, 2] of every slice that captures and
            promotions can lead to.
        values: uint32 [2, words, 2], set: with the first and the second side to move; won and lost positions of the
            side to move. todo: the same, positions that are still open, see ``settle_rows``.
    """

    parts: Parts
    grids: tuple[Grid, Grid]
    slices: np.ndarray
    words: np.ndarray
    values: np.ndarray
    todo: np.ndarray

    def solve_part(self, part: int, over: Callable[[range, Work], int]) -> None:
        """Solves one part; those that it leads to are solved.

        Args:
            over: runs work over rows.
        """
        rows = rows_of(self.grids[0], self.parts, part)
        for side in range(2):
            over(rows, partial(self._settle, side))
        idle, side = 0, 0
        while idle < 2:
            changed = over(rows, partial(self._sweep, side))
            idle, side = 0 if changed else idle + 1, 1 - side

    def _settle(self, side: int, low: int, high: int) -> None:
        mine = self.values[side], self.todo[side], new_moves()
        settle_rows(low, high, self.grids[side], self.slices, self.words, *mine)

    def _sweep(self, side: int, low: int, high: int) -> int:
        return sweep_rows(low, high, self.grids[side], self.values[side], self.todo[side], self.values[1 - side])

    def solve(self, wave: list[int], workers: Workers) -> None:
        """Solves parts that do not lead to one another, each by one thread where there are enough of them."""
        if len(wave) < workers.threads:
            for part in wave:
                self.solve_part(part, workers.over)
        else:
            map_threads(workers, self._solve_parts, jobs_of(wave, self.parts.words))

    def _solve_parts(self, parts: list[int]) -> None:
        for part in parts:
            self.solve_part(part, lambda rows, work: work(rows.start, rows.stop) or 0)


def rows_of(grid: Grid, parts: Parts, part: int) -> range:
    """The rows of a part."""
    rows = grid.rows // parts.total
    return range(part * rows, (part + 1) * rows)


def jobs_of(wave: list[int], words: int) -> Iterator[list[int]]:
    """The parts of a wave, each of so many words, put together where they are small."""
    most = max(1, _JOB_WORDS // words)
    return (wave[first : first + most] for first in range(0, len(wave), most))


def solve_pair(layout: Layout, slices: np.ndarray, words: np.ndarray, workers: Workers) -> np.ndarray:
    """Values of all positions of a pair of slices, uint32 [2, words, 2]; see ``Problem``, also for the arguments."""
    shape = (2, layout.words, 2)
    whole = layout.words < WHOLE_WORDS
    parts = Parts(None, 1, layout.words) if whole else parts_of(layout)
    problem = Problem(parts, grids_of(layout), slices, words, np.zeros(shape, np.uint32), np.zeros(shape, np.uint32))
    for wave in [[0]] if whole else waves_of(layout):
        problem.solve(wave, workers)
    return problem.values
