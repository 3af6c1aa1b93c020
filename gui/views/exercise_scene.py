"""Base class of scenes in which moves have to be found: puzzles, lessons, endings, mistakes."""

import pygame

from engine.board import Board, Move
from engine.fen import Color

from ..exercises.exercise import MOST_HINTS, Exercise, numbered_line
from ..help import DIRECTIONS, Action
from .board_scene import BoardScene, Passage
from .board_view import Arrow, BoardPicture
from .entry_scene import EntryScene
from .program import Program
from .widgets import Button

_REPLY_S = 0.35  # seconds between the solver's move and the opponent's
_OVER = ("wrong", "late", "solved", "told")  # statuses in which nothing can be entered
_HINTS = {0: "Hint: piece", 1: "Hint: target", 2: "Show the line"}


class ExerciseScene(EntryScene, BoardScene):
    """Lets the user solve an ``Exercise``. Subclasses provide the tasks and the texts.

    Attributes:
        exercise: current exercise; None while there is no task.
        choices: kinds of tasks to choose from by a button ``choice``, the chosen one first.
    """

    name = "exercise"
    title = ""

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.exercise: Exercise | None = None
        self.choices: list[str] = []
        self._reply_at: float | None = None
        self._said = ""
        self._judged = Board()  # position of an answer that is being judged, after the forced moves that follow
        self._judging: int | None = None  # number of the search that judges an answer

    # --- for subclasses

    def ended(self, exercise: Exercise) -> None:
        """Called once per exercise: when it is solved, or at the first wrong answer or hint."""

    def solved(self, exercise: Exercise) -> None:
        """Called whenever the exercise is solved, also after hints and wrong answers."""

    def text(self) -> str:
        """The text beside the board, above that of the exercise."""
        return ""

    def note(self) -> str:
        return ""

    def turn(self, step: int) -> None:
        """Begins the next task or, if ``step`` is -1, the one before."""

    def more_buttons(self) -> tuple[Button, ...]:
        return ()

    # --- the exercise

    def begin(self, exercise: Exercise | None) -> None:
        self.exercise = exercise
        self._reported = False
        self.flipped = exercise is not None and exercise.color is Color.BLACK
        self._fresh_board()
        self._buttons()
        self.forget()

    def _fresh_board(self) -> None:
        """Resets the state after a change to another position, not by one move."""
        self.motion.animation, self._reply_at, self._said, self._judging = None, None, "", None
        self._open_board()

    def _open_board(self) -> None:
        """Sets the moves that can be entered in the current position."""
        exercise = self.exercise
        if exercise is None:
            self.open_board(Board(), ())
        else:
            asked = exercise.status == "asked"
            closed = "" if asked else "it is not asked any more: take back, or go on"
            self.open_board(exercise.board, (exercise.color,) if asked else (), closed)

    def make(self, move: Move, dropped: bool = False) -> None:
        """Makes the solver's move."""
        exercise = self.exercise
        if exercise is None or exercise.status != "asked":
            return
        before = exercise.board.copy()
        exercise.answer(move)
        self._moved(before, exercise.board.peek(), dropped)
        if exercise.status == "right":
            self._reply_at = self.motion.now + _REPLY_S
        elif exercise.status == "judging":
            app = self.app
            self._judged = exercise.board_to_judge()
            self._judging = app.thinker.request(self._judged, app.controller.adviser(), "hint")
        self._report()

    def _report(self) -> None:
        exercise = self.exercise
        if exercise is None:
            return
        solved = exercise.status == "solved"
        if solved:
            self.solved(exercise)
        if (solved or not exercise.flawless) and not self._reported:
            self._reported = True
            self.ended(exercise)

    def _moved(self, before: Board, move: Move, dropped: bool) -> None:
        assert self.exercise is not None
        self.show_move(move, before, self.exercise.board, dropped)
        self._said = ""
        self._open_board()

    def update(self, now: float) -> None:
        super().update(now)
        exercise = self.exercise
        if exercise is not None:
            due = self._reply_at is not None and now >= self._reply_at and self.motion.animation is None
            if due and exercise.status == "right":
                self._reply_at, before = None, exercise.board.copy()
                if (move := exercise.reply()) is not None:
                    self._moved(before, move, False)
                    self._report()
            if exercise.status == "judging":
                self._judge(exercise)
        self.passage.state = self._passage()
        self._buttons()

    def _judge(self, exercise: Exercise) -> None:
        """Judges an answer by the tables or, if they do not know it, by the search, as soon as a value is known."""
        endgame, snapshot = self.app.endgame, self.app.thinker.snapshot
        verdict = endgame.ask(self._judged)
        value: float | None = None
        if verdict is not None and verdict.exact is not None:
            value = {"win": 1.0, "draw": 0.0, "loss": -1.0}[verdict.exact]
        elif endgame.looking_up(self._judged) or snapshot is None or snapshot.number != self._judging:
            return
        elif snapshot.status == "done":
            value = snapshot.value
        elif snapshot.busy:
            return
        self.app.thinker.cancel()
        if value is None:
            self._said = (snapshot.error if snapshot is not None else None) or "Nobody could judge this move"
            exercise.take_back()
        else:
            exercise.judged((1.0 + (value if self._judged.turn is exercise.color else -value)) / 2.0)
        self._open_board()
        self._report()

    # --- what is shown

    def _passage(self) -> Passage:
        exercise = self.exercise
        if exercise is None:
            return Passage(self.title, self.text(), (), self.note())
        said = filter(None, (self._said, self.entry.message))
        moral = exercise.task.moral if exercise.status in ("solved", "told") else ""
        texts = [self.text(), exercise.task.question, self._progress(exercise), moral]
        return Passage(self.title, "\n\n".join(filter(None, texts)), tuple(said), self.note())

    def _progress(self, exercise: Exercise) -> str:
        match exercise.status:
            case "solved" | "told":
                if exercise.found_another:
                    return f"{exercise.board.peek()} is good, too. The best line: {numbered_line(*exercise.shown)}"
                head = "Solved." if exercise.status == "solved" else "The solution:"
                return f"{head} {numbered_line(*exercise.shown)}"
            case "wrong":
                return " ".join(filter(None, (f"{exercise.board.peek()} is not it.", exercise.why, "Take it back.")))
            case "late":
                return f"{exercise.why} Try again from the beginning."
            case "judging":
                return f"Looking at {exercise.board.peek()} …"
        if self.entry.typed:
            return f"Move: {self.entry.typed}"
        if exercise.hints:
            return "The marked piece moves" + (" to the marked square." if exercise.hints > 1 else ".")
        return "Right, go on." if exercise.step > 0 else ""

    def _buttons(self) -> None:
        exercise = self.exercise
        status = exercise.status if exercise is not None else ""
        hints = exercise.hints if exercise is not None else 0
        label = _HINTS[min(hints, MOST_HINTS - 1)]
        back = "Take back" if status == "wrong" else "Again"
        self.set_buttons(
            (
                Button(Action.HINT, label=label, enabled=status in ("asked", "wrong")),
                Button(Action.REWIND, label=back, enabled=status in _OVER),
            ),
            (*self.more_buttons(), Button("leave", label="Back")),
        )

    def picture(self) -> BoardPicture:
        exercise = self.exercise
        picture = self.entry_picture(exercise.board if exercise is not None else Board())
        if exercise is None or self.motion.animation is not None or not exercise.hinted:
            return picture
        marked = frozenset(exercise.hinted)
        arrows = (Arrow(exercise.expected.path, 0.8, hint=True),) if exercise.status == "told" else ()
        return picture._replace(marked=marked, movable=frozenset(), arrows=arrows)

    # --- hands

    def press_board(self, square: int | None) -> None:
        if self.exercise is not None and self.exercise.status == "wrong":
            self.press(Action.REWIND)
        if self.exercise is not None and self.exercise.status == "asked":
            super().press_board(square)

    def press(self, name: str) -> None:
        exercise = self.exercise
        if name == "leave":
            self.leave()
        elif name == "choice":
            self.choices.append(self.choices.pop(0))
            self.turn(1)
        elif name in (Action.NEXT_PAGE, Action.PREVIOUS_PAGE):
            self.turn(1 if name == Action.NEXT_PAGE else -1)
        elif exercise is not None and name == Action.HINT and exercise.status in ("asked", "wrong"):
            exercise.hint()
            self._fresh_board()
            self._report()
        elif exercise is not None and name == Action.REWIND and exercise.status in _OVER:
            if exercise.status == "wrong":
                exercise.take_back()
            else:
                exercise.again()
            self._fresh_board()

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        if action in DIRECTIONS:
            self._set_focus(None)  # Enter acts on the square now
        typed = bool(self.entry.typed or (self.entry.cursor and self.focus is None))
        if action is Action.MENU and self.entry.cancel():
            self.entry.cursor = None
        elif action is Action.ENTER and typed:
            self.enter()
        else:
            return super().act(action, event)
        return True

    def leave(self) -> None:
        if self._judging is not None:
            self.app.thinker.cancel()
        super().leave()
