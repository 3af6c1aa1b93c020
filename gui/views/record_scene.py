"""Base classes of exercises whose results are stored, and of those that the exact tables judge."""

import contextlib
from collections.abc import Iterator
from typing import Generic

from engine.board import Move
from engine.errors import one_line
from engine.tablebase import MissingTableError, Tablebase, open_tablebase
from engine.tablebase.slice_file import TableFileError

from ..exercises.puzzle_record import Record, load_record, save_record
from .board_view import BoardPicture
from .exercise_scene import ExerciseScene
from .program import Program

_LONGEST = 400  # characters of an error: a path, and the command that builds the table again
_FAULTS = (TableFileError, MissingTableError, OSError)


class RecordScene(ExerciseScene, Generic[Record]):
    """Stores a record next to the games; other windows may add results to it.

    Attributes:
        record: the record as it was last read, with the results entered since.
        fault: what is wrong with record or exercises, in one line; "" if nothing.
    """

    def __init__(self, app: Program, kind: type[Record]) -> None:
        super().__init__(app)
        self._path = app.autosave.folder.parent / kind.file_name
        self._stored = True  # whether the file has all results of this window
        self.record, self.fault = load_record(self._path, kind)

    def summary(self) -> str:
        """The results so far, in one line."""
        raise NotImplementedError

    def note(self) -> str:
        fault = self.fault if self.fault != self.text() else ""
        return "\n".join(filter(None, (self.summary(), fault)))

    def renew(self) -> None:
        """Reads the record again before a result is entered, unless results could not be stored."""
        if self._stored:
            self.record, fault = load_record(self._path, type(self.record))
            self.fault = fault or self.fault

    def keep(self) -> None:
        """Stores the record."""
        self._stored = False
        try:
            save_record(self.record, self._path)
            self._stored = True
        except OSError as error:
            self.fault = one_line(error)


class TableScene(RecordScene[Record]):
    """Opens the tables. An error in them ends the exercise.

    Attributes:
        tables: the tables; None if they cannot be opened.
    """

    def __init__(self, app: Program, kind: type[Record]) -> None:
        super().__init__(app, kind)
        self.tables: Tablebase | None = None
        try:
            self.tables = open_tablebase()
        except _FAULTS as error:
            self.fault = one_line(error, _LONGEST)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Context manager: an error of the tables sets ``fault`` and ends the exercise."""
        try:
            yield
        except _FAULTS as error:
            self.fault = one_line(error, _LONGEST)
            self.begin(None)

    def forget_fault(self) -> None:
        """Clears ``fault`` before another exercise, which may read other tables."""
        if self.tables is not None:
            self.fault = ""

    def make(self, move: Move, dropped: bool = False) -> None:
        with self.guarded():
            super().make(move, dropped)

    def update(self, now: float) -> None:
        with self.guarded():
            super().update(now)

    def picture(self) -> BoardPicture:
        with self.guarded():
            return super().picture()
        return super().picture()

    def press(self, name: str) -> None:
        with self.guarded():
            super().press(name)

    def leave(self) -> None:
        if self.tables is not None:
            self.tables.close()
        super().leave()
