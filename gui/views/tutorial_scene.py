"""The rules in pictures."""

from typing import TYPE_CHECKING

import pygame

from ..help import Action
from ..tutorial import PAGES, Tutorial
from .animation import animate
from .board_scene import BoardScene, Passage
from .board_view import BoardPicture, sorted_pieces
from .widgets import Button

if TYPE_CHECKING:
    from ..app import App


class TutorialScene(BoardScene):
    """Pages with a position each; examples are played on the board."""

    name = "tutorial"

    def __init__(self, app: "App") -> None:
        super().__init__(app)
        self.tutorial = Tutorial()
        self._buttons()

    def _buttons(self) -> None:
        tutorial = self.tutorial
        page = tutorial.page
        more = tutorial.step < len(page.moves)
        self.set_buttons(
            (
                Button("show", label="Show" if tutorial.step == 0 else "Go on", enabled=more),
                Button("rewind", label="Again", enabled=tutorial.step > 0),
            ),
            (
                Button("previous", label="Before", enabled=tutorial.index > 0),
                Button("next", label="Next", enabled=tutorial.index < len(PAGES) - 1),
                Button("leave", label="Back"),
            ),
        )

    def update(self, now: float) -> None:
        super().update(now)
        page = self.tutorial.page
        number = f"{self.tutorial.index + 1} of {len(PAGES)}"
        self.passage.state = Passage(page.title, page.text, note=number)
        self._buttons()

    def picture(self) -> BoardPicture:
        tutorial = self.tutorial
        last = tutorial.last_move
        return BoardPicture(
            sorted_pieces(tutorial.board.piece_map()),
            last=last.path if last is not None else (),
            marked=frozenset(tutorial.page.highlights) if tutorial.step == 0 else frozenset(),
        )

    def press(self, name: str) -> None:
        self.motion.animation = None
        if name == "show":
            before = self.tutorial.board.piece_map()
            move = self.tutorial.show_move()
            if move is not None:
                after = self.tutorial.board.piece_map()
                self.motion.animation = animate(move, before, after, self.motion.now, 0.45)
        elif name == "rewind":
            self.tutorial.rewind()
        elif name == "next":
            self.tutorial.next()
        elif name == "previous":
            self.tutorial.previous()
        else:
            self.leave()

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        if super().act(action, event):
            return True
        names = {
            Action.NEXT_PAGE: "next",
            Action.PREVIOUS_PAGE: "previous",
            Action.SHOW_MOVE: "show",
            Action.REWIND: "rewind",
        }
        if action not in names:
            return False
        self.press(names[action])
        return True
