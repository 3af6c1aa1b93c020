"""Moves and squares of Russian draughts as they are written: ``c3-d4``, ``c3:e5:g7``.

Squares have the PDN numbers that they have in English draughts, so a1 is 29 and h8 is 4.
"""

from itertools import pairwise

from ...bitboard import ROTATIONS, row_column
from .movegen import move_direction, move_hops, move_steps

SQUARE = "[a-hA-H][1-8]"
EXAMPLES = "c3-d4, c3:e5 or c3:e5:g7"
PDN_SQUARE = "[a-h][1-8]"  # in files of games
CAPTURE_SIGN = ":"
_NAMES = {number: "abcdefgh"[row_column(number)[1]] + str(8 - row_column(number)[0]) for number in range(1, 33)}
_NUMBERS = {name: number for number, name in _NAMES.items()}


def square_name(number: int) -> str:
    """How the square with a PDN number is written; of a number that is no square, the number."""
    return _NAMES.get(number, str(number))


def square_number(name: str) -> int:
    """The PDN number of a text that matches ``SQUARE``; of a light square, 0."""
    return _NUMBERS.get(name.lower(), 0)


def path_bits(code: int, taken: int) -> list[int]:
    """The bits of start, turns and end, and of the first square between two pieces that are taken in one run.

    Args:
        taken: word of the pieces that it takes.
    """
    bit = code & 31
    path = [bit]
    for run in range(move_hops(code)):
        rotation, steps = ROTATIONS[move_direction(code, run)], int(move_steps(code, run))
        squares = [(bit + rotation * step) & 31 for step in range(1, steps + 1)]
        behind = [after for at, after in pairwise(squares) if taken >> at & 1]
        path += [*behind[:-1], squares[-1]]
        bit = squares[-1]
    return path


def between(path: tuple[int, ...]) -> tuple[int, ...]:
    """The squares between start and end that a text may name (PDN numbers): all that the piece passes."""
    passed: list[int] = []
    for start, end in pairwise(path):
        (row, column), (last_row, last_column) = row_column(start), row_column(end)
        down, right = (1 if last_row > row else -1), (1 if last_column > column else -1)
        for step in range(1, abs(last_row - row) + 1):
            passed.append(_NUMBERS["abcdefgh"[column + step * right] + str(8 - row - step * down)])
    return tuple(passed[:-1])
