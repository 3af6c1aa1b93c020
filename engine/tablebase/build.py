"""Builds table files: solves what is missing, slice by slice, and goes on where an earlier build stopped."""

from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import numpy as np

from ..files import make_folder, remove_stale_temporaries
from ..interrupts import map_threads
from ..memory import check_memory
from .count import count_pair
from .dense import DenseDistances, DenseTables, Step, in_steps
from .distance import encode_distances
from .layout import layout_of
from .material import Material, pairs_up_to
from .slice_file import Kind, SliceFile, file_name, write_slice
from .solve import grid_of
from .solver import Workers
from .wdl_codec import encode_slice, num_blocks


def promotions(pair: Material) -> set[Material]:
    """The pairs that a promotion leads to."""
    own_men, own_kings, opp_men, opp_kings = pair
    after = set()
    if own_men:
        after.add(Material(own_men - 1, own_kings + 1, opp_men, opp_kings).pair)
    if opp_men:
        after.add(Material(own_men, own_kings, opp_men - 1, opp_kings + 1).pair)
    return after


def spent(pairs: list[Material], last: Material, in_memory: Container[Material]) -> list[Material]:
    """Pairs in memory, up to ``last``, that no later one leads to: of the most pieces, by promotion alone."""
    done = pairs.index(last) + 1
    needed = {after for pair in pairs[done:] for after in promotions(pair)}
    most = pairs[-1].pieces
    return [pair for pair in pairs[:done] if pair.pieces == most and pair in in_memory and pair not in needed]


def drop_spent(pairs: list[Material], last: Material, *memories: DenseTables | DenseDistances | None) -> None:
    """Takes the pairs out of memory that are ``spent``."""
    for memory in memories:
        if memory is not None:
            for pair in spent(pairs, last, memory):
                memory.drop(pair)


def peak_bytes(pieces: int, distance: bool) -> int:
    """Largest memory of a build from nothing: the pairs that are needed, and a copy of the one that is solved."""
    pairs = pairs_up_to(pieces)
    in_memory: set[Material] = set()
    peak = 0
    for pair in pairs:
        in_memory.add(pair)
        words = (layout_of(other).words * (1 if other.symmetric else 2) for other in [*in_memory, pair])
        peak = max(peak, sum(words))
        in_memory.difference_update(spent(pairs, pair, in_memory))
    return peak * (DenseTables.row.itemsize + (DenseDistances.row.itemsize if distance else 0))


def _check_memory(pieces: int, distance: bool) -> None:
    what = f"{'values and distances' if distance else 'values'} of 2-{pieces} pieces"
    advice = "choose fewer pieces" + (" or leave --distance out" if distance else "")
    check_memory(peak_bytes(pieces, distance), what, advice)


def write_values(folder: Path, pair: Material, values: np.ndarray, workers: Workers) -> None:
    """Writes the file of a pair's values, uint32 [2, words, 2] (``solver.solve_pair``); raises ``StorageError``."""
    layout = layout_of(pair)
    blocks = encode_slice(grid_of(layout, False), values[0], workers)
    write_slice(folder, pair, "wdl", count_pair(layout, values), *blocks)


def missing_files(folder: Path, pair: Material, distance: bool) -> list[Kind]:
    """The kinds of file that a folder lacks for a pair.

    Those that nobody asked for are looked through as well: a folder with a damaged file is not complete. Raises
    ``TableFileError`` for such a file.
    """
    kinds: tuple[Kind, ...] = ("wdl", "distance")
    lacking = [kind for kind in kinds if not _has(folder, pair, kind)]
    return lacking if distance else [kind for kind in lacking if kind == "wdl"]


def _has(folder: Path, pair: Material, kind: Kind) -> bool:
    try:
        SliceFile(folder / file_name(pair, kind), checked=True).close()
    except FileNotFoundError:
        return False
    return True


class Builder:
    """Fills a folder with the tables of 2 to ``pieces`` pieces.

    Args:
        distance: also how many plies every win takes.
        threads: of the solver; all cores if None.

    Raises:
        ValueError: ``pieces`` is out of range, or the tables take more memory than there is.
        StorageError: the folder cannot be made.
    """

    def __init__(self, folder: Path, pieces: int, distance: bool = False, threads: int | None = None) -> None:
        self._tables = DenseTables(pieces)
        self._distances = DenseDistances(pieces) if distance else None
        _check_memory(pieces, distance)
        make_folder(folder)
        remove_stale_temporaries(folder)
        self.folder, self.pieces = folder, pieces
        self._threads = threads

    def run(self) -> Iterator[Step]:
        """Builds pair by pair; what is there already is looked through first, and kept.

        Raises:
            TableFileError: a file in the folder is damaged or foreign.
            StorageError: a file cannot be written.
        """
        pairs = pairs_up_to(self.pieces)
        lacking = {pair: missing_files(self.folder, pair, self._distances is not None) for pair in pairs}

        def build(pair: Material) -> bool:
            if lacking[pair]:
                self._build(pair, lacking[pair], workers)
            return bool(lacking[pair])

        with Workers(self._threads) as workers:
            for step in in_steps(pairs, build):
                yield step
                drop_spent(pairs, step.pair, self._tables, self._distances)

    def build_values(self, pair: Material) -> Path:
        """Builds the values of one pair, from the folder's files where they are there; returns its file.

        Raises what ``run`` does.
        """
        with Workers(self._threads) as workers:
            self._build(pair, ["wdl"], workers)
        return self.folder / file_name(pair, "wdl")

    def forget(self, pairs: Iterable[Material]) -> None:
        """Takes pairs out of memory; those that are needed again come back from their files."""
        for pair in pairs:
            if pair in self._tables:
                self._tables.drop(pair)

    def _build(self, pair: Material, lacking: list[Kind], workers: Workers) -> None:
        values, halves = self._fill(pair, workers)
        self._write(pair, values, halves, lacking, workers)

    def _fill(self, pair: Material, workers: Workers) -> tuple[np.ndarray, np.ndarray | None]:
        """Brings a pair into memory, and what it needs before it; returns its values and half distances."""
        tables, distances = self._tables, self._distances
        for before in [*pairs_up_to(pair.pieces - 1), *sorted(promotions(pair))]:
            if before not in tables:
                self._fill(before, workers)
        values, _ = tables.fill_from(self.folder, pair, workers)
        return values, None if distances is None else distances.solve(pair, tables, values, workers)

    def _write(
        self, pair: Material, values: np.ndarray, halves: np.ndarray | None, missing: list[Kind], workers: Workers
    ) -> None:
        layout, grid = layout_of(pair), grid_of(layout_of(pair), False)
        if "wdl" in missing:
            write_values(self.folder, pair, values, workers)
        if halves is not None and "distance" in missing:
            blocks = map_threads(
                workers, lambda block: encode_distances(block, grid, values[0], halves[0]), range(num_blocks(layout))
            )
            write_slice(self.folder, pair, "distance", count_pair(layout, values, halves), None, blocks)
