"""Rows and columns of PDN numbers. Row 0 has the squares 1 to 4, Black's back row; column 0 is at White's left."""

from engine.bitboard import row_column

__all__ = ["cursor_step", "number_at", "row_column", "square_between"]
_COLUMNS = 4  # dark squares in a row
_STEPS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}


def number_at(row: int, column: int) -> int | None:
    """The square 1-32 at a row and column; None for a light square or one off the board."""
    if not (0 <= row < 8 and 0 <= column < 8) or (row + column) % 2 == 0:
        return None
    return row * _COLUMNS + column // 2 + 1


def square_between(start: int, end: int) -> int:
    """The square that a jump from ``start`` to ``end`` passes over."""
    (row, column), (end_row, end_column) = row_column(start), row_column(end)
    jumped = number_at((row + end_row) // 2, (column + end_column) // 2)
    assert jumped is not None
    return jumped


def cursor_step(square: int, direction: str, flipped: bool) -> int:
    """The next dark square on the screen in a direction, or ``square`` at the edge; ``up`` and ``down`` move in a
    zigzag.

    Args:
        direction: ``left``, ``right``, ``up`` or ``down``, as seen with White at the bottom, or Black if ``flipped``.
    """
    sign = -1 if flipped else 1
    row, place = divmod(square - 1, _COLUMNS)
    row, place = row + sign * _STEPS[direction][0], place + sign * _STEPS[direction][1]
    return _COLUMNS * row + place + 1 if 0 <= row < 8 and 0 <= place < _COLUMNS else square
