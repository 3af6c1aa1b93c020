"""Solving one puzzle: a right move to be found, the opponent's forced replies, hints in steps. No pygame."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from engine.board import Board, Move
from engine.fen import Color
from engine.puzzles.puzzle import Goal, Puzzle

from .game_report import MoveReport

Status = Literal["asked", "judging", "wrong", "late", "right", "solved", "told"]
MOST_HINTS = 3  # the piece, its target, the whole line
_TOLERATED = 0.05  # expected score that another answer to a mistake may be worse by: less is no inaccuracy


class Task(NamedTuple):
    """What is asked.

    Attributes:
        board: the position, its side to move is asked.
        line: the solution and how it goes on. asked: plies of it that are played, odd.
        question: what the move has to do.
        least: of the expected score, 0 to 1, after another move that a search may accept; None: no other is right.
        moral: what is said of it once it is solved or told.
    """

    board: Board
    line: tuple[Move, ...]
    asked: int
    question: str
    least: float | None = None
    moral: str = ""


def task_of(puzzle: Puzzle) -> Task:
    """The task of a puzzle; raises ``DraughtsError`` if its moves cannot be made."""
    board = Board(puzzle.fen)
    deed = "wins" if puzzle.goal is Goal.WIN else "draws; all others lose"
    return Task(board, puzzle.moves, puzzle.asked, f"{board.turn} to move. One move {deed}.")


def task_of_mistake(board: Board, mistake: MoveReport) -> Task:
    """Finding something better than a move of a game.

    Args:
        board: before the move.
    """
    start = Board(board.fen())
    after, line = start.copy(), []
    for text in mistake.line or (mistake.best_pdn,):
        line.append(after.push_pdn(text))
    question = f"{start.turn} played {mistake.pdn} and gave {100 * mistake.loss:.0f} % away. What is better?"
    moral = mistake.reason.text if mistake.reason is not None else ""
    return Task(start, tuple(line), 1, question, mistake.before - _TOLERATED, moral)


class Exercise:
    """A task that is being solved.

    Attributes:
        board: the position now.
        status: "asked"; "judging": another move than the expected one is on the board, and somebody has to say what it
            is worth (``judged``); "wrong": as is on the board; "right": the opponent's ``reply`` is next; "solved";
            "told": the solution was shown; "late": right, but the moves allowed are used up.
        hints: steps given.
        flawless: no hint, no wrong answer so far.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.flawless = True
        self.again()

    def again(self) -> None:
        """Back to the position that was asked about first."""
        self.board = self.task.board.copy()
        self.status: Status = "asked"
        self.hints = 0

    @property
    def color(self) -> Color:
        """Who solves."""
        return self.task.board.turn

    @property
    def step(self) -> int:
        """Plies that have been made."""
        return self.board.ply

    @property
    def expected(self) -> Move:
        """The right move here; while a wrong one is on the board, the one in its place."""
        made = self.step - (self.status in ("wrong", "judging"))
        return self.task.line[min(made, len(self.task.line) - 1)]

    def answer(self, move: Move) -> None:
        """The solver's move; without effect unless it is asked for one."""
        if self.status != "asked":
            return
        right = self._leads_on(move)
        self.board.push(move)
        if right:
            self._accept()
        elif self.task.least is not None:
            self.status = "judging"
            if (outcome := self.board_to_judge().outcome()) is not None:
                self.judged(0.5 if outcome.winner is None else float(outcome.winner is self.color))
        else:
            self._refuse()

    def _accept(self) -> None:
        """A right move is on the board."""
        self.status = "solved" if self.step >= self.task.asked else "right"

    def _leads_on(self, move: Move) -> bool:
        """Whether a move is the right one, or leads to the same position by another way."""
        return move == self.expected or _after(self.board, move) == _after(self.board, self.expected)

    def board_to_judge(self) -> Board:
        """The answer's position, after the moves that are forced there: a search has nothing to say of those."""
        board = self.board.copy()
        while board.outcome() is None and len(moves := board.distinct_moves) == 1:
            board.push(moves[0])
        return board

    def judged(self, score: float) -> None:
        """What the answer on the board is worth: the expected score, 0 to 1, of who made it."""
        if self.status != "judging":
            return
        assert self.task.least is not None
        if score >= self.task.least:
            self.status = "solved"
        else:
            self._refuse()

    def _refuse(self) -> None:
        self.status, self.flawless = "wrong", False

    def take_back(self) -> None:
        """Removes a wrong answer; the solver is asked again."""
        if self.status in ("wrong", "judging"):
            self.board.pop()
            self.status = "asked"

    def reply(self) -> Move | None:
        """Makes the opponent's move and returns it; None if it is not its turn."""
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
        """A board and the solution from there, once it is solved or told."""
        return self.task.board, self.task.line

    @property
    def why(self) -> str:
        """What is wrong with the answer on the board, where that is known."""
        return ""

    def hint(self) -> None:
        """One hint more: first the piece, then its target, then the whole line."""
        self.take_back()
        if self.status == "asked":
            self.flawless = False
            self.hints = min(self.hints + 1, MOST_HINTS)
            if self.hints == MOST_HINTS:
                self.status = "told"

    @property
    def hinted(self) -> tuple[int, ...]:
        """Squares that the hints point out."""
        if self.status not in ("asked", "told"):
            return ()
        return (self.expected.start, self.expected.end)[: self.hints]


def numbered_line(board: Board, moves: Sequence[Move]) -> str:
    """Moves in PDN, with their numbers counted from a board: ``1. 11-15 18x11``, ``1... 18x11`` where White begins."""
    texts, second = [], board.turn is Color.WHITE
    for place, text in enumerate(board.pdn_line(moves)):
        number, is_second = divmod(place + second, 2)
        prefix = f"{number + 1}. " if not is_second else f"{number + 1}... " if place == 0 else ""
        texts.append(prefix + text)
    return " ".join(texts)


def _after(board: Board, move: Move) -> tuple[int, int, int]:
    after = board.copy()
    after.push(move)
    return after.words()
