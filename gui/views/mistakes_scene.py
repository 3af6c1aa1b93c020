"""The scene to improve the mistakes of a game: each becomes a task, the worst first."""

from collections.abc import Sequence

from engine.board import Board

from ..exercises.exercise import Exercise, task_of_mistake
from ..game.game_report import MoveReport
from ..help import Action
from .exercise_scene import ExerciseScene
from .program import Program
from .widgets import Button


class MistakesScene(ExerciseScene):
    """Asks for a better move than each mistake; tables and search judge the answers.

    Args:
        boards: all positions of the game, from the start position on.
        mistakes: mistakes of the game's report.
    """

    title = "Try your mistakes again"

    def __init__(self, app: Program, boards: Sequence[Board], mistakes: Sequence[MoveReport]) -> None:
        super().__init__(app)
        self._boards, self._mistakes = boards, mistakes
        self._place = 0
        self._solved: dict[int, bool] = {}
        self._go(0)

    def _go(self, place: int) -> None:
        self._place = place % len(self._mistakes)
        mistake = self._mistakes[self._place]
        self.begin(Exercise(task_of_mistake(self._boards[mistake.ply], mistake)))

    def ended(self, exercise: Exercise) -> None:
        self._solved.setdefault(self._place, exercise.flawless)

    def note(self) -> str:
        right = sum(self._solved.values())
        return f"{self._place + 1} of {len(self._mistakes)} · {right} of {len(self._solved)} right at the first try"

    def more_buttons(self) -> tuple[Button, ...]:
        several = len(self._mistakes) > 1
        return (
            Button(Action.PREVIOUS_PAGE, label="Before", enabled=several),
            Button(Action.NEXT_PAGE, label="Next", enabled=several),
        )

    def turn(self, step: int) -> None:
        self._go(self._place + step)
