"""Base class of scenes with a board, a text and buttons: setting up, exercises, report."""

from itertools import accumulate
from typing import NamedTuple

import pygame

from ..help import Action
from .board_view import BoardPicture, BoardView, Motion
from .geometry import Rect, game_layout
from .program import Program
from .scene import Scene
from .shapes import rounded
from .widgets import Button, Buttons, Panel, Style, turned

STEPS = {"first": "«", "previous": "‹", "next": "›", "last": "»"}  # names of buttons → their labels


def stepped(name: str, ply: int, last: int) -> int | None:
    """The ply to which a button of ``STEPS`` leads, in a line of ``last`` plies; None for another button."""
    return {"first": 0, "previous": max(0, ply - 1), "next": min(last, ply + 1), "last": last}.get(name)


class Passage(NamedTuple):
    """A heading, paragraphs (separated by empty lines) and lines of warning."""

    title: str
    text: str = ""
    warnings: tuple[str, ...] = ()
    note: str = ""


Row = tuple[str, int, tuple[int, int, int], bool]  # text, height, colour, whether bold


class TextPanel(Panel[Passage]):
    """A text panel; long texts get smaller letters, and can be scrolled if even these do not fit."""

    def __init__(self, state: Passage) -> None:
        super().__init__(state)
        self._first = self._last_first = 0  # the first row shown, and the largest that makes sense
        self._scrolled: Passage | None = None  # the text that was scrolled

    def height(self, style: Style, width: int) -> int:
        """The height in which the whole text fits in letters of the usual size."""
        rows = self._rows(self.state, style.unit, width - 4 * style.gap, style)
        return sum(height for _, height, _, _ in rows) + 2 * style.gap

    def scroll(self, step: int) -> bool:
        """Moves a text that does not fit by some rows; returns whether it does not fit."""
        first = max(0, min(self._last_first, self._first + step))
        if first != self._first:
            self._first = first
            self.forget()
        return self._last_first > 0

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        passage = self.state
        if passage != self._scrolled:
            self._first, self._scrolled = 0, passage
        rounded(surface, self.rect, style.theme.panel, style.radius)
        inner = self.rect.inset(2 * style.gap, style.gap)
        size = style.unit
        for size in (style.unit * 9 // 8, style.unit, style.unit * 7 // 8, max(8, style.unit * 3 // 4)):
            rows = self._rows(passage, size, inner.w, style)
            if sum(height for _, height, _, _ in rows) <= inner.h:
                break
        rows = self._seen(rows, inner.h)
        y = inner.y
        for text, height, color, bold in rows:
            style.text.draw(surface, text, (inner.x, y + height // 2), size, color, bold, width=inner.w)
            y += height

    def _seen(self, rows: list[Row], room: int) -> list[Row]:
        """The rows that fit from the first one shown on; a row of dots stands for what is left out."""
        fitting = _fitting(rows[::-1], room)
        self._last_first = len(rows) - fitting
        self._first = min(self._first, self._last_first)
        rows = rows[self._first :]
        shown = rows[: _fitting(rows, room)]
        if len(shown) < len(rows) and shown:
            shown[-1] = ("...", *shown[-1][1:])
        return shown

    def _rows(self, passage: Passage, size: int, width: int, style: Style) -> list[Row]:
        theme, line = style.theme, round(1.45 * size)
        title = style.text.wrap(passage.title, size, width, True)
        rows = [(part, round(line * 1.2), theme.text, True) for part in title]
        parts = [(text, line // 3, theme.text, False) for text in passage.text.split("\n\n")]
        parts += [(passage.note, line // 2, theme.dim, False)]
        parts += [("! " + warning, line // 3, theme.warning, True) for warning in passage.warnings]
        for text, space, color, bold in parts:
            if text:
                rows.append(("", space, color, bold))
                rows += [(row, line, color, bold) for row in style.text.wrap(text, size, width)]
        return rows


def _fitting(rows: list[Row], room: int) -> int:
    """How many of the first rows fit into this height."""
    return sum(used <= room for used in accumulate(height for _, height, _, _ in rows))


class SceneWithBoard(Scene):
    """A scene that shows ``picture`` on ``board_rect``, which ``place`` sets."""

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.board_view, self.motion = BoardView(app.style.text), Motion()
        self.board_rect = Rect(0, 0, 0, 0)
        self.flipped = False  # whether Black is at the bottom

    def picture(self) -> BoardPicture:
        raise NotImplementedError

    def drawn_over(self, rect: Rect) -> None:
        if rect.colliderect(self.board_rect):
            self.board_view.forget()

    def draw_panels(self, surface: pygame.Surface, now: float) -> list[Rect]:
        self.motion.now = now
        changed = self.board_view.draw(surface, self.board_rect, self.picture(), self.style.theme, self.motion)
        return changed + super().draw_panels(surface, now)

    @property
    def lively(self) -> bool:
        return self.motion.animation is not None

    def update(self, now: float) -> None:
        self.motion.now = now
        if self.motion.animation is not None and self.motion.animation.done(now):
            self.motion.animation = None


class BoardScene(SceneWithBoard):
    """A board beside a column with a text panel and rows of buttons. An action presses the button with its name."""

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.passage = TextPanel(Passage(""))
        self.rows: list[Buttons] = []
        self.panels = [self.passage]
        self.focus: str | None = None  # name of the button with the keyboard focus

    def set_buttons(self, *rows: tuple[Button, ...]) -> None:
        while len(self.rows) < len(rows):
            self.rows.append(Buttons(2.1))
            self.panels.append(self.rows[-1])
        for panel, buttons in zip(self.rows, rows, strict=True):
            panel.buttons = buttons

    def place(self) -> None:
        layout = game_layout(self.window.w, self.window.h, self.app.scale)
        self.board_rect = layout.board
        top, bottom = layout.status.y, layout.toolbar.bottom
        side = Rect(layout.side.x, top, layout.side.w, bottom - top)
        for panel in reversed(self.rows):
            panel.rect, side = side.cut_bottom(round(2.1 * self.style.unit), layout.gap)
        self.passage.rect = side

    def press(self, name: str) -> None:
        """Called when a button was pressed."""

    def mouse(self, event: pygame.event.Event) -> None:
        if event.type == pygame.MOUSEWHEEL:
            if self.passage.rect.collidepoint(pygame.mouse.get_pos()):
                self.passage.scroll(-event.y)
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
            for panel in self.rows:
                button = panel.at(event.pos, self.style.unit)
                if button is not None and button.enabled:
                    self.press(button.name)
                    return
        elif event.type == pygame.MOUSEMOTION:
            for panel in self.rows:
                panel.hover(event.pos, self.style.unit)

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        if action in (Action.NEXT_CONTROL, Action.PREVIOUS_CONTROL):
            stops = [None, *(button.name for row in self.rows for button in row.buttons if button.enabled)]
            self._set_focus(turned(stops, self.focus, 1 if action is Action.NEXT_CONTROL else -1))
        elif action is Action.MENU:
            if self.focus is not None:
                self._set_focus(None)
            else:
                self.leave()
        elif action in (Action.TEXT_UP, Action.TEXT_DOWN):
            self.passage.scroll(1 if action is Action.TEXT_DOWN else -1)
        elif action is Action.FLIP:
            self.flipped = not self.flipped
        elif action is Action.NUMBERS:
            self.app.preferences.show_numbers = not self.app.preferences.show_numbers
        elif action is Action.ENTER and self.focus is not None:
            self.press(self.focus)
        elif any(button.name == action for row in self.rows for button in row.buttons):
            self.press(action)
        else:
            return False
        return True

    def leave(self) -> None:
        self.app.go.back()

    def _set_focus(self, name: str | None) -> None:
        self.focus = name
        for panel in self.rows:
            panel.focused = name
