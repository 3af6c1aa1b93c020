"""The scene of the puzzles: one after another, with a rating near the player's."""

import random

from engine.errors import DraughtsError
from engine.puzzles.puzzle import Puzzle

from ..exercises.exercise import Exercise, task_of
from ..exercises.puzzle_record import CHOICES, THEME_NAMES, PuzzleRecord
from ..help import Action
from .program import Program
from .record_scene import RecordScene
from .widgets import Button


class PuzzleScene(RecordScene[PuzzleRecord]):
    """Sets puzzles."""

    title = "Puzzles"

    def __init__(self, app: Program) -> None:
        super().__init__(app, PuzzleRecord)
        self.puzzle: Puzzle | None = None
        self._gain: float | None = None
        self._rng = random.Random()
        self.choices = list(CHOICES)
        try:
            self._puzzles = app.puzzles()
        except (DraughtsError, OSError) as error:
            self._puzzles, self.fault = (), str(error)
        self.turn(1)

    def turn(self, step: int) -> None:
        before, choice = self.puzzle, self.choices[0]
        left = [puzzle for puzzle in self._puzzles if puzzle is not before]
        self.puzzle = self.record.choose(left, choice, self._rng)
        if self.puzzle is None:  # the same one again, where it is the only one
            self.puzzle = self.record.choose(self._puzzles, choice, self._rng)
        if before is not None:
            self.fault = ""  # it was of that puzzle
        self._gain = None
        try:
            self.begin(None if self.puzzle is None else Exercise(task_of(self.puzzle)))
        except DraughtsError as error:
            self.fault = str(error)
            self.begin(None)

    def ended(self, exercise: Exercise) -> None:
        assert self.puzzle is not None
        self.renew()
        self._gain = self.record.enter(self.puzzle, exercise.flawless)
        self.keep()

    def text(self) -> str:
        if self.puzzle is None:
            return self.fault or "There is no puzzle of this kind; choose another one."
        if self.exercise is None or self.exercise.status not in ("solved", "told"):
            return ""
        gain = "" if not self._gain else f" ({self._gain:+.0f})".replace("-", "−")
        return f"{THEME_NAMES[self.puzzle.theme].capitalize()}; rated {self.puzzle.rating}{gain}."

    def summary(self) -> str:
        return self.record.summary

    def more_buttons(self) -> tuple[Button, ...]:
        return (
            Button("choice", label=self.choices[0].capitalize()),
            Button(Action.NEXT_PAGE, label="Next", enabled=self.puzzle is not None),
        )
