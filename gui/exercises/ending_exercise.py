"""An endgame to be played out on the board, with every move judged by the exact tables. No pygame."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.board import Board, Move
from engine.knowledge.lines import Prover, known_moves
from engine.puzzles.puzzle import Goal
from engine.tablebase import Tablebase

from .exercise import Exercise, Task, numbered_line

VALUES = {Goal.WIN: 1, Goal.DRAW: 0}
DEEDS = {Goal.WIN: "Win", Goal.DRAW: "Hold the draw"}
_REFUTATION = 6  # plies of best play that are shown after a wrong move


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun in the singular or plural: ``1 ply``, ``2 plies``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


class Ending(NamedTuple):
    """An endgame to win or to hold.

    Attributes:
        fen: position; the side to move is the learner.
        goal: result of the position, which every move must keep.
        moves: number of the learner's moves: limit for a win, or moves for which a draw must be held.
        left: a win is complete if the opponent has at most this number of pieces and fewer than the learner, or has
            lost.
    """

    fen: str
    goal: Goal
    moves: int
    left: int = 0


class EndingExercise(Exercise):
    """An ending that is being played. Every move that keeps the result is right; the tables make the replies.

    Against a win they take the longest defence. Against a draw they leave as few drawing moves as possible.

    Attributes:
        thrown: half points that wrong moves gave away, including moves that were taken back.

    Raises:
        TableFileError: on any move, if a table is damaged.
    """

    def __init__(self, ending: Ending, tables: Tablebase) -> None:
        self.ending, self._tables, self._prover = ending, tables, Prover(tables)
        self._best: tuple[str, Move] | None = None  # FEN and best move
        self._why, self.thrown = "", 0
        board = Board(ending.fen)
        within = "within" if ending.goal is Goal.WIN else "for"
        self._count = counted(ending.moves, "move")
        super().__init__(Task(board, (), 1, f"{board.turn} to move. {DEEDS[ending.goal]} {within} {self._count}."))

    def again(self) -> None:
        super().again()
        self._told: tuple[Board, tuple[Move, ...]] | None = None

    @property
    def expected(self) -> Move:
        """The best move in this position; while a wrong move is on the board, the best one in its place."""
        board = self.board.copy()
        if board.turn is not self.color:
            board.pop()
        if self._best is None or self._best[0] != board.fen():  # cached: called in every frame
            self._best = board.fen(), self._best_move(board)
        return self._best[1]

    def _best_move(self, board: Board) -> Move:
        known = known_moves(self._tables, board)
        if self.ending.goal is Goal.DRAW:
            return next(one.move for one in known if one.value == 0)
        # beyond the tables of distances, a distance may be known after a capture only: such a way is short
        ways = [(one.plies, place) for place, one in enumerate(known) if one.value == 1 and one.plies is not None]
        return known[min(ways)[1]].move if ways else self._main_move(board)

    def _main_move(self, board: Board) -> Move:
        """The first move of best play in a won or lost position."""
        return board.copy().push_pdn(self._prover.prove(board, 1).line[0].text)

    @property
    def made(self) -> tuple[Move, ...]:
        """The moves made on the board."""
        return tuple(self.board.move_stack)

    def reply(self) -> Move | None:
        move = super().reply()
        if move is not None:
            self._end_of_game()
        return move

    def _leads_on(self, move: Move) -> bool:
        return any(
            one.move == move and one.value == VALUES[self.ending.goal] for one in known_moves(self._tables, self.board)
        )

    def _accept(self) -> None:
        self.status = "right"
        if self._end_of_game():
            return
        used_up = (self.step + 1) // 2 >= self.ending.moves
        if self.ending.goal is Goal.DRAW:
            self.status = "solved" if used_up else "right"
        elif self._is_carried_through():
            self.status = "solved"
        elif used_up:
            self._fail(f"The result is kept, but not carried through within {self._count}.")

    def _end_of_game(self) -> bool:
        """Sets the status if the game is over, which a repetition may cause after a move of either side."""
        outcome = self.board.outcome()
        if outcome is None:
            return False
        if self.ending.goal is Goal.DRAW or outcome.winner is self.color:
            self.status = "solved"
        else:
            self._fail(f"The game is drawn: {outcome.termination.value}.")
        return True

    def _fail(self, why: str) -> None:
        """No move was wrong, but the win did not come in time."""
        self.status, self.flawless, self._why = "late", False, why

    def _is_carried_through(self) -> bool:
        """Whether few enough pieces of the opponent, who is to move, are left."""
        theirs, mine, _ = (int(word).bit_count() for word in self.board.words())
        return 0 < theirs <= self.ending.left and mine > theirs

    def _reply_move(self) -> Move:
        if self.ending.goal is Goal.WIN:
            return self._main_move(self.board)
        drawn = [one for one in known_moves(self._tables, self.board) if one.value == 0]
        return drawn[int(np.argmin([self._holding(one.board) for one in drawn]))].move

    def _holding(self, board: Board) -> int:
        """Number of the learner's moves that hold the draw."""
        return sum(one.value == 0 for one in known_moves(self._tables, board))

    @property
    def shown(self) -> tuple[Board, Sequence[Move]]:
        if self.status != "told":
            return self.task.board, self.made
        if self._told is None:
            self._told = self.board.copy(), self._solution()
        return self._told

    def _solution(self) -> tuple[Move, ...]:
        if self.ending.goal is Goal.DRAW:
            return (self.expected,)
        after = self.board.copy()
        first = self.expected
        after.push(first)
        if after.outcome() is not None:
            return (first,)
        return (first, *(after.push_pdn(step.text) for step in self._prover.prove(after).line))

    @property
    def why(self) -> str:
        """Why the move on the board is wrong or too late; "" if it is not."""
        return self._why if self.status in ("wrong", "late") else ""

    def _refuse(self) -> None:
        super()._refuse()
        value, self._why = self._refutation()
        self.thrown += VALUES[self.ending.goal] - value

    def _refutation(self) -> tuple[int, str]:
        """The value that the learner has after the wrong move, and a text with the moves that show it."""
        if not self.board.legal_moves:
            return -1, "The game is lost."
        proof = self._prover.prove(self.board, _REFUTATION)
        if proof.value == 0:
            held = f" Saved by {' or '.join(proof.keeping)}." if proof.keeping else " Nothing loses now."
            return 0, f"It only draws.{held}"
        after = self.board.copy()
        line = [after.push_pdn(step.text) for step in proof.line]
        return -1, f"It loses: {numbered_line(self.board, line)}."
