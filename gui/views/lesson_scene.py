"""The scene of the lessons: a text says what to do; in endings the tables judge and defend."""

from ..exercises.exercise import Exercise
from ..exercises.lessons import LESSONS
from ..exercises.puzzle_record import LessonRecord
from ..help import Action
from .program import Program
from .record_scene import TableScene
from .widgets import Button


class LessonScene(TableScene[LessonRecord]):
    """Goes through the lessons, from the first one that is not finished; stores the finished ones next to the games."""

    def __init__(self, app: Program) -> None:
        super().__init__(app, LessonRecord)
        titles = [lesson.title for lesson in LESSONS]
        self._go(next((i for i, title in enumerate(titles) if title not in self.record.done), 0))

    def _go(self, place: int) -> None:
        self.index = place % len(LESSONS)
        lesson = LESSONS[self.index]
        self.title = lesson.title
        with self.guarded():
            self.begin(None if self.tables is None else lesson.exercise(self.tables))

    def solved(self, exercise: Exercise) -> None:
        self.renew()
        self.record.enter(LESSONS[self.index].title, exercise.flawless)
        self.keep()

    def text(self) -> str:
        return LESSONS[self.index].text if self.exercise is not None else self.fault

    def summary(self) -> str:
        done = sum(lesson.title in self.record.done for lesson in LESSONS)
        return f"{self.index + 1} of {len(LESSONS)} · {done} done"

    def more_buttons(self) -> tuple[Button, ...]:
        return Button(Action.PREVIOUS_PAGE, label="Before"), Button(Action.NEXT_PAGE, label="Next")

    def turn(self, step: int) -> None:
        self.forget_fault()
        self._go(self.index + step)
