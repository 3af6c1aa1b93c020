"""The help page: all keys of all scenes, in as many columns as fit."""

from itertools import groupby
from typing import TYPE_CHECKING

import pygame

from ..help import Action, help_rows
from .scene import Scene
from .shapes import rounded
from .widgets import Button, Buttons, Panel, Style

if TYPE_CHECKING:
    from ..app import App

_TABS = {"game": "Board", "setup": "Set-Up", "exercise": "Exercises", "report": "Report"}  # scene → label of its button
# (keys, text); a heading has an empty text; a row without keys continues the text of the row above
Row = tuple[str, str]


class KeysPanel(Panel[tuple[str, int]]):
    """Groups of keys in columns; ``state``: (scene, first row shown)."""

    def __init__(self) -> None:
        super().__init__(("game", 0))
        self.hidden = 0  # number of rows below the window

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        scene, first = self.state
        theme, unit = style.theme, style.unit
        line = round(1.42 * unit)
        columns = max(1, self.rect.w // (23 * unit))
        per_column = max(1, (self.rect.h - style.gap) // line)
        width = (self.rect.w - style.gap * (columns - 1)) // columns - 2 * style.gap
        longest = max(style.text.width(keys, unit - 1, True) for _, keys, _ in help_rows(scene))
        keys_width = min(longest + 2 * style.gap, width // 2)
        rows = self._rows(scene, width - keys_width, style)
        columns = max(1, min(columns, -(-len(rows) // per_column)))
        lengths = range(min(per_column, -(-len(rows) // columns)), per_column + 1)  # the shortest first
        fitting = (length for length in lengths if len(_unbroken(rows, length)) <= columns * length)
        per_column = next(fitting, per_column)
        rows = _unbroken(rows, per_column)
        shown = rows[first : first + columns * per_column]
        self.hidden = max(0, len(rows) - columns * per_column)
        for column, area in enumerate(self.rect.columns(columns, style.gap)):
            rounded(surface, area, theme.panel, style.radius)
            inner = area.inset(style.gap, style.gap // 2)
            for index, (keys, text) in enumerate(shown[column * per_column : (column + 1) * per_column]):
                y = inner.y + index * line + line // 2
                if not text:
                    style.text.draw(surface, keys, (inner.x, y), unit, theme.accent, True)
                    continue
                style.text.draw(surface, keys, (inner.x, y), unit - 1, theme.text, True, width=keys_width - style.gap)
                style.text.draw(surface, text, (inner.x + keys_width, y), unit - 1, theme.dim)
        if first < self.hidden:
            at = (self.rect.right - style.gap, self.rect.bottom - line // 2)
            width = style.text.width("Page Down: more", unit - 1, True) + style.gap
            surface.fill(theme.panel, (at[0] - width, at[1] - line // 2, width, line // 2 + style.gap))
            style.text.draw(surface, "Page Down: more", at, unit - 1, theme.accent, True, "right")

    @staticmethod
    def _rows(scene: str, width: int, style: Style) -> list[Row]:
        """Rows of headings and keys with wrapped texts; ``width``: width of the texts in pixels."""
        rows: list[Row] = []
        for group, entries in groupby(help_rows(scene), key=lambda row: row[0]):
            rows.append((group, ""))
            for _, keys, text in entries:
                first, *others = style.text.wrap(text, style.unit - 1, width)
                rows += [(keys, first), *(("", part) for part in others)]
        return rows


def _unbroken(rows: list[Row], per_column: int) -> list[Row]:
    """``rows`` with a blank one wherever a heading would be the last of a column, apart from its keys."""
    placed: list[Row] = []
    for row in rows:
        if not row[1] and len(placed) % per_column == per_column - 1:
            placed.append(("", " "))
        placed.append(row)
    return placed


class HelpScene(Scene):
    """The help page; it begins with the keys of the scene it was opened from."""

    name = "help"

    def __init__(self, app: "App") -> None:
        super().__init__(app)
        below = app.go.scene.name
        self.about = below if below in _TABS else "game"
        self._first = 0
        self.keys, self.tabs = KeysPanel(), Buttons(2.0)
        self.panels = [self.tabs, self.keys]

    def place(self) -> None:
        unit, gap = self.style.unit, self.style.gap
        inner = self.window.inset(gap * 2)
        self.tabs.rect, inner = inner.cut_top(round(2.0 * unit), gap)
        self.keys.rect = inner

    def update(self, now: float) -> None:
        tabs = (Button(scene, label=label, on=scene == self.about) for scene, label in _TABS.items())
        self.tabs.buttons = (*tabs, Button("leave", label="Back"))
        self.keys.state = (self.about, self._first)

    def _press(self, name: str) -> None:
        if name == "leave":
            self.app.go.back()
        else:
            self.about, self._first = name, 0

    def mouse(self, event: pygame.event.Event) -> None:
        if event.type == pygame.MOUSEWHEEL:
            self._scroll(-2 * event.y)
            return
        button = self.tabs.hover(event.pos, self.style.unit)
        if event.type == pygame.MOUSEBUTTONDOWN and event.button == 1 and button is not None:
            self._press(button.name)

    def _scroll(self, rows: int) -> None:
        self._first = min(max(0, self._first + rows), self.keys.hidden)

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        names = [button.name for button in self.tabs.buttons]
        if action is Action.MENU:
            self.app.go.back()
        elif action in (Action.NEXT_CONTROL, Action.PREVIOUS_CONTROL):
            place = names.index(self.about) + (1 if action is Action.NEXT_CONTROL else -1)
            self._press(names[:-1][place % (len(names) - 1)])
        elif action in (Action.NEXT_PAGE, Action.PREVIOUS_PAGE):
            self._scroll(8 if action is Action.NEXT_PAGE else -8)
        else:
            return action is Action.HELP
        return True
