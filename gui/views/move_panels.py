"""Panels with moves: the table of the search's moves, the principal variation, the moves of the game."""

from typing import NamedTuple

import pygame

from .geometry import Rect
from .panels import Wdl, wdl_strip
from .shapes import rounded
from .theme import mix
from .widgets import Panel, Style


class Column(NamedTuple):
    """A column of a table: its heading, and its place in a wide and in a narrow panel as a fraction of the width, None
    if it is left out there; ``short``: another heading in a narrow panel."""

    title: str
    wide: float
    narrow: float | None
    short: str = ""


SEARCH_COLUMNS = (
    Column("move", 0.0, 0.0),
    Column("visits", 0.40, 0.62),
    Column("prior", 0.57, None),
    Column("value", 0.73, 1.0),
    Column("B = W", 1.0, None),
)
OPENING_COLUMNS = (
    Column("move", 0.0, 0.0),
    Column("won", 0.40, 0.42, "+"),
    Column("drawn", 0.56, 0.59, "="),
    Column("lost", 0.72, 0.75, "−"),
    Column("champion", 1.0, 1.0, "champ."),
)


class TableRow(NamedTuple):
    """A row of a table of moves: texts of its columns, and the length of its bar, 0 to 1. A column without a text shows
    the proven result or, if that is "", win/draw/loss."""

    texts: tuple[str, ...]
    share: float
    wdl: Wdl | None = None
    proof: str = ""


class TableState(NamedTuple):
    """The rows shown, the one pointed at, and the numbers of rows above and below them."""

    rows: tuple[TableRow, ...] = ()
    hovered: int | None = None
    before: int = 0
    behind: int = 0


class MoveTable(Panel[TableState]):
    """A table with headings. Each row has a bar for its share in the background; rows can be pointed at."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        super().__init__(TableState())
        self._columns = columns

    def room(self, unit: int) -> int:
        """Number of rows that fit, 1 at least."""
        return max(1, self.rect.h // max(1, round(1.5 * unit)) - 1)

    def row_at(self, point: tuple[int, int], unit: int) -> int | None:
        index = (point[1] - self.rect.y - unit // 4) // round(1.5 * unit) - 1
        return index if self.rect.collidepoint(point) and 0 <= index < len(self.state.rows) else None

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        state = self.state
        theme, unit = style.theme, style.unit
        rounded(surface, self.rect, theme.panel, style.radius)
        inner = self.rect.inset(style.gap, unit // 4)
        small, line = max(8, round(unit * 0.8)), round(1.5 * unit)
        y = inner.y + line // 2
        narrow, places = inner.w < 17 * unit, []
        for number, column in enumerate(self._columns):
            share = column.narrow if narrow else column.wide
            if share is not None:
                x, align = round(inner.x + inner.w * share), "right" if number else "left"
                places.append((number, x, align))
                title = column.short if narrow and column.short else column.title
                style.text.draw(surface, title, (x, y), small, theme.dim, align=align)
        if state.before or state.behind:
            self._scroll_mark(surface, style)
        for index, row in enumerate(state.rows):
            y += line
            if y + line // 2 > inner.bottom:
                break
            area = Rect(inner.x - style.gap // 2, y - line // 2, inner.w + style.gap, line)
            surface.fill(mix(theme.panel, theme.arrow, 0.22), (area.x, area.y + 1, round(area.w * row.share), line - 2))
            if index == state.hovered:
                pygame.draw.rect(surface, theme.text, area, 1)
            for number, x, align in places:
                if number < len(row.texts):
                    bold = number == index + state.before == 0
                    style.text.draw(surface, row.texts[number], (x, y), unit - 1, theme.text, bold, align, inner.w // 3)
                else:
                    self._chances(surface, row, x, y, round(inner.w * 0.22), style)

    def _scroll_mark(self, surface: pygame.Surface, style: Style) -> None:
        """Paints a scroll bar at the right edge."""
        state, width = self.state, max(2, style.unit // 5)
        total = state.before + len(state.rows) + state.behind
        track = self.rect.inset(0, style.unit // 2)
        top = track.y + track.h * state.before // total
        bar = (track.right - width, top, width, max(width, track.h * len(state.rows) // total))
        surface.fill(style.theme.edge, bar)

    def _chances(self, surface: pygame.Surface, row: TableRow, right: int, y: int, width: int, style: Style) -> None:
        """Paints the proven result of a move, or else its win/draw/loss."""
        height = max(4, style.unit * 6 // 10)
        if row.proof:
            style.text.draw(surface, row.proof, (right, y), style.unit - 1, style.theme.accent, True, "right")
        elif row.wdl is not None:
            wdl_strip(surface, Rect(right - width, y - height // 2, width, height), row.wdl, style.theme)


class LineState(NamedTuple):
    """A line of play: heading, moves with numbers, and index of the move pointed at."""

    title: str
    moves: tuple[str, ...]
    hovered: int | None = None


class LinePanel(Panel[LineState]):
    """The principal variation; its moves can be pointed at."""

    def __init__(self) -> None:
        super().__init__(LineState("", ()))
        self._places: list[Rect] = []

    def move_at(self, point: tuple[int, int]) -> int | None:
        if not self.rect.collidepoint(point):
            return None
        return next((index for index, rect in enumerate(self._places) if rect.collidepoint(point)), None)

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        state = self.state
        theme, unit = style.theme, style.unit
        rounded(surface, self.rect, theme.panel, style.radius)
        inner = self.rect.inset(style.gap, style.gap // 2)
        line, space = round(1.45 * unit), max(3, unit // 3)
        x, y = inner.x, inner.y
        x += style.text.draw(surface, state.title, (x, y + line // 2), max(8, unit * 5 // 6), theme.dim) + space
        self._places = []
        for index, move in enumerate(state.moves):
            width = style.text.width(move, unit) + space
            if x + width > inner.right and x > inner.x:
                x, y = inner.x, y + line
                if y + line > inner.bottom + line // 3:
                    break
            rect = Rect(x, y, width, line)
            if state.hovered is not None and index <= state.hovered:
                share = 0.45 if index == state.hovered else 0.2
                rounded(surface, rect, mix(theme.panel, theme.arrow, share), style.radius)
            style.text.draw(surface, move, (x + space // 2, y + line // 2), unit, theme.text)
            self._places.append(rect)
            x += width


class MoveListState(NamedTuple):
    """The list of a game's moves.

    Attributes:
        moves: moves in PDN.
        first: 0 if Black moved first, 1 if White did.
        ply: number of moves made in the position shown.
        result: text after the last move; "" while the game goes on.
        scroll: number of rows that the user has scrolled up.
        hovered: number of moves made after the move that is pointed at.
    """

    moves: tuple[str, ...]
    first: int
    ply: int
    result: str = ""
    scroll: int = 0
    hovered: int | None = None


class MoveList(Panel[MoveListState]):
    """The game's moves in two columns. The last move of the position shown is marked; moves can be clicked."""

    def __init__(self) -> None:
        super().__init__(MoveListState((), 0, 0))
        self._places: list[tuple[Rect, int]] = []
        self.rows_shown = 0

    def ply_at(self, point: tuple[int, int]) -> int | None:
        """Number of moves made after the move under a point; None if there is none."""
        if not self.rect.collidepoint(point):
            return None
        return next((ply for rect, ply in self._places if rect.collidepoint(point)), None)

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        state = self.state
        theme, unit = style.theme, style.unit
        rounded(surface, self.rect, theme.panel, style.radius)
        inner = self.rect.inset(style.gap, style.gap // 2)
        line = round(1.5 * unit)
        self.rows_shown = max(1, inner.h // line)
        result = style.text.wrap(state.result, unit, inner.w, True, most=self.rows_shown) if state.result else []
        pairs = (len(state.moves) + state.first + 1) // 2
        rows = pairs + len(result)
        current = (max(0, state.ply - 1) + state.first) // 2
        if result and state.ply == len(state.moves):
            current = rows - 1
        top = max(0, min(rows - self.rows_shown, current - self.rows_shown // 2 - state.scroll))
        self._places = []
        number_width = style.text.width("000.", unit) + style.gap
        half = (inner.w - number_width) // 2
        if not state.moves and not state.result:
            size = max(8, unit * 5 // 6)
            style.text.draw(surface, "moves of the game", inner.center, size, theme.dim, align="center")
            return
        for row in range(top, min(rows, top + self.rows_shown)):
            y = inner.y + (row - top) * line
            if row >= pairs:
                style.text.draw(surface, result[row - pairs], (inner.x, y + line // 2), unit, theme.accent, True)
                continue
            label = (inner.x + number_width - style.gap, y + line // 2)
            style.text.draw(surface, f"{row + 1}.", label, unit, theme.dim, align="right")
            for column in (0, 1):
                index = 2 * row + column - state.first
                if not 0 <= index < len(state.moves):
                    continue
                rect = Rect(inner.x + number_width + column * half, y, half, line)
                self._cell(surface, rect, index, state, style)

    def _cell(self, surface: pygame.Surface, rect: Rect, index: int, state: MoveListState, style: Style) -> None:
        theme = style.theme
        shown = index + 1 == state.ply
        if shown:
            rounded(surface, rect.inset(0, 1), theme.accent, style.radius)
        elif index + 1 == state.hovered:
            rounded(surface, rect.inset(0, 1), theme.raised, style.radius)
        ink = theme.accent_text if shown else theme.text if index < state.ply else theme.dim
        at = (rect.x + style.gap // 2, rect.center[1])
        style.text.draw(surface, state.moves[index], at, style.unit, ink, shown, width=rect.w - style.gap // 2)
        self._places.append((rect, index + 1))
