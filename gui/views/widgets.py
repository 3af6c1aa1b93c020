"""Parts that all scenes use: style, panels that are only repainted after changes, buttons, tooltips, questions."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import pygame

from .geometry import Rect
from .icons import icon
from .shapes import rounded
from .text import Text
from .theme import Theme, mix

State = TypeVar("State", bound=Hashable)
Item = TypeVar("Item")

# Widths of the buttons of a row are in proportion to their letters, of which at most so many count, and so many more.
_LONG, _BESIDE = 16, 4


def turned(items: Sequence[Item], item: Item, step: int) -> Item:
    """The item ``step`` places after ``item``, cyclically; counted from the first one if ``item`` is not there."""
    place = items.index(item) if item in items else 0
    return items[(place + step) % len(items)]


class Style(NamedTuple):
    """Theme and sizes for drawing; ``unit``: height of body text in pixels."""

    theme: Theme
    text: Text
    unit: int

    @property
    def radius(self) -> int:
        return max(3, self.unit // 3)

    @property
    def gap(self) -> int:
        return max(4, self.unit // 2)


class Panel(Generic[State]):
    """A rectangle of the window that shows ``state`` and is painted again only when this has changed."""

    def __init__(self, state: State) -> None:
        self.rect = Rect(0, 0, 0, 0)
        self.state = state
        self._shown: Hashable = None

    def forget(self) -> None:
        """Makes the next ``draw`` paint the panel, because the window was painted over."""
        self._shown = None

    def draw(self, surface: pygame.Surface, style: Style) -> list[Rect]:
        """Paints the panel if necessary; returns the parts of the window that changed."""
        key = (self.rect, self.state, style.theme.name, style.unit)
        if key == self._shown or self.rect.w <= 0 or self.rect.h <= 0:
            return []
        clip = surface.get_clip()
        surface.set_clip(self.rect)
        surface.fill(style.theme.background, self.rect)
        self.paint(surface, style)
        surface.set_clip(clip)
        self._shown = key
        return [self.rect]

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        raise NotImplementedError


class Button(NamedTuple):
    """A button of a toolbar or a question, with an icon or a label; ``name``: identifies it for the caller."""

    name: str
    tip: str = ""
    icon: str | None = None
    label: str = ""
    enabled: bool = True
    on: bool = False


ButtonsState = tuple[tuple[Button, ...], str | None, str | None]


class Buttons(Panel[ButtonsState]):
    """A panel of buttons: those with icons in rows of equal length as far as they fit, those with labels in one row."""

    def __init__(self, size_units: float = 2.2) -> None:
        super().__init__(((), None, None))
        self.buttons: tuple[Button, ...] = ()
        self.hovered: str | None = None
        self.focused: str | None = None
        self._size_units = size_units

    def places(self, unit: int) -> list[tuple[Button, Rect]]:
        size, gap = round(self._size_units * unit), max(2, unit // 4)
        if any(button.label for button in self.buttons):
            line, _ = self.rect.cut_top(size)
            shares = [min(len(button.label), _LONG) + _BESIDE for button in self.buttons]
            return list(zip(self.buttons, line.columns(shares, gap * 2), strict=True))
        per_row = max(1, (self.rect.w + gap) // (size + gap))
        count = len(self.buttons)
        if count > per_row:
            per_row = (count + 1) // 2  # two rows of equal length; buttons shrink if necessary
        width = min(size * 8 // 5, (self.rect.w - gap * (per_row - 1)) // max(1, per_row))
        places = []
        for index, button in enumerate(self.buttons):
            row, column = divmod(index, per_row)
            x, y = self.rect.x + column * (width + gap), self.rect.y + row * (size + gap)
            places.append((button, Rect(x, y, width, size)))
        return places

    def at(self, point: tuple[int, int], unit: int) -> Button | None:
        """The button under a point, whether enabled or not."""
        return next((button for button, rect in self.places(unit) if rect.collidepoint(point)), None)

    def hover(self, point: tuple[int, int], unit: int) -> Button | None:
        """Marks the button under the pointer and returns it."""
        button = self.at(point, unit)
        self.hovered = button.name if button else None
        return button

    def place_of(self, name: str, unit: int) -> Rect | None:
        return next((rect for button, rect in self.places(unit) if button.name == name), None)

    def draw(self, surface: pygame.Surface, style: Style) -> list[Rect]:
        self.state = (self.buttons, self.hovered, self.focused)
        return super().draw(surface, style)

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        for button, rect in self.places(style.unit):
            paint_button(surface, rect, button, style, button.name == self.hovered, button.name == self.focused)


def paint_button(
    surface: pygame.Surface, rect: Rect, button: Button, style: Style, hovered: bool = False, focused: bool = False
) -> None:
    """Paints a button: with an outline if it has the keyboard focus, with a bar below its icon if it is switched on."""
    theme = style.theme
    fill, ink = theme.panel, theme.text
    if not button.enabled:
        ink = mix(theme.panel, theme.dim, 0.45)
    elif button.on:
        fill, ink = mix(theme.panel, theme.accent, 0.25), theme.accent
    if hovered and button.enabled:
        fill = mix(fill, theme.text, 0.12)
    rounded(surface, rect, fill, style.radius, theme.accent if focused else None, max(2, style.unit // 8))
    if button.icon is not None:
        size = min(rect.w, rect.h) * 5 // 9
        surface.blit(icon(button.icon, size, ink), (rect.center[0] - size // 2, rect.center[1] - size // 2))
    else:
        style.text.draw(surface, button.label, rect.center, style.unit, ink, align="center", width=rect.w - style.gap)
    if button.on:
        bar = Rect(rect.x + rect.w // 4, rect.bottom - max(3, style.unit // 5), rect.w // 2, max(2, style.unit // 8))
        surface.fill(theme.accent, bar)


def tooltip(surface: pygame.Surface, near: Rect, text: str, style: Style) -> Rect:
    """Draws a tooltip near a rectangle, within the window; returns its rectangle."""
    size = max(9, round(style.unit * 0.86))
    width = min(surface.get_width() - 4 * style.gap, 24 * size)
    lines = style.text.wrap(text, size, width)
    height = style.text.height(size)
    w = max(style.text.width(line, size) for line in lines) + 2 * style.gap
    h = height * len(lines) + style.gap
    x = min(max(2, near.center[0] - w // 2), surface.get_width() - w - 2)
    y = near.y - h - style.gap // 2
    if y < 2:
        y = near.bottom + style.gap // 2
    rect = Rect(x, y, w, h)
    rounded(surface, rect, style.theme.raised, style.radius, style.theme.edge)
    for index, line in enumerate(lines):
        at = (rect.x + style.gap, rect.y + style.gap // 2 + index * height + height // 2)
        style.text.draw(surface, line, at, size, style.theme.text)
    return rect


Answers = Mapping[str, tuple[str, Callable[[], object] | None]]  # name → label, and what is called if it is chosen


class Question:
    """A question over the scene with two or three answers. Enter selects the focused one (at first ``preselected``, by
    default the first), Escape the last."""

    def __init__(self, text: str, answers: Answers, preselected: str = "") -> None:
        self.text, self.answers = text, answers
        self.buttons = Buttons()
        self.buttons.buttons = tuple(Button(name, label=label) for name, (label, _) in answers.items())
        self.buttons.focused = preselected or next(iter(answers))

    def draw(self, surface: pygame.Surface, style: Style) -> Rect:
        """Paints the question in the middle of the window and returns its rectangle."""
        width = min(surface.get_width() - 4 * style.gap, 26 * style.unit)
        lines = style.text.wrap(self.text, style.unit, width - 4 * style.gap)
        button, line = round(2.2 * style.unit), style.text.height(style.unit)
        height = len(lines) * line + button + 6 * style.gap
        rect = Rect((surface.get_width() - width) // 2, (surface.get_height() - height) // 2, width, height)
        rounded(surface, rect.inset(-2), style.theme.edge, style.radius * 2)
        rounded(surface, rect, style.theme.raised, style.radius * 2)
        for index, text in enumerate(lines):
            at = (rect.center[0], rect.y + 2 * style.gap + index * line + line // 2)
            style.text.draw(surface, text, at, style.unit, style.theme.text, align="center")
        inner = rect.inset(2 * style.gap)
        self.buttons.rect = Rect(inner.x, inner.bottom - button, inner.w, button)
        self.buttons.paint(surface, style)
        return rect.inset(-2)

    def press(self, point: tuple[int, int], unit: int) -> str | None:
        button = self.buttons.at(point, unit)
        return button.name if button else None

    def key(self, name: str) -> str | None:
        """The name of the answer that a key selects; None if it moves the focus or does nothing."""
        if name in ("return", "space"):
            return self.buttons.focused
        if name == "escape":
            return self.buttons.buttons[-1].name
        if name in ("tab", "right", "shift+tab", "left"):
            names, step = [button.name for button in self.buttons.buttons], 1 if name in ("tab", "right") else -1
            self.buttons.focused = turned(names, self.buttons.focused or names[0], step)
        return None
