"""The scene of the report on a game: accuracy of both sides, the graph, and the worst moves with better ones."""

from functools import partial
from typing import NamedTuple

import pygame

from engine.fen import Color

from ..game.game_lines import numbered
from ..game.game_report import SIGNS, GameReport, MoveReport
from ..help import Action
from .board_scene import STEPS, BoardScene, Passage, stepped
from .board_view import Arrow, BoardPicture, picture_of
from .geometry import Rect
from .mistakes_scene import MistakesScene
from .panels import GraphPanel, GraphState
from .program import Program
from .shapes import rounded
from .theme import mix
from .widgets import Button, Panel, Style

_WORST = 8  # moves listed
_ROWS = 2  # of these for which there is room in a small window, or with a large text
_TOLD = 2  # plies that are enough to recognise a line
MistakeRow = tuple[str, str, str]  # played move, better move, loss of expected score


class MistakesState(NamedTuple):
    rows: tuple[MistakeRow, ...]
    chosen: int | None


class MistakesPanel(Panel[MistakesState]):
    """The moves with the largest losses; one of them can be chosen, and is among those for which there is room."""

    @staticmethod
    def height(unit: int, rows: int) -> int:
        """Height of the titles and of a number of rows."""
        return round(1.6 * unit) * (rows + 1) + unit // 4 * 2

    def row_at(self, point: tuple[int, int], unit: int) -> int | None:
        line = (point[1] - self.rect.y - unit // 4) // round(1.6 * unit) - 1
        shown = self._in_sight(unit)
        return shown[line] if self.rect.collidepoint(point) and 0 <= line < len(shown) else None

    def _in_sight(self, unit: int) -> range:
        """The rows that are shown."""
        room = max(0, (self.rect.h - self.height(unit, 0)) // round(1.6 * unit))
        first = max(0, (self.state.chosen or 0) + 1 - room)
        return range(first, min(first + room, len(self.state.rows)))

    def paint(self, surface: pygame.Surface, style: Style) -> None:
        state = self.state
        theme, unit = style.theme, style.unit
        rounded(surface, self.rect, theme.panel, style.radius)
        inner = self.rect.inset(style.gap, unit // 4)
        line = round(1.6 * unit)
        y = inner.y + line // 2
        columns = ((0.0, "left"), (0.5, "left"), (1.0, "right"))
        for (share, align), title in zip(columns, ("played", "better", "loss"), strict=True):
            x = round(inner.x + inner.w * share)
            style.text.draw(surface, title, (x, y), max(8, unit * 4 // 5), theme.dim, align=align)
        for index in self._in_sight(unit):
            y += line
            area = Rect(self.rect.x + 2, y - line // 2, self.rect.w - 4, line)
            if index == state.chosen:
                rounded(surface, area, mix(theme.panel, theme.accent, 0.3), style.radius)
            for (share, align), text in zip(columns, state.rows[index], strict=True):
                x = round(inner.x + inner.w * share)
                bold = index == state.chosen
                style.text.draw(surface, text, (x, y), unit, theme.text, bold, align, inner.w * 48 // 100)


class ReportScene(BoardScene):
    """Makes the report and shows it as far as it is known."""

    name = "report"

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.flipped = app.go.game.flipped
        self.session = app.controller.session
        self.mistakes, self.graph = MistakesPanel(MistakesState((), None)), GraphPanel(GraphState((), 0))
        self.panels += [self.mistakes, self.graph]
        self.boards = list(self.session.boards())
        self.ply = len(self.boards) - 1
        self.chosen: int | None = None
        self._placed = ""  # the text for which there is room
        self._worst: tuple[MoveReport, ...] = ()
        self._faults: tuple[MoveReport, ...] = ()  # empty until all are known
        adviser = app.controller.adviser()
        self._number = app.thinker.request(self.boards[-1], adviser, "report") if self.session.nodes else None
        self._buttons()

    def _buttons(self) -> None:
        self.set_buttons(
            tuple(Button(name, label=label) for name, label in STEPS.items()),
            (
                Button("retry", label="Try again", enabled=bool(self._faults)),
                Button("play", label="Play on"),
                Button("leave", label="Back"),
            ),
        )

    def place(self) -> None:
        super().place()
        unit, gap = self.style.unit, self.style.gap
        rect = self.passage.rect
        if rect.w > 2.2 * rect.h:
            rect, self.mistakes.rect = rect.cut_left(rect.w // 2, gap)
            needed = self.passage.height(self.style, rect.w)
            self.passage.rect, self.graph.rect = rect.cut_top(self._height(rect.h, rect.h * 55 // 100, needed), gap)
            return
        needed = self.passage.height(self.style, rect.w)
        usual = min(round(12 * unit), rect.h * 44 // 100)
        rows, graph = self.mistakes.height(unit, _ROWS) + gap, 2 * unit  # the least heights of the list and the graph
        room = max(rect.h // 3, rect.h - rows - graph - gap)  # the text can be scrolled
        self.passage.rect, rect = rect.cut_top(min(self._height(rect.h, usual, needed), room), gap)
        graph = max(graph, min(round(6 * unit), rect.h * 35 // 100, rect.h - rows))
        self.graph.rect, rect = rect.cut_top(graph, gap)
        self.mistakes.rect = rect

    @staticmethod
    def _height(room: int, usual: int, needed: int) -> int:
        """Height of the text in a column of height ``room``: more than usual for the reason of a fault."""
        return max(usual, min(needed, room * 2 // 3))

    def update(self, now: float) -> None:
        super().update(now)
        self._report()
        if self.passage.state.text != self._placed:
            self._placed = self.passage.state.text
            self.place()
            self.forget()

    def _report(self) -> None:
        """Shows what is known of the report."""
        review = self.app.thinker.review
        if self._number is None:
            self.passage.state = Passage("Game report", "There are no moves to report on yet.")
        if review is None or review.number != self._number:
            return
        report = review.report
        note = {"loading": "loading the network", "thinking": f"{100 * (review.progress or 0):.0f} % done"}
        if not report.worst(1):
            note["done"] = "No move gave anything away."
        warnings = (review.error,) if review.error else ()
        chosen = self._move()
        self._worst = report.worst(_WORST)
        if chosen is not None:  # others may have come in before it
            plies = [move.ply for move in self._worst]
            self.chosen = plies.index(chosen.ply) if chosen.ply in plies else None
        if review.status == "done":
            self._faults = self._to_try(report)
            self._buttons()
        text = "\n\n".join((*self._explanation(), *self._summary(report)))
        self.passage.state = Passage("Game report", text, warnings, note.get(review.status, ""))
        rows = tuple(self._row(move) for move in self._worst)
        self.mistakes.state = MistakesState(rows, self.chosen)
        marks = tuple(move.ply + 1 for move in self._worst if move.judgement)
        scores = (*report.graph, *(None for _ in range(len(self.boards) - len(report.graph))))
        self.graph.state = GraphState(scores, self.ply, marks)

    def _to_try(self, report: GameReport) -> tuple[MoveReport, ...]:
        """All faults of the only person, or of both sides if none or two people played; the worst first."""
        humans = self.app.controller.humans
        faults = (move for move in report.moves if move.judgement and not move.forced)
        wanted = [move for move in faults if len(humans) != 1 or move.color in humans]
        return tuple(sorted(wanted, key=lambda move: -move.loss))

    def _summary(self, report: GameReport) -> list[str]:
        lines = []
        for color in Color:
            accuracy, counts = report.accuracy(color), report.counts(color).items()
            faults = ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts if count)
            line = f"{color}: accuracy " + ("—" if accuracy is None else f"{accuracy:.0f} %")
            lines.append(f"{line} — {faults.replace('inaccuracys', 'inaccuracies')}" if faults else line)
        return lines

    def _explanation(self) -> list[str]:
        """Why the chosen move is bad, its refutation, and the expected play with the better move."""
        move = self._move()
        if move is None:
            return []
        played = f"{self.session.number_of(move.ply)} {move.pdn}"
        reason = move.reason.text if move.reason is not None else ""
        reply = f"After {played}: {self._numbered(move.ply + 1, move.reply)}." if _adds(move.reply, reason) else ""
        better = f"Better: {self._numbered(move.ply, move.line)}." if _adds(move.line, reason) else ""
        return [part for part in (reason, " ".join(filter(None, (reply, better)))) if part]

    def _numbered(self, ply: int, moves: tuple[str, ...]) -> str:
        """Moves with numbers; the first one is made after ``ply`` moves of the game."""
        return " ".join(numbered(moves, ply + (self.session.first_color is Color.WHITE)))

    def _row(self, move: MoveReport) -> MistakeRow:
        mark = SIGNS[move.judgement]
        return f"{self.session.number_of(move.ply)} {move.pdn}{mark}", move.best_pdn, f"{100 * move.loss:.0f} %"

    def picture(self) -> BoardPicture:
        marks: dict[str, object] = {}
        move = self._move()
        if move is not None and self.ply == move.ply:
            arrows = Arrow(move.move.path, 0.45), Arrow(move.best.path, 0.8, hint=True)
            marks = {"arrows": arrows, "last": ()}
        return picture_of(self.boards[self.ply], self.flipped, self.app.preferences.show_numbers, **marks)

    def _move(self) -> MoveReport | None:
        """The fault that is chosen."""
        return self._worst[self.chosen] if self.chosen is not None and self.chosen < len(self._worst) else None

    def _choose(self, index: int) -> None:
        if self._worst:
            self.chosen = min(max(0, index), len(self._worst) - 1)
            self.ply = self._worst[self.chosen].ply

    def _go(self, ply: int) -> None:
        self.ply, self.chosen = min(max(0, ply), len(self.boards) - 1), None

    def mouse(self, event: pygame.event.Event) -> None:
        if event.type == pygame.MOUSEWHEEL:
            over_text = self.passage.rect.collidepoint(pygame.mouse.get_pos())
            if not (over_text and self.passage.scroll(-event.y)):
                self._go(self.ply - event.y)
            return
        if event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
            row = self.mistakes.row_at(event.pos, self.style.unit)
            ply = self.graph.ply_at(event.pos, len(self.boards))
            if row is not None:
                self._choose(row)
            elif ply is not None:
                self._go(ply)
        super().mouse(event)

    def press(self, name: str) -> None:
        ply = stepped(name, self.ply, len(self.boards) - 1)
        if ply is not None:
            self._go(ply)
        elif name == "retry":
            if self._faults:
                self.app.go.show(partial(MistakesScene, boards=self.boards, mistakes=self._faults))
        elif name == "play":
            self.leave()
            self.app.go.to_game()
            self.app.controller.go_to(self.ply)
        else:
            self.leave()

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        if super().act(action, event):
            return True
        if action in (Action.CURSOR_UP, Action.CURSOR_DOWN):
            step = 1 if action is Action.CURSOR_DOWN else -1
            self._choose(0 if self.chosen is None else self.chosen + step)
            return True
        return False

    def leave(self) -> None:
        self.app.thinker.cancel()
        super().leave()


def _adds(line: tuple[str, ...], reason: str) -> bool:
    """Whether a line of play says more than the reason, which often has its moves already."""
    return bool(line) and " ".join(line[:_TOLD]) not in reason
