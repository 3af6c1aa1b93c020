"""Best play in endgames, from the tables: who wins, in how many plies, and by which moves."""

from typing import NamedTuple

import numpy as np

from ..board import Board, Move
from ..search.conversion import ConversionPlanner
from ..tablebase import MissingTableError, Tablebase

MOST_PLIES = 120
_FAR = 1 << 14


class Step(NamedTuple):
    """A move of a line.

    Attributes:
        text: the move in PDN.
        only: whether it is the only winning move, while there are other legal moves.
    """

    text: str
    only: bool


class Proof(NamedTuple):
    """What the tables say about a position.

    Attributes:
        value: 1 win, 0 draw, -1 loss, for the side to move.
        plies: plies to the end of the game with best play; None for draws, and without distances.
        keeping: in a draw, the moves that keep it, if others lose; else empty.
        line: best play of a win or a loss, to the end of the game or for at most the plies asked for; empty for draws.
    """

    value: int
    plies: int | None
    keeping: tuple[str, ...]
    line: tuple[Step, ...]


class KnownMove(NamedTuple):
    """A move, the board after it, its value for the side that makes it, and the plies from before it to the game's end.

    ``plies`` is None for draws, and without distances.
    """

    move: Move
    board: Board
    value: int
    plies: int | None


def known_moves(tables: Tablebase, board: Board) -> list[KnownMove]:
    """All moves of a position, in the order of their squares; none if the game is over.

    Raises ``MissingTableError`` if no table covers the position after one of the moves.
    """
    known = []
    for move in sorted(board.distinct_moves, key=lambda one: (one.start, one.end, one.path)):
        behind = board.copy()
        behind.push(move)
        plies, value = plies_of(tables, behind), tables.probe_wdl(behind) if behind.legal_moves else -1
        known.append(KnownMove(move, behind, -value, None if plies is None else plies + 1))
    return known


def plies_of(tables: Tablebase, board: Board) -> int | None:
    """Plies to the end of the game; None for draws, and without distances."""
    if not board.legal_moves:
        return 0
    try:
        return tables.probe_distance(board)
    except MissingTableError:
        return None


class Prover:
    """Looks positions up and plays them out. Among equal moves it takes the first in the order of their squares.

    With distances, the winner takes the shortest way to the end and the loser the longest. Without them, the winner
    takes the shortest way to the next capture or move of a man that keeps the win, and the loser the longest.
    """

    def __init__(self, tables: Tablebase) -> None:
        self._tables = tables
        self._planner = ConversionPlanner(tables)

    def prove(self, board: Board, plies: int = MOST_PLIES) -> Proof:
        """What the tables say about a position that has a legal move, with a line of at most ``plies`` plies.

        Raises ``MissingTableError`` if no table covers the position or one that can follow.
        """
        value = self._tables.probe_wdl(board)
        if value == 0:
            return Proof(0, None, self._keeping(board), ())
        return Proof(value, plies_of(self._tables, board), (), tuple(self._line(board.copy(), plies)))

    def _keeping(self, board: Board) -> tuple[str, ...]:
        moves = known_moves(self._tables, board)
        kept = tuple(board.pdn(one.move) for one in moves if one.value == 0)
        return kept if len(kept) < len(moves) else ()

    def _line(self, board: Board, plies: int) -> list[Step]:
        line: list[Step] = []
        while len(line) < plies and (moves := known_moves(self._tables, board)):
            best = max(one.value for one in moves)
            equal = [one for one in moves if one.value == best]
            chosen = self._fastest(board, equal) if best == 1 else self._slowest(equal)
            line.append(Step(board.pdn(chosen.move), best == 1 and len(equal) == 1 < len(moves)))
            board = chosen.board
        return line

    def _fastest(self, board: Board, winning: list[KnownMove]) -> KnownMove:
        known = _all_plies(winning)
        return winning[int(np.argmin(known if known is not None else self._ranks(board, winning)))]

    def _slowest(self, lost: list[KnownMove]) -> KnownMove:
        known = _all_plies(lost)
        return lost[int(np.argmax(known if known is not None else [self._delay(one.board) for one in lost]))]

    def _delay(self, board: Board) -> int:
        """Plies that the winner, who is to move, needs to the next capture or move of a man that keeps the win."""
        return min(self._ranks(board, [one for one in known_moves(self._tables, board) if one.value == 1]))

    def _ranks(self, board: Board, winning: list[KnownMove]) -> list[int]:
        """Plies from each winning move to the next capture or move of a man: 0 if the move is one itself, ``_FAR`` if
        longer or unknown."""
        words = np.array([(*one.board.words(), 0) for one in winning], np.uint32)
        at_once = [one.board.reversible_plies == 0 for one in winning]
        if any(at_once):
            return [0 if irreversible else _FAR for irreversible in at_once]
        ranks = self._planner.ranks(np.array([*board.words(), 0], np.uint32), words)
        return np.where(ranks < 0, _FAR, ranks).tolist()


def _all_plies(moves: list[KnownMove]) -> list[int] | None:
    """Plies to the end of the game with each move; None if one of them is not known."""
    known = [one.plies for one in moves if one.plies is not None]
    return known if len(known) == len(moves) else None
