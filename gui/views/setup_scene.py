"""Setting up a position: tools, legality, side to move."""

from typing import TYPE_CHECKING

import pygame

from engine.errors import DraughtsError
from engine.fen import Color

from ..help import Action
from ..messages import without_fen
from ..plan import BOTH, GamePlan
from ..position_setup import Piece, PositionSetup
from .board_scene import BoardScene, Passage
from .board_view import BoardPicture
from .clipboard import get_text
from .menu_pages import plan_of
from .widgets import Button

if TYPE_CHECKING:
    from ..app import App

TOOLS: dict[str, tuple[str, Piece | None]] = {
    "black man": ("Black man", Piece(Color.BLACK, False)),
    "black king": ("Black king", Piece(Color.BLACK, True)),
    "white man": ("White man", Piece(Color.WHITE, False)),
    "white king": ("White king", Piece(Color.WHITE, True)),
    "eraser": ("Eraser", None),
}
_TOOL_ACTIONS = {
    Action.SET_MAN_BLACK: "black man",
    Action.SET_KING_BLACK: "black king",
    Action.SET_MAN_WHITE: "white man",
    Action.SET_KING_WHITE: "white king",
    Action.SET_ERASER: "eraser",
    Action.SET_TURN: "turn",
    Action.SET_CLEAR: "clear",
    Action.SET_START: "start",
    Action.SET_SWAP: "swap",
    Action.SET_DONE: "play",
}
_ARROWS = {
    Action.CURSOR_LEFT: "left",
    Action.CURSOR_RIGHT: "right",
    Action.CURSOR_UP: "up",
    Action.CURSOR_DOWN: "down",
}


class SetupScene(BoardScene):
    """The editor of positions."""

    name = "setup"

    def __init__(self, app: "App") -> None:
        super().__init__(app)
        self.flipped = app.go.game.flipped
        self.setup = PositionSetup(app.controller.session.fen())
        self._keyboard = False  # the cursor shows once a key was used
        self._said = ""
        self._buttons()

    def _buttons(self) -> None:
        setup = self.setup
        tools = [Button(name, label=label, on=setup.tool == piece) for name, (label, piece) in TOOLS.items()]
        fine = not setup.problems and not setup.warnings
        self.set_buttons(
            tuple(tools[:2]),
            tuple(tools[2:4]),
            (tools[4], Button("turn", label=f"{setup.turn} to move")),
            (
                Button("clear", label="Clear"),
                Button("start", label="Start"),
                Button("swap", label="Swap"),
            ),
            (
                Button("play", label="Play", enabled=fine),
                Button("analyse", label="Analyse", enabled=fine),
                Button("leave", label="Back"),
            ),
        )

    def update(self, now: float) -> None:
        super().update(now)
        self.setup.flipped = self.flipped
        warnings = (*self.setup.problems, *self.setup.warnings, *filter(None, (self._said,)))
        text = "" if warnings else "This position can be played."
        self.passage.state = Passage("Set up a position", text, warnings)
        self._buttons()

    def picture(self) -> BoardPicture:
        pieces = tuple((number, piece.color, piece.king) for number, piece in sorted(self.setup.pieces.items()))
        cursor = self.setup.cursor if self._keyboard else None
        return BoardPicture(pieces, self.flipped, self.app.preferences.show_numbers, cursor=cursor)

    def square(self, number: int | None, begin: bool) -> None:
        self._keyboard, self._said = False, ""
        if begin:
            self.setup.click(number)
        else:
            self.setup.paint(number)

    def press(self, name: str) -> None:
        setup = self.setup
        self._said = ""
        if name in TOOLS:
            setup.tool = TOOLS[name][1]
        elif name == "turn":
            setup.set_turn(setup.turn.other)
        elif name == "clear":
            setup.clear()
        elif name == "start":
            setup.start_position()
        elif name == "swap":
            setup.swap_colors()
        elif name in ("play", "analyse"):
            self._begin(analyse=name == "analyse")
        else:
            self.leave()

    def _begin(self, analyse: bool) -> None:
        try:
            fen = self.setup.fen()
            plan = plan_of(self.app)
        except DraughtsError as error:
            self._said = without_fen(str(error))
            return
        if self.setup.warnings:
            return
        humans = BOTH if analyse else plan.humans
        self.app.go.start_game(GamePlan(humans, plan.agents, fen, (), plan.control))
        if analyse and not self.app.controller.analysing:
            self.app.controller.toggle_analysis()

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        if super().act(action, event):
            return True
        if action in _TOOL_ACTIONS:
            self.press(_TOOL_ACTIONS[action])
        elif action in _ARROWS:
            self._keyboard = True
            self.setup.move_cursor(_ARROWS[action])
        elif action is Action.ENTER:
            self._keyboard = True
            self.setup.click(self.setup.cursor)
        elif action is Action.COPY_FEN:
            self._copy()
        elif action is Action.PASTE:
            self._paste()
        else:
            return False
        return True

    def _copy(self) -> None:
        try:
            self.app.copy(self.setup.fen())
        except DraughtsError as error:
            self._said = without_fen(str(error))

    def _paste(self) -> None:
        try:
            self.setup.load_fen(get_text())
        except DraughtsError as error:
            self._said = without_fen(str(error))
