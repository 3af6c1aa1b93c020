"""How an endgame goes on under best play, by the tables: who wins, in how many plies, and by which moves."""

from typing import NamedTuple

import numpy as np

from ..board import Board, Move
from ..players.base import search_moves
from ..search.conversion import ConversionPlanner
from ..tablebase import MissingTableError, Tablebase

MOST_PLIES = 120
_FAR = 1 << 14


class Step(NamedTuple):
    """A move of a line.

    Attributes:
        text: in PDN.
        only: the one move of several that keeps a win or a draw.
    """

    text: str
    only: bool


class Proof(NamedTuple):
    """What the tables say of a position.

    Attributes:
        value: 1 win, 0 draw, -1 loss, for the side to move.
        plies: to the end of the game, the winner taking the shortest way; None for draws, and without distances.
        keeping: of a draw that can be lost, the moves that keep it.
        line: best play of a win or a loss, to the end of the game or over ``MOST_PLIES``.
    """

    value: int
    plies: int | None
    keeping: tuple[str, ...]
    line: tuple[Step, ...]


class _After(NamedTuple):
    """A move, the board behind it, and its value for the player who made it."""

    move: Move
    board: Board
    value: int


class Prover:
    """Looks positions up and plays them out. Equal moves are taken in the order of their squares.

    Where there are distances, the winner takes the shortest way to the end and the loser the longest. Elsewhere the
    winner takes the shortest way to the next capture or move of a man that keeps the win.
    """

    def __init__(self, tables: Tablebase) -> None:
        self._tables = tables
        self._planner = ConversionPlanner(tables)

    def prove(self, board: Board) -> Proof:
        """What the tables say of a position in which there are moves.

        Raises:
            MissingTableError: no table covers it.
        """
        value = self._tables.probe_wdl(board)
        if value == 0:
            return Proof(0, None, self._keeping(board), ())
        return Proof(value, self._plies(board), (), tuple(self._line(board.copy())))

    def _keeping(self, board: Board) -> tuple[str, ...]:
        moves = self._moves(board)
        kept = tuple(board.pdn(one.move) for one in moves if one.value == 0)
        return kept if len(kept) < len(moves) else ()

    def _line(self, board: Board) -> list[Step]:
        line: list[Step] = []
        while len(line) < MOST_PLIES and (moves := self._moves(board)):
            best = max(one.value for one in moves)
            equal = [one for one in moves if one.value == best]
            chosen = self._fastest(board, equal) if best == 1 else self._slowest(equal)
            line.append(Step(board.pdn(chosen.move), best == 1 and len(equal) == 1 < len(moves)))
            board = chosen.board
        return line

    def _moves(self, board: Board) -> list[_After]:
        moves = search_moves(board) if board.legal_moves else []
        after = []
        for move in sorted(moves, key=lambda one: (one.start, one.end, one.path)):
            behind = board.copy()
            behind.push(move)
            after.append(_After(move, behind, -self._value(behind)))
        return after

    def _value(self, board: Board) -> int:
        return self._tables.probe_wdl(board) if board.legal_moves else -1

    def _plies(self, board: Board) -> int | None:
        if not board.legal_moves:
            return 0
        try:
            return self._tables.probe_distance(board)
        except MissingTableError:
            return None

    def _fastest(self, board: Board, winning: list[_After]) -> _After:
        known = self._known_plies(winning)
        return winning[int(np.argmin(known if known is not None else self._ranks(board, winning)))]

    def _slowest(self, lost: list[_After]) -> _After:
        known = self._known_plies(lost)
        return lost[int(np.argmax(known if known is not None else [self._delay(one.board) for one in lost]))]

    def _known_plies(self, moves: list[_After]) -> list[int] | None:
        """Plies to the end behind each move; None if one of them is not known."""
        plies = [self._plies(one.board) for one in moves]
        known = [number for number in plies if number is not None]
        return known if len(known) == len(plies) else None

    def _delay(self, board: Board) -> int:
        """Plies that the winner, who is to move, needs to the next capture or move of a man that keeps the win."""
        return min(self._ranks(board, [one for one in self._moves(board) if one.value == 1]))

    def _ranks(self, board: Board, winning: list[_After]) -> list[int]:
        """The same behind each of the winning moves: 0 where it is one of these itself, and ``_FAR`` where unknown."""
        words = np.array([(*one.board.words(), 0) for one in winning], np.uint32)
        at_once = [one.board.reversible_plies == 0 for one in winning]
        if any(at_once):
            return [0 if irreversible else _FAR for irreversible in at_once]
        ranks = self._planner.ranks(np.array([*board.words(), 0], np.uint32), words)
        return np.where(ranks < 0, _FAR, ranks).tolist()
