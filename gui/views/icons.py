"""Icons of the buttons, as vector graphics in a unit square."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import pygame

from .shapes import Point, smooth, stroke
from .theme import RGB

_LINE = 0.10  # width of lines, as a fraction of the icon's side


class Icon(NamedTuple):
    """An icon: lines with round ends, and filled areas, each given by its points."""

    lines: Sequence[Sequence[Point]] = ()
    areas: Sequence[Sequence[Point]] = ()


def _arc(x: float, y: float, radius: float, begin: float, end: float) -> list[Point]:
    """Points of an arc; angles in degrees, clockwise from the right."""
    angles = [math.radians(begin + (end - begin) * step / 24) for step in range(25)]
    return [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]


ICONS = {
    "menu": Icon([[(0.18, y), (0.82, y)] for y in (0.26, 0.5, 0.74)]),
    "first": Icon([[(0.24, 0.24), (0.24, 0.76)], [(0.74, 0.24), (0.44, 0.5), (0.74, 0.76)]]),
    "last": Icon([[(0.76, 0.24), (0.76, 0.76)], [(0.26, 0.24), (0.56, 0.5), (0.26, 0.76)]]),
    "previous": Icon([[(0.62, 0.22), (0.34, 0.5), (0.62, 0.78)]]),
    "next": Icon([[(0.38, 0.22), (0.66, 0.5), (0.38, 0.78)]]),
    "undo": Icon([_arc(0.5, 0.58, 0.28, 205, 400)], [[(0.10, 0.30), (0.16, 0.62), (0.44, 0.46)]]),
    "redo": Icon([_arc(0.5, 0.58, 0.28, 140, 335)], [[(0.90, 0.30), (0.84, 0.62), (0.56, 0.46)]]),
    "flip": Icon(
        [
            [(0.32, 0.82), (0.32, 0.24)],
            [(0.16, 0.40), (0.32, 0.20), (0.48, 0.40)],
            [(0.68, 0.18), (0.68, 0.76)],
            [(0.52, 0.60), (0.68, 0.80), (0.84, 0.60)],
        ]
    ),
    "hint": Icon(
        [
            _arc(0.5, 0.40, 0.25, 125, 415),
            [(0.36, 0.61), (0.38, 0.70), (0.62, 0.70), (0.64, 0.61)],
            [(0.42, 0.86), (0.58, 0.86)],
        ]
    ),
    "move_now": Icon(areas=[[(0.58, 0.08), (0.22, 0.56), (0.46, 0.56), (0.40, 0.92), (0.78, 0.40), (0.53, 0.40)]]),
    "analyse": Icon(
        [[(0.16, 0.16), (0.16, 0.84), (0.86, 0.84)], [(0.28, 0.66), (0.44, 0.44), (0.58, 0.56), (0.82, 0.22)]]
    ),
    "take_over": Icon(
        [
            [(0.16, 0.34), (0.80, 0.34)],
            [(0.62, 0.16), (0.82, 0.34), (0.62, 0.52)],
            [(0.84, 0.68), (0.20, 0.68)],
            [(0.38, 0.50), (0.18, 0.68), (0.38, 0.86)],
        ]
    ),
    "resign": Icon([[(0.26, 0.14), (0.26, 0.88)]], [[(0.26, 0.14), (0.84, 0.30), (0.26, 0.54)]]),
    "rematch": Icon(
        [_arc(0.5, 0.5, 0.30, 200, 330), _arc(0.5, 0.5, 0.30, 20, 150)],
        [[(0.90, 0.20), (0.86, 0.52), (0.60, 0.36)], [(0.10, 0.80), (0.14, 0.48), (0.40, 0.64)]],
    ),
    "report": Icon(
        [
            [(0.24, 0.12), (0.76, 0.12), (0.76, 0.88), (0.24, 0.88), (0.24, 0.12)],
            *([(0.38, y), (0.62, y)] for y in (0.34, 0.5, 0.66)),
        ]
    ),
    "offer_draw": Icon([[(0.20, y), (0.80, y)] for y in (0.38, 0.64)]),
}


@lru_cache(maxsize=256)
def icon(name: str, size: int, color: RGB) -> pygame.Surface:
    """The icon of a button, ``size`` pixels wide and high."""

    def paint(surface: pygame.Surface, samples: int) -> None:
        side = size * samples
        for line in ICONS[name].lines:
            stroke(surface, [(x * side, y * side) for x, y in line], color, side * _LINE)
        for area in ICONS[name].areas:
            pygame.draw.polygon(surface, color, [(x * side, y * side) for x, y in area])

    return smooth(size, size, paint)
