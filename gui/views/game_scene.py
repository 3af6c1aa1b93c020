"""The scene of the game: board, players, analysis, moves and buttons."""

import pygame

from engine.board import Board, Move
from engine.fen import Color

from ..game.messages import Message
from ..game.session import GameSession
from ..help import Action, keys_of
from ..views import game_facts as facts
from .board_view import BoardPicture, picture_of
from .entry_scene import EntryScene
from .game_keys import GameKeys, tools
from .geometry import Rect, game_layout, panel_heights
from .move_panels import SEARCH_COLUMNS, LinePanel, MoveList, MoveTable
from .panels import BalanceBar, GraphPanel, PlayerPanel, StatusPanel, ThoughtPanel
from .program import Program
from .widgets import Button, Buttons


class GameScene(EntryScene):
    """Play and analysis of one game."""

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.controller, self.entry = app.controller, app.controller.input
        self._oriented: object = None
        self.status, self.bar = StatusPanel(Message("")), BalanceBar((None, self.flipped))
        self.players = tuple(PlayerPanel(facts.player_state(self.controller, color)) for color in Color)
        self.tools = Buttons()
        self.thought = ThoughtPanel(facts.thought_head(None, ()))
        self.table, self.line = MoveTable(SEARCH_COLUMNS), LinePanel()
        self.graph, self.moves = GraphPanel(facts.graph_state(self.controller, None)), MoveList()
        self.panels = [self.status, self.bar, *self.players, self.tools]
        self.panels += [self.thought, self.table, self.line, self.graph, self.moves]
        self._seen: tuple[int, int, Board] | None = None  # game, ply and board of the last frame
        self.row: int | None = None  # pointed at: row of the table; below: move of the line, ply of graph, of list
        self.pv: int | None = None
        self._ply: int | None = None
        self._listed: int | None = None
        self._scroll = self._first_row = 0
        self._dropped = False  # whether the last move was dragged, so that it needs no animation
        self._verdict_lines = 0
        self._asked_in = 0  # game that the question is about
        self.keys = GameKeys(self)

    # --- layout

    def place(self) -> None:
        layout = self.layout = game_layout(self.window.w, self.window.h, self.app.scale)
        unit, gap, show = layout.unit, layout.gap, self.app.preferences
        self.board_rect, self.bar.rect = layout.board, layout.bar
        self.players[0].rect, self.players[1].rect = layout.top, layout.bottom
        self.tools.rect = layout.toolbar
        side = layout.side
        self._status_height = max(layout.status.h, self.status.height(self.style, layout.status.w))
        more = self._status_height - layout.status.h
        self.status.rect = Rect(layout.status.topleft, (layout.status.w, self._status_height))
        _, side = side.cut_top(more)
        high = 3.9 + 1.45 * self._verdict_lines
        panels = (  # name, smallest and largest height in text units, rank, whether to show it
            ("thought", high, high, 2, show.show_wdl),
            ("table", 5.0, 11.0, 3, show.show_moves_table),
            ("line", 3.4, 4.9, 4, show.show_line),
            ("graph", 3.2, 7.0, 5, show.show_graph),
            ("moves", 3.4, 8.0, 1, True),
        )
        wanted = [panel[:4] for panel in panels if panel[4]]
        named: dict[str, Rect] = {}
        rest = side
        if not layout.wide and rest.w > 40 * unit:
            rest, named["moves"] = rest.cut_left(rest.w // 2, gap)
            if show.show_graph:
                named["graph"], named["moves"] = named["moves"].cut_top(min(7 * unit, rest.h // 3), gap)
            wanted = [panel for panel in wanted if panel[0] not in named]
        heights = panel_heights(rest.h, unit, gap, wanted)
        for name, height in heights.items():
            height = rest.h if name == next(reversed(heights)) and name == "moves" else height
            named[name], rest = rest.cut_top(height, gap)
        for name, *_ in panels:
            getattr(self, name).rect = named.get(name, Rect(0, 0, 0, 0))

    def orient(self) -> None:
        """Turns the board by the preferences; with "own", the side of the only person is at the bottom."""
        bottom, humans = self.app.preferences.bottom, self.controller.humans
        black = humans == {Color.BLACK} if bottom == "own" else bottom == "black"
        if black != self.flipped:
            self.flip()

    def flip(self) -> None:
        self.flipped = not self.flipped
        self.forget()

    # --- every frame

    def update(self, now: float) -> None:
        self.motion.now = now
        seated = (self.controller.session.game, self.controller.humans)
        if self._oriented != seated:
            self._oriented = seated
            self.orient()
        self._follow()
        super().update(now)
        self.controller.tick(ready=self.motion.animation is None)
        self._follow()
        self._drop_question()
        controller, snapshot = self.controller, self.controller.shown_thought()
        verdict = controller.verdict()
        lines = verdict.lines if verdict is not None else ()
        self.status.state = self._message()
        needed = max(self.layout.status.h, self.status.height(self.style, self.layout.status.w))
        if (len(lines), needed) != (self._verdict_lines, self._status_height):
            self._verdict_lines = len(lines)
            self.place()
            self.forget()
        upper = Color.WHITE if self.flipped else Color.BLACK
        self.players[0].state = facts.player_state(controller, upper)
        self.players[1].state = facts.player_state(controller, upper.other)
        self.thought.state = facts.thought_head(snapshot, lines)
        self.table.state = facts.table_state(snapshot, self.row, self.table.room(self.style.unit), self._first_row)
        self.line.state = facts.line_state(snapshot, controller.session.first_color, self.pv)
        self.graph.state = facts.graph_state(controller, self._ply)
        self.moves.state = facts.move_list_state(controller, self._scroll, self._listed)
        self.bar.state = (self._balance(), self.flipped)
        self.tools.buttons = self._buttons()

    def _message(self) -> Message:
        message, series = self.controller.message(), self.app.series
        if series is None or not series.at_board(self.controller) or self.controller.notice:
            return message  # a detail would leave room for one line of a notice
        parts = [series.line(), message.detail]
        if self.controller.paused and self.controller.session.finished and series.goes_on:
            parts[1] = f"paused ({keys_of(Action.PAUSE)} goes on)"
        if message.kind != "busy":  # how to go on comes first: the end of a long line is cut
            parts.reverse()
        return message._replace(detail="; ".join(filter(None, parts)))

    def _balance(self) -> tuple[float, float, float] | None:
        """Win/draw/loss of Black in the position shown or, while that is unknown, in the one before."""
        controller, snapshot = self.controller, self.controller.shown_thought()
        ply = controller.session.ply
        known = None if snapshot is None else snapshot.black_wdl
        if known is None:
            known = controller.shares.get(ply, controller.shares.get(ply - 1))
        return None if known is None else (round(known[0], 3), round(known[1], 3), round(known[2], 3))

    def _follow(self) -> None:
        """Starts sound and animation when a move was made."""
        session = self.controller.session
        seen = (session.game, session.ply, session.board)
        if self._seen == seen:
            return
        if self._seen is not None and session.last_move is not None and self._seen == _before(session):
            self.show_move(session.last_move, self._seen[2], session.board, self._dropped)
        else:
            self.motion.animation = None
        self._dropped, self._scroll, self._first_row, self.pv, self.row = False, 0, 0, None, None
        self._seen = (session.game, session.ply, session.board.copy())

    def sound_end(self) -> None:
        """Plays the sound of the game's end, if sounds are on: as won unless the only person has lost."""
        ending = self.controller.session.ending
        if ending is not None:
            lost = ending.winner is not None and self.controller.humans == {ending.winner.other}
            self.sound("drawn" if ending.winner is None else "lost" if lost else "won")

    def picture(self) -> BoardPicture:
        snapshot = self.controller.shown_thought()
        if self.pv is not None and snapshot is not None and self.pv < len(snapshot.pv):
            board = facts.line_board(snapshot, self.pv + 1)
            return picture_of(board, self.flipped, self.app.preferences.show_numbers, ghost=True)
        picture = self.entry_picture(self.controller.session.board)
        if self.motion.animation is not None or not (self.app.preferences.show_arrows or self.controller.hint):
            return picture
        row = None if self.row is None else self.row + self.table.state.before
        return picture._replace(arrows=facts.arrows(self.controller, row))

    def plain_picture(self) -> BoardPicture:
        """The position with the last move, without other marks."""
        return picture_of(self.controller.session.board, self.flipped, self.app.preferences.show_numbers)

    def _buttons(self) -> tuple[Button, ...]:
        controller = self.controller
        session, person = controller.session, controller.person()
        can_end = person is not None and not session.is_over and session.at_end
        enabled = {
            **dict.fromkeys((Action.FIRST, Action.PREVIOUS, Action.UNDO), session.ply > 0),
            **dict.fromkeys((Action.NEXT, Action.LAST, Action.REDO), not session.at_end),
            Action.HINT: not session.is_over and not controller.agent_to_move,
            **dict.fromkeys((Action.MOVE_NOW, Action.TAKE_OVER), not session.is_over),
            Action.REPORT: bool(session.nodes),
            **dict.fromkeys((Action.OFFER_DRAW, Action.RESIGN), can_end),
        }
        on = {Action.ANALYSE: controller.analysing}
        return tuple(
            Button(action, f"{tip} ({keys_of(action)})", action, "", enabled.get(action, True), on.get(action, False))
            for action, tip in tools(session.is_over).items()
        )

    # --- the mouse

    def make(self, move: Move, dropped: bool = False) -> None:
        self._dropped = dropped
        self.controller.make(move)

    def press_board(self, square: int | None) -> None:
        self.controller.say("")
        super().press_board(square)

    def mouse(self, event: pygame.event.Event) -> None:
        super().mouse(event)
        if event.type == pygame.MOUSEWHEEL:
            self._wheel(event.y)
        elif event.type == pygame.MOUSEMOTION:
            self._motion(event.pos)
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 3:
            self.controller.say("")
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1 and not self.board_rect.collidepoint(event.pos):
            self._press(event.pos)

    def _press(self, point: tuple[int, int]) -> None:
        """Handles a press beside the board."""
        button = self.tools.at(point, self.style.unit)
        if button is not None:
            if button.enabled:
                self.keys.perform(Action(button.name))
            return
        ply = self.moves.ply_at(point)
        if ply is None:
            ply = self.graph.ply_at(point, len(self.controller.session.nodes) + 1)
        if ply is not None:
            self.controller.go_to(ply)

    def _motion(self, point: tuple[int, int]) -> None:
        unit = self.style.unit
        button = self.tools.hover(point, unit)
        near = self.tools.place_of(button.name, unit) if button else None
        self.tip(button.tip if button else None, near, self.motion.now)
        self.row = self.table.row_at(point, unit)
        self.pv = self.line.move_at(point)
        self._listed = self.moves.ply_at(point)
        self._ply = self.graph.ply_at(point, len(self.controller.session.nodes) + 1)

    def _wheel(self, turns: int) -> None:
        if self.moves.rect.collidepoint(self.motion.pointer):
            rows = len(self.controller.session.nodes) // 2
            self._scroll = min(max(self._scroll + 2 * turns, -rows), rows)
        elif self.table.rect.collidepoint(self.motion.pointer):
            state = self.table.state
            self._first_row = min(max(0, state.before - turns), state.before + state.behind)
        elif turns:
            self.controller.go_to(max(0, min(len(self.controller.session.nodes), self.controller.session.ply - turns)))

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        return self.keys.perform(action) or super().act(action, event)

    # --- questions

    def _drop_question(self) -> None:
        """Removes a question about a game that is over, or that is no longer at the board."""
        session = self.controller.session
        if self.question is not None and (session.game != self._asked_in or session.is_over):
            self.question = None

    def ask_resign(self) -> None:
        self.controller.to_end()
        person = self.controller.person()
        if person is None or self.controller.session.is_over:
            return
        answers = {"yes": ("Resign", self.controller.resign), "no": ("Play on", None)}
        self._asked_in = self.controller.session.game
        self.ask(f"Resign as {person}? {person.other} wins the game.", answers, preselected="no")

    def offer_draw(self) -> None:
        controller = self.controller
        controller.offer_draw()
        offer = controller.session.draw_offer
        if offer is not None and offer.other in controller.humans:
            answers = {
                "yes": ("Accept", lambda: controller.answer_draw(True)),
                "no": ("Decline", lambda: controller.answer_draw(False)),
            }
            self._asked_in = controller.session.game
            self.ask(f"{offer} offers a draw. Does {offer.other} accept?", answers)

    def answer_draw(self, accept: bool) -> None:
        offer = self.controller.session.draw_offer
        if offer is not None and offer.other in self.controller.humans:
            self.controller.answer_draw(accept)


def _before(session: GameSession) -> tuple[int, int, Board] | None:
    """Game, ply and board before the last move; None at the beginning."""
    board = session.board.copy()
    if not board.move_stack:
        return None
    board.pop()
    return session.game, session.ply - 1, board
