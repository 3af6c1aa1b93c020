"""Text fields, and the files that are named in them: odd paths and names, tiny windows, settings that are refused."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

import pygame
from pygame_menu.widgets import Button, TextInput
from test_gui_scenes import frames, plan, press
from windows import frames_until, opened_app

from engine.fen import Color
from engine.files import StorageError, read_text
from engine.pdn import read_games
from gui.app import App
from gui.archive.annotator import Annotator
from gui.archive.game_library import GameLibrary, Query
from gui.game.pdn_files import clean, typed_file, typed_path
from gui.help import Action
from gui.menus import MenuScene
from gui.views import clipboard
from gui.views.analysis_page import AnalysisPage
from gui.views.file_pages import CollectionPage, FilesPage, LoadPage, SavePage, last_folder
from gui.views.geometry import Rect
from gui.views.library_pages import LibraryPage
from gui.views.menu_pages import CheckpointPage, MainPage, OpponentPage, SearchPage

NULL_GAME = '[Event "a"]\n[Black "A\0a"]\n[White "B"]\n[Result "*"]\n\n1. 11-15 {so \0 so} *\n\n'


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setattr("gui.window_events.IDLE_WAIT_MS", 5)
    folder = tmp_path / "home"
    folder.mkdir()
    with opened_app(folder, window_width=800, window_height=600, animation_ms=0) as app:
        app.preferences.last_folder = str(tmp_path)
        app.begin(plan(*Color), menu=False)
        yield app


def shown(app: App, page: MenuScene) -> Any:
    app.go.show(lambda _: page)
    frames(app)
    return page


def field_of(page: MenuScene, title: str) -> TextInput:
    fields = [widget for widget in page.menu.get_widgets() if isinstance(widget, TextInput)]
    return next(field for field in fields if field.get_title().startswith(title))


def press_with_ctrl(app: App, name: str) -> None:
    """Presses a key together with Ctrl, for which pygame-menu asks the keyboard."""
    pygame.key.set_mods(pygame.KMOD_CTRL)
    press(app, name, ctrl=True)
    pygame.key.set_mods(pygame.KMOD_NONE)


def test_what_is_typed_begins_in_the_folder(tmp_path: Path) -> None:
    assert typed_path(" a/b.pdn ", tmp_path) == tmp_path / "a" / "b.pdn"
    assert typed_path("/x/y", tmp_path) == Path("/x/y")
    assert typed_path("~/y", tmp_path) == Path.home() / "y"
    assert typed_path("/", tmp_path) == Path("/")
    for text in ("", "  ", "/", ".", "~nobody-of-this-name/x", "x" * 300):
        with pytest.raises(StorageError) as caught:
            typed_file(text, tmp_path)
        assert str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "~nobody-of-this-name/x", "x" * 300, "/"])
def test_odd_paths_are_told_and_the_window_lives(app: App, tmp_path: Path, text: str) -> None:
    page = shown(app, SavePage(app))
    page._save(text)
    assert page._foot[1]
    frames(app)
    page = shown(app, LoadPage(app))
    page._typed(text)
    assert page._foot[1] or page.folder == Path("/")
    frames(app)
    page = shown(app, AnalysisPage(app, tmp_path / "games.pdn"))
    page._typed = text
    frames(app)
    page._start()
    assert page._foot[1]
    assert app.annotator is None


def test_names_too_long_for_the_disk_are_told_and_the_window_lives(app: App, tmp_path: Path) -> None:
    games = tmp_path / f"{'x' * 245}.pdn"
    games.write_text("1. 11-15 *")  # the name of its annotated copy is too long
    page = shown(app, AnalysisPage(app, games))
    page._start()
    frames_until(app, lambda: page._foot[1])
    app.preferences.collection = f"/{'y' * 300}"
    app.go.open(Action.OPENINGS)
    frames(app)
    chosen: list[str] = []
    page = shown(app, CollectionPage(app, chosen.append))
    page._open(Path(app.preferences.collection))
    assert page._foot[1]
    library = GameLibrary(Path(app.preferences.collection), tmp_path / "index")
    with pytest.raises(StorageError):
        library.wait()
    shown(app, LibraryPage(app, library))


@pytest.mark.parametrize("error", [ValueError("the network is damaged"), StorageError(None, "the disk is full")])
def test_an_analysis_that_fails_while_nobody_looks_is_told_later(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    games = tmp_path / "games.pdn"
    games.write_text("1. 11-15 *")

    def fail(self: Annotator) -> None:
        raise error

    monkeypatch.setattr(Annotator, "run", fail)
    page = shown(app, AnalysisPage(app, games))
    page._start()
    app.go.to_game()
    frames_until(app, lambda: app.annotator is not None and not app.annotator.at_work)
    page = shown(app, FilesPage(app))
    (row,) = [widget for widget in page.menu.get_widgets() if widget.get_title().startswith("Analysis of games.pdn")]
    assert "failed" in row.get_title()
    assert row.get_attribute("meaning") == str(error)
    row.apply()
    frames(app)
    assert app.go.scene._foot == (str(error), True)  # type: ignore[attr-defined]


def test_a_bare_name_is_saved_where_the_last_game_was(app: App, tmp_path: Path) -> None:
    shown(app, SavePage(app))._save("mine")
    assert (tmp_path / "mine.pdn").exists()
    assert last_folder(app) == tmp_path
    assert str(tmp_path) in app.controller.message().text


@pytest.mark.parametrize("name", ["games.pdn", "."])
def test_a_game_added_to_an_open_collection_is_listed_there(app: App, tmp_path: Path, name: str) -> None:
    """The list showed the games of before, and refused them all since the file had changed."""
    games = tmp_path / "games.pdn"
    games.write_text("1. 11-15 *\n\n1. 12-16 *\n")
    app.shelf.open(tmp_path / name).wait()
    shown(app, SavePage(app))._write(games, add=True)
    library = app.shelf.library
    assert library is not None
    library.wait()
    _, listed = library.search(Query(), 0, 9)
    assert [len(library.game(game.number).moves) for game in listed] == [1, 1, 0]


def test_a_name_with_a_dot_is_a_game_s_all_the_same(app: App, tmp_path: Path) -> None:
    shown(app, SavePage(app))._save("Smith vs. Jones")
    assert (tmp_path / "Smith vs. Jones.pdn").exists()
    (tmp_path / "games.dat").touch()
    assert typed_file("games.dat", tmp_path) == tmp_path / "games.dat"
    app.preferences.last_folder = ""
    shown(app, LoadPage(app))._open(tmp_path / "Smith vs. Jones.pdn")
    assert last_folder(app) == tmp_path


def test_games_that_an_analysis_left_out_are_told_of(app: App, tmp_path: Path) -> None:
    games = tmp_path / "games.pdn"
    games.write_text("1. 11-99 *")
    page = shown(app, AnalysisPage(app, games))
    page._start()
    frames_until(app, lambda: app.annotator is not None and not app.annotator.at_work)
    frames(app)
    text, alarm = page._foot
    assert alarm
    assert text.startswith("Games left out: 1; the first: ")


def test_a_network_s_folder_may_be_typed_from_the_home(
    app: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "net").mkdir()
    opponent = OpponentPage(app, "agent")
    page = shown(app, CheckpointPage(app, opponent))
    page._typed("~/net ")
    assert opponent.spec.checkpoint == str(tmp_path / "net")


def test_a_typed_folder_of_a_network_is_there_and_found_from_everywhere(
    app: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    opponent = OpponentPage(app, "agent")
    page = shown(app, CheckpointPage(app, opponent))
    for text in ("net", ""):
        page._typed(text)
        assert page._foot[1]
        assert app.go.scene is page
        assert opponent.spec.checkpoint is None
    (tmp_path / "net").mkdir()
    page._typed("net")
    assert opponent.spec.checkpoint == str(tmp_path / "net")


@pytest.mark.parametrize(("presses", "games"), [(["return"], 2), (["right", "return"], 1), (["escape"], 1)])
def test_of_a_file_that_is_there_one_is_asked(app: App, tmp_path: Path, presses: list[str], games: int) -> None:
    path = tmp_path / "mine.pdn"
    path.write_bytes('[Event "Zoë"]\n\n1. 9-13 *\n'.encode("latin-1"))
    app.controller.make(app.controller.session.board.parse_pdn("11-15"))
    page = shown(app, SavePage(app))
    page._save("mine")
    assert "mine.pdn is there already" in page.question.text
    for name in presses:
        press(app, name)
    games_there = list(read_games(read_text(path)))
    if presses != ["right", "return"]:
        assert games_there[0].headers["Event"] == "Zoë"
    found = [[str(node.move) for node in game.moves] for game in games_there]
    assert found == {"escape": [["9-13"]]}.get(presses[0], [["9-13"], ["11-15"]][-games:])
    assert (app.go.scene is page) == (presses == ["escape"])


def test_names_that_are_no_text_are_listed(app: App, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xe9"))
    try:
        odd.mkdir()
    except OSError:
        pytest.skip("this file system knows no such names")
    Path(os.fsdecode(os.fsencode(odd) + b"/l\xe9.pdn")).write_text(NULL_GAME)
    page = shown(app, LoadPage(app))
    page._enter(odd)
    frames(app)
    assert any("l?.pdn" in widget.get_title() for widget in page.menu.get_widgets())
    assert last_folder(app) == tmp_path


def test_null_characters_of_a_file_are_left_out(app: App, tmp_path: Path) -> None:
    assert clean("a\0b") == "ab"
    (tmp_path / "two.pdn").write_text(NULL_GAME * 2)
    app.controller.session.load_file(tmp_path / "two.pdn")
    frames(app)
    assert app.controller.session.names[Color.BLACK] == "Aa"
    page = shown(app, LoadPage(app))
    page._open(tmp_path / "two.pdn")
    for _ in range(200):
        frames(app)
        if app.go.scene is not page:
            break
    assert any("Aa" in widget.get_title() for widget in app.go.scene.menu.get_widgets())


def test_a_menu_fits_into_the_smallest_window(app: App) -> None:
    for size in ((60, 40), (400, 50), (1, 1), (800, 600)):
        page = MainPage(app)
        app.surface = pygame.display.set_mode(size)
        page.resize(Rect(0, 0, *size), app.style)
        page.draw(app.surface, 0.0)


def test_a_long_text_stays_in_the_window(app: App, tmp_path: Path) -> None:
    page = shown(app, SavePage(app))
    field = field_of(page, "File")
    field.set_value("")
    for letter in "x1m" * 100:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=ord(letter), mod=0, unicode=letter, scancode=0))
    frames(app)
    assert field.get_value() == "x1m" * 100
    assert field.get_width() <= page.menu.get_width()


def test_a_long_title_ends_before_the_edge_of_the_window(app: App) -> None:
    page = MainPage(app)
    page.title = "the name of a file " * 20
    shown(app, page)
    page.draw(app.surface, 0.0)
    background = app.style.theme.background
    assert all(app.surface.get_at((page.window.w - 1, y))[:3] == background for y in range(page.area.y))


def test_a_setting_that_is_refused_leaves_the_one_that_holds(app: App) -> None:
    opponent = shown(app, OpponentPage(app, "agent"))
    page = shown(app, SearchPage(app, opponent))
    field = field_of(page, "Simulations")
    before = field.get_value()
    page.menu.select_widget(field)
    field.set_value("300000")
    press(app, "down")
    assert page._foot[1]
    assert field.get_value() == before
    page.menu.select_widget(field)
    field.set_value("77")
    press(app, "return")
    assert opponent.spec.search.num_simulations == 77


def test_an_emptied_field_reaches_the_program(app: App, tmp_path: Path) -> None:
    page = shown(app, AnalysisPage(app, tmp_path / "games.pdn"))
    page.menu.select_widget(field_of(page, "Into"))
    frames(app)
    press_with_ctrl(app, "a")
    press(app, "backspace")
    assert page._typed == ""
    page.place()  # a resize
    frames(app)
    assert field_of(page, "Into").get_value() == ""
    assert isinstance(page.menu.get_widgets()[0], Button)


def test_a_capital_letter_replaces_the_selected_text_too(app: App) -> None:
    page = shown(app, SavePage(app))
    page.menu.select_widget(field_of(page, "File"))
    press_with_ctrl(app, "a")
    press(app, "left shift")
    press(app, "A")  # as its letter comes with Shift held
    press(app, "b")
    assert field_of(page, "File").get_value() == "Ab"


def test_the_clipboard_of_newer_pygames(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[str, bytes] = {}

    def put(kind: str, data: bytes) -> None:
        if kind == "text/plain":
            raise pygame.error("no such kind")
        held[kind] = data

    def get(kind: str) -> bytes | None:
        if kind == "text/plain":
            raise pygame.error("no such kind")
        return held.get(kind)

    monkeypatch.setattr(clipboard, "_begin", lambda: None)
    monkeypatch.setattr(pygame.scrap, "put", put)
    monkeypatch.setattr(pygame.scrap, "get", get)
    assert clipboard.put_text("B:W1:B2")
    assert clipboard.get_text() == "B:W1:B2"
    page = shown(app, SavePage(app))
    field = field_of(page, "File")
    page.menu.select_widget(field)
    press_with_ctrl(app, "a")
    press_with_ctrl(app, "v")
    assert field.get_value() == "B:W1:B2"


def test_what_is_typed_outlives_another_size_of_the_window(app: App) -> None:
    page = shown(app, SavePage(app))
    given = field_of(page, "File").get_value()
    field_of(page, "File").set_value("other.pdn")
    app.restyle()
    assert field_of(page, "File").get_value() == "other.pdn"
    app.go.back()
    assert field_of(shown(app, SavePage(app)), "File").get_value() == given


def test_null_characters_of_an_engine_are_drawn(app: App) -> None:
    app.controller.session.rename(Color.BLACK, "Bad\0Engine")
    app.controller.say("no \0 licence", alarm=True)
    frames(app)
    assert app.style.text.width("a\0b", 20) == app.style.text.width("ab", 20)


def test_preferences_that_cannot_be_written_are_told(app: App) -> None:
    app.preferences_file /= "preferences.json"  # below what is a file
    app.save_preferences()
    assert app.controller.alarm
    assert "preferences.json" in app.controller.notice
