"""Base class of scenes with a board on which moves can be entered, a text and buttons."""

from typing import TYPE_CHECKING

import pygame

from engine.board import Board, Move

from ..move_input import MoveInput
from .animation import animate
from .board_scene import BoardScene
from .geometry import square_under

if TYPE_CHECKING:
    from ..app import App


class EntryScene(BoardScene):
    """Calls ``make`` with the moves that are entered with the mouse.

    Attributes:
        entry: state of the move being entered; subclasses set its board.
    """

    def __init__(self, app: "App") -> None:
        super().__init__(app)
        self.entry = MoveInput(Board(), ())

    def make(self, move: Move, dropped: bool = False) -> None:
        """Called with an entered move; ``dropped``: whether the piece was dragged, so that it needs no animation."""
        raise NotImplementedError

    def press_board(self, square: int | None) -> None:
        """Called when the mouse button is pressed on the board."""
        self.motion.animation = None
        move = self.entry.press(square)
        if move is not None:
            self.make(move)

    def show_move(self, move: Move, before: Board, after: Board, dropped: bool) -> None:
        """Plays the sound of a move and, unless the piece was dragged, its animation."""
        hop = self.app.preferences.animation_ms / 1000
        self.app.go.game.sound(move, before, after)
        if hop > 0 and not dropped:
            self.motion.animation = animate(move, before.piece_map(), after.piece_map(), self.motion.now, hop)

    @property
    def lively(self) -> bool:
        return super().lively or self.entry.dragging

    def mouse(self, event: pygame.event.Event) -> None:
        if event.type == pygame.MOUSEWHEEL:
            super().mouse(event)
            return
        self.motion.pointer = event.pos
        inside = self.board_rect.collidepoint(event.pos)
        square = square_under(self.board_rect, event.pos, self.flipped) if inside else None
        move: Move | None = None
        if event.type == pygame.MOUSEMOTION:
            if event.buttons[0]:
                self.entry.drag(square)
            else:
                self.entry.hover(square)
        elif event.button == 3 and event.type == pygame.MOUSEBUTTONDOWN:
            self.entry.cancel()
        elif event.button == 1 and event.type == pygame.MOUSEBUTTONUP:
            held = self.entry.dragging
            move = self.entry.release(square)
            if move is not None:
                self.make(move, held and len(move.path) == 2)
            return
        elif event.button == 1 and inside:
            self.press_board(square)
        super().mouse(event)
