"""The scenes of the endgame trainer: choosing a class of endings, and playing its positions against the tables."""

from concurrent.futures import Future, wait
from functools import partial

import numpy as np

from engine.board import Board, Move
from engine.knowledge.lines import plies_of
from engine.puzzles.puzzle import Goal
from engine.tablebase.material import EVEN_PIECES, Material

from ..exercises.endgame_trainer import EndingClass, draw_ending, repeated_ending, score
from ..exercises.ending_exercise import DEEDS, Ending, EndingExercise
from ..exercises.exercise import Exercise
from ..exercises.puzzle_record import EndingRecord, EndingResults, load_record
from ..help import Action
from ..menus import MenuScene
from ..threads import in_thread
from .program import Program
from .record_scene import TableScene
from .widgets import Button

_CHOICES = ("any", "hard", "failed")  # which position comes next
_PIECES = {  # field of ``Material`` → label
    "own_kings": "Your kings",
    "own_men": "Your men",
    "opp_kings": "Opponent's kings",
    "opp_men": "Opponent's men",
}
_MOST_OF_A_KIND = 5
_BEGINNING = EndingClass(Material(0, 2, 0, 1), Goal.WIN)  # two kings against one
_AT_ONCE_S = 0.05  # seconds to wait for a position before the page shows that one is looked for
_SHOWN = 12  # most classes trained before that the page shows


class EndingScene(TableScene[EndingRecord]):
    """Sets positions of one class."""

    def __init__(self, app: Program, kind: EndingClass) -> None:
        super().__init__(app, EndingRecord)
        self.kind, self.title = kind, kind.title
        self.choices, self._rng = list(_CHOICES), np.random.default_rng()
        self._shortest: int | None = None
        self._asked = ""  # FEN
        self._drawing: Future[Ending | None] | None = None
        self._next()

    @property
    def results(self) -> EndingResults:
        return self.record.of(self.kind)

    def turn(self, step: int) -> None:
        self.forget_fault()
        self._next()

    def _next(self) -> None:
        """Begins another position, as soon as one is found: with seven pieces that may take many seconds."""
        self.begin(None)
        self._drawing = in_thread("endgames", self._draw)
        wait([self._drawing], _AT_ONCE_S)
        self._take_drawn()

    def _take_drawn(self) -> None:
        drawing = self._drawing
        if drawing is None or not drawing.done():
            return
        self._drawing = None
        with self.guarded():
            ending = drawing.result()
            if self.tables is not None and ending is not None:
                self._asked = ending.fen
                self._shortest = plies_of(self.tables, Board(ending.fen))
                self.begin(EndingExercise(ending, self.tables))

    def update(self, now: float) -> None:
        self._take_drawn()
        super().update(now)

    @property
    def lively(self) -> bool:
        return super().lively or self._drawing is not None

    def _draw(self) -> Ending | None:
        if self.tables is None:
            return None
        if self.choices[0] != "failed":
            return draw_ending(self.tables, self.kind, self.choices[0] == "hard", self._rng)
        failed = self.results.failed
        others = [fen for fen in failed if fen != self._asked] or failed
        for fen in others:
            ending = repeated_ending(self.tables, self.kind, fen)
            if ending is not None:
                return ending
            failed.remove(fen)
        return None

    def make(self, move: Move, dropped: bool = False) -> None:
        exercise = self.exercise
        before = exercise.thrown if isinstance(exercise, EndingExercise) else 0
        super().make(move, dropped)
        if isinstance(self.exercise, EndingExercise) and self.exercise.thrown > before:
            self.renew()
            self.results.half_points += self.exercise.thrown - before
            self.keep()

    def ended(self, exercise: Exercise) -> None:
        assert isinstance(exercise, EndingExercise)
        self.renew()
        results = self.results
        results.enter(self._asked, exercise.flawless)
        if exercise.status == "solved" and exercise.ending.goal is Goal.WIN and self._shortest is not None:
            results.plies += len(exercise.made)
            results.shortest += self._shortest
        self.keep()

    def text(self) -> str:
        exercise = self.exercise
        if isinstance(exercise, EndingExercise):
            return score(exercise, self._shortest)
        if self._drawing is not None:
            return "Looking for a position …"
        if self.fault:
            return self.fault
        if self.choices[0] == "failed":
            return "There is nothing to repeat in this class."
        return "No such position was found in the tables at hand; choose another class."

    def summary(self) -> str:
        return self.results.summary

    def more_buttons(self) -> tuple[Button, ...]:
        free = self._drawing is None
        return (
            Button("choice", label=self.choices[0].capitalize(), enabled=free),
            Button(Action.NEXT_PAGE, label="Next", enabled=free),
        )

    def press(self, name: str) -> None:
        if self._drawing is None or name == "leave":
            super().press(name)


class EndingPage(MenuScene):
    """Chooses the class of endings: material and goal."""

    title = "Endgame trainer"

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.kind = _BEGINNING

    def fill(self) -> None:
        record, fault = load_record(self.app.autosave.folder.parent / EndingRecord.file_name, EndingRecord)
        if fault:
            self.say(fault, alarm=True)
        counts = [(str(number), number) for number in range(_MOST_OF_A_KIND + 1)]
        self.button("Start", self._start, "Positions are drawn from the tables, which play against you")
        goals = [(deed, goal) for goal, deed in DEEDS.items()]
        self.selector("Task", goals, self.kind.goal, self._set_goal, "What you have to reach; you are to move")
        meaning = "Exact tables of up to 5 pieces come with Crownhead; larger ones can be built"
        for field, title in _PIECES.items():
            change = partial(self._set_count, field)
            self.selector(title, counts, getattr(self.kind.material, field), change, meaning)
        for key, results in list(reversed(record.classes.items()))[:_SHOWN]:
            kind = EndingClass.of_key(key)
            self.button(kind.title, partial(self._open, kind), results.summary)

    def _set_goal(self, goal: Goal) -> None:
        self.kind = self.kind._replace(goal=goal)

    def _set_count(self, field: str, number: int) -> None:
        self.kind = self.kind._replace(material=self.kind.material._replace(**{field: number}))

    def _start(self) -> None:
        if self.kind.material.solvable:
            self._open(self.kind)
        else:
            most = f"up to {EVEN_PIECES - 1} pieces, and of four against four"
            self.say(f"Each side needs a piece; there are tables of {most}", alarm=True)

    def _open(self, kind: EndingClass) -> None:
        self.app.go.show(partial(EndingScene, kind=kind))
