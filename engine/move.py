"""Moves as values, and the legal moves of a position in the order of ``movegen``."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from . import movegen
from .bitboard import SQUARE_OF_BIT
from .errors import InvalidMoveError
from .fen import NUMBERS, Color, to_number
from .rules import played

SHOWN = 40  # characters of a wrong text that a message repeats
_SIGNS = "[-xX:]"  # between the squares of a move
_MOVE_TEXT = re.compile(rf"{played.SQUARE}(?:{_SIGNS}{played.SQUARE})+")


@dataclass(frozen=True)
class Move:
    """A whole move. Two capture paths with the same start, end and captured men are the same move.

    Attributes:
        start, end: PDN numbers, 1-32.
        captured: PDN numbers of the men and kings taken, in increasing order.
        path: every square stood on, start and end included (one of the possible paths).
    """

    start: int
    end: int
    captured: tuple[int, ...] = ()
    path: tuple[int, ...] = field(default=(), compare=False)

    def mirror(self) -> "Move":
        """The same move by the other side, with the board turned by 180 degrees; see ``Board.mirror``."""
        turned, path = (tuple(NUMBERS + 1 - number for number in squares) for squares in (self.captured, self.path))
        return Move(NUMBERS + 1 - self.start, NUMBERS + 1 - self.end, turned[::-1], path)

    def __str__(self) -> str:
        return written(self.path or (self.start, self.end), bool(self.captured))


def written(squares: tuple[int, ...], captures: bool) -> str:
    """A move in PDN by the squares stood on, or by its first and last one."""
    return (played.CAPTURE_SIGN if captures else "-").join(map(played.square_name, squares))


class LegalMove(NamedTuple):
    """A legal capture path or step: the move, every square of it, and the position after it, seen by its player."""

    move: Move
    after: tuple[int, int, int]


_NUMBERS_OF_BITS = {color: tuple(to_number(int(square), color) for square in SQUARE_OF_BIT) for color in Color}


def code_to_path(code: int, turn: Color, taken: int = 0) -> tuple[int, ...]:
    """PDN numbers stood on by a move code of ``movegen`` made by ``turn``.

    Args:
        taken: word of the pieces that it takes; without it, a king that flies takes several on a line in one hop.
    """
    numbers = _NUMBERS_OF_BITS[turn]
    return tuple(numbers[bit] for bit in played.path_bits(code, taken))


def generated_moves(own: int, opp: int, kings: int, turn: Color, distinct: bool) -> list[LegalMove]:
    """The legal moves in the order of ``movegen.generate``."""
    buffer = movegen.new_moves()
    count = movegen.generate(np.uint32(own), np.uint32(opp), np.uint32(kings), buffer, distinct)
    numbers, legal = _NUMBERS_OF_BITS[turn], []
    for *after, code in buffer[:count].tolist():
        taken = opp & ~after[1]
        path = code_to_path(code, turn, taken)
        captured = tuple(sorted(numbers[bit] for bit in range(32) if taken >> bit & 1)) if taken else ()
        legal.append(LegalMove(Move(path[0], path[-1], captured, path), tuple(after)))
    return legal


def squares_written(text: str) -> tuple[int, ...]:
    """PDN numbers of the squares in the text of a move; a name of no square gives a number that is none.

    Raises:
        InvalidMoveError: the text does not look like a move.
    """
    if not _MOVE_TEXT.fullmatch(text):
        raise InvalidMoveError(f"{text[:SHOWN]!r} is not a move (like {played.EXAMPLES})")
    return tuple(played.square_number(name) for name in re.split(_SIGNS, text))


def moves_named(text: str, paths: list[Move]) -> list[Move]:
    """The paths that a text in PDN names: those with all of its squares, else those with its start and end.

    Raises:
        InvalidMoveError: the text is no move.
    """
    squares = squares_written(text)
    exact = [move for move in paths if move.path == squares]
    return exact or [move for move in paths if _names(squares, move.path)]


def _names(squares: tuple[int, ...], path: tuple[int, ...]) -> bool:
    """Whether the squares name this path: start and end, and whatever lies between in order."""
    if squares[0] != path[0] or squares[-1] != path[-1]:
        return False
    rest = iter(played.between(path))
    return all(square in rest for square in squares[1:-1])
