"""What is known of a move that gave something away."""

from typing import NamedTuple

from ..board import Board, Move


class Fault(NamedTuple):
    """A move, and what whoever judged it knows.

    Attributes:
        board: before the move.
        move, better: the move played and the one to be preferred.
        before, after: expected scores, 0 to 1, of the side that moved: with the better move, and with this one.
        line: expected play with the better move, beginning with it; () where it is not known.
        reply: expected play after the move; () where it is not known.
    """

    board: Board
    move: Move
    better: Move
    before: float
    after: float
    line: tuple[Move, ...] = ()
    reply: tuple[Move, ...] = ()

    @property
    def loss(self) -> float:
        return self.before - self.after


def behind(board: Board, *moves: Move) -> Board:
    """A position after some moves, without the moves that led to it."""
    after = Board(board.fen())
    for move in moves:
        after.push(move)
    return Board(after.fen())
