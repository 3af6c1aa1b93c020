"""Retrograde analysis of one pair of slices, part by part, with several threads."""

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
"""Values of a pair with the first and with the second side to move: each uint32 [words, 2], won and lost positions."""
Work = Callable[[int, int], int | None]  # on rows from the first argument to before the second
Over = Callable[[range, Work], int]  # runs work on rows, see ``Workers.over``
_CHUNKS_PER_THREAD = 16
WHOLE_WORDS = 1 << 20  # pairs with fewer words are solved as one part: threads share its rows better than small parts
NO_MARKS = np.zeros(0, np.uint8)  # all words are looked at
_WORDS_A_CHANGE = 64  # marking the words for one change takes about as long as looking at this number of words
_JOB_WORDS = 1 << 18  # small parts are joined to jobs of at most this number of words


class Workers(ThreadPoolExecutor):
    """Threads that share the rows of a grid. ``threads``: their number; all cores if None."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or os.cpu_count() or 1
        super().__init__(self.threads)

    def over_rows(self, grid: Grid, work: Work) -> int:
        """Runs ``work`` on all rows of a grid in chunks; returns the sum of the results."""
        return self.over(range(grid.rows), work)

    def over(self, rows: range, work: Work) -> int:
        """Runs ``work`` on these rows in chunks; returns the sum of the results."""
        chunks = min(len(rows), self.threads * _CHUNKS_PER_THREAD)
        edges = np.linspace(rows.start, rows.stop, chunks + 1).astype(int)
        return sum(n or 0 for n in map_threads(self, work, edges[:-1], edges[1:]))

    def settle(self, grid: Grid, slices: np.ndarray, words: np.ndarray, values: np.ndarray, todo: np.ndarray) -> None:
        """``settle_rows`` on all rows."""
        known = slices, words, values, todo, 0
        self.over_rows(grid, lambda low, high: settle_rows(low, high, grid, *known, new_moves()))

    def sweep(self, grid: Grid, values: np.ndarray, todo: np.ndarray, theirs: np.ndarray) -> int:
        """``sweep_rows`` on all words; returns the number of changed words."""
        mine = values, todo, NO_MARKS, 0
        return self.over_rows(grid, lambda low, high: sweep_rows(low, high, grid, *mine, theirs, NO_MARKS))


class Open:
    """Values and open positions of a part with one side to move.

    Attributes:
        values, todo, first: see ``settle_rows``.
        marks: words to look at, see ``sweep_rows``.
    """

    def __init__(self, values: np.ndarray, first: int) -> None:
        self.values, self.todo, self.first = values, np.zeros_like(values), first
        self.marks = NO_MARKS

    def mark(self) -> np.ndarray:
        """Returns the marks. After the first call, only marked words are looked at."""
        if len(self.marks) == 0:
            self.marks = np.zeros(len(self.values), np.uint8)
        return self.marks


class Problem(NamedTuple):
    """A pair that is being solved.

    Attributes:
        layout, parts: layout of the pair, and its division into parts.
        grids: grids with the first and with the second side to move.
        slices, words: directory [NUM_CODES] of ``SLICE`` and values uint32 [words, 2] of all slices that captures and
            promotions can lead to.
        values: values of the pair, which are set.
    """

    layout: Layout
    parts: Parts
    grids: tuple[Grid, Grid]
    slices: np.ndarray
    words: np.ndarray
    values: Values

    def solve_part(self, part: int, over: Over) -> None:
        """Solves one part; the parts that it leads to must be solved."""
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
        """Derives a part's values with ``side`` to move from the solved ones with the other side to move, and adds them
        to ``found``, uint32 [words of a part, 2]."""
        mine = Open(found, part * self.parts.words)
        self._settle(side, part, mine, over)
        self._sweep(side, part, mine, over, NO_MARKS)

    def waves(self) -> list[list[int]]:
        """The parts in the order in which they can be solved, see ``parts.waves_of``."""
        return waves_of(self.layout) if self.parts.total > 1 else [[0]]

    def words_of(self, part: int) -> slice:
        """The range of words of a part."""
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
        """Runs ``work`` on independent parts: each in one thread if there are enough parts, else each with all."""
        if len(wave) < workers.threads:
            for part in wave:
                work(part, workers.over)
            return

        def in_turn(parts: list[int]) -> None:
            for part in parts:
                work(part, lambda rows, kernel: kernel(rows.start, rows.stop) or 0)

        map_threads(workers, in_turn, jobs_of(wave, self.parts.words))


def solved_parts(layout: Layout) -> Parts:
    """The parts by which a pair is solved: a small one as a whole."""
    return Parts(None, 1, layout.words) if layout.words < WHOLE_WORDS else parts_of(layout)


def jobs_of(wave: list[int], words: int) -> Iterator[list[int]]:
    """The parts of a wave, each of ``words`` words; small parts are joined to groups (``_JOB_WORDS``)."""
    most = max(1, _JOB_WORDS // words)
    return (wave[first : first + most] for first in range(0, len(wave), most))


def problem_of(layout: Layout, slices: np.ndarray, words: np.ndarray, values: Values) -> Problem:
    """Makes the ``Problem`` of a pair; see there for the arguments."""
    return Problem(layout, solved_parts(layout), grids_of(layout), slices, words, values)


def solve_pair(
    problem: Problem, workers: Workers, solved: int = 0, report: Callable[[int], None] = lambda waves: None
) -> None:
    """Computes the values of all positions of a pair; those of waves that are not solved yet must be zero.

    Args:
        solved: number of waves that are solved already.
        report: called after each wave with the number of solved waves.
    """
    waves = problem.waves()
    for number in range(solved, len(waves)):
        problem.each(waves[number], workers, problem.solve_part)
        report(number + 1)


def restore_second(problem: Problem, workers: Workers) -> None:
    """Computes the values with the second side to move, which must be zero, from those with the first."""

    def restore(part: int, over: Over) -> None:
        problem.look_ahead(1, part, problem.values[1][problem.words_of(part)], over)

    problem.each(list(range(problem.parts.total)), workers, restore)
