"""Base class of scenes with a board on which moves can be entered."""

from collections.abc import Iterable

import pygame

from engine.board import Board, Move
from engine.fen import Color

from ..game.move_input import MoveInput
from ..help import DIRECTIONS, Action
from .animation import animate
from .board_scene import SceneWithBoard
from .board_view import BoardPicture, sorted_pieces
from .geometry import square_under
from .program import Program


class EntryScene(SceneWithBoard):
    """Calls ``make`` with the moves that are entered with the mouse, and shows moves with sound and animation.

    Attributes:
        entry: state of the move being entered; subclasses set its board.
    """

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.entry = MoveInput(Board(), ())

    def make(self, move: Move, dropped: bool = False) -> None:
        """Called with an entered move; ``dropped``: whether the piece was dragged, so that it needs no animation."""
        raise NotImplementedError

    def open_board(self, board: Board, colors: Iterable[Color], closed: str = "") -> None:
        """Lets ``colors`` enter a move as the preferences say; ``closed``: see ``MoveInput.set_board``."""
        preferences = self.app.preferences
        self.entry.one_click, self.entry.auto_complete = preferences.one_click, preferences.auto_complete
        self.entry.set_board(board, colors, closed)

    def press_board(self, square: int | None) -> None:
        """Called when the mouse button is pressed on the board."""
        self.motion.animation = None  # a new move ends the animation of the last one
        self._make(self.entry.press(square))

    def enter(self) -> None:
        """Makes the typed move, or clicks the square of the keyboard's cursor."""
        self._make(self.entry.enter())

    def _make(self, move: Move | None, dropped: bool = False) -> None:
        if move is not None:
            self.make(move, dropped)

    def show_move(self, move: Move, before: Board, after: Board, dropped: bool) -> None:
        """Plays the sound of a move and, unless the piece was dragged, its animation."""
        pieces, changed = before.piece_map(), after.piece_map()
        crowned = changed[move.end][1] and not pieces[move.start][1]
        self.sound("crown" if crowned else "capture" if move.captured else "move")
        hop = self.app.preferences.animation_ms / 1000
        if hop > 0 and not dropped:
            self.motion.animation = animate(move, pieces, changed, self.motion.now, hop)

    def sound(self, name: str) -> None:
        """Plays a sound, if sounds are on."""
        had_error = self.app.sounds.error
        self.app.sounds.play(name, self.app.preferences.sounds)
        if self.app.sounds.error and not had_error:
            self.app.controller.say(self.app.sounds.error)

    @property
    def lively(self) -> bool:
        return super().lively or self.entry.dragging

    def update(self, now: float) -> None:
        super().update(now)
        self.entry.flipped = self.flipped

    def entry_picture(self, board: Board) -> BoardPicture:
        """The picture of a board on which a move is entered, without marks of the move during an animation."""
        entry, preferences = self.entry, self.app.preferences
        self.motion.dragged = entry.path[-1] if entry.dragging and entry.path else None
        path = entry.path if len(entry.path) > 1 else ()
        pieces = board.piece_map()
        if path and entry.selected in pieces:
            pieces[path[-1]] = pieces.pop(path[0])
        last = board.move_stack[-1].path if board.move_stack and preferences.show_last_move else ()
        still = sorted_pieces(pieces), self.flipped, preferences.show_numbers, last
        if self.motion.animation is not None:
            return BoardPicture(*still)
        outlined = entry.selected is None and (preferences.show_movable or entry.must_capture)
        targets = entry.hover_targets if entry.selected is None else entry.targets
        return BoardPicture(
            *still,
            selected=entry.path[-1] if entry.path else None,
            cursor=entry.cursor,
            targets=targets if preferences.show_targets else frozenset(),
            movable=entry.movable if outlined else frozenset(),
            must=entry.must_capture,
            path=path,
            taken=frozenset(entry.jumped),
        )

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        if action is Action.TYPE:
            self.entry.type_text(event.unicode)
        elif action is Action.BACKSPACE:
            self.entry.backspace()
        elif action in DIRECTIONS:
            self.entry.move_cursor(DIRECTIONS[action])
        else:
            return super().act(action, event)
        return True

    def mouse(self, event: pygame.event.Event) -> None:
        if event.type != pygame.MOUSEWHEEL:
            self.motion.pointer = event.pos
            self._mouse_on_board(event, square_under(self.board_rect, event.pos, self.flipped))
        super().mouse(event)

    def _mouse_on_board(self, event: pygame.event.Event, square: int | None) -> None:
        if event.type == pygame.MOUSEMOTION:
            if event.buttons[0]:
                self.entry.drag(square)
            else:
                self.entry.hover(square)
        elif event.type == pygame.MOUSEBUTTONUP and event.button == 1:
            held = self.entry.dragging
            move = self.entry.release(square)
            self._make(move, held and move is not None and len(move.path) == 2)
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 3:
            self.entry.cancel()
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1 and self.board_rect.collidepoint(event.pos):
            self.press_board(square)
