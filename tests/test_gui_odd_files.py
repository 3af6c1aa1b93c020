"""Files and folders at the board that are odd: their names, their sizes, their encodings, and paths to nowhere."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pygame
import pytest
from windows import frames_until, opened_app

from engine.files import StorageError
from gui.app import App
from gui.archive.game_index import MAX_LINE, lines_of
from gui.game.autosave import LISTED
from gui.game.session import GameSession
from gui.views.file_pages import KeptPage, LoadPage, SavePage
from gui.views.library_pages import LibraryPage
from gui.views.opening_scene import OpeningScene

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
GAME = '[Event "x"]\n[Black "Smith"]\n[White "B"]\n[Result "1-0"]\n1. 11-15 23-19 2. 8-11 22-17 1-0\n\n'


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with opened_app(tmp_path) as app:
        yield app


def openings(app: App) -> OpeningScene:
    """The openings, opened anew."""
    app.go.to_game()
    app.frame()
    app.go.open("openings")
    assert isinstance(app.go.scene, OpeningScene)
    app.frame()
    return app.go.scene


def load_page(app: App) -> LoadPage:
    app.go.open("load")
    assert isinstance(app.go.scene, LoadPage)
    return app.go.scene


def press(app: App, key: int, text: str = "") -> None:
    app._dispatch(pygame.event.Event(pygame.KEYDOWN, key=key, mod=0, unicode=text, scancode=0))
    if text:
        app._dispatch(pygame.event.Event(pygame.TEXTINPUT, text=text))
    app.frame()


def read(app: App, scene: OpeningScene, path: Path) -> int:
    """Games of a collection that is chosen and read to its end."""
    scene._opened(str(path))
    library = scene.collections[-1]
    frames_until(app, lambda: library.done)
    return library.count


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names that are not text")
def test_names_that_are_no_text(app: App, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/Gr\xf6\xdfe"))
    folder.mkdir()
    for number in range(2):
        (folder / f"{number}.pdn").write_text(GAME)
    page = load_page(app)
    page._open(folder)
    frames_until(app, lambda: isinstance(app.go.scene, LibraryPage))  # drawn, with the name as its title
    openings(app)


def test_a_collection_that_was_stopped_or_changed_is_read_again(app: App, tmp_path: Path) -> None:
    path = tmp_path / "big.pdn"
    path.write_text(GAME * 400)
    scene = openings(app)
    scene._opened(str(path))
    library = scene.collections[-1]
    frames_until(app, lambda: library.count >= 50)
    library.halt()
    frames_until(app, lambda: library.done)
    assert read(app, scene, path) == 400
    path.write_text(GAME * 3)
    assert read(app, scene, path) == 3


def test_a_file_behind_a_link_is_one_collection(app: App, tmp_path: Path) -> None:
    (tmp_path / "games.pdn").write_text(GAME)
    (tmp_path / "link.pdn").symlink_to("games.pdn")
    app.shelf.open(tmp_path / "link.pdn").wait()
    assert [one.path.name for one in app.shelf.collections(str(tmp_path / "games.pdn"))].count("link.pdn") == 1
    assert "games.pdn" not in [one.path.name for one in app.shelf.collections(str(tmp_path / "games.pdn"))]


def test_a_path_to_nowhere_is_forgotten(app: App) -> None:
    page = load_page(app)
    page._typed("/nope/x.pdn")
    frames_until(app, lambda: page._library is None)
    assert "/nope/x.pdn" in str(page._foot)
    assert "x.pdn" not in [one.path.name for one in openings(app).collections]
    app.go.to_game()
    app.go.open("save")
    assert isinstance(app.go.scene, SavePage)
    app.frame()
    assert not app.go.scene._text_fields()[0].get_value().startswith("/nope")


def test_a_folder_of_many_says_what_it_does_not_list(app: App, tmp_path: Path) -> None:
    many = tmp_path / "many"
    for number in range(201):
        (many / f"sub{number}").mkdir(parents=True)
    for number in range(2):
        (many / f"{number}.pdn").write_text(GAME)
    page = load_page(app)
    page._enter(many)
    app.frame()
    titles = [widget.get_title() for widget in page.menu.get_widgets()]
    assert "All games in this folder" in titles
    assert "3 more, which are not listed: type their names above" in titles


def test_the_caret_stays_while_games_are_read(app: App, tmp_path: Path) -> None:
    path = tmp_path / "big.pdn"
    path.write_text(GAME * 1600)
    library = app.shelf.open(path)
    app.go.show(lambda app: LibraryPage(app, library))
    page = app.go.scene
    assert isinstance(page, LibraryPage)
    frames_until(app, lambda: library.count >= 50)
    page.menu.select_widget(page._text_fields()[0])
    for sign in "mith":
        press(app, ord(sign), sign)
    for _ in "mith":
        press(app, pygame.K_LEFT)
    known = library.count
    frames_until(app, lambda: library.count > known)
    app.frame()
    press(app, ord("s"), "s")
    assert page._text_fields()[0].get_value() == "smith"
    library.halt()


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_large_files_with_any_end_of_line(end: str) -> None:
    number = 2 * MAX_LINE // len(GAME)
    data = (GAME * number).replace("\n", end).encode()
    assert sum(text.startswith("[Event") for _, text in lines_of(io.BytesIO(data))) == number


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_after_a_line_that_is_too_long_the_others_are_read(end: str) -> None:
    data = end.join(["a", "x" * (3 * MAX_LINE), "b", "c"]).encode()
    lines = list(lines_of(io.BytesIO(data)))
    assert [text.strip() for _, text in lines if len(text) < 9] == ["a", "b", "c"]
    assert all(data[start:].startswith(text[:5].encode()) for start, text in lines)


def test_a_game_is_not_added_to_a_file_in_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "notepad.pdn"
    path.write_text(GAME, encoding="utf-16")
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"notepad\.pdn is no text in UTF-8"):
        GameSession().save_file(path, add=True)
    assert path.read_bytes() == before


def test_what_saved_games_are_not_listed_is_said(app: App) -> None:
    app.autosave.folder.mkdir(exist_ok=True)
    for number in range(LISTED + 1):
        (app.autosave.folder / f"{number}.pdn").write_text(GAME)
    app.go.open("files")
    app.go.show(KeptPage)
    frames_until(app, lambda: app.go.scene.found is not None)
    app.frame()
    titles = [widget.get_title() for widget in app.go.scene.menu.get_widgets()]
    assert [title for title in titles if title.startswith("Older ones: Load a PDN file")]
    assert len(titles) == LISTED + 2


def test_long_names_of_players_make_a_file_that_can_be_saved(app: App) -> None:
    app.controller.session.paste(f'[Black "{"Alexander " * 14}"] [White "{"Bartholomew " * 14}"] 1. 11-15 1-0')
    app.controller.loaded()
    app.go.open("save")
    assert isinstance(app.go.scene, SavePage)
    app.frame()
    assert len(Path(app.go.scene._text_fields()[0].get_value()).name) < 200


def test_a_line_behind_the_end_of_a_game_is_not_taken_into_it(app: App) -> None:
    app.controller.session.paste('[Black "A"] [White "B"] 1. 11-15 1-0')
    app.controller.loaded()
    scene = openings(app)

    def taken() -> list[bool]:
        app.frame()
        return [button.enabled for row in scene.rows for button in row.buttons if button.name == "keep"]

    assert taken() == [True]
    scene.make(scene.tree.board.distinct_moves[0])
    assert taken() == [False]
