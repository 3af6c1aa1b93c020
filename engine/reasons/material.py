"""A search that counts only material: what can be won or saved by force.

A leaf is a position in which the side to move need not capture (``alphabeta_kernels``), so the pieces counted there
stay on the board for at least one move. A man counts 2, a king 3.
"""

from collections.abc import Callable
from typing import NamedTuple

from numba import njit

from ..bitboard import popcount
from ..board import Board, Move
from ..fen import Color
from ..players.alphabeta import MAX_DEPTH, AlphaBetaPlayer
from ..players.alphabeta_kernels import rate_nothing, search_with
from ..players.evaluation import LEAST_WIN

NODES = 100_000  # nodes of a search
MAN, KING = 2, 3
_TABLE_SLOTS = 1 << 17  # 4 MiB
_MOST_JOINED = 8  # most searches whose lines are joined to one


class Balance(NamedTuple):
    """Difference in material between two sides: all pieces, and kings among them."""

    pieces: int
    kings: int

    @property
    def score(self) -> int:
        return MAN * self.pieces + (KING - MAN) * self.kings


def balance_of(board: Board, color: Color) -> Balance:
    """The material of ``color`` minus that of the other side."""
    pieces = kings = 0
    for owner, king in board.piece_map().values():
        sign = 1 if owner is color else -1
        pieces, kings = pieces + sign, kings + sign * king
    return Balance(pieces, kings)


class Prospect(NamedTuple):
    """Result of a search to ``depth`` plies.

    ``score`` is for the side to move, in the units of ``Balance.score``; above ``LEAST_WIN`` the game is won. ``line``
    leads to it, as far as the transposition table has it.
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


@njit(cache=True, nogil=True)
def search_material(state, budget):
    """``alphabeta_kernels.search_nodes`` with material as the evaluation."""
    return search_with(state, budget, _judge, rate_nothing, 0)


class MaterialSearch:
    """Searches with iterative deepening, up to a number of nodes and a depth.

    Args:
        nodes: number of nodes after which a search stops; depth 1 is always finished.
        depth: largest depth in plies, without forced replies and captures.
        check: called about every millisecond; an exception ends the search.
    """

    def __init__(self, nodes: int = NODES, depth: int = MAX_DEPTH, check: Callable[[], None] = lambda: None) -> None:
        self._nodes, self._depth, self._check = nodes, depth, check
        self._player = AlphaBetaPlayer(MAX_DEPTH, table_slots=_TABLE_SLOTS, search=search_material, name="material")

    def prospects(self, board: Board, depth: int | None = None) -> list[Prospect]:
        """Results of the depths 1, 2, ..., up to ``depth`` (None: the usual one), or until the game is decided.

        Raises ``PlayerError`` if there is no legal move.
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
        """Moves from ``board`` to a position that ``shows`` the prospect's score; None if they cannot be found."""
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
    """Whether the board has the score ``score`` for ``color``: by its material if the side to move need not capture, or
    because the game is over."""
    moves = board.legal_moves
    if abs(score) > LEAST_WIN:
        return not moves and (board.turn is color) == (score < 0)
    return bool(moves) and not moves[0].captured and balance_of(board, color).score == score
