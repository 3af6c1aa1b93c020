"""Base class of exercises that the exact tables judge: it stores a record and handles damaged tables."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic

from engine.board import Move
from engine.errors import one_line
from engine.tablebase import MissingTableError, Tablebase, open_tablebase
from engine.tablebase.slice_file import TableFileError

from ..puzzle_record import Record, RecordFile
from .board_view import BoardPicture
from .exercise_scene import ExerciseScene

if TYPE_CHECKING:
    from ..app import App

_LONGEST = 400  # characters of an error: a path, and the command that builds the table again
_FAULTS = (TableFileError, MissingTableError, OSError)


class TableScene(ExerciseScene, Generic[Record]):
    """Opens the tables, and stores a record next to the games. An error in the tables ends the exercise.

    Attributes:
        tables: the tables; None if they cannot be opened.
        fault: what is wrong with tables or record, in one line; "" if nothing.
    """

    def __init__(self, app: "App", file_name: str, kind: type[Record]) -> None:
        super().__init__(app)
        self._path = app.autosave.folder.parent / file_name
        self._file = RecordFile(self._path, kind)
        self.fault = self._file.renew()
        self.tables: Tablebase | None = None
        try:
            self.tables = open_tablebase()
        except _FAULTS as error:
            self.fault = one_line(error, _LONGEST)

    @property
    def record(self) -> Record:
        """The record as it was last read, with the results entered since."""
        return self._file.record

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

    def renew(self) -> None:
        """Reads the record again before a result is entered: another window may have stored some."""
        self.fault = self._file.renew() or self.fault

    def keep(self) -> None:
        """Stores the record."""
        try:
            self._file.keep()
        except OSError as error:
            self.fault = one_line(error)

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
