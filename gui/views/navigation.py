"""The stack of scenes and the transitions between them."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ..archive.game_library import GameLibrary
from ..game.plan import GamePlan
from ..help import Action
from .analysis_page import AnalysisPage
from .ending_scene import EndingPage
from .file_pages import FilesPage, LoadPage, PreferencesPage, SavePage
from .game_scene import GameScene
from .geometry import Rect
from .help_scene import HelpScene
from .lesson_scene import LessonScene
from .library_pages import LibraryPage
from .match_page import MatchPage
from .menu_pages import MainPage, NewGamePage
from .note_page import NotePage
from .opening_scene import OpeningScene
from .program import Program
from .puzzle_scene import PuzzleScene
from .report_scene import ReportScene
from .scene import Scene
from .setup_scene import SetupScene

SCENES_BY_NAME: dict[str, type[Scene]] = {
    Action.MENU: MainPage,
    Action.NEW_GAME: NewGamePage,
    "files": FilesPage,
    Action.SAVE: SavePage,
    Action.LOAD: LoadPage,
    Action.SETTINGS: PreferencesPage,
    Action.SETUP: SetupScene,
    "match": MatchPage,
    Action.LESSONS: LessonScene,
    "endings": EndingPage,
    "puzzles": PuzzleScene,
    Action.REPORT: ReportScene,
    Action.OPENINGS: OpeningScene,
    Action.HELP: HelpScene,
    Action.COMMENT: NotePage,
}


class Navigation:
    """The stack of scenes, with the game at the bottom.

    The game's search and clocks pause while another scene is shown, except in a match; what a scene searches itself
    goes on until it is left.
    """

    def __init__(self, app: Program) -> None:
        self.app = app
        self.game = GameScene(app)
        self.scenes: list[Scene] = [self.game]

    @property
    def scene(self) -> Scene:
        return self.scenes[-1]

    def show(self, make: Callable[[Program], Scene]) -> None:
        """Stops clocks and search and puts a new scene on top."""
        self.app.controller.leave()
        self.scenes.append(make(self.app))
        self._resize()

    def back(self) -> None:
        """Leaves the scene shown; does nothing if it is the game."""
        del self.scenes[max(1, len(self.scenes) - 1) :]
        if len(self.scenes) == 1:
            self.app.controller.enter()
        self._resize()

    def to_game(self) -> None:
        del self.scenes[1:]
        self.back()

    def libraries(self) -> Iterator[GameLibrary]:
        """The libraries of games that the scenes show, those below the top one included."""
        for scene in self.scenes:
            if isinstance(scene, LibraryPage):
                yield scene.library
            elif isinstance(scene, OpeningScene):
                yield from scene.collections

    def _resize(self) -> None:
        self.scene.resize(Rect(0, 0, *self.app.surface.get_size()), self.app.style)

    def start_game(self, plan: GamePlan) -> None:
        self.app.controller.start(plan)
        self.to_game()

    def open_analysis(self, games: Path) -> None:
        """Shows the page for the analysis of a file."""
        self.show(partial(AnalysisPage, games=games))

    def open(self, name: str) -> bool:
        """Shows the scene with a name (mostly an action's), if it is not shown yet; False if there is none."""
        kind = SCENES_BY_NAME.get(name)
        if kind is None:
            return False
        if isinstance(self.scene, HelpScene) and isinstance(self.scenes[-2], kind):
            self.back()  # a second one would store its record over that of the first
        elif not isinstance(self.scene, kind):
            self.show(kind)
        return True
