"""What scenes use of the program behind the window, ``app.App``, which is made of scenes and so is above them."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pygame

from engine.puzzles.puzzle import Puzzle

from ..archive.annotator import Annotator
from ..archive.game_library import GameLibrary
from ..archive.game_shelf import GameShelf
from ..game.autosave import Autosave
from ..game.controller import GameController
from ..game.endgame_info import EndgameInfo
from ..game.match_series import MatchSeries, MatchTools
from ..game.opponents import Opponents
from ..game.plan import GamePlan
from ..game.thinker import Thinker
from ..help import Action
from ..preferences import Preferences
from .board_view import BoardPicture
from .sounds import Sounds
from .text import Text
from .widgets import Style


class GameView(Protocol):
    """The scene of the game."""

    flipped: bool

    def orient(self) -> None: ...
    def plain_picture(self) -> BoardPicture: ...


class Shown(Protocol):
    """The scene that is shown."""

    name: str

    def say(self, text: str, alarm: bool = False) -> None: ...
    def handle(self, event: pygame.event.Event) -> None: ...


class Go(Protocol):
    """How to get from one scene to another, see ``navigation.Navigation``."""

    @property
    def game(self) -> GameView: ...
    @property
    def scene(self) -> Shown: ...
    def show(self, make: Callable[["Program"], Any]) -> None: ...
    def open(self, name: str) -> bool: ...
    def open_analysis(self, games: Path) -> None: ...
    def back(self) -> None: ...
    def to_game(self) -> None: ...
    def start_game(self, plan: GamePlan) -> None: ...
    def libraries(self) -> Iterator[GameLibrary]: ...


class Program(Protocol):
    """The program, see ``app.App`` for what its parts mean."""

    surface: pygame.Surface
    style: Style
    text: Text
    sounds: Sounds
    preferences: Preferences
    opponents: Opponents
    puzzles: Callable[[], Sequence[Puzzle]]
    thinker: Thinker
    controller: GameController
    endgame: EndgameInfo
    autosave: Autosave
    shelf: GameShelf
    annotator: Annotator | None
    series: MatchSeries | None
    match_tools: MatchTools | None
    listed: Any  # a ``LibraryPage``, which knows this file

    @property
    def go(self) -> Go: ...
    @property
    def scale(self) -> float: ...
    def act(self, action: Action) -> bool: ...
    def apply_preferences(self) -> None: ...
    def save_preferences(self) -> None: ...
    def toggle_fullscreen(self) -> None: ...
    def copy(self, text: str) -> None: ...
    def copy_picture(self) -> None: ...
    def paste(self) -> None: ...
    def quit(self) -> None: ...
