"""Panels of a game: message, players, balance, analysis, graph."""

from typing import NamedTuple

import pygame

from engine.fen import Color

from ..game.messages import Message
from .geometry import Rect
from .pieces import colors_of
from .shapes import disc, line_strip, polygon, ring, rounded
from .theme import Theme, mix
from .widgets import Panel, Style

Wdl = tuple[float, float, float]  # Black wins, draw, White wins
_BOLD_LINES, _MOST_LINES = 2, 7  # most lines of a message


class StatusPanel(Panel[Message]):
    """The message with a warning sign if needed, and the progress of a search."""

    def height(self, style: Style, width: int) -> int:
        """Pixels that the message needs in a panel of this width."""
        inner = width - 2 * style.gap - (self._badge(style) + style.gap if self.state.kind == "warn" else 0)
        lines, size = self._lines(style, inner)
        return (len(lines) + bool(self.state.detail)) * style.text.height(size) + style.gap

    @staticmethod
    def _badge(style: Style) -> int:
        return style.unit * 4 // 3

    def _lines(self, style: Style, width: int) -> tuple[list[str], int]:
        """The lines of the message and its text size, which is smaller for a long message."""
        message, size = self.state, style.unit
        lines = style.text.wrap(message.text, size, width, bold=True)
        if message.detail:
            return lines[:1], size
        if len(lines) > _BOLD_LINES:
            size = max(8, size * 5 // 6)
            lines = style.text.wrap(message.text, size, width, most=_MOST_LINES)
        return lines, size

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        message = self.state
        theme = style.theme
        fill = {"warn": mix(theme.panel, theme.warning, 0.22), "over": mix(theme.panel, theme.accent, 0.22)}
        rounded(surface, self.rect, fill.get(message.kind, theme.panel), style.radius)
        inner = self.rect.inset(style.gap, style.gap // 3)
        if message.kind == "warn":
            side = self._badge(style)
            badge = Rect(inner.x, inner.center[1] - side // 2, side, side)
            surface.blit(disc(badge.w, theme.warning), badge)
            style.text.draw(surface, "!", badge.center, style.unit, theme.background, True, "center")
            _, inner = inner.cut_left(badge.w, style.gap)
        lines, size = self._lines(style, inner.w)
        height = style.text.height(size)
        rows = [(line, theme.text, size == style.unit) for line in lines]
        if message.detail:
            rows.append((message.detail, theme.dim, False))
        y = inner.center[1] - (len(rows) - 1) * height // 2
        for line, color, bold in rows:
            style.text.draw(surface, line, (inner.x, y), size, color, bold, width=inner.w)
            y += height
        if message.progress is not None:
            track = Rect(self.rect.x, self.rect.bottom - max(2, style.unit // 6), self.rect.w, max(2, style.unit // 6))
            surface.fill(theme.raised, track)
            surface.fill(theme.accent, (track.x, track.y, round(track.w * message.progress), track.h))


class PlayerState(NamedTuple):
    """A player: ``clock`` is "" without a clock, ``pieces`` the number of men and kings, ``ahead`` the lead in pieces,
    ``low`` whether little time is left, ``runs`` whether the clock does."""

    color: Color
    name: str
    clock: str
    to_move: bool
    pieces: int
    ahead: int
    low: bool = False
    runs: bool = False


class PlayerPanel(Panel[PlayerState]):
    """Name, number of pieces and clock of one side; the side to move has a pointer and bold letters."""

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        player = self.state
        theme, unit = style.theme, style.unit
        y, size = self.rect.center[1], unit
        x = self.rect.x
        if player.to_move:
            half = unit // 3
            polygon(surface, [(x, y - half), (x + half * 1.6, y), (x, y + half)], theme.accent)
        x += round(unit * 0.75)
        side = round(unit * 1.05) // 2 * 2
        colors = colors_of(theme, player.color)
        surface.blit(disc(side, colors.face), (x, y - side // 2))
        surface.blit(ring(side, theme.dim, max(1, unit // 12)), (x, y - side // 2))
        x += side + style.gap
        right = self.rect.right
        if player.clock:
            width = style.text.width("00:00", round(unit * 1.15), True) + style.gap * 2
            width = max(width, style.text.width(player.clock, round(unit * 1.15), True) + style.gap * 2)
            box = Rect(right - width, self.rect.y + 2, width, self.rect.h - 4)
            fill = theme.warning if player.low else theme.accent if player.runs else theme.panel
            rounded(surface, box, fill, style.radius)
            ink = theme.accent_text if player.runs or player.low else theme.text
            style.text.draw(surface, player.clock, box.center, round(unit * 1.15), ink, True, "center")
            right = box.x - style.gap
        count = f"{player.pieces}" + (f"  +{player.ahead}" if player.ahead > 0 else "")
        small = max(9, size * 9 // 10)
        right -= style.text.draw(surface, count, (right, y), small, theme.dim, align="right") + style.gap
        color = theme.text if player.to_move else theme.dim
        style.text.draw(surface, player.name, (x, y), size, color, player.to_move, width=right - x)


class BalanceBar(Panel[tuple[Wdl | None, bool]]):
    """A vertical bar: Black's wins, draws, White's wins; ``state``: (win/draw/loss or None, flipped)."""

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        wdl, flipped = self.state
        rounded(surface, self.rect, style.theme.panel, style.radius)
        if wdl is None:
            return
        inner = self.rect.inset(1)
        order = (2, 1, 0) if flipped else (0, 1, 2)
        y = inner.y
        for place, index in enumerate(order):
            end = inner.bottom if place == 2 else y + round(inner.h * wdl[index])
            end = min(end, inner.bottom)
            surface.fill(style.theme.wdl[index], (inner.x, y, inner.w, end - y))
            y = end
        middle = inner.center[1]
        surface.fill(style.theme.accent, (inner.x, middle - 1, inner.w, max(2, style.unit // 10)))


def wdl_strip(surface: pygame.Surface, rect: Rect, wdl: Wdl, theme: Theme) -> None:
    """Paints a horizontal bar of win, draw, loss, with an outline so that all parts are visible."""
    surface.fill(theme.edge, rect.inset(-1))
    x = rect.x
    for index in range(3):
        end = rect.right if index == 2 else min(rect.right, x + round(rect.w * wdl[index]))
        surface.fill(theme.wdl[index], (x, rect.y, end - x, rect.h))
        x = end


class ThoughtHead(NamedTuple):
    """The state of the analysis: win/draw/loss (or ``hint`` if unknown), value, parts of the effort (the most important
    first), and lines about the endgame."""

    wdl: Wdl | None
    value: str
    effort: tuple[str, ...]
    verdict: tuple[str, ...]
    hint: str = ""


class ThoughtPanel(Panel[ThoughtHead]):
    """Win/draw/loss with numbers, the effort of the search, and the endgame's verdict."""

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        head = self.state
        theme, unit = style.theme, style.unit
        rounded(surface, self.rect, theme.panel, style.radius)
        inner = self.rect.inset(style.gap, style.gap // 2)
        line = round(1.45 * unit)
        y = inner.y + line // 2
        used = style.text.draw(surface, head.value, (inner.x, y), unit, theme.text, True, width=inner.w)
        small = max(8, unit * 5 // 6)
        effort = self.effort(style, inner.w - used - style.gap)
        style.text.draw(surface, effort, (inner.right, y), small, theme.dim, align="right")
        y += line
        if head.wdl is not None:
            bar = Rect(inner.x, y - unit // 2, inner.w, unit)
            wdl_strip(surface, bar, head.wdl, theme)
            self._figures(surface, bar, head.wdl, style)
        else:
            style.text.draw(surface, head.hint, (inner.x, y), unit, theme.dim, width=inner.w)
        for text in head.verdict:
            y += line
            style.text.draw(surface, text, (inner.x, y), unit, theme.accent, width=inner.w)

    def effort(self, style: Style, room: int) -> str:
        """The text of the effort: as many parts as fit beside the value."""
        parts = self.state.effort
        texts = (" · ".join(parts[:count]) for count in range(len(parts), 0, -1))
        return next((text for text in texts if style.text.width(text, max(8, style.unit * 5 // 6)) <= room), "")

    def _figures(self, surface: pygame.Surface, bar: Rect, wdl: Wdl, style: Style) -> None:
        size = max(8, round(style.unit * 0.8))
        x = float(bar.x)
        for index, share in enumerate(wdl):
            width = bar.w * share
            text = f"{('B', '=', 'W')[index]} {100 * share:.0f}%"
            if style.text.width(text, size, True) + 4 < width:
                ink = style.theme.wdl[0] if index else style.theme.wdl[2]
                style.text.draw(surface, text, (round(x + width / 2), bar.center[1]), size, ink, True, "center")
            x += width


class GraphState(NamedTuple):
    """Expected score of Black after every ply (None: unknown), ply shown, plies to mark, ply pointed at."""

    scores: tuple[float | None, ...]
    ply: int
    marks: tuple[int, ...] = ()
    hovered: int | None = None


class GraphPanel(Panel[GraphState]):
    """A graph of the evaluation during the game: above the middle White is better, below it Black, as on the board."""

    def plot(self) -> Rect:
        return self.rect.inset(max(4, self.rect.h // 14))

    def ply_at(self, point: tuple[int, int], count: int) -> int | None:
        """The ply under a point, in a game of ``count`` positions; None outside the graph."""
        if not self.rect.collidepoint(point) or count < 1:
            return None
        plot = self.plot()
        share = (point[0] - plot.x) / max(1, plot.w)
        return min(count - 1, max(0, round(share * max(1, count - 1))))

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        state = self.state
        theme, plot = style.theme, self.plot()
        rounded(surface, self.rect, theme.panel, style.radius)
        surface.fill(mix(theme.panel, theme.edge, 0.8), (plot.x, plot.center[1], plot.w, 1))
        last = max(1, len(state.scores) - 1)

        def place(ply: int, score: float) -> tuple[float, float]:
            return plot.x + plot.w * ply / last, plot.y + plot.h * score

        known = [(ply, score) for ply, score in enumerate(state.scores) if score is not None]
        small = max(8, style.unit * 3 // 4)
        if plot.h > 4 * small:
            style.text.draw(surface, "W", (plot.x, plot.y + small // 2), small, theme.dim)
            style.text.draw(surface, "B", (plot.x, plot.bottom - small // 2), small, theme.dim)
        if not known:
            text = "evaluation of the game" if plot.h > 2 * style.unit else ""
            style.text.draw(surface, text, plot.center, max(8, style.unit * 5 // 6), theme.dim, align="center")
        points = [place(ply, score) for ply, score in known]
        if len(points) > 1:
            base = float(plot.center[1])
            polygon(surface, [(points[0][0], base), *points, (points[-1][0], base)], theme.accent, 60)
            line_strip(surface, points, theme.accent, max(1.5, style.unit / 9))
        elif points:
            surface.blit(disc(6, theme.accent), (points[0][0] - 3, points[0][1] - 3))
        x = round(place(min(state.ply, last), 0)[0])
        surface.fill(theme.text, (x, plot.y, max(1, style.unit // 12), plot.h))
        if state.hovered is not None:
            surface.fill(theme.dim, (round(place(state.hovered, 0)[0]), plot.y, 1, plot.h))
        size = max(6, style.unit // 2) // 2 * 2
        for ply in state.marks:
            score = state.scores[ply] if ply < len(state.scores) else None
            if score is not None:
                at = place(ply, score)
                surface.blit(disc(size, theme.warning), (round(at[0]) - size // 2, round(at[1]) - size // 2))
