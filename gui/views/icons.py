"""Pictures of the buttons, as vectors in a unit square."""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import pygame

from .shapes import smooth
from .theme import RGB

Draw = Callable[[pygame.Surface, float, RGB], None]
_LINE = 0.10  # width of strokes, of the icon's side


def _stroke(
    surface: pygame.Surface, side: float, color: RGB, *points: tuple[float, float], closed: bool = False
) -> None:
    """A line with round ends through points of the unit square."""
    width = side * _LINE
    scaled = [(x * side, y * side) for x, y in points]
    if closed:
        scaled.append(scaled[0])
    for (x0, y0), (x1, y1) in pairwise(scaled):
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        dx, dy = (y1 - y0) / length * width / 2, -(x1 - x0) / length * width / 2
        corners = [(x0 + dx, y0 + dy), (x1 + dx, y1 + dy), (x1 - dx, y1 - dy), (x0 - dx, y0 - dy)]
        pygame.draw.polygon(surface, color, corners)
    for point in scaled:
        pygame.draw.circle(surface, color, point, width / 2)


def _fill(surface: pygame.Surface, side: float, color: RGB, *points: tuple[float, float]) -> None:
    pygame.draw.polygon(surface, color, [(x * side, y * side) for x, y in points])


def _arc(
    surface: pygame.Surface, side: float, color: RGB, x: float, y: float, radius: float, begin: float, end: float
) -> None:
    """Part of a circle; angles in degrees, clockwise from the right."""
    angles = [math.radians(begin + (end - begin) * step / 24) for step in range(25)]
    _stroke(surface, side, color, *((x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles))


def _menu(s: pygame.Surface, k: float, c: RGB) -> None:
    for y in (0.26, 0.5, 0.74):
        _stroke(s, k, c, (0.18, y), (0.82, y))


def _first(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.24, 0.24), (0.24, 0.76))
    _stroke(s, k, c, (0.74, 0.24), (0.44, 0.5), (0.74, 0.76))


def _last(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.76, 0.24), (0.76, 0.76))
    _stroke(s, k, c, (0.26, 0.24), (0.56, 0.5), (0.26, 0.76))


def _previous(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.62, 0.22), (0.34, 0.5), (0.62, 0.78))


def _next(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.38, 0.22), (0.66, 0.5), (0.38, 0.78))


def _undo(s: pygame.Surface, k: float, c: RGB) -> None:
    _arc(s, k, c, 0.5, 0.58, 0.28, 205, 400)
    _fill(s, k, c, (0.10, 0.30), (0.16, 0.62), (0.44, 0.46))


def _redo(s: pygame.Surface, k: float, c: RGB) -> None:
    _arc(s, k, c, 0.5, 0.58, 0.28, 140, 335)
    _fill(s, k, c, (0.90, 0.30), (0.84, 0.62), (0.56, 0.46))


def _flip(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.32, 0.82), (0.32, 0.24))
    _stroke(s, k, c, (0.16, 0.40), (0.32, 0.20), (0.48, 0.40))
    _stroke(s, k, c, (0.68, 0.18), (0.68, 0.76))
    _stroke(s, k, c, (0.52, 0.60), (0.68, 0.80), (0.84, 0.60))


def _hint(s: pygame.Surface, k: float, c: RGB) -> None:
    _arc(s, k, c, 0.5, 0.40, 0.25, 125, 415)
    _stroke(s, k, c, (0.36, 0.61), (0.38, 0.70), (0.62, 0.70), (0.64, 0.61))
    _stroke(s, k, c, (0.42, 0.86), (0.58, 0.86))


def _move_now(s: pygame.Surface, k: float, c: RGB) -> None:
    _fill(s, k, c, (0.58, 0.08), (0.22, 0.56), (0.46, 0.56), (0.40, 0.92), (0.78, 0.40), (0.53, 0.40))


def _analyse(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.16, 0.16), (0.16, 0.84), (0.86, 0.84))
    _stroke(s, k, c, (0.28, 0.66), (0.44, 0.44), (0.58, 0.56), (0.82, 0.22))


def _take_over(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.16, 0.34), (0.80, 0.34))
    _stroke(s, k, c, (0.62, 0.16), (0.82, 0.34), (0.62, 0.52))
    _stroke(s, k, c, (0.84, 0.68), (0.20, 0.68))
    _stroke(s, k, c, (0.38, 0.50), (0.18, 0.68), (0.38, 0.86))


def _resign(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.26, 0.14), (0.26, 0.88))
    _fill(s, k, c, (0.26, 0.14), (0.84, 0.30), (0.26, 0.54))


def _draw(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.20, 0.38), (0.80, 0.38))
    _stroke(s, k, c, (0.20, 0.64), (0.80, 0.64))


def _report(s: pygame.Surface, k: float, c: RGB) -> None:
    _stroke(s, k, c, (0.24, 0.12), (0.76, 0.12), (0.76, 0.88), (0.24, 0.88), closed=True)
    for y, right in ((0.34, 0.62), (0.52, 0.62), (0.70, 0.50)):
        _stroke(s, k * 1.0, c, (0.38, y), (right, y))


def _help(s: pygame.Surface, k: float, c: RGB) -> None:
    _arc(s, k, c, 0.5, 0.36, 0.20, 190, 400)
    _stroke(s, k, c, (0.645, 0.50), (0.5, 0.60), (0.5, 0.66))
    pygame.draw.circle(s, c, (0.5 * k, 0.84 * k), 0.065 * k)


ICONS: dict[str, Draw] = {
    "menu": _menu,
    "first": _first,
    "last": _last,
    "previous": _previous,
    "next": _next,
    "undo": _undo,
    "redo": _redo,
    "flip": _flip,
    "hint": _hint,
    "move_now": _move_now,
    "analyse": _analyse,
    "take_over": _take_over,
    "resign": _resign,
    "draw": _draw,
    "report": _report,
    "help": _help,
}


@lru_cache(maxsize=256)
def icon(name: str, size: int, color: RGB) -> pygame.Surface:
    """A button's picture, ``size`` pixels wide and high."""
    return smooth(size, size, lambda surface, k: ICONS[name](surface, size * k, color))
