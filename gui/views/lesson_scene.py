"""Lessons: what to do is said, the tables judge and defend."""

from typing import TYPE_CHECKING

from engine.board import Move
from engine.tablebase import Tablebase, open_tablebase

from ..exercise import Exercise
from ..help import Action
from ..lessons import LESSONS, LessonExercise
from ..puzzle_record import LESSONS_FILE_NAME, LessonRecord, load_kept, save_record
from .exercise_scene import ExerciseScene
from .widgets import Button

if TYPE_CHECKING:
    from ..app import App


class LessonScene(ExerciseScene):
    """Goes through the lessons, from the first that was not done, and keeps what was done beside the games."""

    def __init__(self, app: "App") -> None:
        super().__init__(app)
        self._path = app.autosave.folder.parent / LESSONS_FILE_NAME
        self.record, self._fault = load_kept(self._path, LessonRecord)
        self._tables: Tablebase | None = None
        titles = [lesson.title for lesson in LESSONS]
        try:
            self._tables = open_tablebase()
        except (ValueError, OSError) as error:
            self._fault = str(error)
        self._go(next((i for i, title in enumerate(titles) if title not in self.record.done), 0))

    def _go(self, place: int) -> None:
        self.index = place % len(LESSONS)
        lesson = LESSONS[self.index]
        self.title = lesson.title
        self.begin(None if self._tables is None else LessonExercise(lesson, self._tables))

    def make(self, move: Move, dropped: bool = False) -> None:
        super().make(move, dropped)
        exercise = self.exercise
        if exercise is not None and exercise.status == "solved":
            self._keep(exercise)

    def _keep(self, exercise: Exercise) -> None:
        self.record.enter(LESSONS[self.index].title, exercise.flawless)
        try:
            save_record(self.record, self._path)
        except OSError as error:
            self._fault = str(error)

    def text(self) -> str:
        return LESSONS[self.index].text if self.exercise is not None else self._fault

    def note(self) -> str:
        done = sum(lesson.title in self.record.done for lesson in LESSONS)
        return "\n".join(filter(None, (f"{self.index + 1} of {len(LESSONS)} · {done} done", self._fault)))

    def more_buttons(self) -> tuple[Button, ...]:
        return Button(Action.PREVIOUS_PAGE, label="Before"), Button(Action.NEXT_PAGE, label="Next")

    def press(self, name: str) -> None:
        if name in (Action.NEXT_PAGE, Action.PREVIOUS_PAGE):
            self._go(self.index + (1 if name == Action.NEXT_PAGE else -1))
        else:
            super().press(name)

    def leave(self) -> None:
        if self._tables is not None:
            self._tables.close()
        super().leave()
