"""Verifies table files: every position against all its successors, every count, and every distance.

Values that agree with those of all successors could still be wrong in a cycle, with each position won only because of
the next one. Distances exclude this: a position in such a cycle never gets a distance.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import numpy as np

from ..interrupts import map_threads
from .count import count_pair, fen_of
from .dense import DenseDistances, DenseTables, Step, in_steps
from .distance import EndlessWinError, kept_distances
from .folder import build_advice
from .layout import layout_of
from .material import Material, pairs_up_to
from .plan import Task, check_disk, drop_spent, room_for, to_fill
from .slice_file import Kind, SliceFile, TableFileError, file_name, rebuild_advice
from .solve import Grid, grid_of
from .solver import Over, Values, Workers, problem_of
from .verified import Verified
from .wdl_codec import BLOCK_WORDS

_MOST_NAMED = 3
_WORDS_AT_ONCE = 1 << 21  # of values; an interrupt waits until they are checked, some seconds


class Verifier:
    """Checks the tables of 2 to ``pieces`` pieces in a folder.

    Args:
        distances: largest number of pieces whose files of distances are checked too; 0 for none.
        threads: number of threads; all cores if None.
        resume: whether to keep in the folder what was found right (``verified``), and to begin after it.
        report: called with the pair being checked and the fraction of it, 0 to 1, that is checked.

    Attributes:
        before: the pairs that an earlier check has found right; their files have not changed.

    Raises:
        ValueError: the folder lacks some of the files, memory and disk do not suffice, or what an earlier check left
            cannot be read.
        TableFileError: a file that was found right is damaged.
        StorageError: memory does not suffice, and the folder cannot be written to.
    """

    def __init__(
        self,
        folder: Path,
        pieces: int,
        distances: int,
        threads: int | None = None,
        resume: bool = False,
        report: Callable[[Material, float], None] = lambda pair, part: None,
    ) -> None:
        self._folder, self._pairs = folder, pairs_up_to(pieces)
        self._most_dated, self._report = distances, report
        most: dict[Kind, int] = {"wdl": pieces, "distance": distances}
        self._names = names = [
            file_name(pair, kind) for kind in most for pair in self._pairs if pair.pieces <= most[kind]
        ]
        missing = [name for name in names if not (folder / name).exists()]
        if missing:
            more = ", ..." if len(missing) > _MOST_NAMED else ""
            raise ValueError(
                f"{folder} lacks {len(missing)} of the {len(names)} files of 2-{pieces} pieces "
                f"({', '.join(missing[:_MOST_NAMED])}{more}); "
                f"complete it with {build_advice(folder, pieces, any(name.endswith('.distance') for name in missing))}"
            )
        self._threads = threads
        self._verified = Verified(folder) if resume else None
        self.before = tuple(takewhile(self._was_right, self._pairs))  # all that these lead to is among them
        self._tables, self._distances = _arrays(folder, pieces, distances)

    def _was_right(self, pair: Material) -> bool:
        return self._verified is not None and self._verified.holds(self._digests(pair, checked=True))

    def _digests(self, pair: Material, checked: bool) -> dict[str, str]:
        """The checksums of a pair's files; ``checked``: whether to see now that the files match them."""
        kinds: tuple[Kind, ...] = ("wdl", "distance") if pair.pieces <= self._most_dated else ("wdl",)
        digests = {}
        for name in (file_name(pair, kind) for kind in kinds):
            with SliceFile(self._folder / name, checked) as file:
                digests[name] = file.digest
        return digests

    def run(self) -> Iterator[Step]:
        """Checks pair by pair; raises ``TableFileError`` if a file is damaged or contradicts the rules, and
        ``StorageError`` if what was found right cannot be kept."""
        rest = self._pairs[len(self.before) :]
        fill = to_fill(self._pairs, rest, ())
        dated = to_fill(self._pairs, [pair for pair in rest if pair.pieces <= self._most_dated], ())

        def check(pair: Material) -> bool:
            if pair in rest:
                self._check(pair, workers)
                return True
            if pair in fill:
                with SliceFile(self._folder / file_name(pair, "wdl")) as file:
                    values = self._tables.restore(file, workers)
                if self._distances is not None and pair in dated:
                    self._distances.solve(pair, self._tables, values, workers)
            return False

        with Workers(self._threads) as workers:
            for step in in_steps(self._pairs, check):
                yield step
                for array in (self._tables, self._distances):
                    if array is not None and step.pair.pieces <= array.pieces:
                        array.drop_second(step.pair)
                fill = [pair for pair in fill if pair != step.pair]
                drop_spent(fill, self._tables, self._distances)
        if self._verified is not None:
            self._verified.close(self._names)

    def _check(self, pair: Material, workers: Workers) -> None:
        values = self._check_values(pair, workers)
        if self._distances is not None and pair.pieces <= self._most_dated:
            self._check_distances(self._distances, pair, values, workers)
        if self._verified is not None:
            self._verified.add(self._digests(pair, checked=False))

    def _check_values(self, pair: Material, workers: Workers) -> Values:
        """Reads a pair's values and compares those with the first side to move with the ones that follow from their
        successors.

        Those with the second side to move are not stored, but derived from their successors.
        """
        layout, path = layout_of(pair), self._folder / file_name(pair, "wdl")
        with SliceFile(path, checked=True) as file:
            values = self._tables.restore(file, workers)
            counts = file.header.slices
        problem = problem_of(layout, self._tables.slices, self._tables.words, values)

        def check(part: int, over: Over) -> None:
            stored = values[0][problem.words_of(part)]
            expected = np.zeros_like(stored)
            problem.look_ahead(0, part, expected, over)
            wrong = np.flatnonzero(((stored ^ expected) != 0).any(axis=1))
            if len(wrong):
                at = int(wrong[0])
                word = problem.words_of(part).start + at
                raise _wrong_value(path, problem.grids[0], word, stored[at], expected[at])

        parts, at_once = problem.parts, max(1, _WORDS_AT_ONCE // problem.parts.words)
        for first in range(0, parts.total, at_once):
            problem.each(list(range(parts.total))[first : first + at_once], workers, check)
            self._report(pair, min(1.0, (first + at_once) / parts.total))
        if counts != count_pair(layout, values):
            raise _wrong_counts(path)
        return values

    def _check_distances(self, distances: DenseDistances, pair: Material, values: Values, workers: Workers) -> None:
        layout, grid = layout_of(pair), grid_of(layout_of(pair), False)
        path = self._folder / file_name(pair, "distance")
        try:
            halves = distances.solve(pair, self._tables, values, workers)
        except EndlessWinError as error:
            wrong = self._folder / file_name(pair, "wdl")
            raise TableFileError(
                f"{wrong} is wrong: some of its positions are won only because of one another; {rebuild_advice(wrong)}"
            ) from error
        with SliceFile(path, checked=True) as file:

            def check(block: int) -> None:
                expected = kept_distances(block, grid, values[0], halves[0])
                if not np.array_equal(file.distances(block), expected):
                    raise TableFileError(
                        f"{path} is wrong: distances of words {block * BLOCK_WORDS} to {(block + 1) * BLOCK_WORDS - 1} "
                        f"do not follow from their successors; {rebuild_advice(path)}"
                    )

            map_threads(workers, check, range(file.header.blocks))
            if file.header.slices != count_pair(layout, values, halves):
                raise _wrong_counts(path)


def _arrays(folder: Path, pieces: int, distances: int) -> tuple[DenseTables, DenseDistances | None]:
    """Empty tables in memory or, where that does not suffice, in files of the folder that end with the process."""
    task = Task(tuple(pairs_up_to(pieces)), distances, whole_sides=True)
    room = room_for(task)
    check_disk(folder, task, room)
    own = os.getpid()  # another process may verify the same folder
    files = [folder / f"verify.{own}.words" if room.values_on_disk else None]
    files.append(folder / f"verify.{own}.halves" if room.distances_on_disk else None)
    tables = DenseTables(pieces, files[0])
    halves = DenseDistances(distances, files[1]) if distances else None
    for file in files:
        if file is not None:
            with suppress(OSError):  # some systems do not remove files in use
                file.unlink()
    return tables, halves


def _wrong_counts(path: Path) -> TableFileError:
    return TableFileError(
        f"{path} is wrong: the counts in its header are not those of its positions; {rebuild_advice(path)}"
    )


def _wrong_value(path: Path, grid: Grid, word: int, stored: np.ndarray, right: np.ndarray) -> TableFileError:
    differing = int(stored[0] ^ right[0]) | int(stored[1] ^ right[1])
    bit = (differing & -differing).bit_length() - 1
    return TableFileError(
        f"{path} is wrong: {fen_of(grid, word, bit)} is stored as a {_value_at(stored, bit)}, "
        f"but its successors make it a {_value_at(right, bit)}; {rebuild_advice(path)}"
    )


def _value_at(words: np.ndarray, bit: int) -> str:
    won, lost = (int(word) >> bit & 1 for word in words)
    return "win" if won else "loss" if lost else "draw"
