"""Moves and squares of English draughts as they are written: ``11-15``, ``15x22``."""

from ...bitboard import ROTATIONS
from ..moves import CAPTURE_FLAG
from .movegen import HOPS_SHIFT, PATH_SHIFT

SQUARE = "[0-9]{1,2}"
EXAMPLES = "11-15, 15x22 or 2x9x18"
PDN_SQUARE = r"(?:0[1-9]|[1-9][0-9]?)"  # in files of games
CAPTURE_SIGN = "x"


def square_name(number: int) -> str:
    """How the square with a PDN number is written."""
    return str(number)


def square_number(name: str) -> int:
    """The PDN number of a text that matches ``SQUARE``; of one that is no square, a number that is none."""
    return int(name)


def path_bits(code: int, taken: int) -> list[int]:
    """The bits of all squares that the piece of a move stands on.

    Args:
        taken: word of the pieces that it takes; not needed here.
    """
    # In plain integers: a call into compiled code for each field took three times as long.
    bit, directions = code & 31, code >> PATH_SHIFT
    jump = 2 if code & CAPTURE_FLAG else 1
    path = [bit]
    for _ in range(code >> HOPS_SHIFT & 31):
        bit = (bit + jump * ROTATIONS[directions & 3]) & 31
        directions >>= 2
        path.append(bit)
    return path


def between(path: tuple[int, ...]) -> tuple[int, ...]:
    """The squares between start and end that a text may name (PDN numbers): those where the piece stands."""
    return path[1:-1]
