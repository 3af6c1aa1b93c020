"""What keys and buttons of the game do: moving, the buttons by keyboard, what is shown."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..help import DIRECTIONS, Action

if TYPE_CHECKING:
    from .game_scene import GameScene

TOOLS = {  # what the buttons do → what their tooltips say
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


class GameKeys:
    """Does what actions stand for in a game scene.

    Attributes:
        focus: the button, ``table`` or ``line`` that has the keyboard, None for the board.
    """

    def __init__(self, scene: "GameScene") -> None:
        self.scene = scene
        self.focus: str | None = None

    def perform(self, action: Action) -> bool:
        if self._on_focus(action) or self._entry_action(action) or self._window_action(action):
            return True
        scene, controller, app = self.scene, self.scene.controller, self.scene.app
        deeds: dict[Action, Callable[[], object]] = {
            Action.UNDO: controller.undo,
            Action.REDO: controller.redo,
            Action.FIRST: lambda: controller.go_to(0),
            Action.PREVIOUS: lambda: controller.go_to(controller.session.ply - 1),
            Action.NEXT: lambda: controller.go_to(controller.session.ply + 1),
            Action.LAST: lambda: controller.go_to(len(controller.session.nodes)),
            Action.HINT: controller.ask_hint,
            Action.MOVE_NOW: controller.move_now,
            Action.TAKE_OVER: controller.take_over,
            Action.ANALYSE: controller.toggle_analysis,
            Action.PAUSE: controller.toggle_pause,
            Action.RESIGN: scene.ask_resign,
            Action.OFFER_DRAW: scene.offer_draw,
            Action.ACCEPT: lambda: scene.answer_draw(True),
            Action.DECLINE: lambda: scene.answer_draw(False),
            Action.COPY_FEN: lambda: app.copy(controller.session.fen()),
            Action.COPY_PDN: lambda: app.copy(controller.session.pdn()),
            Action.PASTE: app.paste,
        }
        if action not in deeds:
            return app.go.open(action)
        deeds[action]()
        return True

    def _entry_action(self, action: Action) -> bool:
        """What belongs to entering a move."""
        entry = self.scene.controller.input
        if action in DIRECTIONS:
            entry.move_cursor(DIRECTIONS[action])
        elif action in (Action.NEXT_SQUARE, Action.PREVIOUS_SQUARE):
            entry.next_square(1 if action is Action.NEXT_SQUARE else -1)
        elif action is Action.ENTER:
            self.scene.motion.animation = None
            self.scene.controller.say("")
            move = entry.enter()
            if move is not None:
                self.scene.controller.make(move)
        elif action is Action.BACKSPACE:
            entry.backspace()
        elif action is Action.CANCEL:
            if not entry.cancel() and not self.scene.controller.notice:
                self.scene.app.go.open(Action.MENU)
            self.scene.controller.say("")
        else:
            return False
        return True

    def _on_focus(self, action: Action) -> bool:
        """Buttons, table and line by keyboard: F6 goes round, arrows and Enter work on what has the focus."""
        if action in (Action.NEXT_CONTROL, Action.PREVIOUS_CONTROL):
            stops = [None, *(button.name for button in self.scene.tools.buttons if button.enabled), "table", "line"]
            step = 1 if action is Action.NEXT_CONTROL else -1
            place = stops.index(self.focus) if self.focus in stops else 0
            self._set_focus(stops[(place + step) % len(stops)])
            return True
        if self.focus is None:
            return False
        if action is Action.CANCEL:
            self._set_focus(None)
        elif self.focus == "line" and action in (Action.CURSOR_LEFT, Action.CURSOR_RIGHT):
            last = len(self.scene.line.state.moves) - 1
            now = -1 if self.scene.pv is None else self.scene.pv
            now += 1 if action is Action.CURSOR_RIGHT else -1
            self.scene.pv = min(now, last) if now >= 0 and last >= 0 else None
        elif self.focus == "table" and action in (Action.CURSOR_UP, Action.CURSOR_DOWN):
            last = len(self.scene.table.state.rows) - 1
            now = (-1 if self.scene.row is None else self.scene.row) + (1 if action is Action.CURSOR_DOWN else -1)
            self.scene.row = min(now, last) if now >= 0 and last >= 0 else None
        elif action is Action.ENTER and self.focus not in ("table", "line"):
            self.perform(Action(self.focus))
        else:
            return False
        return True

    def _set_focus(self, name: str | None) -> None:
        self.focus = self.scene.tools.focused = name
        self.scene.pv = 0 if name == "line" and self.scene.line.state.moves else None
        self.scene.row = 0 if name == "table" and self.scene.table.state.rows else None
        near = self.scene.tools.place_of(name, self.scene.style.unit) if name else None
        tips = {button.name: button.tip for button in self.scene.tools.buttons}
        self.scene.tip(tips.get(name) if name else None, near, self.scene.motion.now)

    def _window_action(self, action: Action) -> bool:
        preferences = self.scene.app.preferences
        if action is Action.FLIP:
            self.scene.flipped = not self.scene.flipped
            self.scene.forget()
        elif action is Action.NUMBERS:
            preferences.show_numbers = not preferences.show_numbers
        elif action is Action.ARROWS:
            preferences.show_arrows = not preferences.show_arrows
        elif action is Action.PANELS:
            shown = not preferences.show_moves_table
            preferences.show_wdl = preferences.show_moves_table = preferences.show_line = shown
            self.scene.place()
            self.scene.forget()
        else:
            return False
        return True
