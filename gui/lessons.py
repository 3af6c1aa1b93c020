"""Lessons: endings carried through on the board, every move judged by the exact tables. No pygame."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.board import Board, Move
from engine.fen import Color
from engine.knowledge.classics import CLASSICS
from engine.knowledge.lines import Prover, known_moves
from engine.puzzles.puzzle import Goal
from engine.tablebase import Tablebase

from .exercise import Exercise, Task, numbered_line

_REFUTATION = 6  # plies of best play that are shown after a wrong move


class Lesson(NamedTuple):
    """What is taught.

    Attributes:
        text: what to do, in a few sentences.
        fen: its side to move is the learner.
        goal: the result of the position, which every move has to keep.
        moves: number of the learner's moves: a win has to reach its stage within them, a draw has to be held for them.
        left: the stage of a win is reached where the opponent has no more pieces than this, or the game is won.
    """

    title: str
    text: str
    fen: str
    goal: Goal
    moves: int
    left: int = 0


def _classic(name: str, turn: Color) -> str:
    return next(classic for classic in CLASSICS if classic.name == name).board(turn).fen()


LESSONS = (
    Lesson(
        "Moves",
        "Men step diagonally forward. Who cannot move has lost: take the last free square from White's man.",
        "B:W12:B3,4",
        Goal.WIN,
        2,
    ),
    Lesson(
        "Captures",
        "Who can take must take. Offer a man, and take two with the next move.",
        "B:W25,27:B11,15,19",
        Goal.WIN,
        2,
    ),
    Lesson(
        "Several jumps",
        "With a choice of captures any may be taken. Find the one that wins.",
        "B:W14,15,22:B1,10",
        Goal.WIN,
        1,
        1,
    ),
    Lesson(
        "Kings",
        "A king moves and takes forward and back, one square at a time. Take all three men in one move: choose the "
        "king, then where it ends.",
        "B:W6,14,22:BK26",
        Goal.WIN,
        1,
    ),
    Lesson(
        "The opposition",
        "King against king, and you have the move. Hold the other king at the edge; do not let it into a double "
        "corner.",
        _classic("King against king", Color.WHITE),
        Goal.WIN,
        8,
    ),
    Lesson(
        "Two kings against one",
        "One king takes the squares of the lone one, the other drives it on.",
        _classic("Two kings against one", Color.BLACK),
        Goal.WIN,
        8,
    ),
    Lesson(
        "Turning out of the double corner",
        "The lone king steps between 28 and 32. Send one king into the corner itself, and catch the other at the side.",
        _classic("Two kings against one in the double corner", Color.BLACK),
        Goal.WIN,
        16,
    ),
    Lesson(
        "Three against two",
        "Two kings against one are won. Force an exchange: the lesson ends when one king is left to Black.",
        _classic("Three kings against two on one side", Color.WHITE),
        Goal.WIN,
        20,
        1,
    ),
    Lesson(
        "Three against two in both corners",
        "White has a king in each double corner. Attack both at the same time until an exchange cannot be refused.",
        _classic("Three kings against two in both double corners", Color.BLACK),
        Goal.WIN,
        30,
        1,
    ),
    Lesson(
        "The bridge",
        "Your men on 1 and 3 are the bridge, which guards your back row. To move one of them now loses: find the move "
        "that keeps both, and hold the draw.",
        "B:W11,K15:B1,3,8",
        Goal.DRAW,
        6,
    ),
    Lesson(
        "Defending the double corner",
        "King against king, and White is close. Go to a double corner and step to and fro there: you cannot be caught.",
        "B:WK23:BK15",
        Goal.DRAW,
        8,
    ),
    Lesson(
        "Payne's draw",
        "A man down and safe: with one king between 19 and 24 a black king stays locked in its own double corner.",
        _classic("Payne's draw", Color.WHITE),
        Goal.DRAW,
        8,
    ),
)


class LessonExercise(Exercise):
    """A lesson that is being done: any move that keeps its result is right, and the tables defend.

    Against a win they resist as long as they can; where a draw has to be held, they leave few moves that hold.

    Attributes:
        made: the moves on the board.

    Raises:
        TableFileError: on any move, if a table is damaged.
    """

    def __init__(self, lesson: Lesson, tables: Tablebase) -> None:
        self.lesson, self._tables, self._prover = lesson, tables, Prover(tables)
        self._best: tuple[str, Move] | None = None  # of the FEN
        self._why = ""
        board = Board(lesson.fen)
        deed = "Win" if lesson.goal is Goal.WIN else "Hold the draw"
        within = "within" if lesson.goal is Goal.WIN else "for"
        self._count = f"{lesson.moves} move{'' if lesson.moves == 1 else 's'}"
        super().__init__(Task(board, (), 1, f"{board.turn} to move. {deed} {within} {self._count}."))

    def again(self) -> None:
        super().again()
        self.made: tuple[Move, ...] = ()
        self._told: tuple[Board, tuple[Move, ...]] | None = None

    @property
    def expected(self) -> Move:
        """The best move here; while a wrong one is on the board, the one in its place."""
        board = self.board.copy()
        if self.status in ("wrong", "late"):
            board.pop()
        if self._best is None or self._best[0] != board.fen():  # it is asked for in every frame
            self._best = board.fen(), self._best_move(board)
        return self._best[1]

    def _best_move(self, board: Board) -> Move:
        known = known_moves(self._tables, board)
        if self.lesson.goal is Goal.DRAW:
            return next(one.move for one in known if one.value == 0)
        # with five pieces a distance may be known behind a capture only: such a way is short
        ways = [(one.plies, place) for place, one in enumerate(known) if one.value == 1 and one.plies is not None]
        return known[min(ways)[1]].move if ways else self._main_move(board)

    def _main_move(self, board: Board) -> Move:
        """Of best play in a position that is won or lost."""
        return board.copy().push_pdn(self._prover.prove(board, 1).line[0].text)

    def answer(self, move: Move) -> None:
        before = self.step
        super().answer(move)
        if self.step > before:
            self.made = (*self.made, move)

    def take_back(self) -> None:
        before = self.step
        super().take_back()
        self.made = self.made[: len(self.made) - (before - self.step)]

    def reply(self) -> Move | None:
        move = super().reply()
        if move is not None:
            self.made = (*self.made, move)
        return move

    def _leads_on(self, move: Move) -> bool:
        return any(
            one.move == move and one.value == (1 if self.lesson.goal is Goal.WIN else 0)
            for one in known_moves(self._tables, self.board)
        )

    def _accept(self) -> None:
        outcome, used = self.board.outcome(), (self.step + 1) // 2
        if self.lesson.goal is Goal.DRAW:
            over = outcome is not None or used >= self.lesson.moves
            self.status = "solved" if over else "right"
            return
        mine, theirs = self._pieces()
        if (outcome is not None and outcome.winner is self.color) or (0 < theirs <= self.lesson.left and mine > theirs):
            self.status = "solved"
        elif outcome is not None or used >= self.lesson.moves:
            self.status, self.flawless = "late", False
            self._why = f"The result is kept, but not carried through within {self._count}."
        else:
            self.status = "right"

    def _pieces(self) -> tuple[int, int]:
        """Pieces of the learner and of the opponent, who is to move."""
        own, opp, _ = (int(word) for word in self.board.words())
        return opp.bit_count(), own.bit_count()

    def _reply_move(self) -> Move:
        if self.lesson.goal is Goal.WIN:
            return self._main_move(self.board)
        drawn = [one for one in known_moves(self._tables, self.board) if one.value == 0]
        return drawn[int(np.argmin([self._holding(one.board) for one in drawn]))].move

    def _holding(self, board: Board) -> int:
        """Moves of the learner that hold the draw."""
        return sum(one.value == 0 for one in known_moves(self._tables, board))

    @property
    def shown(self) -> tuple[Board, Sequence[Move]]:
        if self.status != "told":
            return self.task.board, self.made
        if self._told is None:
            self._told = self.board.copy(), self._solution()
        return self._told

    def _solution(self) -> tuple[Move, ...]:
        if self.lesson.goal is Goal.DRAW:
            return (self.expected,)
        after = self.board.copy()
        first = self.expected
        after.push(first)
        if after.outcome() is not None:
            return (first,)
        return (first, *(after.push_pdn(step.text) for step in self._prover.prove(after).line))

    @property
    def why(self) -> str:
        """What refutes the wrong move on the board, or how it came too late; "" without one."""
        return self._why if self.status in ("wrong", "late") else ""

    def _refuse(self) -> None:
        super()._refuse()
        self._why = self._refutation()

    def _refutation(self) -> str:
        if not self.board.legal_moves:
            return "The game is lost."
        proof = self._prover.prove(self.board, _REFUTATION)
        if proof.value == 0:
            held = f" Saved by {' or '.join(proof.keeping)}." if proof.keeping else " Nothing loses now."
            return f"It only draws.{held}"
        after = self.board.copy()
        line = [after.push_pdn(step.text) for step in proof.line]
        return f"It loses: {numbered_line(self.board, line)}."
