"""The window of ``crownhead play``: scenes, event loop, preferences."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from os.path import exists
from pathlib import Path

import pygame

from engine.board import Board
from engine.errors import DraughtsError
from engine.fen import Color
from engine.puzzles.book import shipped_puzzles
from engine.puzzles.puzzle import Puzzle

from .archive.annotator import Annotator
from .archive.game_shelf import GameShelf
from .display import WindowError, start_pygame
from .game.autosave import Autosave
from .game.controller import GameController
from .game.endgame_info import EndgameInfo, OracleAnswer
from .game.match_series import MatchSeries, MatchTools
from .game.opponents import Opponents
from .game.pdn_files import PdnGames, holds_several
from .game.plan import GamePlan
from .game.seats import take_up
from .game.thinker import Thinker
from .help import Action
from .menus import FAULTS
from .preferences import load_preferences, preferences_path, save_preferences
from .threads import LAST_WORK_AFTER_AN_ERROR_S, LAST_WORK_S, leave, wait_for_threads
from .views.clipboard import get_text, put_text
from .views.file_pages import GamesPage
from .views.geometry import MIN_WINDOW, Rect, text_unit
from .views.library_pages import LibraryPage
from .views.menu_pages import WelcomePage, follow_result, plan_of
from .views.navigation import Navigation
from .views.picture_file import keep_picture
from .views.pieces import piece
from .views.sounds import Sounds
from .views.text import Text
from .views.theme import THEMES, theme_named
from .views.widgets import Style, turned
from .window_events import WindowEvents, wake

TITLE = "Crownhead"
_ICON = 64  # pixels
_FRAME = (8, 64)  # pixels of a screen that a window's frame and a desktop's panel may take
_COMMON_SCREEN = 1080  # pixels in height; on a finer screen the first window is larger


class App:
    """The program behind the window, with everything that its scenes use.

    Attributes:
        go: the scenes and how to get from one to another.
        is_first_start: whether there was no file of preferences.
        puzzles: function that reads the puzzles to solve; raises ``DraughtsError`` or ``OSError``.
        shelf: the open collections of games.
        listed: the page of the collection that was shown last, as it was left; None before the first.
        annotator: the latest analysis of a file, None before the first.
        series: the latest match, None before the first.
        match_tools: functions for matches; None if there are no matches.
        style: theme, text and text size for the current window.
        frame_seconds: seconds of work for the latest frames that drew something.
    """

    def __init__(
        self,
        opponents: Opponents,
        endgame: EndgameInfo,
        folder: Path | None = None,
        puzzles: Callable[[], Sequence[Puzzle]] = shipped_puzzles,
        match_tools: MatchTools | None = None,
    ) -> None:
        self.preferences_file = folder / preferences_path().name if folder else preferences_path()
        self._first_time = self.is_first_start = not exists(self.preferences_file)
        self.preferences, message = load_preferences(self.preferences_file)
        self._stored = self.preferences.model_copy(deep=True)  # as this window has read or written them last
        self.opponents, self.puzzles = opponents, puzzles
        self.thinker = Thinker(opponents, wake=wake, known=endgame.value)
        self.autosave = Autosave(folder / "games" if folder else None)
        self.shelf = GameShelf(self.autosave.folder, folder / "libraries" if folder else None)
        self.listed: LibraryPage | None = None
        self.annotator: Annotator | None = None
        self.series: MatchSeries | None = None
        self.match_tools = match_tools
        self.controller = GameController(self.thinker, endgame, self.autosave, opponents.kinds)
        self.endgame = endgame
        if message:
            self.controller.say(message, alarm=True)
        self.text, self.sounds = Text(), Sounds()
        self.style = Style(theme_named(self.preferences.theme), self.text, 16)
        self.go = Navigation(self)
        self.running = False
        self._in_play: int | None = None  # number of the session's game, while it is not over
        self.frame_seconds: deque[float] = deque(maxlen=2000)
        self._window_events = WindowEvents()
        self._exposed = False

    # --- window

    def open_window(self) -> None:
        """Opens the window with its last size; the first time, with a size that suits the screen."""
        pygame.display.set_icon(piece(_ICON, Color.BLACK, True, self.style.theme))
        try:
            if self.preferences.fullscreen:
                self.surface = pygame.display.set_mode((0, 0), pygame.FULLSCREEN)
            else:
                self.surface = pygame.display.set_mode(self._window_size(), pygame.RESIZABLE)
                if self._first_time:  # the next window gets this size, too
                    self._keep_size()
                    self._first_time = False
        except pygame.error as error:
            raise WindowError(f"no window can be opened: {error}") from None
        pygame.display.set_caption(TITLE)
        self.restyle()

    def _window_size(self) -> tuple[int, int]:
        desktop = pygame.display.get_desktop_sizes()[0]
        larger = max(1.0, desktop[1] / _COMMON_SCREEN) if self._first_time else 1.0
        width, height = round(self.preferences.window_width * larger), round(self.preferences.window_height * larger)
        room = desktop[0] - _FRAME[0], desktop[1] - _FRAME[1]
        return max(MIN_WINDOW[0], min(width, room[0])), max(MIN_WINDOW[1], min(height, room[1]))

    @property
    def scale(self) -> float:
        """Factor of the size of letters and buttons, 1 by default."""
        return self.preferences.ui_scale or 1.0

    def restyle(self) -> None:
        """Updates ``style`` after a change of theme, scale or window size."""
        width, height = self.surface.get_size()
        unit = text_unit(width, height, self.scale)
        self.style = Style(theme_named(self.preferences.theme), self.text, unit)
        for scene in self.go.scenes:
            scene.resize(Rect(0, 0, width, height), self.style)

    def toggle_fullscreen(self) -> None:
        self.preferences.fullscreen = not self.preferences.fullscreen
        try:
            self.open_window()
        except WindowError as error:
            self.preferences.fullscreen = not self.preferences.fullscreen
            self.open_window()
            self.controller.say(str(error), alarm=True)

    def act(self, action: Action) -> bool:
        """Carries out an action that works in every scene."""
        deeds: dict[Action, Callable[[], object]] = {
            Action.QUIT: self.quit,
            Action.FULLSCREEN: self.toggle_fullscreen,
            Action.HELP: lambda: self.go.open(action),
            Action.LESSONS: lambda: self.go.open(action),
            Action.THEME: self.next_theme,
            Action.LARGER: lambda: self.zoom(1.25),
            Action.SMALLER: lambda: self.zoom(0.8),
        }
        if action not in deeds:
            return False
        deeds[action]()
        return True

    def next_theme(self) -> None:
        self.preferences.theme = turned(list(THEMES), self.style.theme.name, 1)
        self.restyle()

    def zoom(self, factor: float) -> None:
        self.preferences.ui_scale = round(min(4.0, max(0.5, self.scale * factor)), 2)
        self.restyle()

    def apply_preferences(self) -> None:
        """Applies changed preferences to everything that uses them."""
        self.controller.input.one_click = self.preferences.one_click
        self.controller.input.auto_complete = self.preferences.auto_complete
        self.restyle()

    def copy(self, text: str) -> None:
        """Copies a text to the clipboard and shows a message."""
        copied = put_text(text)
        self.go.scene.say("Copied" if copied else "There is no clipboard here", alarm=not copied)

    def copy_picture(self) -> None:
        """Saves the board as a picture, copies it to the clipboard if possible, and shows a message."""
        try:
            self.go.scene.say(keep_picture(self))
        except OSError as error:
            self.go.scene.say(str(error), alarm=True)

    def paste(self) -> None:
        """Loads a game or a position from the clipboard, or shows what is wrong with it."""
        text = get_text()
        try:
            if holds_several(text):
                self.go.show(partial(GamesPage, title="The clipboard's games", read=lambda: PdnGames(text)))
                return
            what = self.controller.session.paste(text)
        except DraughtsError as error:
            self.controller.say(str(error), alarm=True)
            self.go.to_game()
            return
        self.controller.loaded()
        if what == "position":  # nobody has played it yet
            self.controller.name_players()
        self.controller.say(f"Pasted a {what}")
        self.go.to_game()

    def quit(self) -> None:
        """Ends the program after this frame."""
        self.running = False

    def begin(self, plan: GamePlan | None, menu: bool) -> None:
        """Starts the first game, or continues one that was left unfinished."""
        self.apply_preferences()
        self.go.game.orient()
        found = self.controller.notice
        saved = self.autosave.recover() if plan is None else None
        if saved is None or not self._recover(saved.path):
            self.controller.start(plan or plan_of(self))
        if found:
            self.controller.say(found, alarm=True)
        if menu:
            self.go.open(Action.MENU)
        elif plan is None and self.is_first_start and "level" in self.opponents.kinds:
            self.go.show(WelcomePage)

    def _recover(self, path: Path) -> bool:
        try:
            take_up(self.controller, path, plan_of(self))
        except (DraughtsError, OSError):
            return False
        self.controller.say("Your unfinished game goes on; a new one is in the menu")
        return True

    # --- the loop

    def loop(self) -> None:
        self.running = True
        while self.running:
            for event in self._events():
                self._dispatch(event)
            if self.running:
                self.frame()

    def frame(self) -> None:
        """Updates the state and the window, once per frame."""
        begin = time.perf_counter()
        scene, now = self.go.scene, time.monotonic()
        scene.update(now)
        self._follow_result()
        if self.series is not None and scene is self.go.game:
            self.series.follow(self.controller, now)
        if scene is self.go.scene:
            changed = scene.draw(self.surface, now)
            if self._exposed:
                pygame.display.flip()  # update(None) would show nothing
            elif changed:
                pygame.display.update(changed)
            if changed or self._exposed:
                self._exposed = False
                self.frame_seconds.append(time.perf_counter() - begin)

    def _follow_result(self) -> None:
        """Reacts to the end of the game in play: sound, and the level of the next game."""
        session = self.controller.session
        if session.ending is None:
            self._in_play = session.game if session.on_main_line else self._in_play
        elif self._in_play == session.game:
            self._in_play = None
            self.go.game.sound_end()
            if text := follow_result(self):
                self.save_preferences()
                self.controller.say(f"{session.ending.text}. {text}")

    def _events(self) -> list[pygame.event.Event]:
        return self._window_events.next(self.go.scene.lively, self.thinker.busy)

    def _dispatch(self, event: pygame.event.Event) -> None:
        if event.type == pygame.QUIT:
            self.quit()
        elif event.type == pygame.VIDEORESIZE:
            self._resized()
        elif event.type in (pygame.WINDOWEXPOSED, pygame.WINDOWRESTORED, pygame.WINDOWSHOWN):
            self._exposed = True
        else:
            self.go.scene.handle(event)

    def _resized(self) -> None:
        self.surface = pygame.display.get_surface()
        if not self.preferences.fullscreen:
            self._keep_size()
        self.restyle()

    def _keep_size(self) -> None:
        width, height = self.surface.get_size()
        self.preferences.window_width = max(MIN_WINDOW[0], width)
        self.preferences.window_height = max(MIN_WINDOW[1], height)

    def save_preferences(self) -> None:
        """Stores the preferences that were changed here: another window may have stored others.

        Shows a message if that fails.
        """
        changed = {name: value for name, value in self.preferences if value != getattr(self._stored, name)}
        there = exists(self.preferences_file)
        if there and not changed:
            return
        try:
            saved, fault = load_preferences(self.preferences_file) if there else (self.preferences, "")
            if "opponents" in changed:  # each seat is a setting of its own
                seats, before = self.preferences.opponents, self._stored.opponents
                mine = {seat: spec for seat, spec in seats.items() if spec != before.get(seat)}
                changed["opponents"] = saved.opponents | mine
            merged = self.preferences if fault else saved.model_copy(update=changed)
            save_preferences(merged, self.preferences_file)
            self._stored = self.preferences.model_copy(deep=True)
        except FAULTS as error:
            self.controller.say(str(error), alarm=True)

    def close(self) -> None:
        """Stops all background work and stores game and preferences."""
        if self.annotator is not None:
            self.annotator.stop()
        self.shelf.close()
        self.controller.leave()
        self.controller.save()
        self.autosave.close()
        self.save_preferences()
        self.thinker.close()
        self.endgame.close()


def run(
    opponents: Opponents,
    oracle: Callable[[Board], OracleAnswer | None] | None = None,
    folder: Path | None = None,
    plan: GamePlan | None = None,
    menu: bool = False,
    puzzles: Callable[[], Sequence[Puzzle]] = shipped_puzzles,
    first: str | None = None,
    match_tools: MatchTools | None = None,
) -> None:
    """Opens the window and returns when it is closed.

    Args:
        opponents: whom one can play.
        oracle: judges an endgame, or returns None; called outside the window's thread.
        folder: folder for preferences and games; None: the platform's folders.
        plan: the first game; None: an unfinished game, or the one that the preferences describe.
        menu: whether to begin with the main menu instead of the board.
        puzzles, match_tools: see ``App``.
        first: name of a scene (``Navigation.open``) to begin with.

    Raises:
        WindowError: there is no display; one line.
    """
    start_pygame()
    app = App(opponents, EndgameInfo(oracle=oracle), folder, puzzles, match_tools)
    failed = True
    try:
        app.open_window()
        app.begin(plan, menu)
        if first is not None:
            app.go.open(first)
        app.loop()
        failed = False
    finally:
        pygame.display.quit()  # closes the window at once, before everything is stored
        app.close()
        pygame.quit()
        at_rest = wait_for_threads(LAST_WORK_AFTER_AN_ERROR_S if failed else LAST_WORK_S)
    if not at_rest:
        leave()
