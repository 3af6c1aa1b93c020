"""Positions in the window: rectangles, squares of the board, layouts for any window size."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import pygame

from ..game.squares import number_at, row_column

MIN_WINDOW = (480, 360)
COLUMNS = 8


class Rect(pygame.Rect):
    """A rectangle in pixels with methods that return parts of it; they do not change it."""

    def inset(self, dx: int, dy: int | None = None) -> "Rect":
        """The rectangle reduced by ``dx`` and ``dy`` pixels on every side (enlarged if below 0), to 0 at least."""
        dy = dx if dy is None else dy
        return Rect(self.x + dx, self.y + dy, max(0, self.w - 2 * dx), max(0, self.h - 2 * dy))

    def cut_top(self, height: int, gap: int = 0) -> tuple["Rect", "Rect"]:
        """The upper ``height`` pixels, and the rest below a gap."""
        height, rest = min(height, self.h), min(height + gap, self.h)
        return Rect(self.x, self.y, self.w, height), Rect(self.x, self.y + rest, self.w, self.h - rest)

    def cut_bottom(self, height: int, gap: int = 0) -> tuple["Rect", "Rect"]:
        """The lower ``height`` pixels, and the rest above a gap."""
        height, rest = min(height, self.h), min(height + gap, self.h)
        return Rect(self.x, self.bottom - height, self.w, height), Rect(self.x, self.y, self.w, self.h - rest)

    def cut_left(self, width: int, gap: int = 0) -> tuple["Rect", "Rect"]:
        """The left ``width`` pixels, and the rest to the right of a gap."""
        width, rest = min(width, self.w), min(width + gap, self.w)
        return Rect(self.x, self.y, width, self.h), Rect(self.x + rest, self.y, self.w - rest, self.h)

    def columns(self, shares: Sequence[int], gap: int = 0) -> list["Rect"]:
        """Rectangles side by side, whose widths are in proportion to ``shares``."""
        total, sums = self.w - gap * (len(shares) - 1), accumulate(shares, initial=0)
        edges = [self.x + total * before // sum(shares) + gap * i for i, before in enumerate(sums)]
        return [Rect(left, self.y, right - gap - left, self.h) for left, right in pairwise(edges)]


def cell_of(number: int, flipped: bool) -> tuple[int, int]:
    """Column and row (0-7, from the upper left) of a PDN number; White is at the bottom unless ``flipped``."""
    row, column = row_column(number)
    return (7 - column, 7 - row) if flipped else (column, row)


def square_rect(board: Rect, number: int, flipped: bool) -> Rect:
    column, row = cell_of(number, flipped)
    size = board.w // COLUMNS
    return Rect(board.x + column * size, board.y + row * size, size, size)


def square_under(board: Rect, point: tuple[float, float], flipped: bool) -> int | None:
    """PDN number of the dark square at a point of the window, or None."""
    if not board.collidepoint(point):
        return None
    size = board.w // COLUMNS
    column, row = int(point[0] - board.x) // size, int(point[1] - board.y) // size
    return number_at(7 - row, 7 - column) if flipped else number_at(row, column)


def text_unit(width: int, height: int, scale: float = 1.0) -> int:
    """Height of body text in pixels. It grows with the window, but slower, and with the user's scale, limited so that
    there is room for the board."""
    unit = max(10, round((7 + min(width, 1.4 * height) / 120) * scale))
    return min(unit, max(10, height // 22), max(10, width // 26))


class GameLayout(NamedTuple):
    """Rectangles of the parts of the game's scene.

    Attributes:
        unit: height of body text in pixels, the unit of other sizes.
        gap: pixels between parts.
        board: the board, a square with a side that is a multiple of 8 pixels.
        bar: the bar with win/draw/loss beside the board.
        top, bottom: names and clocks of the players above and below the board.
        status, toolbar, side: message, buttons, and the space for panels.
        wide: whether the panels are beside the board, not below it; the choice that gives the larger board.
    """

    unit: int
    gap: int
    board: Rect
    bar: Rect
    top: Rect
    bottom: Rect
    status: Rect
    toolbar: Rect
    side: Rect
    wide: bool


def game_layout(width: int, height: int, scale: float = 1.0) -> GameLayout:
    """The layout of the game's scene in a window of at least ``MIN_WINDOW`` pixels."""
    unit = text_unit(width, height, scale)
    gap = max(4, unit // 2)
    strip, bar = round(1.9 * unit), max(8, round(0.8 * unit))
    beside = min(height - 2 * strip - 2 * gap, width - max(15 * unit, width * 30 // 100) - bar - 4 * gap)
    below = min(width - bar - 3 * gap, height - 2 * strip - 14 * unit)
    wide, room = beside >= below, max(beside, below)
    side_length = max(COLUMNS * 16, room // COLUMNS * COLUMNS)
    left, upper = gap, gap
    if wide:
        upper = max(gap, (height - side_length - 2 * strip) // 2)
        spare = width - side_length - bar - 4 * gap - 36 * unit
        left = gap + max(0, spare // 2)
    else:
        left = max(gap, (width - side_length - bar - gap) // 2)
    bar_rect = Rect(left, upper + strip, bar, side_length)
    board = Rect(left + bar + gap, upper + strip, side_length, side_length)
    top = Rect(board.x, upper, board.w, strip)
    bottom = Rect(board.x, board.bottom, board.w, strip)
    if wide:
        x = board.right + 2 * gap
        side = Rect(x, upper, min(width - gap - x, 36 * unit), side_length + 2 * strip)
        if upper > 3 * unit:  # the width limits the board, so the panels take the whole height
            side = Rect(side.x, gap, side.w, height - 2 * gap)
    else:
        side = Rect(gap, bottom.bottom, width - 2 * gap, height - bottom.bottom - gap)
    status, side = side.cut_top(round((3.4 if wide else 3.1) * unit), gap)
    toolbar, side = side.cut_bottom(toolbar_height(side.w, unit), gap)
    return GameLayout(unit, gap, board, bar_rect, top, bottom, status, toolbar, side, wide)


TOOLBAR_BUTTONS = 14


def toolbar_height(width: int, unit: int) -> int:
    """Height in pixels of the toolbar: one row of buttons if they fit, else two."""
    button = round(2.2 * unit)
    return button if TOOLBAR_BUTTONS * (button + 2) <= width else 2 * button + max(2, unit // 4)


def panel_heights(room: int, unit: int, gap: int, wanted: Sequence[tuple[str, float, float, int]]) -> dict[str, int]:
    """Divides the ``room`` pixels of a column's height among panels.

    Args:
        wanted: name, smallest and largest height in text units, and rank; if there is not enough room, the panel with
            the highest rank is left out first.

    Returns:
        Name → height in pixels of the panels shown, in the given order. Spare pixels go to the panels by rank, up to
        their largest heights.
    """
    chosen = list(wanted)
    while chosen and sum(int(low * unit) for _, low, _, _ in chosen) + gap * (len(chosen) - 1) > room:
        chosen.remove(max(chosen, key=lambda panel: panel[3]))
    heights = {name: int(low * unit) for name, low, _, _ in chosen}
    spare = room - sum(heights.values()) - gap * max(0, len(chosen) - 1)
    for name, low, high, _ in sorted(chosen, key=lambda panel: panel[3]):
        more = min(spare, int((high - low) * unit))
        heights[name] += more
        spare -= more
    return heights
