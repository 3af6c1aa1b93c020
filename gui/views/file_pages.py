"""Pages of games and files: load, save, copy, paste, games kept by themselves; and the preferences."""

import threading
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pygame_menu

from engine.errors import DraughtsError
from engine.files import read_text

from ..menus import ON_OFF, MenuScene, Page, explain
from ..messages import without_fen
from ..pdn_files import PdnGames
from ..seats import take_up
from .clipboard import put_text
from .menu_pages import plan_of
from .theme import THEMES

if TYPE_CHECKING:
    from ..app import App

FAULTS = (DraughtsError, OSError)
_LISTED_GAMES = 200
_LISTED_FILES = 200
SCALES = (("automatic", 0.0), ("75 %", 0.75), ("100 %", 1.0), ("125 %", 1.25), ("150 %", 1.5), ("200 %", 2.0))
BOTTOMS = (("your own side", "own"), ("White", "white"), ("Black", "black"))
SPEEDS = (("off", 0), ("fast", 110), ("normal", 220), ("slow", 450))


class FilesPage(Page):
    """Games and positions in and out."""

    title = "Games and positions"

    def fill(self, menu: pygame_menu.Menu) -> None:
        app = self.app
        kept = menu.add.button("Games kept by themselves …", lambda: app.go.show(MenuScene(app, KeptPage(app))))
        explain(kept, "Every game is kept from its first move; nothing is lost in a crash")
        load = menu.add.button("Load a PDN file …", lambda: app.go.show(MenuScene(app, LoadPage(app))))
        explain(load, "Choose a file, then one of its games")
        save = menu.add.button("Save this game …", lambda: app.go.show(MenuScene(app, SavePage(app))))
        explain(save, "As PDN")
        explain(
            menu.add.button("Copy the game (PDN)", lambda: self._copy(app.controller.session.pdn())), "To the clipboard"
        )
        explain(
            menu.add.button("Copy the position (FEN)", lambda: self._copy(app.controller.session.fen())),
            "To the clipboard",
        )
        explain(menu.add.button("Paste a game or a position", self._paste), "PDN or FEN from the clipboard")
        explain(menu.add.button("Back", app.go.back), "")

    def _copy(self, text: str) -> None:
        self.say("Copied" if put_text(text) else "There is no clipboard here", alarm=False)

    def _paste(self) -> None:
        self.app.paste()


class KeptPage(Page):
    """Games that were saved by themselves, newest first."""

    title = "Games kept by themselves"

    def fill(self, menu: pygame_menu.Menu) -> None:
        games = self.app.autosave.games()
        for game in games:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(game.modified))
            text = f"{when}   {game.title or game.path.name}"
            explain(
                menu.add.button(text, lambda path=game.path: resume(self.app, self, path)),
                without_fen(game.error) or str(game.path),
            )
        if not games:
            menu.add.label(f"none yet; they will lie in {self.app.autosave.folder}")
        explain(menu.add.button("Back", self.app.go.back), "")


def resume(app: "App", page: Page, path: Path) -> None:
    """Takes up a game that was kept by itself, or says what is wrong with its file."""
    try:
        take_up(app.controller, path, plan_of(app))
    except FAULTS as error:
        page.say(str(error), alarm=True)
        return
    app.go.to_game()


class LoadPage(Page):
    """Folders and PDN files; a path can be typed as well."""

    title = "Load a PDN file"

    def __init__(self, app: "App", folder: Path | None = None) -> None:
        super().__init__(app)
        last = Path(app.preferences.last_folder) if app.preferences.last_folder else Path.home()
        self.folder = folder or (last if last.is_dir() else Path.home())
        self._reading: Future[PdnGames] | None = None
        self._path = self.folder

    def fill(self, menu: pygame_menu.Menu) -> None:
        typed = menu.add.text_input("Path: ", default=str(self.folder), maxchar=500, onreturn=self._typed)
        explain(typed, "Type a file or a folder; Enter opens it")
        explain(menu.add.button("..", lambda: self._enter(self.folder.parent)), "The folder above")
        for path in self._entries():
            if path.is_dir():
                menu.add.button(f"{path.name}/", lambda path=path: self._enter(path))
            else:
                menu.add.button(path.name, lambda path=path: self._open(path))
        explain(menu.add.button("Back", self.app.go.back), "")

    def _entries(self) -> list[Path]:
        try:
            entries = [path for path in self.folder.iterdir() if not path.name.startswith(".")]
        except OSError as error:
            self.say(f"cannot read {self.folder}: {error.strerror or error}", alarm=True)
            return []
        shown = [path for path in entries if path.is_dir() or path.suffix.lower() in (".pdn", ".txt")]
        return sorted(shown, key=lambda path: (not path.is_dir(), path.name.lower()))[:_LISTED_FILES]

    def _enter(self, folder: Path) -> None:
        self.folder = folder
        self.app.preferences.last_folder = str(folder)
        self.rebuild()

    def _typed(self, text: str) -> None:
        path = Path(text.strip()).expanduser()
        if path.is_dir():
            self._enter(path)
        else:
            self._open(path)

    def _open(self, path: Path) -> None:
        self._path, self._reading = path, Future()
        self.say(f"Reading {path.name} …")
        threading.Thread(target=_read_games, args=(path, self._reading), name="pdn", daemon=True).start()

    def poll(self) -> None:
        reading = self._reading
        if reading is None or not reading.done():
            return
        self._reading = None
        self.say("")
        try:
            games = reading.result()
        except FAULTS as error:
            self.say(str(error), alarm=True)
            return
        if len(games.titles) > 1:
            self.app.go.show(MenuScene(self.app, GamesPage(self.app, self._path.name, games)))
        else:
            load_game(self.app, self, games, 1)


def _read_games(path: Path, result: "Future[PdnGames]") -> None:
    """Reads a file of many games, in a thread: large ones take seconds."""
    try:
        result.set_result(PdnGames(read_text(path)))
    except FAULTS as error:
        result.set_exception(error)


def load_game(app: "App", page: Page, games: PdnGames, number: int) -> None:
    """Shows a game of a file, or says what is wrong with it."""
    try:
        app.controller.session.load_game(games.game(number))
    except FAULTS as error:
        page.say(str(error), alarm=True)
        return
    app.autosave.begin()
    app.controller.loaded()
    app.go.to_game()


class GamesPage(Page):
    """The games of one file."""

    def __init__(self, app: "App", title: str, games: PdnGames) -> None:
        super().__init__(app)
        self.games, self.title = games, title

    def fill(self, menu: pygame_menu.Menu) -> None:
        titles = self.games.titles
        for number, title in enumerate(titles[:_LISTED_GAMES], 1):
            menu.add.button(f"{number}.  {title}", lambda number=number: load_game(self.app, self, self.games, number))
        if len(titles) > _LISTED_GAMES:
            menu.add.text_input(
                f"Game, 1 to {len(titles)}: ", maxchar=7, input_type=pygame_menu.locals.INPUT_INT,
                onreturn=lambda number: load_game(self.app, self, self.games, number),
            )  # fmt: skip
        explain(menu.add.button("Back", self.app.go.back), "")


class SavePage(Page):
    """A name for the game's file."""

    title = "Save this game"

    def fill(self, menu: pygame_menu.Menu) -> None:
        last = Path(self.app.preferences.last_folder) if self.app.preferences.last_folder else Path.home()
        session = self.app.controller.session
        names = " - ".join(name for name in session.names.values() if name) or "game"
        stem = "".join(sign if sign.isalnum() or sign in " -_." else "_" for sign in names)
        default = last / f"{time.strftime('%Y-%m-%d')} {stem}.pdn"
        self._field = menu.add.text_input("File: ", default=str(default), maxchar=500, onreturn=self._save)
        explain(self._field, "Enter saves; an existing file is replaced")
        explain(menu.add.button("Save", lambda: self._save(self._field.get_value())), str(default.parent))
        explain(menu.add.button("Back", self.app.go.back), "")

    def _save(self, text: str) -> None:
        path = Path(text.strip()).expanduser()
        if path.suffix == "":
            path = path.with_suffix(".pdn")
        try:
            self.app.controller.session.save_file(path)
        except FAULTS as error:
            self.say(str(error), alarm=True)
            return
        self.app.preferences.last_folder = str(path.parent)
        self.app.controller.say(f"Saved as {path.name}")
        self.app.go.to_game()


class PreferencesPage(Page):
    """Looks and habits."""

    title = "Preferences"

    def fill(self, menu: pygame_menu.Menu) -> None:
        current = self.app.style.theme.name
        self._choice(menu, "Theme: ", [(name, name) for name in THEMES], "theme", current)
        self._choice(menu, "Letters and buttons: ", SCALES, "ui_scale", self.app.preferences.ui_scale)
        self._choice(menu, "At the bottom: ", BOTTOMS, "bottom", self.app.preferences.bottom)
        self._choice(menu, "Moves in motion: ", SPEEDS, "animation_ms", self.app.preferences.animation_ms)
        fields = type(self.app.preferences).model_fields
        for field, title in (
            ("show_numbers", "Numbers of the squares"),
            ("show_targets", "Squares to move to"),
            ("show_movable", "Pieces that can move"),
            ("show_last_move", "Last move"),
            ("show_arrows", "Arrows of thought"),
            ("show_wdl", "Win, draw, loss"),
            ("show_moves_table", "Table of moves"),
            ("show_line", "Expected line"),
            ("show_graph", "Evaluation graph"),
            ("one_click", "Move by one click where one fits"),
            ("auto_complete", "Finish jumps by themselves"),
            ("sounds", "Sounds"),
            ("fullscreen", "Full screen"),
        ):
            switch = menu.add.selector(
                f"{title}: ", ON_OFF, default=int(getattr(self.app.preferences, field)),
                onchange=self.guard(partial(self._set, field)),
            )  # fmt: skip
            explain(switch, fields[field].description or "")
        explain(menu.add.button("Back", self._back), "")

    def _choice(self, menu: pygame_menu.Menu, title: str, items: Any, field: str, now: object) -> None:
        items = list(items)
        if now not in [value for _, value in items]:
            items.append((str(now), now))
        default = [value for _, value in items].index(now)
        selector = menu.add.selector(
            title, items, default=default, onchange=self.guard(lambda value: self._set(field, value))
        )
        explain(selector, type(self.app.preferences).model_fields[field].description or "")

    def _set(self, field: str, value: object) -> None:
        if field == "fullscreen":
            self.app.toggle_fullscreen()
            return
        setattr(self.app.preferences, field, value)
        self.app.apply_preferences()
        if field in ("theme", "ui_scale"):
            self.rebuild()

    def _back(self) -> None:
        self.leave()
        self.app.go.back()

    def leave(self) -> None:
        self.app.save_preferences()
