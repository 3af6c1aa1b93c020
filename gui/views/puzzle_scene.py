"""The scene of the puzzles: one after another, with a rating near the player's."""

import random
from typing import TYPE_CHECKING

from engine.errors import DraughtsError
from engine.puzzles.puzzle import Puzzle

from ..exercise import Exercise, task_of
from ..help import Action
from ..puzzle_record import CHOICES, FILE_NAME, THEME_NAMES, PuzzleRecord, RecordFile
from .exercise_scene import ExerciseScene
from .widgets import Button

if TYPE_CHECKING:
    from ..app import App


class PuzzleScene(ExerciseScene):
    """Sets puzzles, and stores the player's record next to the games."""

    title = "Puzzles"

    def __init__(self, app: "App") -> None:
        super().__init__(app)
        self._path = app.autosave.folder.parent / FILE_NAME
        self._file = RecordFile(self._path, PuzzleRecord)
        self._fault = self._file.renew()
        self.puzzle: Puzzle | None = None
        self._gain: float | None = None
        self._rng = random.Random()
        self._choices = list(CHOICES)
        try:
            self._puzzles = app.puzzles()
        except (DraughtsError, OSError) as error:
            self._puzzles, self._fault = (), str(error)
        self.next()

    @property
    def record(self) -> PuzzleRecord:
        """The record as it was last read, with the results entered since."""
        return self._file.record

    def next(self) -> None:
        """Begins another puzzle."""
        before, choice = self.puzzle, self._choices[0]
        left = [puzzle for puzzle in self._puzzles if puzzle is not before]
        self.puzzle = self.record.choose(left, choice, self._rng)
        if self.puzzle is None:  # the same one again, where it is the only one
            self.puzzle = self.record.choose(self._puzzles, choice, self._rng)
        if before is not None:
            self._fault = ""  # it was of that puzzle
        self._gain = None
        try:
            self.begin(None if self.puzzle is None else Exercise(task_of(self.puzzle)))
        except DraughtsError as error:
            self._fault = str(error)
            self.begin(None)

    def ended(self, exercise: Exercise) -> None:
        assert self.puzzle is not None
        self._fault = self._file.renew() or self._fault
        self._gain = self.record.enter(self.puzzle, exercise.flawless)
        try:
            self._file.keep()
        except OSError as error:
            self._fault = str(error)

    def text(self) -> str:
        if self.puzzle is None:
            return self._fault or "There is no puzzle of this kind; choose another one."
        if self.exercise is None or self.exercise.status not in ("solved", "told"):
            return ""
        gain = "" if not self._gain else f" ({self._gain:+.0f})".replace("-", "−")
        return f"{THEME_NAMES[self.puzzle.theme].capitalize()}; rated {self.puzzle.rating}{gain}."

    def note(self) -> str:
        return "\n".join(filter(None, (self.record.summary, self._fault if self.puzzle is not None else "")))

    def more_buttons(self) -> tuple[Button, ...]:
        return (
            Button("choice", label=self._choices[0].capitalize()),
            Button(Action.NEXT_PAGE, label="Next", enabled=self.puzzle is not None),
        )

    def press(self, name: str) -> None:
        if name == Action.NEXT_PAGE:
            self.next()
        elif name == "choice":
            self._choices.append(self._choices.pop(0))
            self.next()
        else:
            super().press(name)
