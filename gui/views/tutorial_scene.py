"""The rules in pictures."""

from typing import TYPE_CHECKING

from ..help import Action
from ..tutorial import PAGES, Tutorial
from .animation import animate
from .board_scene import BoardScene, Passage
from .board_view import BoardPicture, picture_of
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
                Button(Action.SHOW_MOVE, label="Show" if tutorial.step == 0 else "Go on", enabled=more),
                Button(Action.REWIND, label="Again", enabled=tutorial.step > 0),
            ),
            (
                Button(Action.PREVIOUS_PAGE, label="Before", enabled=tutorial.index > 0),
                Button(Action.NEXT_PAGE, label="Next", enabled=tutorial.index < len(PAGES) - 1),
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
        marked = frozenset(self.tutorial.page.highlights) if self.tutorial.step == 0 else frozenset()
        return picture_of(self.tutorial.board, False, True, marked=marked)

    def press(self, name: str) -> None:
        self.motion.animation = None
        if name == Action.SHOW_MOVE:
            before = self.tutorial.board.piece_map()
            move = self.tutorial.show_move()
            if move is not None:
                after = self.tutorial.board.piece_map()
                self.motion.animation = animate(move, before, after, self.motion.now, 0.45)
        elif name == Action.REWIND:
            self.tutorial.rewind()
        elif name in (Action.NEXT_PAGE, Action.PREVIOUS_PAGE):
            self.tutorial.go_to(self.tutorial.index + (1 if name == Action.NEXT_PAGE else -1))
        else:
            self.leave()
