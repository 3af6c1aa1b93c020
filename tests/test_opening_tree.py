"""The tree of openings: rows, names, lines to click through, the scene, and adding a line to the game."""

import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

import pygame
from programs import PATIENCE
from windows import frames_until, opened_app

from engine.board import Board, Move
from engine.fen import START_FEN
from engine.openings import opening_of
from engine.pdn import read_game
from engine.position_keys import keys_of_game
from gui.app import App
from gui.archive.file_analysis import annotated_path
from gui.archive.game_index import Filling
from gui.archive.game_library import GameLibrary, Played, Query
from gui.archive.game_shelf import GameShelf
from gui.archive.opening_tree import OpeningTree, TreeRow, gathered
from gui.game.plan import BOTH
from gui.game.session import GameSession, SessionError
from gui.game.snapshot import MoveRow, Snapshot
from gui.help import Action
from gui.views.library_pages import LibraryPage
from gui.views.opening_scene import OpeningScene

GAMES = """[Black "A"] [White "B"] 1. 11-15 23-19 2. 8-11 22-17 1-0
[Black "C"] [White "A"] 1. 11-15 23-18 1/2-1/2
[Black "D"] [White "A"] 1. 9-14 23-19 2. 11-15 0-1
"""


def board_after(*moves: str) -> Board:
    board = Board()
    for move in moves:
        board.push_pdn(move)
    return board


def boards_of(*moves: str) -> list[Board]:
    return [board_after(*moves[:ply]) for ply in range(len(moves) + 1)]


@pytest.fixture
def library(tmp_path: Path) -> GameLibrary:
    path = tmp_path / "some.pdn"
    path.write_text(GAMES)
    library = GameLibrary(path, tmp_path / "index")
    library.wait()
    return library


def shown(rows: tuple[TreeRow, ...]) -> list[tuple[str, int, int, int]]:
    return [(row.pdn, *row.played[1:4]) for row in rows if row.played.games]


def test_rows_are_every_legal_move_the_most_played_first(library: GameLibrary) -> None:
    tree = OpeningTree(boards_of(), 0)
    rows = tree.rows(library.played(tree.key), None)
    assert shown(rows) == [("11-15", 1, 1, 0), ("9-14", 0, 0, 1)]
    assert sorted(row.move.start for row in rows) == sorted(move.start for move in Board().distinct_moves)


def test_the_search_orders_what_nobody_played(library: GameLibrary) -> None:
    board = Board()
    liked = board.parse_pdn("12-16")
    thoughts = (MoveRow(liked, visits=9, value=0.2, pdn="12-16"), MoveRow(board.parse_pdn("11-15"), pdn="11-15"))
    snapshot = Snapshot(1, "analyse", "thinking", "x", board.fen(), 0, board.turn, moves=thoughts)
    tree = OpeningTree([board], 0)
    rows = tree.rows(library.played(tree.key), snapshot)
    assert [row.pdn for row in rows[:3]] == ["11-15", "9-14", "12-16"]
    assert rows[2].thought == thoughts[0]
    assert OpeningTree(boards_of("11-15"), 1).rows([], snapshot)[0].thought is None  # it is about another position


def test_a_line_is_left_and_taken_up_again() -> None:
    tree = OpeningTree(boards_of("11-15", "23-19", "8-11"), 1)
    assert tree.opening == "Old Faithful"
    tree.play(tree.board.parse_pdn("23-19"))
    assert (tree.ply, len(tree.boards)) == (2, 4)  # the line goes on as it did
    tree.play(tree.board.parse_pdn("9-14"))
    assert (tree.ply, len(tree.boards)) == (3, 4)
    assert tree.opening == opening_of(keys_of_game(START_FEN, ["11-15", "23-19", "9-14"])) != ""
    tree.go_to(-5)
    assert tree.ply == 0
    tree.go_to(99)
    assert [tree.board.start_fen, len(tree.line)] == [Board().start_fen, 3]


def test_collections_are_added_up(library: GameLibrary) -> None:
    key = OpeningTree(boards_of(), 0).key
    once, twice = library.played(key), gathered([library, library], key)
    assert sorted(twice) == sorted(Played(one.after, *(2 * count for count in one[1:])) for one in once)


def test_a_file_in_a_folder_counts_once(tmp_path: Path, library: GameLibrary) -> None:
    """Such as an older game of one's own, which was loaded from the folder of all of them."""
    folder = GameLibrary(tmp_path, tmp_path / "index")
    folder.wait()
    key = OpeningTree(boards_of(), 0).key
    assert sorted(gathered([folder, library], key)) == sorted(library.played(key))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / library.path.name).write_text(GAMES)
    other = GameLibrary(tmp_path / "below" / library.path.name, tmp_path / "index")
    other.wait()
    assert gathered([folder, other], key) == gathered([library, library], key)


def test_the_shelf_names_each_collection_once(tmp_path: Path, library: GameLibrary) -> None:
    own = tmp_path / "own"
    shelf = GameShelf(own, tmp_path / "index")
    assert shelf.collections("") == []
    own.mkdir()
    shelf.open(library.path)
    kept = shelf.collections(str(library.path))
    assert [one.path.name for one in kept] == ["own", "some.pdn"]
    shelf.open(own)
    assert [one.path.name for one in shelf.collections(str(library.path))] == ["own", "some.pdn"]
    assert [one.path.name for one in shelf.collections(str(tmp_path / "none"))] == ["own"]
    shelf.open(own / ".." / "own")
    assert [one.path.name for one in shelf.collections("")] == ["own"]
    (tmp_path / "other.pdn").write_text(GAMES)
    (replaced,) = (one for one in shelf.collections(str(library.path)) if one.path.name == "some.pdn")
    assert [one.path.name for one in shelf.collections(str(tmp_path / "other.pdn"))] == ["own", "other.pdn"]
    assert (replaced in shelf._others.values(), len(shelf._others)) == (False, 2)
    shelf.close()


# --- the game


def moves_of(*moves: str) -> list[Move]:
    return board_after(*moves).move_stack


def test_a_line_becomes_a_variation_of_a_finished_game() -> None:
    session = GameSession()
    session.load_game(read_game("1. 11-15 23-19 2. 8-11 22-17 1-0"))
    session.keep_line(moves_of("11-15", "23-18", "8-11"))
    assert (session.ply, session.on_main_line) == (3, False)
    assert "(1... 23-18 2. 8-11)" in session.pdn()
    session.keep_line(moves_of("11-15", "23-18", "9-13"))
    assert [len(node.variations) for node in session.to_game().moves] == [0, 1, 0, 0]
    assert session.to_game().result == "1-0"
    assert [session.to_game().moves[n].move for n in range(4)] == moves_of("11-15", "23-19", "8-11", "22-17")


def test_a_line_behind_the_end_of_a_game_is_refused() -> None:
    session = GameSession()
    session.load_game(read_game("1. 11-15 23-19 1-0"))
    before = session.pdn()
    with pytest.raises(SessionError, match="over there"):
        session.keep_line(moves_of("11-15", "23-19", "8-11"))
    assert session.pdn() == before
    session.keep_line(moves_of("11-15"))  # a part of it can be looked at
    assert session.ply == 1
    assert session.pdn() == before


# --- the scene


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setattr("gui.window_events.IDLE_WAIT_MS", 5)
    (tmp_path / "kept.pdn").write_text(GAMES)
    with opened_app(tmp_path, window_width=800, window_height=600, animation_ms=0) as app:
        app.preferences.collection = str(tmp_path / "kept.pdn")
        yield app


def opened(app: App) -> OpeningScene:
    app.go.open(Action.OPENINGS)
    scene = app.go.scene
    assert isinstance(scene, OpeningScene)
    deadline = time.monotonic() + PATIENCE
    while not all(one.done for one in scene.collections):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    app.frame()
    return scene


def click_row(app: App, scene: OpeningScene, move: str) -> None:
    unit, row = scene.style.unit, [row.texts[0] for row in scene.table.state.rows].index(move)
    place = (scene.table.rect.centerx, scene.table.rect.y + unit // 4 + round(1.5 * unit * (row + 1.5)))
    assert scene.table.row_at(place, unit) == row
    for kind in (pygame.MOUSEBUTTONDOWN, pygame.MOUSEBUTTONUP):
        scene.handle(pygame.event.Event(kind, pos=place, button=1))
    app.frame()


def test_a_row_chosen_by_keys_stays_in_the_table(app: App, tmp_path: Path) -> None:
    first = board_after().legal_moves
    (tmp_path / "kept.pdn").write_text("\n\n".join(f"1. {board_after().pdn(move)} *" for move in first))
    scene = opened(app)
    scene.press("source 1")
    shown = 3
    scene.table.state = scene.table.state._replace(rows=scene.table.state.rows[:shown])
    for _ in first:
        scene.act(Action.CURSOR_DOWN, pygame.event.Event(pygame.KEYDOWN))
        assert scene._first_row <= scene.chosen < scene._first_row + shown
    assert scene.chosen == len(first) - 1


def test_rows_are_clicked_through_and_the_game_stays(app: App) -> None:
    app.controller.session.load_game(read_game("1. 9-14 22-18 1-0"))
    app.controller.loaded()
    app.controller.go_to(0)
    before = app.controller.session.pdn()
    scene = opened(app)
    scene.press("source 1")
    app.frame()
    assert [row.texts[0] for row in scene.table.state.rows[:2]] == ["11-15", "9-14"]
    assert scene.table.state.rows[0].texts[1] == "1"
    click_row(app, scene, "11-15")
    assert scene.tree.board.fen() == board_after("11-15").fen()
    assert [row.texts[:4] for row in scene.table.state.rows[:2]] == [
        ("23-18", "0", "1", "0"),
        ("23-19", "0", "0", "1"),
    ]
    assert "went on from here" in scene.passage.state.note
    scene.press("previous")
    app.frame()
    assert scene.tree.ply == 0
    scene.leave()
    assert app.controller.session.pdn() == before


def test_a_second_click_in_the_same_frame_plays_nothing(app: App) -> None:
    """It was meant for a row of the earlier position, whose move may be illegal now."""
    scene = opened(app)
    for _ in range(2):
        scene._play_row(0)
    assert scene.tree.ply == 1
    app.frame()
    assert scene.rows_known
    assert {row.move for row in scene.rows_known} == set(scene.tree.board.distinct_moves)


def test_own_games_count_with_the_others(app: App) -> None:
    app.controller.session.load_game(read_game("1. 9-14 22-18 1-0"))
    app.controller.loaded()
    app.autosave.flush()
    app.controller.go_to(0)
    scene = opened(app)
    labels = [button.label for button in scene.rows[0].buttons]
    assert labels == ["Mine", "kept.pdn", "All", "More"]
    (row,) = [row for row in scene.table.state.rows if row.texts[0] == "9-14"]
    assert row.texts[1:4] == ("1", "0", "1")


def test_a_file_whose_button_may_be_cut_is_named_above(app: App) -> None:
    app.controller.session.load_game(read_game("1. 9-14 22-18 1-0"))
    app.controller.loaded()
    app.autosave.flush()
    scene = opened(app)
    buttons, text, unit = scene.rows[0].buttons, app.style.text, app.style.unit
    room = scene.rows[0].rect.w // len(buttons) - unit
    assert [button.label for button in buttons if text.width(button.label, unit) > room] in ([], ["kept.pdn"])
    notes = []
    for source in ("source 0", "source 1", "source 2"):
        scene.press(source)
        app.frame()
        notes.append(scene.passage.state.note.split("; ")[0].split(" ", 1)[1])
    assert notes == ["games went on from here", "games of kept.pdn went on from here", "games went on from here"]


def test_the_line_is_taken_into_a_finished_game_as_a_variation(app: App) -> None:
    app.controller.session.load_game(read_game("1. 9-14 22-18 1-0"))
    app.controller.loaded()
    app.controller.go_to(0)
    scene = opened(app)
    click_row(app, scene, "11-15")
    scene.press("keep")
    session = app.controller.session
    assert app.go.scene is app.go.game
    assert (session.on_main_line, session.texts) == (False, ["11-15"])
    assert session.to_game().result == "1-0"


def test_a_game_in_play_against_an_agent_is_left_alone(app: App) -> None:
    app.controller.humans = frozenset(list(BOTH)[:1])
    scene = opened(app)
    click_row(app, scene, "11-15")
    (button,) = [one for row in scene.rows for one in row.buttons if one.name == "keep"]
    assert not button.enabled


def test_a_list_that_is_being_read_stays_open_below_another(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_on, add = threading.Event(), Filling.add
    monkeypatch.setattr(Filling, "add", lambda *filling: read_on.wait(60) and add(*filling))
    games, others = tmp_path / "games.pdn", tmp_path / "others.pdn"
    for path in (games, annotated_path(games), others):
        path.write_text("1. 11-15 *")
    app.go.show(partial(LibraryPage, library=app.shelf.open(games)))
    app.go.open_analysis(games)
    app.go.scene._open()  # type: ignore[attr-defined]
    above = app.shelf.library
    app.go.back()
    app.go.back()
    app.shelf.open(others, app.go.libraries())
    read_on.set()
    page = app.go.scene
    assert isinstance(page, LibraryPage)
    frames_until(app, lambda: page.library.done)
    page.library.check()
    assert page.library.search(Query(), 0, 9)[0] == 1
    assert above is not None
    above.wait()
    assert above.count == 0  # nobody saw it any more: it was closed


def test_a_missing_collection_is_said(app: App, tmp_path: Path) -> None:
    scene = opened(app)
    scene.leave()
    for index in (tmp_path / "libraries").iterdir():
        index.write_bytes(b"broken " * 2000)
    scene = opened(app)
    assert any("broken" in warning for warning in scene.passage.state.warnings)
