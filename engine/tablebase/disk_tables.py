"""Tables in files for builds that do not fit into memory. A build that was killed can be continued."""

import os
import time
from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import BinaryIO, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..files import StorageError, atomic_write, open_locked
from .dense import Dense, DenseDistances, DenseTables
from .folder import build_advice
from .layout import layout_of
from .material import MAX_PIECES, MIN_PIECES, Material, materials_between, parse_name, slices_of
from .solver import Problem, Values, Workers

WORDS_FILE, RECORD_FILE = "build.words", "build.json"
HALVES_FILE, HALVES_RECORD_FILE = "build.halves", "build_halves.json"
_SAVE_S = 60.0  # seconds from one save of a pair's values to the next, which is after a whole wave: work lost by a kill


class _Record(BaseModel):
    """What a file of rows holds.

    Attributes:
        pieces: largest number of pieces.
        layout: digest of the layouts of all slices.
        slices: names of the slices that are filled in.
        begun: name of the pair being solved.
        waves: number of waves of that pair that are solved.
        only: names of the pairs that the build was asked for; None: all.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = 1
    pieces: int = Field(ge=MIN_PIECES, le=MAX_PIECES)
    layout: str
    slices: list[str] = []
    begun: str | None = None
    waves: int = 0
    only: list[str] | None = None

    @property
    def has_work(self) -> bool:
        return bool(self.slices or self.waves)

    def is_part_of(self, pieces: int, only: list[str] | None) -> bool:
        """Whether a build of 2 to ``pieces`` pieces makes all that this one was asked for, in the same rows."""
        return self.pieces == pieces and (only is None or (self.only is not None and {*self.only} <= {*only}))


class OnDisk(Dense):
    """Rows of words in a file; the system keeps the parts in use in memory. A killed build can be continued.

    Args:
        pieces: largest number of pieces.
        folder: folder of ``files``, which may exist from a build that was killed.
        only: pairs that the build is asked for; None: all.

    Attributes:
        files: names of the file of rows and of its record.

    Raises:
        ValueError: another build is running in the folder, or one that makes other tables was killed there.
        StorageError: the folder cannot be written to.
    """

    files: ClassVar[tuple[str, str]]
    dated: ClassVar[bool] = False  # whether only builds with distances have them

    def __init__(self, pieces: int, folder: Path, only: Collection[Material] | None = None) -> None:
        self._file, self._record_file = (folder / name for name in self.files)
        self._held = _hold(self._file)
        try:
            self._record = self._taken_over(pieces, folder, _names(only))
        except BaseException:
            self.close()
            raise
        super().__init__(pieces, self._file)
        self._add(*map(parse_name, self._record.slices))

    def _taken_over(self, pieces: int, folder: Path, only: list[str] | None) -> _Record:
        """The record of the build that was killed, or a new one with an empty file."""
        left = self._left(folder)
        if left is not None and left.is_part_of(pieces, only):
            return left.model_copy(update={"only": only})
        if left is not None and left.has_work:
            command = build_advice(folder, left.pieces, self.dated, left.only)
            raise ValueError(
                f"another build was begun in {folder}: finish it with {command}, or remove "
                f"{' and '.join(self.files)} there"
            )
        self._record_file.unlink(missing_ok=True)
        os.truncate(self._file, 0)
        return _Record(pieces=pieces, layout=_digest(pieces), only=only)

    @classmethod
    def _left(cls, folder: Path) -> _Record | None:
        """The record of an earlier build, if it goes with its file of rows."""
        file, record_file = (folder / name for name in cls.files)
        try:
            record = _Record.model_validate_json(record_file.read_bytes())
            fits = record.layout == _digest(record.pieces)
            # What was cut off would be read as zeros, which are draws
            return record if fits and file.stat().st_size == cls.size(record.pieces) else None
        except (FileNotFoundError, ValidationError):
            return None

    @classmethod
    def has_begun(cls, pieces: int, folder: Path, only: Collection[Material] | None = None) -> bool:
        """Whether a folder holds the work of a build of the same tables, or of some of them."""
        left = cls._left(folder)
        return left is not None and left.has_work and left.is_part_of(pieces, _names(only))

    @classmethod
    def left_bytes(cls, folder: Path) -> int:
        """Bytes that the file of rows in a folder takes; 0 without one."""
        file = folder / cls.files[0]
        return 512 * getattr(file.stat(), "st_blocks", 0) if file.exists() else 0  # Windows does not say

    @classmethod
    def remove_spent(cls, pieces: int, folder: Path) -> None:
        """Removes what a killed build of at most ``pieces`` pieces has left in a folder that has them all now; does
        nothing if another build is at work there."""
        file, record_file = (folder / name for name in cls.files)
        left = cls._left(folder)
        if left is not None and left.pieces <= pieces:
            with suppress(ValueError), _hold(file):
                record_file.unlink(missing_ok=True)
                file.unlink(missing_ok=True)

    def _vacate(self, *materials: Material) -> None:
        super()._vacate(*materials)
        self._write()  # before rows change, so that the record never names a slice that is not whole

    def _enter(self, pair: Material) -> None:
        for material in slices_of(pair):
            self._arena.save(*self._place(self.slice_rows(material)))
        super()._enter(pair)
        if self._record.begun == pair.name:
            self._note(None, 0)
        else:
            self._write()

    def _note(self, pair: Material | None, waves: int) -> None:
        self._record.begun, self._record.waves = pair.name if pair else None, waves
        self._write()

    def _write(self) -> None:
        self._record.slices = [material.name for material in self.filled()]
        atomic_write(self._record_file, self._record.model_dump_json().encode())

    def close(self) -> None:
        """Releases the lock, so that another build can use the files."""
        self._held.close()

    def give_up(self) -> None:
        """Leaves the files to another build; removes them if there is no work in them."""
        if self._record.has_work:
            self.close()
        else:
            self.remove()

    def remove(self) -> None:
        """Removes the files after a complete build."""
        for path in (self._record_file, self._file):
            path.unlink(missing_ok=True)
        self.close()


class DiskTables(OnDisk, DenseTables):
    """``DenseTables`` in a file. Even a pair that was being solved when the build was killed goes on where it was.

    Of a symmetric pair, only the values with the first side to move remain after solving; the others are released as
    soon as no other part needs them.
    """

    files = (WORDS_FILE, RECORD_FILE)

    def __init__(self, pieces: int, folder: Path, only: Collection[Material] | None = None) -> None:
        super().__init__(pieces, folder, only)
        self._save_at = 0.0

    def _begin(self, pair: Material) -> tuple[Problem, int]:
        self._save_at = time.monotonic() + _SAVE_S
        self._vacate(*slices_of(pair))
        if self._record.begun != pair.name:
            problem = self._empty(pair)
            self._note(pair, 0)
            return problem, 0
        problem, solved = self._problem(pair), self._record.waves
        for part in chain(*problem.waves()[solved:]):  # some of them may have been partly solved
            for side in problem.values:
                self._clear(side[problem.words_of(part)])
        return problem, solved

    def _solved(self, problem: Problem, waves: int) -> None:
        super()._solved(problem, waves)
        before, pair = self._record.waves, problem.layout.material
        if time.monotonic() < self._save_at:
            if pair.symmetric and waves - 2 >= before:  # a killed build goes on at wave ``before``
                self._release(problem, waves - 2, waves - 1)
            return
        for side in problem.values:
            self._arena.save(*self._place(side))
        self._note(pair, waves)
        if pair.symmetric:  # later waves need only the last one
            self._release(problem, max(0, before - 1), waves - 1)
        self._save_at = time.monotonic() + _SAVE_S

    def _release(self, problem: Problem, first: int, end: int) -> None:
        """Gives back what the second side of a symmetric pair has in waves ``first`` to ``end`` - 1."""
        for part in chain(*problem.waves()[first:end]):
            self._clear(problem.values[1][problem.words_of(part)])

    def _empty(self, pair: Material) -> Problem:
        self._spoil(pair)
        return super()._empty(pair)

    def values_of(self, pair: Material, workers: Workers) -> Values:
        self._spoil(pair)
        return super().values_of(pair, workers)

    def drop_second(self, pair: Material) -> None:
        self._spoil(pair)
        super().drop_second(pair)

    def _spoil(self, pair: Material) -> None:
        """Notes that the waves of the pair that was being solved are lost, if rows of it are about to change.

        Symmetric pairs share the array for the second side.
        """
        begun = self._record.begun
        if begun == pair.name or (begun and pair.symmetric and parse_name(begun).symmetric):
            self._note(None, 0)


class DiskDistances(OnDisk, DenseDistances):
    """``DenseDistances`` in a file. A pair that was being solved when the build was killed is begun anew."""

    files = (HALVES_FILE, HALVES_RECORD_FILE)
    dated = True


def _hold(path: Path) -> BinaryIO:
    """Opens the file of rows, which may be new, and locks it against other builds until it is closed."""
    try:
        return open_locked(path)
    except StorageError:
        raise
    except OSError:
        raise ValueError(f"another build is running in {path.parent}: wait for it, or choose another folder") from None


def _names(pairs: Collection[Material] | None) -> list[str] | None:
    return None if pairs is None else sorted(pair.name for pair in pairs)


def _digest(pieces: int) -> str:
    layouts = [tuple(layout_of(material)) for material in materials_between(MIN_PIECES, pieces)]
    return sha256(repr(layouts).encode()).hexdigest()
