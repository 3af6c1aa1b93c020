"""Pictures of positions as SVG, with the habits of ``chess.svg``: for notebooks and for pages."""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from math import hypot
from typing import TYPE_CHECKING, NamedTuple

from .bitboard import row_column
from .fen import NUMBERS, Color, Piece

if TYPE_CHECKING:
    from .board import Board
    from .move import Move

_SIDE = 32  # units of a square; the picture has 8 x 8
_HEAD = 10  # units of an arrow's head
COLORS = {
    "square light": "#e9dcc0",
    "square dark": "#8a6d4b",
    "square lastmove": "#b58f3c",
    "number": "#f4ead2",
    "mark": "#c0392b",
    "arrow": "#1f7a3d",
    "black": "#2b2b2b",
    "black line": "#f4ead2",
    "white": "#faf6ea",
    "white line": "#2b2b2b",
}
"""Colours of a picture, in any form that CSS knows."""


class Arrow(NamedTuple):
    """An arrow between two PDN numbers; a ring if they are the same."""

    tail: int
    head: int
    color: str = COLORS["arrow"]


class Svg(str):
    """A picture as text, which notebooks show as a picture."""

    def _repr_svg_(self) -> str:
        return self


def board(
    board: "Board",
    *,
    orientation: Color = Color.WHITE,
    lastmove: "Move | None" = None,
    arrows: Iterable[Arrow | tuple[int, int]] = (),
    fill: Mapping[int, str] | None = None,
    squares: Iterable[int] = (),
    size: int = 8 * _SIDE,
    coordinates: bool = True,
    colors: Mapping[str, str] | None = None,
) -> Svg:
    """A picture of a position; kings have a ring.

    Args:
        orientation: the side at the bottom.
        lastmove: a move whose squares get another colour.
        arrows: ``Arrow`` or (tail, head), in PDN numbers.
        fill: PDN number → colour of the square.
        squares: PDN numbers of squares marked by a cross.
        size: width and height in pixels.
        coordinates: whether free squares show their PDN numbers.
        colors: in place of those of ``COLORS`` with the same names.

    Raises:
        ValueError: a square is outside 1 to 32, ``colors`` has an unknown name, or ``orientation`` is no ``Color``.
    """
    if not isinstance(orientation, Color):
        raise ValueError(f"orientation is {orientation!r}: neither Color.BLACK nor Color.WHITE")
    if unknown := sorted((colors or {}).keys() - COLORS.keys()):
        raise ValueError(f"no colour is called {unknown[0]!r}: choose one of {', '.join(COLORS)}")
    drawing = _Drawing({**COLORS, **(colors or {})}, orientation)
    pieces, last = board.piece_map(), () if lastmove is None else lastmove.path or (lastmove.start, lastmove.end)
    filled = {**dict.fromkeys(last, drawing.colors["square lastmove"]), **(fill or {})}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {8 * _SIDE} {8 * _SIDE}" '
        f'width="{size}" height="{size}">',
        f'<rect width="{8 * _SIDE}" height="{8 * _SIDE}" fill="{drawing.color("square light")}"/>',
        *drawing.squares(filled, pieces if coordinates else range(1, NUMBERS + 1)),
        *(drawing.piece(number, piece) for number, piece in sorted(pieces.items())),
        *map(drawing.cross, squares),
        *(drawing.arrow(Arrow(*arrow)) for arrow in arrows),
        "</svg>",
    ]
    return Svg("\n".join(parts) + "\n")


class _Drawing:
    """Parts of a picture seen from one side."""

    def __init__(self, colors: dict[str, str], orientation: Color) -> None:
        self.colors, self._orientation = colors, orientation

    def color(self, name: str) -> str:
        return escape(self.colors[name])

    def squares(self, filled: Mapping[int, str], unnamed: Iterable[int]) -> Iterator[str]:
        """The dark squares, and the numbers of those that are not ``unnamed``."""
        for number in filled:
            self._center(number)  # says which one is wrong
        yield f'<g font-family="sans-serif" font-size="10" fill="{self.color("number")}" text-anchor="middle">'
        for number in range(1, NUMBERS + 1):
            x, y = self._center(number)
            shade = escape(filled.get(number, self.colors["square dark"]))
            corner = f'x="{x - _SIDE // 2}" y="{y - _SIDE // 2}"'
            yield f'<rect {corner} width="{_SIDE}" height="{_SIDE}" fill="{shade}"/>'
            if number not in unnamed:
                yield f'<text x="{x}" y="{y + 4}">{number}</text>'
        yield "</g>"

    def piece(self, number: int, piece: Piece) -> str:
        x, y = self._center(number)
        name = str(piece.color).lower()
        line = self.color(f"{name} line")
        man = f'<circle cx="{x}" cy="{y}" r="12" fill="{self.color(name)}" stroke="{line}"/>'
        ring = f'\n<circle cx="{x}" cy="{y}" r="7" fill="none" stroke="{line}" stroke-width="2.5"/>'
        return man + ring * piece.king

    def cross(self, number: int) -> str:
        x, y = self._center(number)
        way = f"M{x - 8} {y - 8}l16 16m0 -16l-16 16"
        return f'<path d="{way}" stroke="{self.color("mark")}" stroke-width="4" stroke-linecap="round"/>'

    def arrow(self, arrow: Arrow) -> str:
        (x, y), (to_x, to_y), color = self._center(arrow.tail), self._center(arrow.head), escape(arrow.color)
        length = hypot(to_x - x, to_y - y)
        if length == 0:
            return f'<circle cx="{x}" cy="{y}" r="14" fill="none" stroke="{color}" stroke-width="3"/>'
        along, aside = (to_x - x) / length * _HEAD, (to_y - y) / length * _HEAD
        neck_x, neck_y = to_x - along, to_y - aside
        sides = (f"{neck_x + sign * aside / 2:.1f},{neck_y - sign * along / 2:.1f}" for sign in (1, -1))
        return (
            f'<line x1="{x}" y1="{y}" x2="{neck_x:.1f}" y2="{neck_y:.1f}" stroke="{color}" stroke-width="4" '
            f'stroke-linecap="round"/>\n<polygon points="{to_x},{to_y} {" ".join(sides)}" fill="{color}"/>'
        )

    def _center(self, number: int) -> tuple[int, int]:
        """Where the middle of a square lies; raises ``ValueError`` if there is no such square."""
        if not 1 <= number <= NUMBERS:
            raise ValueError(f"square {number} is outside 1 to {NUMBERS}")
        row, column = row_column(number if self._orientation is Color.WHITE else NUMBERS + 1 - number)
        return column * _SIDE + _SIDE // 2, row * _SIDE + _SIDE // 2
