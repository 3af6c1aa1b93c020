"""Values of all moves of a position: by tables if they cover it, otherwise by a search after each move."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.board import Board, Move
from engine.knowledge.lines import Prover
from engine.outcomes import DRAW, UNKNOWN, WIN
from engine.players.base import search_moves
from engine.puzzles.puzzle import Goal, Proof
from engine.search import BOARD_SEARCH, Evaluator, LockstepSearch, SearchResult
from engine.tablebase import Tablebase
from learner.wide import SHOT_VISITS

_NODES_AT_ONCE = 400_000  # most simulations of all trees together: limits the memory
_MOST_AT_ONCE = 64  # most trees at once
_NO_TABLE = 9
_LINE = 12  # most plies of a proven line


class MoveValue(NamedTuple):
    """A move and its P(win) - P(loss) for the side that makes it; ``proof`` says how the value is known."""

    move: Move
    value: float
    proof: Proof = Proof.VALUES


class Bounds(NamedTuple):
    """Bounds of values that count as a win and as no win; with the opposite sign, as a loss and as no loss.

    Attributes:
        sure: smallest value of a win.
        open: largest value of a move that does not win.
    """

    sure: float
    open: float


STRICT = Bounds(0.85, 0.35)
"""Bounds for making puzzles."""
PLAIN = Bounds(0.6, 0.6)
"""Bounds for checking puzzles: every move either wins or does not."""


class OnlyMove(NamedTuple):
    """The only right move; ``place`` is its index in the order of ``search_moves``."""

    place: int
    goal: Goal
    proof: Proof


def only_move(values: Sequence[MoveValue], bounds: Bounds) -> OnlyMove | None:
    """The only move that wins, or that draws while all others lose; None if there is none or values are unclear."""
    best = max(range(len(values)), key=lambda index: values[index].value)
    first = values[best].value
    others = [other.value for index, other in enumerate(values) if index != best]
    if not others:
        return None
    proofs = {one.proof for one in values}
    proof = next(kind for kind in (Proof.VALUES, Proof.SOLVED, Proof.TABLES) if kind in proofs)
    if first >= bounds.sure and max(others) <= bounds.open:
        return OnlyMove(best, Goal.WIN, proof)
    if -bounds.open <= first <= bounds.open and max(others) <= -bounds.sure:
        return OnlyMove(best, Goal.DRAW, proof)
    return None


class Settler:
    """Computes the values of moves.

    Args:
        tables: tables that give the values of positions which they cover.
        simulations: simulations of the search after each move.
        leaves: tables for leaves of the searches; tables that are not in memory make a search half as fast.
    """

    def __init__(self, evaluator: Evaluator, tables: Tablebase, simulations: int, leaves: Tablebase) -> None:
        self._evaluator, self._tables, self._prover = evaluator, tables, Prover(tables)
        self.simulations = simulations
        changes = {"num_simulations": simulations, "leaves_in_flight": 1, "shot_visits": SHOT_VISITS}
        self._config = BOARD_SEARCH.impartial().model_copy(update=changes)
        at_once = max(1, min(_MOST_AT_ONCE, _NODES_AT_ONCE // simulations))
        self._search = LockstepSearch(self._config, at_once, leaf_oracle=leaves)

    def by_tables(self, boards: Sequence[Board]) -> list[list[MoveValue] | None]:
        """The values of each board's moves; None for a board with a move whose value the tables do not know."""
        answers: list[list[MoveValue] | None] = [None] * len(boards)
        few = [index for index, board in enumerate(boards) if _pieces(board) <= self._tables.max_pieces]
        moves, behind, starts = _boards_after([boards[index] for index in few])
        values = self._known(behind)
        for index, first, named in zip(few, starts, moves, strict=True):
            known = [value for value in values[first : first + len(named)] if value is not None]
            if len(known) == len(named):
                answers[index] = [MoveValue(*pair, Proof.TABLES) for pair in zip(named, known, strict=True)]
        return answers

    def values(self, boards: Sequence[Board], simulations: int | None = None) -> list[list[MoveValue]]:
        """The values of each board's moves, in the order of ``search_moves``.

        Args:
            simulations: simulations after each move, at most those of the constructor; None: as many as those.

        Raises:
            PlayerError: a board has no moves.
        """
        moves, behind, starts = _boards_after(boards)
        known = self._known(behind)
        open_ones = [index for index, value in enumerate(known) if value is None]
        found = dict(zip(open_ones, self._searched([behind[index] for index in open_ones], simulations), strict=True))
        answers = []
        for first, named in zip(starts, moves, strict=True):
            answers.append([self._value(move, known[first + i], found.get(first + i)) for i, move in enumerate(named)])
        return answers

    def screen(self, boards: Sequence[Board], simulations: int) -> list[SearchResult]:
        """Searches each board with ``simulations``."""
        return list(self._run(boards, simulations))

    def line(self, board: Board, value: int) -> list[Move]:
        """The line that tables prove, or else that a search expects; empty if the game is over.

        Args:
            value: 1 win, 0 draw, -1 loss, for the side to move. An expected line ends before a move that, by the
                tables, gives it away: far from the root a search has hardly looked at other moves.
        """
        if not board.legal_moves:
            return []
        if self._tables.get_wdl(board) in (-1, 1):
            after = board.copy()
            return [after.push_pdn(step.text) for step in self._prover.prove(board, _LINE).line]
        for _ in self._run([board]):
            indices = self._search.principal_variation(0)
        after, line = board.copy(), []
        for index in indices:
            after.push(search_moves(after)[index])
            value = -value
            if after.legal_moves and self._tables.get_wdl(after) not in (None, value):
                break
            line.append(after.peek())
        return line

    def _known(self, boards: Sequence[Board]) -> list[float | None]:
        """Values for the side that has just moved, if the rules or tables know them, else None."""
        few = [index for index, board in enumerate(boards) if _pieces(board) <= self._tables.max_pieces]
        words = np.array([boards[index].words() for index in few], np.uint32).reshape(-1, 3)
        going_on = words[:, 0] != 0
        scores = np.full(len(few), -1, np.int8)
        scores[going_on] = self._tables.get_wdl_many(words[going_on], _NO_TABLE)
        values: list[float | None] = [None if board.legal_moves else 1.0 for board in boards]
        for index, score in zip(few, scores.tolist(), strict=True):
            if score != _NO_TABLE:
                values[index] = float(-score)
        return values

    def _searched(self, boards: Sequence[Board], simulations: int | None) -> list[tuple[float, bool]]:
        """Values by search for the side that has just moved, and whether the search has proven them."""
        return [_of_opponent(result) for result in self._run(boards, simulations)]

    def _run(self, boards: Sequence[Board], simulations: int | None = None) -> Iterator[SearchResult]:
        """Searches boards and yields their results; the trees stay in the slots until the next batch of boards."""
        search = self._search
        for first in range(0, len(boards), search.slots):
            part = boards[first : first + search.slots]
            for slot, board in enumerate(part):
                search.set_board(slot, board)
                search.start(slot, simulations, False)
            search.run(self._evaluator)
            yield from map(search.result, range(len(part)))

    @staticmethod
    def _value(move: Move, known: float | None, found: tuple[float, bool] | None) -> MoveValue:
        if known is not None:
            return MoveValue(move, known, Proof.TABLES)
        assert found is not None
        value, proven = found
        return MoveValue(move, value, Proof.SOLVED if proven else Proof.VALUES)


def _pieces(board: Board) -> int:
    own, opp, _ = board.words()
    return (own | opp).bit_count()


def _boards_after(boards: Sequence[Board]) -> tuple[list[list[Move]], list[Board], list[int]]:
    """The moves of each board, the boards after all these moves, and the index of each board's first one."""
    moves = [search_moves(board) for board in boards]
    behind: list[Board] = []
    starts: list[int] = []
    for board, named in zip(boards, moves, strict=True):
        starts.append(len(behind))
        for move in named:
            behind.append(board.copy())
            behind[-1].push(move)
    return moves, behind, starts


def _of_opponent(result: SearchResult) -> tuple[float, bool]:
    """Value for the side that has just moved, and whether it is proven (the opponent wins, or all moves are proven)."""
    proofs = result.proofs.tolist()
    if WIN in proofs:
        return -1.0, True
    if UNKNOWN not in proofs:
        return float(min(proofs) - DRAW), True
    win, _, loss = result.wdl
    return float(loss - win), False
