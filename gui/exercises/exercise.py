"""Solving one puzzle: the solver's moves, the opponent's forced replies, hints in steps. No pygame."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from engine.board import Board, Move
from engine.fen import Color
from engine.puzzles.puzzle import Goal, Puzzle

from ..game.game_lines import numbered
from ..game.game_report import MoveReport

Status = Literal["asked", "judging", "wrong", "late", "right", "solved", "told"]
MOST_HINTS = 3  # the piece, its target, the whole line
_TOLERATED = 0.05  # loss of expected score up to which another answer to a mistake is accepted, as it is no inaccuracy


class Task(NamedTuple):
    """A task for the solver.

    Attributes:
        board: position; the side to move is the solver.
        line: the solution and its continuation.
        asked: number of plies of ``line`` that are played, odd.
        question: what the solver has to do, for display.
        least: smallest expected score (0 to 1) with which a search may accept another move; None: no other move is
            right.
        moral: explanation that is shown after the solution.
        mistake: a move that is wrong, whatever a search says.
    """

    board: Board
    line: tuple[Move, ...]
    asked: int
    question: str
    least: float | None = None
    moral: str = ""
    mistake: Move | None = None


def task_of(puzzle: Puzzle) -> Task:
    """The task of a puzzle; raises ``DraughtsError`` if one of its moves is illegal."""
    board = Board(puzzle.fen)
    deed = "wins" if puzzle.goal is Goal.WIN else "draws; all others lose"
    return Task(board, puzzle.moves, puzzle.asked, f"{board.turn} to move. One move {deed}.")


def task_of_mistake(board: Board, mistake: MoveReport) -> Task:
    """The task to find a better move than a mistake in a game.

    Args:
        board: position before the mistake.
    """
    start = Board(board.fen())
    after = start.copy()
    line = tuple(after.push_pdn(text) for text in mistake.line or (mistake.best_pdn,))
    question = f"{start.turn} played {mistake.pdn} and gave {100 * mistake.loss:.0f} % away. What is better?"
    moral = mistake.reason.text if mistake.reason is not None else ""
    return Task(start, line, 1, question, mistake.before - _TOLERATED, moral, mistake.move)


class Exercise:
    """A task that is being solved.

    Attributes:
        board: current position.
        status: "asked": the solver is to move; "judging": another move than the expected one is on the board, and
            ``judged`` must be called with its score; "wrong": a wrong move is on the board; "right": the opponent's
            ``reply`` is next; "solved"; "told": the solution has been shown; "late": every move was right, but the
            allowed moves are used up, or the game is drawn by repetition.
        hints: number of hints given.
        flawless: whether there was no hint and no wrong answer so far.
        found_another: whether it was solved by another move than the expected one.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.flawless = True
        self.again()

    def again(self) -> None:
        """Restarts the task from its first position."""
        self.board = self.task.board.copy()
        self.status: Status = "asked"
        self.hints = 0
        self.found_another = False

    @property
    def color(self) -> Color:
        """The solver's side."""
        return self.task.board.turn

    @property
    def step(self) -> int:
        """Number of plies that have been made."""
        return self.board.ply

    @property
    def expected(self) -> Move:
        """The right move in this position; while a wrong move is on the board, the right one in its place."""
        made = self.step - (self.status in ("wrong", "judging"))
        return self.task.line[min(made, len(self.task.line) - 1)]

    def answer(self, move: Move) -> None:
        """Makes the solver's move; does nothing unless the status is "asked"."""
        if self.status != "asked":
            return
        right = self._leads_on(move)
        self.board.push(move)
        if right:
            self.hints = 0  # they were about this move
            self._accept()
        elif self.task.least is not None and move != self.task.mistake:
            self.status = "judging"
            if (outcome := self.board_to_judge().outcome()) is not None:
                self.judged(0.5 if outcome.winner is None else float(outcome.winner is self.color))
        else:
            self._refuse()

    def _accept(self) -> None:
        """Sets the status after a right move."""
        self.status = "solved" if self.step >= self.task.asked else "right"

    def _leads_on(self, move: Move) -> bool:
        """Whether a move is the expected one, or leads to the same position."""
        return move == self.expected or _after(self.board, move) == _after(self.board, self.expected)

    def board_to_judge(self) -> Board:
        """The position after the answer and the forced moves that follow, for a search to judge."""
        board = self.board.copy()
        while board.outcome() is None and len(moves := board.distinct_moves) == 1:
            board.push(moves[0])
        return board

    def judged(self, score: float) -> None:
        """Accepts or refuses the answer on the board by the solver's expected score, 0 to 1."""
        if self.status != "judging":
            return
        assert self.task.least is not None
        if score >= self.task.least:
            self.status, self.found_another = "solved", True
        else:
            self._refuse()

    def _refuse(self) -> None:
        self.status, self.flawless = "wrong", False

    def take_back(self) -> None:
        """Takes a wrong answer back, so that the solver can try again."""
        if self.status in ("wrong", "judging"):
            self.board.pop()
            self.status = "asked"

    def reply(self) -> Move | None:
        """Makes the opponent's move and returns it; None if it is not the opponent's turn."""
        if self.status != "right":
            return None
        move = self._reply_move()
        self.board.push(move)
        self.status = "asked"
        return move

    def _reply_move(self) -> Move:
        return self.task.line[self.step]

    @property
    def shown(self) -> tuple[Board, Sequence[Move]]:
        """A board and the moves of the solution from there, for display when the task is solved or told."""
        return self.task.board, self.task.line

    @property
    def why(self) -> str:
        """What is wrong with the answer on the board; "" if unknown."""
        return ""

    def hint(self) -> None:
        """Gives another hint: first the piece, then its target, then the whole line."""
        self.take_back()
        if self.status == "asked":
            self.flawless = False
            self.hints = min(self.hints + 1, MOST_HINTS)
            if self.hints == MOST_HINTS:
                self.status = "told"

    @property
    def hinted(self) -> tuple[int, ...]:
        """Squares that the given hints mark."""
        if self.status not in ("asked", "told"):
            return ()
        return (self.expected.start, self.expected.end)[: self.hints]


def numbered_line(board: Board, moves: Sequence[Move]) -> str:
    """Moves in PDN with numbers counted from ``board``: ``1. 11-15 18x11``, or ``1... 18x11`` if White begins."""
    return " ".join(numbered(board.pdn_line(moves), int(board.turn is Color.WHITE)))


def _after(board: Board, move: Move) -> tuple[int, int, int]:
    after = board.copy()
    after.push(move)
    return after.words()
