"""Draws the board from a ``BoardPicture``: squares, pieces, marks, arrows, and animations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pygame

from engine.board import Board
from engine.fen import Color

from .animation import MoveAnimation
from .geometry import COLUMNS, Rect, cell_of, square_rect
from .pieces import DIAMETER, piece
from .shapes import arrow_points, disc, line_strip, polygon, ring
from .text import Text
from .theme import RGB, Theme, mix


class Arrow(NamedTuple):
    """A move of the search as an arrow: ``weight`` (0 to 1) sets its width; ``hint``: whether it is a hint."""

    path: tuple[int, ...]
    weight: float
    hint: bool = False


class BoardPicture(NamedTuple):
    """The content of the board, without animations.

    Attributes:
        pieces: (PDN number, colour, is king), sorted.
        flipped: whether Black is at the bottom.
        numbers: whether to show PDN numbers in the dark squares.
        last: squares of the last move.
        selected, cursor: square of the selected piece, and of the keyboard's cursor.
        targets: squares that the selected piece can enter next.
        movable: squares of pieces to outline.
        must: whether they are outlined because they must capture.
        path: squares entered so far in a move.
        taken: squares of the pieces that ``path`` captures.
        arrows: arrows; the one with the largest weight is drawn last.
        marked: squares to highlight (hints, errors of a set-up).
        ghost: whether the picture shows a line of the search instead of the game.
    """

    pieces: tuple[tuple[int, Color, bool], ...]
    flipped: bool = False
    numbers: bool = True
    last: tuple[int, ...] = ()
    selected: int | None = None
    cursor: int | None = None
    targets: frozenset[int] = frozenset()
    movable: frozenset[int] = frozenset()
    must: bool = False
    path: tuple[int, ...] = ()
    taken: frozenset[int] = frozenset()
    arrows: tuple[Arrow, ...] = ()
    marked: frozenset[int] = frozenset()
    ghost: bool = False


def sorted_pieces(pieces: Mapping[int, tuple[Color, bool]]) -> tuple[tuple[int, Color, bool], ...]:
    """Converts a piece map to ``BoardPicture.pieces``."""
    return tuple((number, *pieces[number]) for number in sorted(pieces))


def picture_of(board: Board, flipped: bool, numbers: bool, **marks: Any) -> BoardPicture:
    """The picture of a board with its last move marked; ``marks``: other attributes of the picture."""
    marks = {"last": board.move_stack[-1].path if board.move_stack else ()} | marks
    return BoardPicture(sorted_pieces(board.piece_map()), flipped, numbers, **marks)


@dataclass
class Motion:
    """The moving parts of a frame: a piece dragged by the mouse, or an animated move."""

    now: float = 0.0
    animation: MoveAnimation | None = None
    dragged: int | None = None
    pointer: tuple[int, int] = (0, 0)


class BoardView:
    """Draws boards. All parts that do not move are cached in one surface until the picture changes."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._squares: pygame.Surface | None = None
        self._squares_key: object = None
        self._still: pygame.Surface | None = None
        self._still_key: object = None
        self._shown: object = None  # key of what the window shows
        self._touched: Rect | None = None  # where moving parts were drawn last

    def forget(self) -> None:
        """Makes the next ``draw`` paint everything, because the window was painted over."""
        self._shown = None

    def draw(
        self, surface: pygame.Surface, board: Rect, picture: BoardPicture, theme: Theme, motion: Motion
    ) -> list[Rect]:
        """Updates the window and returns the parts of it that changed."""
        animation = motion.animation
        lifted = motion.dragged if animation is None else animation.path[-1]
        key = (board, picture, theme.name, lifted)
        if key != self._still_key:
            self._still = self._paint_still(board, picture, theme, lifted)
            self._still_key = key
        still = self._still
        assert still is not None
        changed: list[Rect] = []
        if self._shown != key:
            surface.blit(still, board)
            changed.append(board)
        elif self._touched is not None:
            surface.blit(still, self._touched, self._touched.move(-board.x, -board.y))
            changed.append(self._touched)
        self._shown, self._touched = key, None
        sprites = self._moving(board, picture, theme, motion)
        if sprites:
            clip = surface.get_clip()
            surface.set_clip(board)
            for image, at in sprites:
                surface.blit(image, at)
            surface.set_clip(clip)
            first, *others = [image.get_rect(topleft=at) for image, at in sprites]
            self._touched = Rect(first.unionall(others).clip(board))
            changed.append(self._touched)
        return changed

    def _moving(
        self, board: Rect, picture: BoardPicture, theme: Theme, motion: Motion
    ) -> list[tuple[pygame.Surface, tuple[int, int]]]:
        size = board.w // COLUMNS
        animation = motion.animation
        if animation is None:
            held = next((p for p in picture.pieces if p[0] == motion.dragged), None)
            if held is None:
                return []
            large = round(size * 1.08)
            at = (motion.pointer[0] - large // 2, motion.pointer[1] - large // 2)
            return [(piece(large, held[1], held[2], theme), at)]
        sprites = []
        for number, color, king, opacity in animation.fading(motion.now):
            image = piece(size, color, king, theme).copy()
            image.set_alpha(round(255 * opacity))
            rect = square_rect(board, number, picture.flipped)
            sprites.append((image, (rect.x, rect.y)))
        start, end, share = animation.leg(motion.now)
        a, b = square_rect(board, start, picture.flipped), square_rect(board, end, picture.flipped)
        x, y = round(a.x + (b.x - a.x) * share), round(a.y + (b.y - a.y) * share)
        crowning = animation.crowning(motion.now)
        sprites.append((piece(size, animation.color, animation.king or crowning > 0.45, theme), (x, y)))
        if 0.0 < crowning < 1.0:
            diameter = max(4, round(size * (0.6 + 0.9 * crowning)))
            glow = ring(diameter // 2 * 2, theme.highlight, max(2, round(size * 0.06 * (1 - crowning)) + 1))
            sprites.append((glow, (x + (size - glow.get_width()) // 2, y + (size - glow.get_height()) // 2)))
        return sprites

    def _paint_squares(self, board: Rect, flipped: bool, numbers: bool, theme: Theme) -> pygame.Surface:
        key = (board.w, flipped, numbers, theme.name)
        if self._squares is None or key != self._squares_key:
            size = board.w // COLUMNS
            surface = pygame.Surface((board.w, board.h))
            surface.fill(theme.light_square)
            height = max(9, size // 6)
            for number in range(1, 33):
                rect = square_rect(Rect(0, 0, board.w, board.h), number, flipped)
                surface.fill(theme.dark_square, rect)
                if numbers:
                    image = self._text.render(str(number), height, theme.number)
                    surface.blit(image, (rect.x + max(2, size // 24), rect.y + max(0, size // 60)))
            self._squares, self._squares_key = surface, key
        return self._squares

    def _paint_still(self, board: Rect, picture: BoardPicture, theme: Theme, lifted: int | None) -> pygame.Surface:
        surface = self._paint_squares(board, picture.flipped, picture.numbers, theme).copy()
        area, size = Rect(0, 0, board.w, board.h), board.w // COLUMNS
        _paint_marks(surface, area, picture, theme)
        for number, color, king in picture.pieces:
            if number == lifted:
                continue
            rect = square_rect(area, number, picture.flipped)
            image = piece(size, color, king, theme)
            if number in picture.taken:
                image = image.copy()
                image.set_alpha(90)
            surface.blit(image, rect)
            if number in picture.taken:
                _cross(surface, rect, theme.capture)
            elif number == picture.selected:
                _around(surface, rect, theme.highlight, 0)
            elif number in picture.movable:
                ink, dashes = (theme.capture, 12) if picture.must else (theme.highlight, 0)
                _around(surface, rect, ink, dashes, 0.5)
        _paint_over(surface, area, picture, theme)
        if picture.cursor is not None:
            _cursor(surface, square_rect(area, picture.cursor, picture.flipped), theme.text)
        if picture.ghost:
            pygame.draw.rect(surface, theme.arrow, area, max(3, size // 16))
        return surface


def center_of(area: Rect, number: int, flipped: bool) -> tuple[float, float]:
    column, row = cell_of(number, flipped)
    size = area.w / COLUMNS
    return area.x + (column + 0.5) * size, area.y + (row + 0.5) * size


def _paint_marks(surface: pygame.Surface, area: Rect, picture: BoardPicture, theme: Theme) -> None:
    """Paints what is below the pieces: the frames of the last move, marked squares, the selected square."""
    size = area.w // COLUMNS
    for place, number in enumerate(picture.last):
        rect = square_rect(area, number, picture.flipped)
        ends = place in (0, len(picture.last) - 1)
        surface.fill(mix(theme.dark_square, theme.last, 0.38 if ends else 0.18), rect)
        if ends:
            _corners(surface, rect, theme.last, max(2, size // 26))
    for number in picture.marked:
        rect = square_rect(area, number, picture.flipped)
        surface.fill(mix(theme.dark_square, theme.highlight, 0.45), rect)
        pygame.draw.rect(surface, theme.highlight, rect, max(2, size // 22))
    if picture.selected is not None:
        surface.fill(mix(theme.dark_square, theme.highlight, 0.5), square_rect(area, picture.selected, picture.flipped))


def _paint_over(surface: pygame.Surface, area: Rect, picture: BoardPicture, theme: Theme) -> None:
    """Paints what is above the pieces: the path entered, targets, arrows."""
    size = area.w // COLUMNS
    if len(picture.path) > 1:
        points = [center_of(area, number, picture.flipped) for number in picture.path]
        line_strip(surface, points, theme.highlight, max(3, size * 0.07), 190)
    for number in picture.targets:
        rect = square_rect(area, number, picture.flipped)
        diameter = max(6, size * 3 // 10) // 2 * 2
        dot = disc(diameter, theme.highlight)
        rim = ring(diameter + 2 * max(1, size // 40), mix(theme.dark_square, (0, 0, 0), 0.5), max(1, size // 40))
        for image in (dot, rim):
            surface.blit(image, (rect.center[0] - image.get_width() // 2, rect.center[1] - image.get_height() // 2))
    for arrow in sorted(picture.arrows, key=lambda arrow: arrow.weight):
        points = [center_of(area, number, picture.flipped) for number in arrow.path]
        width = size * (0.05 + 0.12 * arrow.weight)
        color = theme.hint if arrow.hint else theme.arrow
        polygon(surface, arrow_points(points, width), color, 215, mix(color, (0, 0, 0), 0.55))


def _around(surface: pygame.Surface, rect: Rect, color: RGB, dashes: int, width: float = 1.0) -> None:
    """Paints a ring around a piece; of ``dashes`` dashes if that is not 0."""
    diameter = round(rect.w * (DIAMETER + 0.13)) // 2 * 2
    image = ring(diameter, color, max(2, round(rect.w * 0.055 * (1.0 if dashes else width))), dashes)
    surface.blit(image, (rect.x + (rect.w - diameter) // 2, rect.y + round(rect.h * 0.485) - diameter // 2))


def _corners(surface: pygame.Surface, rect: Rect, color: RGB, width: int) -> None:
    length = rect.w // 4
    for right in (False, True):
        for low in (False, True):
            x, y = (rect.right - length if right else rect.x), (rect.bottom - width if low else rect.y)
            surface.fill(color, (x, y, length, width))
            x, y = (rect.right - width if right else rect.x), (rect.bottom - length if low else rect.y)
            surface.fill(color, (x, y, width, length))


def _cross(surface: pygame.Surface, rect: Rect, color: RGB) -> None:
    inner = rect.inset(rect.w * 3 // 10)
    width = max(2.0, rect.w * 0.06)
    line_strip(surface, [(inner.x, inner.y), (inner.right, inner.bottom)], color, width)
    line_strip(surface, [(inner.right, inner.y), (inner.x, inner.bottom)], color, width)


def _cursor(surface: pygame.Surface, rect: Rect, color: RGB) -> None:
    width = max(2, rect.w // 20)
    pygame.draw.rect(surface, (0, 0, 0), rect, width + 2)
    pygame.draw.rect(surface, color, rect.inset(1), width)
