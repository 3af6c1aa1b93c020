"""The report on a game: the evaluation of every position, the moves that lost something, and better moves.

The expected score of a position is P(win) + P(draw) / 2. The loss of a move is the expected score of the best move
minus that of the played move; it is 0 for the best move and for a forced one. A move's accuracy is 100 * 2 ** (-loss /
0.1): 100 without a loss, and half as much for every 0.1 given away. A side's accuracy is the mean over its moves that
were not forced.
"""

import time
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from engine.board import Board, Move
from engine.fen import Color
from engine.players import Thinking, WatchablePlayer
from engine.players.base import search_moves
from engine.reasons.fault import Fault, behind
from engine.reasons.reason import Reason

Judgement = Literal["", "inaccuracy", "mistake", "blunder"]
HALVING_LOSS = 0.1  # loss of expected score that halves a move's accuracy
LEAST_LOSS: Mapping[Judgement, float] = {"inaccuracy": 0.05, "mistake": 0.1, "blunder": 0.2}
SIGNS: Mapping[Judgement, str] = {"": "", "inaccuracy": "?!", "mistake": "?", "blunder": "??"}
_LONGEST_LINE = 8  # plies
_SLICE = 0.02  # seconds between two checks of the clock
NOTICEABLE = 0.005  # smallest loss of expected score that counts: less is uncertainty of the search


class MoveReport(NamedTuple):
    """The report on the move after ``ply`` moves.

    Attributes:
        forced: whether it was the only legal move.
        best, best_pdn: the best move, which may be the played one.
        before, after: expected scores (0 to 1) of the side that moved: with the best move, and with this one.
        line, reply: expected play in PDN: with the best move in place of this one, and after this move.
        reason: why a fault is one; None if there is no reason that can be confirmed.
    """

    ply: int
    color: Color
    move: Move
    pdn: str
    forced: bool
    best: Move
    best_pdn: str
    before: float
    after: float
    line: tuple[str, ...] = ()
    reply: tuple[str, ...] = ()
    reason: Reason | None = None

    @property
    def loss(self) -> float:
        return self.before - self.after

    @property
    def accuracy(self) -> float:
        """0 to 100; see the module."""
        return 100.0 * 2.0 ** (-self.loss / HALVING_LOSS)

    @property
    def judgement(self) -> Judgement:
        """``inaccuracy``, ``mistake`` or ``blunder``, by the loss; "" for a good move."""
        words = [word for word, least in LEAST_LOSS.items() if self.loss >= least]
        return words[-1] if words else ""


class GameReport(NamedTuple):
    """The report so far: ``moves`` in their order, and ``graph``, the expected score of Black in every position."""

    moves: tuple[MoveReport, ...] = ()
    graph: tuple[float, ...] = ()

    def accuracy(self, color: Color) -> float | None:
        """A side's accuracy, 0 to 100; None if all its moves were forced."""
        marks = [move.accuracy for move in self.moves if move.color is color and not move.forced]
        return sum(marks) / len(marks) if marks else None

    def worst(self, count: int) -> tuple[MoveReport, ...]:
        """At most ``count`` moves with the largest losses, the worst first; only those with a ``NOTICEABLE`` loss."""
        bad = [move for move in self.moves if move.loss >= NOTICEABLE]
        return tuple(sorted(bad, key=lambda move: -move.loss)[:count])

    def counts(self, color: Color) -> dict[Judgement, int]:
        """Numbers of inaccuracies, mistakes and blunders of a side."""
        words = [move.judgement for move in self.moves if move.color is color]
        return {word: words.count(word) for word in LEAST_LOSS}


class _Answer(NamedTuple):
    """Result for one position: expected score of the side to move, best move (None after the end), expected line."""

    score: float
    best: Move | None = None
    line: tuple[Move, ...] = ()


class GameReview:
    """Makes the report on the game that led to ``board``, in time slices; ``report`` is a new object after every move.

    Args:
        player: searches every position with its usual limits.
        seconds: limit of seconds for each search; None for no other limit.
        known: returns the exact value of a position for its side to move (1, 0 or -1), or None.
        explain: returns the reason why a move is a fault, or None.
    """

    def __init__(
        self,
        board: Board,
        player: WatchablePlayer,
        seconds: float | None = None,
        known: Callable[[Board], int | None] = lambda board: None,
        explain: Callable[[Fault], Reason | None] = lambda fault: None,
    ) -> None:
        self._moves, self._outcome = tuple(board.move_stack), board.outcome()
        self._board = Board(board.start_fen)
        self._player, self._limit, self._known, self._explain = player, seconds, known, explain
        self._thinking: Thinking | None = None
        self._spent = 0.0
        self._before: _Answer | None = None
        self._finished = False
        self._claimable = False  # whether the game went on after a draw by rule: what follows is judged without it
        self.report = GameReport()

    @property
    def progress(self) -> float:
        """Fraction of the positions that are judged, 0 to 1."""
        return len(self.report.graph) / (len(self._moves) + 1)

    def advance(self, seconds: float) -> bool:
        """Continues for about ``seconds``; returns True if there is more to do."""
        deadline = time.perf_counter() + seconds
        while not self._finished:
            answer = self._think(max(0.0, min(_SLICE, deadline - time.perf_counter())))
            if answer is not None:
                self._enter(answer)
            if time.perf_counter() >= deadline:
                break
        return not self._finished

    def _think(self, seconds: float) -> _Answer | None:
        """Continues the search of the current position; returns its result when the search is finished, else None."""
        if self._board.ply == len(self._moves) and self._outcome is not None:
            winner = self._outcome.winner
            return _Answer(0.5 if winner is None else float(winner is self._board.turn))
        if self._thinking is None:
            self._claimable |= self._board.outcome() is not None
            board = Board(self._board.fen()) if self._claimable else self._board
            self._thinking, self._spent = self._player.begin(board), 0.0
        begun = time.perf_counter()
        more = self._thinking.advance(seconds)
        self._spent += time.perf_counter() - begun
        if more and (self._limit is None or self._spent < self._limit):
            return None
        thought, self._thinking = self._thinking.thought(), None
        exact = self._known(self._board)
        if exact is not None:
            return _Answer((1.0 + exact) / 2.0, *self._keeping(exact, thought.line))
        first = thought.moves[0].value
        value = thought.value if first is None else first
        return _Answer((1.0 + (value or 0.0)) / 2.0, thought.best, thought.line)

    def _keeping(self, value: int, line: tuple[Move, ...]) -> tuple[Move, tuple[Move, ...]]:
        """The best move and the expected line; another move if a player without tables gives the exact value away."""

        def keeps(move: Move) -> bool:
            after = behind(self._board, move)
            return (self._known(after) if after.legal_moves else -1) == -value

        best = next(filter(keeps, (line[0], *search_moves(self._board))), line[0])
        return best, line if best == line[0] else (best,)

    def _enter(self, answer: _Answer) -> None:
        """Adds the result of the current position to the report and goes to the next position."""
        black = answer.score if self._board.turn is Color.BLACK else 1.0 - answer.score
        moves, ply = self.report.moves, self._board.ply
        if self._before is not None:
            moves = (*moves, self._report_of(self._board.pop(), self._before, answer))
            self._board.push(self._moves[ply - 1])
        self.report = GameReport(moves, (*self.report.graph, black))
        self._before = answer
        self._finished = ply == len(self._moves)
        if not self._finished:
            self._board.push(self._moves[ply])

    def _report_of(self, move: Move, before: _Answer, afterwards: _Answer) -> MoveReport:
        board, best, after = self._board, before.best, 1.0 - afterwards.score
        assert best is not None  # not None: a move was made, so the game was not over
        forced = len(search_moves(board)) == 1
        best_score = max(before.score, after)
        if move == best:
            best_score = after  # the later search is more exact: nothing was given away
        behind = board.copy()
        behind.push(move)
        report = MoveReport(
            board.ply,
            board.turn,
            move,
            board.pdn(move),
            forced,
            best,
            board.pdn(best),
            best_score,
            after,
            board.pdn_line(before.line[:_LONGEST_LINE]),
            behind.pdn_line(afterwards.line[:_LONGEST_LINE]),
        )
        if not report.judgement or forced:
            return report
        fault = Fault(board.copy(), move, best, best_score, after, before.line, afterwards.line)
        return report._replace(reason=self._explain(fault))
