"""Tables that are kept in a file while they are built, for want of memory; a build that was killed goes on with it."""

from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from ..files import atomic_write
from .dense import DenseTables
from .layout import layout_of
from .material import MIN_PIECES, Material, materials_between, parse_name, slices_of

WORDS_FILE, RECORD_FILE = "build.words", "build.json"


class _Record(BaseModel):
    """Which slices the file holds. ``layout``: digest of where it holds them."""

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = 1
    pieces: int
    layout: str
    slices: list[str] = []


class DiskTables(DenseTables):
    """``DenseTables`` that take disk in place of memory: the system keeps in memory what is in use.

    Of a symmetric pair that has been solved there is only the first side to move.

    Args:
        folder: of ``WORDS_FILE`` and ``RECORD_FILE``, which may be there from a build that was killed.
    """

    def __init__(self, pieces: int, folder: Path) -> None:
        self._folder = folder
        self._record = _read(folder, _Record(pieces=pieces, layout=_digest(pieces)))
        super().__init__(pieces, folder / WORDS_FILE)
        for name in self._record.slices:
            super()._add(parse_name(name))

    def _passed(self, pair: Material, second: np.ndarray, words: slice) -> None:
        if pair.symmetric:
            self._clear(second[words])

    def _enter(self, pair: Material) -> None:
        for material in slices_of(pair):
            self._arena.save(*self._place(self.slice_rows(material)))
        super()._enter(pair)
        self._write()

    def drop(self, *materials: Material) -> None:
        # first the record, then what it is about
        for material in materials:
            self._take_out(material)
        self._write()
        super().drop(*materials)

    def _write(self) -> None:
        self._record.slices = [material.name for material in self.filled()]
        atomic_write(self._folder / RECORD_FILE, lambda file: file.write(self._record.model_dump_json().encode()))

    def disk_bytes(self) -> int:
        """What the file takes of the disk now."""
        return 512 * (self._folder / WORDS_FILE).stat().st_blocks

    def remove(self) -> None:
        """Removes the files: the build is complete."""
        for name in (RECORD_FILE, WORDS_FILE):
            (self._folder / name).unlink(missing_ok=True)


def _digest(pieces: int) -> str:
    layouts = [tuple(layout_of(material)) for material in materials_between(MIN_PIECES, pieces)]
    return sha256(repr(layouts).encode()).hexdigest()


def _read(folder: Path, new: _Record) -> _Record:
    """The record of a build of the same tables; otherwise a new one, and no words."""
    try:
        record = _Record.model_validate_json((folder / RECORD_FILE).read_bytes())
        if (record.pieces, record.layout) == (new.pieces, new.layout) and (folder / WORDS_FILE).exists():
            return record
    except (FileNotFoundError, ValidationError):
        pass
    for name in (RECORD_FILE, WORDS_FILE):
        (folder / name).unlink(missing_ok=True)
    return new
