"""Carries out the actions of a game's keys and buttons, including keyboard control of buttons and panels."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..help import DIRECTIONS, Action
from .widgets import turned

if TYPE_CHECKING:
    from .game_scene import GameScene

TOOLS = {  # action of a button → text of its tooltip
    Action.MENU: "Menu",
    Action.FIRST: "To the start",
    Action.PREVIOUS: "Back one move",
    Action.NEXT: "On one move",
    Action.LAST: "To the end",
    Action.UNDO: "Take back",
    Action.REDO: "Play again what was taken back",
    Action.FLIP: "Turn the board",
    Action.HINT: "Hint",
    Action.MOVE_NOW: "Move now",
    Action.ANALYSE: "Think along",
    Action.TAKE_OVER: "Change sides",
    Action.OFFER_DRAW: "Offer a draw",
    Action.RESIGN: "Resign",
}

_TO_A_SQUARE = (*DIRECTIONS, Action.NEXT_SQUARE, Action.PREVIOUS_SQUARE)
AFTERWARDS = {  # button → the one that replaces it when the game is over
    Action.OFFER_DRAW: (Action.REPORT, "Report, and your mistakes again"),
    Action.RESIGN: (Action.REMATCH, "Rematch with the colours swapped"),
}


def tools(is_over: bool) -> dict[Action, str]:
    """Action and tooltip of each button."""
    return dict(AFTERWARDS.get(action, (action, tip)) if is_over else (action, tip) for action, tip in TOOLS.items())


class GameKeys:
    """Carries out actions in a game scene.

    Attributes:
        focus: name of the button with the keyboard focus, ``table`` or ``line``; None for the board.
    """

    def __init__(self, scene: "GameScene") -> None:
        self.scene = scene
        self.focus: str | None = None

    def perform(self, action: Action) -> bool:
        scene, controller, app = self.scene, self.scene.controller, self.scene.app
        entry, session = controller.input, controller.session
        if self._on_focus(action):
            return True
        deeds: dict[Action, Callable[[], object]] = {
            Action.NEXT_SQUARE: entry.next_square,
            Action.PREVIOUS_SQUARE: lambda: entry.next_square(-1),
            Action.ENTER: self._enter,
            Action.CANCEL: self._cancel,
            Action.UNDO: controller.undo,
            Action.REDO: controller.redo,
            Action.FIRST: lambda: controller.go_to(0),
            Action.PREVIOUS: lambda: controller.go_to(session.ply - 1),
            Action.NEXT: lambda: controller.go_to(session.ply + 1),
            Action.LAST: lambda: controller.go_to(len(session.nodes)),
            Action.VARIATION: controller.turn_to_variation,
            Action.HINT: controller.ask_hint,
            Action.MOVE_NOW: controller.move_now,
            Action.TAKE_OVER: controller.take_over,
            Action.ANALYSE: controller.toggle_analysis,
            Action.PAUSE: controller.toggle_pause,
            Action.REMATCH: controller.rematch,
            Action.RESIGN: scene.ask_resign,
            Action.OFFER_DRAW: scene.offer_draw,
            Action.ACCEPT: lambda: scene.answer_draw(True),
            Action.DECLINE: lambda: scene.answer_draw(False),
            Action.COPY_FEN: lambda: app.copy(session.fen()),
            Action.COPY_PDN: lambda: app.copy(session.pdn()),
            Action.COPY_PICTURE: app.copy_picture,
            Action.PASTE: app.paste,
            Action.FLIP: scene.flip,
            Action.NUMBERS: lambda: self._toggle("show_numbers"),
            Action.ARROWS: lambda: self._toggle("show_arrows"),
            Action.PANELS: lambda: self._toggle("show_moves_table", "show_wdl", "show_line"),
        }
        if action not in deeds:
            return app.go.open(action)
        deeds[action]()
        return True

    def _enter(self) -> None:
        self.scene.motion.animation = None
        self.scene.controller.say("")
        self.scene.enter()

    def _cancel(self) -> None:
        if not self.scene.controller.input.cancel() and not self.scene.controller.notice:
            self.scene.app.go.open(Action.MENU)
        self.scene.controller.say("")

    def _toggle(self, *names: str) -> None:
        """Switches preferences together: off if the first of them is on, else on."""
        shown = not getattr(self.scene.app.preferences, names[0])
        for name in names:
            setattr(self.scene.app.preferences, name, shown)
        self.scene.place()
        self.scene.forget()

    def _on_focus(self, action: Action) -> bool:
        """Handles the keys of the focus: F6 moves it, arrows and Enter act on the focused part. False for others."""
        if action in (Action.NEXT_CONTROL, Action.PREVIOUS_CONTROL):
            stops = [None, *(button.name for button in self.scene.tools.buttons if button.enabled), "table", "line"]
            self._set_focus(turned(stops, self.focus, 1 if action is Action.NEXT_CONTROL else -1))
            return True
        if self.focus is None or (self.scene.controller.input.typed and action in (Action.ENTER, Action.CANCEL)):
            return False
        if action is Action.CANCEL:
            self._set_focus(None)
        elif self.focus == "line" and action in (Action.CURSOR_LEFT, Action.CURSOR_RIGHT):
            step = 1 if action is Action.CURSOR_RIGHT else -1
            self.scene.pv = _moved(self.scene.pv, step, len(self.scene.line.state.moves))
        elif self.focus == "table" and action in (Action.CURSOR_UP, Action.CURSOR_DOWN):
            step = 1 if action is Action.CURSOR_DOWN else -1
            self.scene.row = _moved(self.scene.row, step, len(self.scene.table.state.rows))
        elif action is Action.ENTER and self.focus not in ("table", "line"):
            self.perform(Action(self.focus))
        else:
            if action in _TO_A_SQUARE and self.focus not in ("table", "line"):
                self._set_focus(None)  # Enter acts on the square now
            return False
        return True

    def _set_focus(self, name: str | None) -> None:
        self.focus = self.scene.tools.focused = name
        self.scene.pv = 0 if name == "line" and self.scene.line.state.moves else None
        self.scene.row = 0 if name == "table" and self.scene.table.state.rows else None
        near = self.scene.tools.place_of(name, self.scene.style.unit) if name else None
        tips = {button.name: button.tip for button in self.scene.tools.buttons}
        self.scene.tip(tips.get(name) if name else None, near, self.scene.motion.now)


def _moved(index: int | None, step: int, count: int) -> int | None:
    """The index moved by ``step``, at most the last of ``count``; None before the first."""
    index = step - 1 if index is None else index + step
    return min(index, count - 1) if index >= 0 and count else None
