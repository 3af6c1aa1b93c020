"""Retrograde analysis of one pair of slices, part by part, by threads that share the work."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ..interrupts import map_threads
from ..movegen import new_moves
from .layout import Layout
from .parts import Parts, parts_of, waves_of
from .solve import Grid, grids_of, settle_rows, sweep_rows

Values = tuple[np.ndarray, np.ndarray]
"""Bits of the won and of the lost positions of a pair of slices: uint32 [words, 2], a column for each side to move."""
Work = Callable[[int, int], int | None]  # on rows from one to before another
Over = Callable[[range, Work], int]  # does work on rows, see ``Workers.over``
_CHUNKS_PER_THREAD = 16
WHOLE_WORDS = 1 << 20  # smaller pairs are solved as one part: two threads share its rows better than small parts
NO_MARKS = np.zeros(0, np.uint8)  # every word is looked at
_WORDS_A_CHANGE = 64  # marking what a change reaches takes about as long as looking at this many words
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
        known = slices, words, values, todo, 0
        self.over_rows(grid, lambda low, high: settle_rows(low, high, grid, *known, new_moves()))

    def sweep(self, grid: Grid, values: np.ndarray, todo: np.ndarray, theirs: np.ndarray) -> int:
        """``sweep_rows`` on all words; returns the number of those that changed."""
        mine = values, todo, NO_MARKS, 0
        return self.over_rows(grid, lambda low, high: sweep_rows(low, high, grid, *mine, theirs, NO_MARKS))


class Open:
    """What is still open in a part, whose words begin at ``first``.

    Attributes:
        values, todo: see ``settle_rows``. marks: of words to be looked at, see ``sweep_rows``.
    """

    def __init__(self, values: np.ndarray, first: int) -> None:
        self.values, self.todo, self.first = values, np.zeros_like(values), first
        self.marks = NO_MARKS

    def mark(self) -> np.ndarray:
        """The marks; from the first call on only words are looked at that have been marked."""
        if len(self.marks) == 0:
            self.marks = np.zeros(len(self.values), np.uint8)
        return self.marks


class Problem(NamedTuple):
    """A pair that is being solved.

    Attributes:
        layout, parts: of the pair. grids: with the first and the second side to move.
        slices, words: directory [NUM_CODES] of ``SLICE`` and values uint32 [words, 2] of every slice that captures and
            promotions can lead to.
        values: of the pair, set.
    """

    layout: Layout
    parts: Parts
    grids: tuple[Grid, Grid]
    slices: np.ndarray
    words: np.ndarray
    values: Values

    def solve_part(self, part: int, over: Over) -> None:
        """Solves one part; those that it leads to are solved."""
        here = self.words_of(part)
        mine = [Open(self.values[side][here], part * self.parts.words) for side in range(2)]
        for side in range(2):
            self._settle(side, part, mine[side], over)
        idle, side, changed, marking = 0, 0, self.parts.words, False
        while idle < 2:
            marking |= changed < self.parts.words // _WORDS_A_CHANGE
            marks = mine[1 - side].mark() if marking else NO_MARKS
            changed = self._sweep(side, part, mine[side], over, marks)
            idle, side = 0 if changed else idle + 1, 1 - side

    def look_ahead(self, side: int, part: int, found: np.ndarray, over: Over) -> None:
        """Adds to ``found``, uint32 [words of a part, 2], what the solved other side makes of a part's positions."""
        mine = Open(found, part * self.parts.words)
        self._settle(side, part, mine, over)
        self._sweep(side, part, mine, over, NO_MARKS)

    def waves(self) -> list[list[int]]:
        """The parts in the order in which they can be solved, see ``parts.waves_of``."""
        return waves_of(self.layout) if self.parts.total > 1 else [[0]]

    def words_of(self, part: int) -> slice:
        """The words of a part."""
        return slice(part * self.parts.words, (part + 1) * self.parts.words)

    def _rows_of(self, part: int) -> range:
        rows = self.grids[0].rows // self.parts.total
        return range(part * rows, (part + 1) * rows)

    def _settle(self, side: int, part: int, mine: Open, over: Over) -> None:
        grid, known = self.grids[side], (self.slices, self.words)
        todo = mine.values, mine.todo, mine.first
        over(self._rows_of(part), lambda low, high: settle_rows(low, high, grid, *known, *todo, new_moves()))

    def _sweep(self, side: int, part: int, mine: Open, over: Over, marks: np.ndarray) -> int:
        grid, theirs = self.grids[side], self.values[1 - side]
        known = mine.values, mine.todo, mine.marks, mine.first
        return over(self._rows_of(part), lambda low, high: sweep_rows(low, high, grid, *known, theirs, marks))

    def each(self, wave: list[int], workers: Workers, work: Callable[[int, Over], None]) -> None:
        """Does ``work`` for parts that do not wait for one another, each by one thread where there are enough."""
        if len(wave) < workers.threads:
            for part in wave:
                work(part, workers.over)
            return

        def in_turn(parts: list[int]) -> None:
            for part in parts:
                work(part, lambda rows, kernel: kernel(rows.start, rows.stop) or 0)

        map_threads(workers, in_turn, jobs_of(wave, self.parts.words))


def jobs_of(wave: list[int], words: int) -> Iterator[list[int]]:
    """The parts of a wave, each of ``words`` words, put together where they are small."""
    most = max(1, _JOB_WORDS // words)
    return (wave[first : first + most] for first in range(0, len(wave), most))


def problem_of(layout: Layout, slices: np.ndarray, words: np.ndarray, values: Values) -> Problem:
    """The problem of a pair; arguments as there."""
    whole = layout.words < WHOLE_WORDS
    parts = Parts(None, 1, layout.words) if whole else parts_of(layout)
    return Problem(layout, parts, grids_of(layout), slices, words, values)


def solve_pair(
    problem: Problem, workers: Workers, solved: int = 0, report: Callable[[int], None] = lambda waves: None
) -> None:
    """Finds the values of all positions of a pair; those of waves that are not solved are zero before.

    Args:
        solved: the number of waves that are solved already. report: told of each further one how many now are.
    """
    waves = problem.waves()
    for number in range(solved, len(waves)):
        problem.each(waves[number], workers, problem.solve_part)
        report(number + 1)


def restore_second(problem: Problem, workers: Workers) -> None:
    """Finds the values with the second side to move, zero before, from those with the first."""

    def restore(part: int, over: Over) -> None:
        problem.look_ahead(1, part, problem.values[1][problem.words_of(part)], over)

    problem.each(list(range(problem.parts.total)), workers, restore)
