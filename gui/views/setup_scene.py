"""The scene to set up a position: tools, legality, side to move."""

from collections.abc import Callable

import pygame

from engine.errors import DraughtsError
from engine.fen import START_FEN, Color, Piece

from ..game.messages import without_fen
from ..game.plan import BOTH, GamePlan
from ..game.position_setup import PositionSetup
from ..help import DIRECTIONS, Action
from .board_scene import BoardScene, Passage
from .board_view import BoardPicture, sorted_pieces
from .clipboard import get_text
from .geometry import square_under
from .menu_pages import plan_of
from .program import Program
from .widgets import Button

TOOLS = {  # button → piece that it places
    Action.SET_MAN_BLACK: Piece(Color.BLACK),
    Action.SET_KING_BLACK: Piece(Color.BLACK, True),
    Action.SET_MAN_WHITE: Piece(Color.WHITE),
    Action.SET_KING_WHITE: Piece(Color.WHITE, True),
    Action.SET_ERASER: None,
}


class SetupScene(BoardScene):
    name = "setup"

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.flipped = app.go.game.flipped
        self.setup = PositionSetup(app.controller.session.fen())
        self._keyboard = False  # whether a key was used, so that the cursor is shown
        self._said = self._noted = ""
        self._buttons()

    def _buttons(self) -> None:
        setup = self.setup
        tools = [
            Button(action, label=str(piece or "eraser").capitalize(), on=setup.tool == piece)
            for action, piece in TOOLS.items()
        ]
        fine = not setup.problems and not setup.warnings
        self.set_buttons(
            tuple(tools[:2]),
            tuple(tools[2:4]),
            (tools[4], Button(Action.SET_TURN, label=f"{setup.turn} to move")),
            (
                Button(Action.SET_CLEAR, label="Clear"),
                Button(Action.SET_START, label="Start"),
                Button(Action.SET_SWAP, label="Swap"),
            ),
            (
                Button(Action.SET_DONE, label="Play", enabled=fine),
                Button(Action.ANALYSE, label="Analyse", enabled=fine),
                Button("leave", label="Back"),
            ),
        )

    def update(self, now: float) -> None:
        super().update(now)
        self.setup.flipped = self.flipped
        warnings = (*self.setup.problems, *self.setup.warnings, *filter(None, (self._said,)))
        text = "" if warnings else "This position can be played."
        self.passage.state = Passage("Set up a position", text, warnings, self._noted)
        self._buttons()

    def picture(self) -> BoardPicture:
        cursor, numbers = self.setup.cursor if self._keyboard else None, self.app.preferences.show_numbers
        return BoardPicture(sorted_pieces(self.setup.pieces), self.flipped, numbers, cursor=cursor)

    def mouse(self, event: pygame.event.Event) -> None:
        if event.type == pygame.MOUSEBUTTONUP:
            self.setup.release()
        elif event.type != pygame.MOUSEWHEEL and self.board_rect.collidepoint(event.pos):
            square = square_under(self.board_rect, event.pos, self.flipped)
            if event.type == pygame.MOUSEMOTION and event.buttons[0]:
                self._keyboard, self._said, self._noted = False, "", ""
                self.setup.drag(square)
            elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
                self._keyboard, self._said, self._noted = False, "", ""
                self.setup.click(square)
        super().mouse(event)

    def press(self, name: str) -> None:
        setup = self.setup
        self._said = self._noted = ""
        deeds: dict[str, Callable[[], object]] = {
            Action.SET_TURN: lambda: setup.set_turn(setup.turn.other),
            Action.SET_CLEAR: setup.clear,
            Action.SET_START: lambda: setup.load_fen(START_FEN),
            Action.SET_SWAP: setup.swap_colors,
            Action.SET_DONE: lambda: self._begin(analyse=False),
            Action.ANALYSE: lambda: self._begin(analyse=True),
        }
        if name in TOOLS:
            setup.tool = TOOLS[Action(name)]
        else:
            self._attempt(deeds.get(name, self.leave))

    def _begin(self, analyse: bool) -> None:
        fen, plan = self.setup.fen(), plan_of(self.app)
        if self.setup.warnings:
            return
        if analyse:  # without a clock
            plan = GamePlan(BOTH, plan.agents)
        self.app.go.start_game(plan._replace(fen=fen, opening=()))
        if analyse and not self.app.controller.analysing:
            self.app.controller.toggle_analysis()

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        if super().act(action, event):
            return True
        if action in DIRECTIONS:
            self._set_focus(None)  # Enter acts on the square now
            self._keyboard = True
            self.setup.move_cursor(DIRECTIONS[action])
        elif action is Action.ENTER:
            self._keyboard, self._said, self._noted = True, "", ""
            self.setup.click(self.setup.cursor)
            self.setup.release()
        elif action is Action.REWIND:
            self._said = self._noted = ""
            self.setup.undo()
        elif action is Action.COPY_FEN:
            self._attempt(lambda: self.app.copy(self.setup.fen()))
        elif action is Action.PASTE:
            self._attempt(lambda: self.setup.load_fen(get_text()))
        else:
            return False
        return True

    def leave(self) -> None:
        if self.setup.changed:  # it is kept nowhere
            answers = {"yes": ("Leave", super().leave), "no": ("Stay", None)}
            self.ask("Leave, and drop this position?", answers, preselected="no")
        else:
            super().leave()

    def say(self, text: str, alarm: bool = False) -> None:
        self._noted = text

    def _attempt(self, action: Callable[[], object]) -> None:
        """Calls ``action``, or shows why it fails."""
        self._said = self._noted = ""
        try:
            action()
        except DraughtsError as error:
            self._said = without_fen(str(error))
