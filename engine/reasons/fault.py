"""A move that gave something away, with what is known about it."""

from typing import NamedTuple

from ..board import Board, Move


class Fault(NamedTuple):
    """A bad move, with the evaluation that found it.

    Attributes:
        board: position before the move.
        move, better: the played move and the better one.
        before, after: expected scores (0 to 1) of the side that moved: with the better move, and with the played one.
        line: expected play with the better move, beginning with it; () if unknown.
        reply: expected play after the played move; () if unknown.
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
    """The position after some moves, as a board without a history."""
    after = Board(board.fen())
    for move in moves:
        after.push(move)
    return Board(after.fen())
