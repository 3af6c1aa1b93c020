"""Builds table files: solves the missing slices one after another, and continues an earlier build."""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from ..files import make_folder, remove_stale_temporaries
from ..interrupts import map_threads
from .costs import lacking_bytes
from .count import count_pair
from .dense import DenseDistances, DenseTables, Step, check_pieces, in_steps
from .disk_tables import DiskDistances, DiskTables, OnDisk
from .distance import Halves, encode_distances
from .layout import layout_of
from .material import Material, pairs_up_to, slices_of
from .plan import Room, Task, check_disk, disk_suffices, drop_spent, needs, room_for, to_fill
from .slice_file import Kind, SliceFile, file_name, write_slice
from .solve import grid_of
from .solver import Values, Workers
from .wdl_codec import encode_slice, num_blocks


def _arrays(
    folder: Path, pieces: int, task: Task, only: Collection[Material] | None
) -> tuple[DenseTables, DenseDistances | None]:
    """Empty tables in memory or, where that does not suffice, in files of the folder.

    What a killed build of the same tables has left in such files is gone on with, even if memory suffices. Raises
    ``ValueError`` if memory and disk do not suffice, or the files are those of a build of other tables.

    Args:
        only: pairs that the build is asked for; None: all.
    """
    room = _room_for(folder, pieces, task, only)
    tables = DiskTables(pieces, folder, only) if room.values_on_disk else DenseTables(pieces)
    distances = None
    try:
        if task.distances:
            distances = DiskDistances(pieces, folder, only) if room.distances_on_disk else DenseDistances(pieces)
        taken = sum(array.left_bytes(folder) for array in _on_disk(tables, distances))
        check_disk(folder, task, room, taken, lacking_bytes(folder, task))
    except ValueError:
        for array in _on_disk(tables, distances):
            array.give_up()
        raise
    return tables, distances


def _room_for(folder: Path, pieces: int, task: Task, only: Collection[Material] | None) -> Room:
    room = room_for(task)
    begun = Room(*(on or kind.has_begun(pieces, folder, only) for on, kind in zip(room, _DISK_KINDS, strict=True)))
    taken = sum(kind.left_bytes(folder) for kind in _DISK_KINDS)
    return begun if disk_suffices(folder, task, begun, taken, lacking_bytes(folder, task)) else room


def _on_disk(*arrays: object) -> list[OnDisk]:
    return [array for array in arrays if isinstance(array, OnDisk)]


_DISK_KINDS: tuple[type[OnDisk], ...] = (DiskTables, DiskDistances)  # as in Room


def write_values(folder: Path, pair: Material, values: Values, workers: Workers) -> None:
    """Writes the file of a pair's values; raises ``StorageError``."""
    layout = layout_of(pair)
    blocks = encode_slice(grid_of(layout, False), values[0], workers)
    write_slice(folder, pair, "wdl", count_pair(layout, values), *blocks)


def missing_files(folder: Path, pair: Material, distance: bool) -> list[Kind]:
    """The kinds of file that a folder lacks for a pair; those of distances only if ``distance``.

    All existing files are checked, including distances that are not asked for. Raises ``TableFileError`` if one is
    damaged.
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
        folder: folder for the files; made if it does not exist.
        pieces: largest number of pieces.
        distance: whether to build tables of distances, too.
        only: pairs to build, with those that they need; all if None.
        threads: threads of the solver; all cores if None.
        report: called with the pair being solved and the fraction of it, 0 to 1, that is solved.

    Raises:
        ValueError: ``pieces`` is out of range, there is not enough memory and disk, or a build of other tables was
            killed in the folder and has left its work.
        StorageError: the folder cannot be made.
    """

    def __init__(
        self,
        folder: Path,
        pieces: int,
        distance: bool = False,
        only: Collection[Material] | None = None,
        threads: int | None = None,
        report: Callable[[Material, float], None] = lambda pair, part: None,
    ) -> None:
        check_pieces(pieces)
        is_new = not folder.exists()
        make_folder(folder)
        remove_stale_temporaries(folder)
        self._pairs = pairs_up_to(pieces) if only is None else to_fill(pairs_up_to(pieces), only, ())
        self._only = only
        task = Task(tuple(self._pairs), pieces if distance else 0)
        try:
            self._tables, self._distances = _arrays(folder, pieces, task, only)
        except ValueError:
            if is_new:  # an empty folder would be left of a build that was refused
                folder.rmdir()
            raise
        self._tables.report = report
        self.folder, self.pieces = folder, pieces
        self._threads = threads

    def run(self) -> Iterator[Step]:
        """Builds pair by pair; existing files are checked first, and kept.

        Raises ``TableFileError`` if one of these is damaged or foreign, ``StorageError`` if a file cannot be written.
        """
        pairs, only = self._pairs, self._only
        lacking = {pair: missing_files(self.folder, pair, self._distances is not None) for pair in pairs}
        there = set(filter(self._has, self._tables.filled()))
        fill = to_fill(pairs, {pair for pair in only or pairs if lacking[pair]}, there)
        if only is not None:
            pairs = [pair for pair in pairs if pair in only or pair in fill]

        def build(pair: Material) -> bool:
            if pair in fill:
                self._build(pair, lacking[pair], workers)
                later = fill[fill.index(pair) + 1 :]
                drop_spent(later, self._tables, self._distances)
            return bool(lacking[pair])

        with Workers(self._threads) as workers:
            yield from in_steps(pairs, build)
        for array in _on_disk(self._tables, self._distances):
            array.remove()
        if only is None:
            for kind in _DISK_KINDS[: 1 if self._distances is None else 2]:
                kind.remove_spent(self.pieces, self.folder)

    def build_values(self, pair: Material) -> Path:
        """Builds the file of values of one pair and returns its path. Uses the folder's files for the pairs that it
        needs.

        Raises the errors of ``run``.
        """
        with Workers(self._threads) as workers:
            self._build(pair, ["wdl"], workers)
        return self.folder / file_name(pair, "wdl")

    def keep_for(self, later: Iterable[Material]) -> None:
        """Removes from memory what these pairs do not need; it is read from its file if it is needed again."""
        drop_spent([*later], self._tables)

    def _build(self, pair: Material, lacking: list[Kind], workers: Workers) -> None:
        self._fill(pair, workers)
        halves = None if self._distances is None else self._distances.pair_rows(pair)
        self._write(pair, self._tables.pair_rows(pair), halves, lacking, workers)
        for array in (self._tables, self._distances):
            if array is not None:
                array.drop_second(pair)

    def _fill(self, pair: Material, workers: Workers) -> None:
        """Fills in a pair and all that it needs.

        What a symmetric pair has for the second side to move may be another pair's afterwards: files do not hold it.
        """
        tables, distances = self._tables, self._distances
        solved = all(material in tables for material in slices_of(pair))
        dated = distances is None or all(material in distances for material in slices_of(pair))
        if not (solved and dated):  # else only a file is lacking: the build was killed while it was written
            for before in sorted({material.pair for material in needs([pair]) if not self._has(material)}, key=sum):
                if not all(map(self._has, slices_of(before))):
                    self._fill(before, workers)
        if not solved:
            tables.fill_from(self.folder, pair, workers)
        if distances is not None and not dated:
            distances.solve(pair, tables, tables.values_of(pair, workers), workers)

    def _has(self, material: Material) -> bool:
        return material in self._tables and (self._distances is None or material in self._distances)

    def _write(
        self, pair: Material, values: Values, halves: Halves | None, missing: list[Kind], workers: Workers
    ) -> None:
        layout, grid = layout_of(pair), grid_of(layout_of(pair), False)
        if "wdl" in missing:
            write_values(self.folder, pair, values, workers)
        if halves is not None and "distance" in missing:
            blocks = map_threads(
                workers, lambda block: encode_distances(block, grid, values[0], halves[0]), range(num_blocks(layout))
            )
            write_slice(self.folder, pair, "distance", count_pair(layout, values, halves), None, blocks)
