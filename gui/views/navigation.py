"""The stack of scenes: what is shown, what lies below it, and the ways from one to another."""

from typing import TYPE_CHECKING

from ..pdn_files import PdnGames
from ..plan import GamePlan
from .file_pages import FilesPage, GamesPage, LoadPage, PreferencesPage, SavePage
from .game_scene import GameScene
from .geometry import Rect
from .help_scene import HelpScene
from .menu_pages import MainPage, NewGamePage
from .report_scene import ReportScene
from .scene import Scene
from .setup_scene import SetupScene
from .tutorial_scene import TutorialScene

if TYPE_CHECKING:
    from ..app import App


class Navigation:
    """Opens and leaves scenes. Search and clocks rest while another scene than the game is shown.

    Attributes:
        game: the scene that lies lowest.
        scenes: the stack; the last one is shown.
    """

    def __init__(self, app: "App") -> None:
        self.app = app
        self.game = GameScene(app)
        self.scenes: list[Scene] = [self.game]

    @property
    def scene(self) -> Scene:
        """The scene shown."""
        return self.scenes[-1]

    def show(self, scene: Scene) -> None:
        """Puts a scene on top; clocks and search stop meanwhile."""
        self.app.controller.leave()
        self.scenes.append(scene)
        self._resize()

    def back(self) -> None:
        """Leaves the scene shown; the game, which lies lowest, stays."""
        if len(self.scenes) > 1:
            self.scenes.pop()
        if len(self.scenes) == 1:
            self.app.controller.enter()
        self._resize()

    def to_game(self) -> None:
        """Leaves everything above the game."""
        del self.scenes[1:]
        self.app.controller.enter()
        self._resize()

    def _resize(self) -> None:
        self.scene.resize(Rect(0, 0, *self.app.surface.get_size()), self.app.style)

    def start_game(self, plan: GamePlan) -> None:
        """Begins a game and shows it."""
        self.app.controller.start(plan)
        self.to_game()

    def open_menu(self) -> None:
        """The main menu."""
        self.show(MainPage(self.app))

    def open_new_game(self) -> None:
        """Who plays, from where."""
        self.show(NewGamePage(self.app))

    def open_files(self) -> None:
        """Games in and out."""
        self.show(FilesPage(self.app))

    def open_save(self) -> None:
        """A name for the game's file."""
        self.show(SavePage(self.app))

    def open_load(self) -> None:
        """A file to load."""
        self.show(LoadPage(self.app))

    def open_games(self, title: str, games: PdnGames) -> None:
        """Games to choose one of."""
        self.show(GamesPage(self.app, title, games))

    def open_preferences(self) -> None:
        """Looks and habits."""
        self.show(PreferencesPage(self.app))

    def open_setup(self) -> None:
        """The board to place pieces on."""
        self.show(SetupScene(self.app))

    def open_report(self) -> None:
        """The report on the game."""
        self.app.controller.leave()  # first: it would cancel the report's search as well
        self.show(ReportScene(self.app))

    def open_tutorial(self) -> None:
        """The rules."""
        if not isinstance(self.scene, TutorialScene):
            self.show(TutorialScene(self.app))

    def open_help(self) -> None:
        """The keys, those of the scene shown first."""
        if not isinstance(self.scene, HelpScene):
            self.show(HelpScene(self.app, self.scene.name))
