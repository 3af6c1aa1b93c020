"""Smooth vector shapes: drawn several times as large, scaled down, and cached."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import pygame

from .geometry import Rect
from .theme import RGB

SAMPLES = 4
Point = tuple[float, float]


def smooth(
    width: int, height: int, paint: Callable[[pygame.Surface, int], None], samples: int = SAMPLES
) -> pygame.Surface:
    """A transparent surface on which ``paint(surface, samples)`` has drawn at ``samples`` times the size."""
    large = pygame.Surface((max(1, width) * samples, max(1, height) * samples), pygame.SRCALPHA)
    paint(large, samples)
    return pygame.transform.smoothscale(large, (max(1, width), max(1, height)))


def disc(diameter: int, color: RGB) -> pygame.Surface:
    return ring(diameter, color, 0)


@lru_cache(maxsize=256)
def ring(diameter: int, color: RGB, width: int, dashes: int = 0) -> pygame.Surface:
    """A circle, filled if ``width`` is 0; as ``dashes`` arcs if that is not 0."""

    def paint(surface: pygame.Surface, k: int) -> None:
        center, radius = diameter * k / 2, diameter * k / 2
        if not dashes:
            pygame.draw.circle(surface, color, (center, center), radius, width * k)
            return
        for dash in range(dashes):
            begin = 2 * math.pi * dash / dashes
            angles = [begin + 2 * math.pi * 0.6 / dashes * step / 8 for step in range(9)]
            outer = [(center + radius * math.cos(a), center + radius * math.sin(a)) for a in angles]
            inner = [
                (center + (radius - width * k) * math.cos(a), center + (radius - width * k) * math.sin(a))
                for a in angles
            ]
            pygame.draw.polygon(surface, color, outer + inner[::-1])

    return smooth(diameter, diameter, paint)


def rounded(
    surface: pygame.Surface, rect: Rect, color: RGB, radius: int, edge: RGB | None = None, width: int = 1
) -> None:
    """A filled rectangle with round corners and, where given, an outline of ``width`` pixels inside it."""
    if edge is not None:
        rounded(surface, rect, edge, radius)
        rect, radius = rect.inset(width), max(0, radius - width)
    radius = min(radius, rect.w // 2, rect.h // 2)
    if radius < 2:
        surface.fill(color, rect)
        return
    surface.fill(color, (rect.x + radius, rect.y, rect.w - 2 * radius, rect.h))
    surface.fill(color, (rect.x, rect.y + radius, rect.w, rect.h - 2 * radius))
    corner = disc(2 * radius, color)
    for right in (0, 1):
        for low in (0, 1):
            at = (rect.right - radius if right else rect.x, rect.bottom - radius if low else rect.y)
            surface.blit(corner, at, (right * radius, low * radius, radius, radius))


def stroke(
    surface: pygame.Surface, points: Sequence[Point], color: RGB | tuple[int, int, int, int], width: float
) -> None:
    """Draws a line with round joints and ends through points, not smoothed."""
    for (x0, y0), (x1, y1) in pairwise(points):
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        dx, dy = (y1 - y0) / length * width / 2, -(x1 - x0) / length * width / 2
        corners = [(x0 + dx, y0 + dy), (x1 + dx, y1 + dy), (x1 - dx, y1 - dy), (x0 - dx, y0 - dy)]
        pygame.draw.polygon(surface, color, corners)
    for point in points:
        pygame.draw.circle(surface, color, point, width / 2)


def _blit_smooth(
    surface: pygame.Surface, points: Sequence[Point], margin: int, samples: int, paint: Callable[..., None]
) -> None:
    """Calls ``paint(surface, scaled points, samples)`` with an enlarged surface, and draws the result at its place."""
    left, top = (math.floor(min(values)) - margin for values in zip(*points, strict=True))
    right, bottom = (math.ceil(max(values)) + margin for values in zip(*points, strict=True))

    def paint_scaled(large: pygame.Surface, k: int) -> None:
        paint(large, [((x - left) * k, (y - top) * k) for x, y in points], k)

    surface.blit(smooth(right - left, bottom - top, paint_scaled, samples), (left, top))


def polygon(
    surface: pygame.Surface, points: Sequence[Point], color: RGB, alpha: int = 255, edge: RGB | None = None
) -> None:
    """A smooth filled polygon, where given with a thin outline."""

    def paint(large: pygame.Surface, scaled: list[Point], k: int) -> None:
        pygame.draw.polygon(large, (*color, alpha), scaled)
        if edge is not None:
            pygame.draw.polygon(large, (*edge, alpha), scaled, k)

    _blit_smooth(surface, points, 1, 3, paint)


def line_strip(surface: pygame.Surface, points: Sequence[Point], color: RGB, width: float, alpha: int = 255) -> None:
    """A smooth line through points, with round joints."""

    def paint(large: pygame.Surface, scaled: list[Point], k: int) -> None:
        stroke(large, scaled, (*color, alpha), width * k)

    _blit_smooth(surface, points, math.ceil(width) + 1, 2, paint)


def arrow_points(points: Sequence[Point], width: float) -> list[Point]:
    """The outline of an arrow along a path of straight pieces, its head at the last point."""
    head = 2.6 * width
    (x0, y0), (x1, y1) = points[-2], points[-1]
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    neck = (x1 - ux * head, y1 - uy * head)
    path = [*points[:-1], neck]
    left, right = [], []
    for index, (x, y) in enumerate(path):
        before, after = path[max(0, index - 1)], path[min(len(path) - 1, index + 1)]
        dx, dy = after[0] - before[0], after[1] - before[1]
        size = math.hypot(dx, dy) or 1.0
        nx, ny = -dy / size * width / 2, dx / size * width / 2
        left.append((x + nx, y + ny))
        right.append((x - nx, y - ny))
    barbs = [
        (neck[0] - uy * head * 0.6, neck[1] + ux * head * 0.6),
        (neck[0] + uy * head * 0.6, neck[1] - ux * head * 0.6),
    ]
    return [*left, barbs[0], (x1, y1), barbs[1], *right[::-1]]
