"""The help page: all keys of all scenes, in as many columns as fit."""

from collections.abc import Iterator
from itertools import groupby

import pygame

from ..help import Action, help_rows
from .program import Program
from .scene import Scene
from .shapes import rounded
from .widgets import Button, Buttons, Panel, Style, turned

_TABS = {
    "game": "Board",
    "setup": "Set-Up",
    "exercise": "Exercises",
    "report": "Report",
    "openings": "Openings",
}  # scene → label of its button
# (keys, text); a heading has an empty text; a row without keys continues the text of the row above
Row = tuple[str, str]
_BLANK: Row = ("", " ")


class KeysPanel(Panel[tuple[str, int]]):
    """Groups of keys in columns, in as many pages as they need; ``state``: (scene, number of the page from 0)."""

    def __init__(self) -> None:
        super().__init__(("game", 0))
        self.pages = 1

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        scene, page = self.state
        theme, unit = style.theme, style.unit
        line = round(1.42 * unit)
        columns = max(1, self.rect.w // (23 * unit))
        per_column = max(2, (self.rect.h - style.gap) // line)
        width = (self.rect.w - style.gap * (columns - 1)) // columns - 2 * style.gap
        longest = max(style.text.width(keys, unit - 1, True) for _, keys, _ in help_rows(scene))
        keys_width = min(longest + 2 * style.gap, width // 2)
        rows = self._rows(scene, width - keys_width, style)
        columns = max(1, min(columns, -(-len(rows) // per_column)))
        lengths = range(min(per_column, -(-len(rows) // columns)), per_column + 1)  # the shortest first
        fitting = (length for length in lengths if len(_unbroken(rows, length)) <= columns * length)
        per_column = next(fitting, max(2, per_column - 1))  # the last row tells of more pages
        rows = _unbroken(rows, per_column)
        self.pages = -(-len(rows) // (columns * per_column))
        first = min(page, self.pages - 1) * columns * per_column
        shown = rows[first : first + columns * per_column]
        for column, area in enumerate(self.rect.columns([1] * columns, style.gap)):
            rounded(surface, area, theme.panel, style.radius)
            inner = area.inset(style.gap, style.gap // 2)
            for index, (keys, text) in enumerate(shown[column * per_column : (column + 1) * per_column]):
                y = inner.y + index * line + line // 2
                if not text:
                    style.text.draw(surface, keys, (inner.x, y), unit, theme.accent, True)
                    continue
                style.text.draw(surface, keys, (inner.x, y), unit - 1, theme.text, True, width=keys_width - style.gap)
                style.text.draw(surface, text, (inner.x + keys_width, y), unit - 1, theme.dim)
        if self.pages > 1:
            text = f"page {min(page, self.pages - 1) + 1} of {self.pages} (Page Down, Page Up)"
            at = (self.rect.right - style.gap, self.rect.bottom - line // 2)
            style.text.draw(surface, text, at, unit - 1, theme.accent, True, "right")

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
    """``rows`` with blank ones where a heading would be in another column than its first keys, or a text be parted."""
    placed: list[Row] = []
    for block in _blocks(rows):
        left = -len(placed) % per_column
        if left < len(block) <= per_column:
            placed += [_BLANK] * left
        placed += block
    return placed


def _blocks(rows: list[Row]) -> Iterator[list[Row]]:
    """Rows that belong together: keys and the lines of their text, and a heading with the first of them."""
    block: list[Row] = []
    for row in rows:
        begins = bool(row[0]) and not (block and not block[-1][1])
        if begins and block:
            yield block
            block = []
        block.append(row)
    yield block


class HelpScene(Scene):
    """The help page; it begins with the keys of the scene it was opened from."""

    name = "help"

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        below = app.go.scene.name
        self.about = below if below in _TABS else "game"
        self._page = 0
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
        self.keys.state = (self.about, self._page)

    def _press(self, name: str) -> None:
        if name == "leave":
            self.app.go.back()
        else:
            self.about, self._page = name, 0

    def mouse(self, event: pygame.event.Event) -> None:
        if event.type == pygame.MOUSEWHEEL:
            self._turn(-event.y)
            return
        button = self.tabs.hover(event.pos, self.style.unit)
        if event.type == pygame.MOUSEBUTTONDOWN and event.button == 1 and button is not None:
            self._press(button.name)

    def _turn(self, pages: int) -> None:
        self._page = min(max(0, self._page + pages), self.keys.pages - 1)

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        if action is Action.MENU:
            self.app.go.back()
        elif action in (Action.NEXT_CONTROL, Action.PREVIOUS_CONTROL):
            self._press(turned(list(_TABS), self.about, 1 if action is Action.NEXT_CONTROL else -1))
        elif action in (Action.NEXT_PAGE, Action.PREVIOUS_PAGE):
            self._turn(1 if action is Action.NEXT_PAGE else -1)
        else:
            return action is Action.HELP
        return True
