"""What can be won or saved by force, counted in pieces alone: a search that looks at nothing else.

A leaf is a position in which nobody must capture (``alphabeta_kernels``), so what is counted there stays on the board
for a move at least. A man counts 2, a king 3.
"""

from collections.abc import Callable
from typing import NamedTuple

from numba import njit

from ..bitboard import popcount
from ..board import Board, Move
from ..fen import Color
from ..players.alphabeta import MAX_DEPTH, AlphaBetaPlayer
from ..players.alphabeta_kernels import search_with
from ..players.evaluation import LEAST_WIN

NODES = 100_000  # of a search
MAN, KING = 2, 3
_TABLE_SLOTS = 1 << 17  # 6 MiB
_MOST_JOINED = 8  # searches that a line is put together from


class Balance(NamedTuple):
    """What a side has more than the other: pieces, and kings among them."""

    pieces: int
    kings: int

    @property
    def score(self) -> int:
        return MAN * self.pieces + (KING - MAN) * self.kings

    def __sub__(self, other: "Balance") -> "Balance":
        return Balance(self.pieces - other.pieces, self.kings - other.kings)


def balance_of(board: Board, color: Color) -> Balance:
    """What ``color`` has more than the other side."""
    pieces = kings = 0
    for owner, king in board.piece_map().values():
        sign = 1 if owner is color else -1
        pieces, kings = pieces + sign, kings + sign * king
    return Balance(pieces, kings)


class Prospect(NamedTuple):
    """What a search to ``depth`` plies has found: the score for the side to move, in the units of ``Balance.score``.

    ``line`` is how it comes about, as far as the search remembers. A score beyond ``LEAST_WIN`` is a game won.
    """

    depth: int
    score: int
    line: tuple[Move, ...]


@njit(inline="always")
def _judge(line, now, _):
    own, opp, kings = line[now, 0], line[now, 1], line[now, 2]
    men = int(popcount(own)) - int(popcount(opp))
    crowned = int(popcount(own & kings)) - int(popcount(opp & kings))
    return MAN * men + (KING - MAN) * crowned


@njit(inline="always")
def _rate(state, ply, _):
    """Leaves the moves in their order."""


@njit(cache=True, nogil=True)
def search_material(state, budget):
    """``alphabeta_kernels.search_nodes`` that counts pieces."""
    return search_with(state, budget, _judge, _rate, 0)


class MaterialSearch:
    """Looks as deep as ``nodes`` allow, and at most ``depth`` plies, forced ones and captures not counted.

    Args:
        check: called every millisecond or so; what it raises ends the search.
    """

    def __init__(self, nodes: int = NODES, depth: int = MAX_DEPTH, check: Callable[[], None] = lambda: None) -> None:
        self._nodes, self._depth, self._check = nodes, depth, check
        self._player = AlphaBetaPlayer(MAX_DEPTH, table_slots=_TABLE_SLOTS, search=search_material, name="material")

    def prospects(self, board: Board, depth: int | None = None) -> list[Prospect]:
        """What is found with every depth from 1 on, up to ``depth`` (the usual one) or to the end of a decided game.

        Raises:
            PlayerError: there is no legal move.
        """
        thinking = self._player.begin(Board(board.fen()), "analysis")
        found: list[Prospect] = []
        most = self._depth if depth is None else depth
        while len(found) < most and thinking.count < self._nodes:
            self._check()
            more = thinking.advance(0.0)
            if thinking.depth > len(found):
                found.append(Prospect(thinking.depth, thinking.score, thinking.line()))
            if not more:
                break
        return found

    def line(self, board: Board, prospect: Prospect) -> tuple[Move, ...] | None:
        """The moves that lead to a prospect's score, until it is on the board; None if the search cannot tell them."""
        after, rest = Board(board.fen()), prospect.line
        for _ in range(_MOST_JOINED):
            for move in rest:
                if shows(after, board.turn, prospect.score):
                    return tuple(after.move_stack)
                after.push(move)
            if shows(after, board.turn, prospect.score):
                return tuple(after.move_stack)
            if not after.legal_moves:
                return None
            rest = self.prospects(after, max(1, prospect.depth - after.ply))[-1].line
        return None


def shows(board: Board, color: Color, score: int) -> bool:
    """Whether a score of ``color`` is on the board: nobody must capture and it has as much, or the game is over."""
    moves = board.legal_moves
    if abs(score) > LEAST_WIN:
        return not moves and (board.turn is color) == (score < 0)
    return bool(moves) and not moves[0].captured and balance_of(board, color).score == score
