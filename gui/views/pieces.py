"""The pieces: discs in the two sides' colours. A king has a crown and is two discs high."""

import math
from functools import lru_cache

import pygame

from engine.fen import Color

from .shapes import smooth
from .theme import RGB, PieceColors, Theme, mix

DIAMETER = 0.80  # as a fraction of a square's width
_RISE = 0.07  # height of a disc's rim, as a fraction of a square's width


def colors_of(theme: Theme, color: Color) -> PieceColors:
    return theme.black if color is Color.BLACK else theme.white


def crown_points(x: float, y: float, size: float) -> list[tuple[float, float]]:
    """Points of a crown with five tips around (x, y), ``size`` wide."""
    half, height = size / 2, size * 0.72
    top, foot = y - height / 2, y + height / 2
    tips = [(-1.0, 0.18), (-0.5, 0.62), (-0.5, 0.62), (0.0, 0.0), (0.5, 0.62), (0.5, 0.62), (1.0, 0.18)]
    upper = [(x + half * dx, top + height * dy) for dx, dy in tips]
    return [*upper, (x + half * 0.78, foot), (x - half * 0.78, foot)]


def _disc(surface: pygame.Surface, x: float, y: float, radius: float, rise: float, colors: PieceColors) -> None:
    """Paints one disc: the rim below, and the face with light from above."""
    pygame.draw.circle(surface, mix(colors.rim, (0, 0, 0), 0.25), (x, y + rise), radius)
    pygame.draw.rect(surface, mix(colors.rim, (0, 0, 0), 0.25), (x - radius, y, 2 * radius, rise))
    pygame.draw.circle(surface, colors.rim, (x, y), radius)
    inner = radius * 0.94
    steps = 14
    for step in range(steps):
        share = step / (steps - 1)
        shade = mix(mix(colors.face, (0, 0, 0), 0.12), mix(colors.face, (255, 255, 255), 0.10), share)
        pygame.draw.circle(surface, shade, (x, y - radius * 0.06 * share), inner * (1 - 0.22 * share))
    pygame.draw.circle(surface, colors.face, (x, y), inner * 0.76)


def _engraving(surface: pygame.Surface, x: float, y: float, radius: float, colors: PieceColors, color: Color) -> None:
    """Paints rings on Black's pieces and a ring of notches on White's, so that the sides also differ in shape."""
    width = max(1, round(radius * 0.045))
    if color is Color.BLACK:
        for share in (0.72, 0.46):
            pygame.draw.circle(surface, colors.mark, (x, y), radius * share, width)
        return
    pygame.draw.circle(surface, colors.mark, (x, y), radius * 0.72, width)
    for notch in range(24):
        angle = 2 * math.pi * notch / 24
        cos, sin = math.cos(angle), math.sin(angle)
        begin, end = (
            (x + radius * 0.78 * cos, y + radius * 0.78 * sin),
            (x + radius * 0.88 * cos, y + radius * 0.88 * sin),
        )
        pygame.draw.line(surface, colors.mark, begin, end, width)


def _crown(surface: pygame.Surface, x: float, y: float, radius: float, colors: PieceColors, face: RGB) -> None:
    size = radius * 1.08
    pygame.draw.circle(surface, colors.mark, (x, y), radius * 0.78, max(1, round(radius * 0.05)))
    pygame.draw.polygon(surface, face, crown_points(x, y - radius * 0.04, size))
    for dx, dy in ((-0.5, -0.2), (0.0, -0.38), (0.5, -0.2)):
        pygame.draw.circle(surface, face, (x + size * dx, y + size * dy - radius * 0.04), radius * 0.075)
    foot = pygame.Rect(0, 0, round(size * 0.78), round(radius * 0.1))
    foot.center = (round(x), round(y + size * 0.36 + radius * 0.1))
    pygame.draw.rect(surface, face, foot)


@lru_cache(maxsize=64)
def piece(size: int, color: Color, king: bool, theme: Theme) -> pygame.Surface:
    """The picture of a piece with its shadow, on a transparent square of ``size`` pixels."""
    colors = colors_of(theme, color)

    def paint(surface: pygame.Surface, k: int) -> None:
        side = size * k
        radius, x, y, rise = side * DIAMETER / 2, side / 2, side * 0.475, side * _RISE
        for step in range(6):
            shadow = radius * (1.10 - 0.025 * step)
            pygame.draw.circle(surface, (0, 0, 0, 10 + 9 * step), (x, y + rise * 1.35), shadow)
        if king:
            _disc(surface, x, y + rise * 0.35, radius, rise, colors)
            y -= rise * 0.9
        _disc(surface, x, y, radius, rise * (1.1 if king else 0.9), colors)
        if king:
            gold = (240, 200, 96) if color is Color.BLACK else (166, 112, 24)
            _crown(surface, x, y, radius, colors, gold)
        else:
            _engraving(surface, x, y, radius, colors, color)

    return smooth(size, size, paint, 4 if size <= 160 else 3)
