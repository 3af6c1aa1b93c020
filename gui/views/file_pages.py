"""Pages for games and files (load, save, copy, paste, automatically saved games), and for the preferences."""

import time
from collections.abc import Callable
from functools import partial
from os.path import exists, isdir
from pathlib import Path

import pygame_menu

from ..archive.file_analysis import seconds_of
from ..archive.game_index import sources_in
from ..archive.game_library import GameLibrary
from ..game.autosave import LISTED, SavedGame
from ..game.messages import without_fen
from ..game.pdn_files import ENDINGS, PdnGames, clean, typed_file, typed_path
from ..game.seats import take_up
from ..help import Action
from ..menus import ON_OFF, MenuScene, ReadingPage
from ..preferences import Preferences
from .analysis_page import AnalysisPage
from .library_pages import LibraryPage, show_game
from .menu_pages import plan_of
from .program import Program
from .theme import THEMES

_LISTED_GAMES = 200
_LISTED_FILES = 200
_LONGEST_STEM = 100  # characters of a name that is proposed for a file
SCALES = (("automatic", 0.0), ("75 %", 0.75), ("100 %", 1.0), ("125 %", 1.25), ("150 %", 1.5), ("200 %", 2.0))
BOTTOMS = (("your own side", "own"), ("White", "white"), ("Black", "black"))
SPEEDS = (("off", 0), ("fast", 110), ("normal", 220), ("slow", 450))
SWITCHES = {  # preference → label
    "show_numbers": "Numbers of the squares",
    "show_targets": "Squares to move to",
    "show_movable": "Pieces that can move",
    "show_last_move": "Last move",
    "show_arrows": "Arrows of the search",
    "show_wdl": "Win, draw, loss",
    "show_moves_table": "Table of moves",
    "show_line": "Expected line",
    "show_graph": "Evaluation graph",
    "one_click": "One click plays an only move",
    "auto_complete": "Finish captures automatically",
    "sounds": "Sounds",
    "fullscreen": "Full screen",
}


class FilesPage(MenuScene):
    title = "Games and positions"

    def fill(self) -> None:
        app, session = self.app, self.app.controller.session
        kept = "Every game is saved from its first move on; a crash loses nothing"
        self.button("Saved games …", self.opener(KeptPage), kept)
        self.button("Load a PDN file …", partial(app.go.open, Action.LOAD), "Choose a file, then one of its games")
        library = app.shelf.library
        if library is not None and library.count > 1:
            meaning = "The games of the file that was opened last; search by words, result and position"
            self.button(f"Games of {library.path.name} …", lambda: app.go.show(lambda _: self._list(library)), meaning)
        running = app.annotator
        if running is not None and (running.at_work or running.error or seconds_of(running.out) is not None):
            title, meaning = f"Analysis of {running.games.name} …", "It was stopped: go on"
            if running.at_work:
                meaning = "Progress; stop it"
            elif running.error:
                title, meaning = f"Analysis of {running.games.name}: failed …", running.error
            self.button(title, self.opener(AnalysisPage, games=running.games), meaning)
        self.button("Save this game …", partial(app.go.open, Action.SAVE), "As PDN")
        self.button("Comment on the last move …", partial(app.go.open, Action.COMMENT), "And variations; saved as PDN")
        self.button("Copy the game (PDN)", lambda: app.copy(session.pdn()), "To the clipboard")
        self.button("Copy the position (FEN)", lambda: app.copy(session.fen()), "To the clipboard")
        saved = "To the clipboard, and as PNG next to the saved games"
        self.button("Copy the position (picture)", app.copy_picture, saved)
        self.button("Paste a game or a position", app.paste, "PDN or FEN from the clipboard")

    def _list(self, library: GameLibrary) -> LibraryPage:
        """The list of games as it was left, with what was searched for."""
        page = self.app.listed
        return page if page is not None and page.library is library else LibraryPage(self.app, library)


class KeptPage(ReadingPage[list[SavedGame]]):
    """The automatically saved games, newest first."""

    title = "Automatically saved games"

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.read("pdn", app.autosave.games)

    def fill(self) -> None:
        for game in self.found or ():
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(game.modified))
            meaning = without_fen(game.error) or str(game.path)
            self.button(f"{when}   {game.title}", partial(self._resume, game.path), meaning)
        if self.found is not None and len(self.found) == LISTED:
            self.menu.add.label(clean(f"Older ones: Load a PDN file, in {self.app.autosave.folder}"))
        if self.found == []:
            self.menu.add.label(clean(f"none yet; they will be saved in {self.app.autosave.folder}"))

    def _resume(self, path: Path) -> None:
        if self.attempt(lambda: take_up(self.app.controller, path, plan_of(self.app))):
            self.app.go.to_game()


def last_folder(app: Program) -> Path:
    """Folder where a game was last saved or loaded; at first the user's home folder."""
    last = Path(app.preferences.last_folder)
    return last if app.preferences.last_folder and isdir(last) else Path.home()


def remember_folder(app: Program, folder: Path) -> None:
    """Keeps a folder for ``last_folder``, unless there is none or its name cannot be stored as text."""
    if isdir(folder) and clean(str(folder)) == str(folder):
        app.preferences.last_folder = str(folder)


class LoadPage(MenuScene):
    """Loads a game: lists folders and PDN files; a path can also be typed."""

    title = "Load a PDN file"

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.folder = last_folder(app)
        self._library: GameLibrary | None = None  # while the number of games is unknown

    def fill(self) -> None:
        self.text_input("Path", str(self.folder), 500, "Type a file or a folder; Enter opens it", onreturn=self._typed)
        self.button("..", lambda: self._enter(self.folder.parent), "The folder above")
        entries = self._entries()
        left_out = len(entries) - _LISTED_FILES
        if sum(path.suffix.lower() == ".pdn" for path, _ in entries) > 1:
            self.button("All games in this folder", lambda: self._open(self.folder), "As one collection of games")
        for path, is_dir in entries[:_LISTED_FILES]:
            if is_dir:
                self.button(f"{path.name}/", partial(self._enter, path))
            else:
                self.button(path.name, partial(self._open, path))
        if left_out > 0:
            self.menu.add.label(f"{left_out:,} more, which are not listed: type their names above")

    def _entries(self) -> list[tuple[Path, bool]]:
        """Folders and files of games in the folder, folders first; with whether each is a folder."""
        try:
            paths = [path for path in self.folder.iterdir() if not path.name.startswith(".")]
        except OSError as error:
            self.say(f"cannot read {self.folder}: {error.strerror or error}", alarm=True)
            return []
        entries = [(path, isdir(path)) for path in paths]
        shown = [(path, is_dir) for path, is_dir in entries if is_dir or path.suffix.lower() in ENDINGS]
        return sorted(shown, key=lambda entry: (not entry[1], entry[0].name.lower()))

    def _enter(self, folder: Path) -> None:
        self.folder = folder
        remember_folder(self.app, folder)
        self.rebuild()

    def _typed(self, text: str) -> None:
        self.attempt(lambda: self._go(typed_path(text, self.folder)))

    def _go(self, path: Path) -> None:
        if isdir(path):
            self._enter(path)
        else:
            self._open(path)

    def _open(self, path: Path) -> None:
        self.say(f"Reading {path.name} …")
        remember_folder(self.app, path if isdir(path) else path.parent)
        self._library = self.app.shelf.open(path, self.app.go.libraries())

    def poll(self) -> None:
        library = self._library
        if library is None or (library.count < 2 and not library.done):
            return
        self._library = None
        self.say("")
        if library.count > 1:
            self.app.go.show(partial(LibraryPage, library=library))
        elif self.attempt(library.check):
            show_game(self, library, 1)


class CollectionPage(LoadPage):
    """Chooses a PDN file or a folder of them; ``chosen`` is called with its path, or "" for no collection."""

    title = "Games for the openings"

    def __init__(self, app: Program, chosen: Callable[[str], None]) -> None:
        super().__init__(app)
        self._chosen = chosen

    def fill(self) -> None:
        if kept := self.app.preferences.collection:
            self.button("None but my own", lambda: self._choose(""), f"Now: {kept}")
        super().fill()

    def _open(self, path: Path) -> None:
        if not exists(path):
            self.say(f"there is no {path}", alarm=True)
        elif isdir(path) and not sources_in(path):
            self.say(f"{path} has no PDN files; crownhead games writes those of a run", alarm=True)
        elif not (name := str(path.resolve())).isprintable():
            self.say(f"the name of {path} is no text: rename it first", alarm=True)
        else:
            self._choose(name)

    def _choose(self, path: str) -> None:
        self.leave()
        self._chosen(path)


class GamesPage(ReadingPage[PdnGames]):
    """Loads one of several games, which are read by ``read``."""

    def __init__(self, app: Program, title: str, read: Callable[[], PdnGames]) -> None:
        super().__init__(app)
        self.title = title
        self.read("pdn", read)

    def fill(self) -> None:
        if self.found is None:
            return
        titles, load = self.found.titles, partial(show_game, self, self.found)
        for number, title in enumerate(titles[:_LISTED_GAMES], 1):
            self.button(f"{number}.  {title}", partial(load, number))
        if len(titles) > _LISTED_GAMES:
            whole = pygame_menu.locals.INPUT_INT
            self.text_input(f"Game, 1 to {len(titles)}", "", 7, "", onreturn=load, input_type=whole)


class SavePage(MenuScene):
    """Saves the game: asks for the name of its file."""

    title = "Save this game"

    def fill(self) -> None:
        names = " - ".join(name for name in self.app.controller.session.names.values() if name) or "game"
        stem = "".join(sign if sign.isalnum() or sign in " -_." else "_" for sign in names)
        default = last_folder(self.app) / f"{time.strftime('%Y-%m-%d')} {stem[:_LONGEST_STEM]}.pdn"
        meaning = "Enter saves; if the file exists, you are asked what to do"
        field = self.text_input("File", str(default), 500, meaning, onreturn=self._save)
        self.button("Save", lambda: self._save(field.get_value()), str(default.parent))

    def _save(self, text: str) -> None:
        self.attempt(lambda: self._save_as(typed_file(text, last_folder(self.app))))

    def _save_as(self, path: Path) -> None:
        if not path.is_file():
            self._write(path, add=False)
            return
        answers = {
            "add": ("Add the game", partial(self.attempt, lambda: self._write(path, add=True))),
            "replace": ("Replace it", partial(self.attempt, lambda: self._write(path, add=False))),
            "no": ("Cancel", None),
        }
        self.ask(f"{path.name} is there already.", answers)

    def _write(self, path: Path, add: bool) -> None:
        self.app.controller.session.save_file(path, add)
        for collection in (path, path.parent):  # open as a list, it would refuse every game of the changed file
            self.app.shelf.reopen(collection.resolve())
        remember_folder(self.app, path.parent)
        self.app.controller.say(f"Added to {path}" if add else f"Saved as {path}")
        self.app.go.to_game()


class PreferencesPage(MenuScene):
    title = "Preferences"

    def fill(self) -> None:
        theme, meaning = self.app.style.theme.name, Preferences.model_fields["theme"].description or ""
        self.selector("Theme", [(name, name) for name in THEMES], theme, partial(self.prefer, "theme"), meaning)
        self.preference("Size of text and buttons", SCALES, "ui_scale")
        self.preference("At the bottom", BOTTOMS, "bottom")
        self.preference("Animation of moves", SPEEDS, "animation_ms")
        for field, title in SWITCHES.items():
            self.preference(title, ON_OFF, field)

    def prefer(self, field: str, value: object) -> None:
        if field == "fullscreen":
            self.app.toggle_fullscreen()
            return
        super().prefer(field, value)
        self.app.apply_preferences()
        if field == "bottom":
            self.app.go.game.orient()
        if field in ("theme", "ui_scale"):
            self.rebuild()

    def leave(self) -> None:
        self.app.save_preferences()
        super().leave()
