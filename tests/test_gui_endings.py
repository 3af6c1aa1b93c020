"""The endgame trainer: positions from the tables, its score and record, and the scene."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["SDL_VIDEODRIVER"] = "dummy"

import numpy as np
import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

from hypothesis import given, settings
from hypothesis import strategies as st
from windows import opened_app

from engine.board import Board
from engine.knowledge.drawing import draw_positions
from engine.knowledge.lines import known_moves, plies_of
from engine.movegen import jumpers_of
from engine.puzzles.puzzle import Goal
from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import Material, materials_between
from gui.app import App
from gui.exercises.endgame_trainer import EndingClass, draw_ending, repeated_ending, score
from gui.exercises.ending_exercise import VALUES, Ending, EndingExercise
from gui.exercises.puzzle_record import MOST_FAILED, EndingRecord, EndingResults, load_record, save_record
from gui.help import Action
from gui.views.ending_scene import EndingPage, EndingScene

TWO_AGAINST_ONE = EndingClass(Material(0, 2, 0, 1), Goal.WIN)
KING_AGAINST_KING = EndingClass(Material(0, 1, 0, 1), Goal.DRAW)
NOT_COVERED = EndingClass(Material(0, 4, 0, 3), Goal.WIN)
classes = st.builds(EndingClass, st.sampled_from(materials_between(2, 4)), st.sampled_from(Goal))


@pytest.fixture(scope="module")
def tables() -> Iterator[Tablebase]:
    with open_tablebase(SHIPPED) as tables:
        yield tables


# --- drawing


@settings(max_examples=20)
@given(classes, st.integers(0, 1000))
def test_drawn_positions_are_quiet_and_have_material_and_value(tables: Tablebase, kind: EndingClass, seed: int) -> None:
    found = draw_positions(tables, kind.material, VALUES[kind.goal], 3, np.random.default_rng(seed))
    assert len(found) <= 3
    for own, opp, kings in found.tolist():
        counts = own & ~kings, own & kings, opp & ~kings, opp & kings
        assert Material(*(word.bit_count() for word in counts)) == kind.material
        assert not jumpers_of(own, opp, kings)
    assert (tables.probe_wdl_many(found) == VALUES[kind.goal]).all()


def test_every_position_is_as_likely_as_any_other(tables: Tablebase) -> None:
    number = 20_000
    found = draw_positions(tables, Material(0, 1, 0, 1), 1, number, np.random.default_rng(5))
    assert len(found) < number  # it ends
    _, counts = np.unique(found, axis=0, return_counts=True)
    expected = len(found) / len(counts)
    assert (np.abs(counts - expected) < 5 * expected**0.5).all()


def test_what_no_table_covers_is_not_found(tables: Tablebase) -> None:
    assert draw_ending(tables, NOT_COVERED, False, np.random.default_rng(1)) is None


def test_hard_ones_take_long_or_leave_few_moves(tables: Tablebase) -> None:
    rng = np.random.default_rng(3)

    def mean(kind: EndingClass, hard: bool) -> float:
        endings = [draw_ending(tables, kind, hard, rng) for _ in range(12)]
        boards = [Board(ending.fen) for ending in endings if ending is not None]
        if kind.goal is Goal.WIN:
            return float(np.mean([plies_of(tables, board) for board in boards]))
        return float(np.mean([one.value < 0 for board in boards for one in known_moves(tables, board)]))

    for kind in (TWO_AGAINST_ONE, KING_AGAINST_KING):
        assert mean(kind, True) > mean(kind, False)


# --- playing


@settings(max_examples=20)
@given(classes, st.integers(0, 1000), st.booleans())
def test_best_play_takes_the_shortest_way(tables: Tablebase, kind: EndingClass, seed: int, hard: bool) -> None:
    ending = draw_ending(tables, kind, hard, np.random.default_rng(seed))
    if ending is None:
        return
    exercise, shortest = EndingExercise(ending, tables), plies_of(tables, Board(ending.fen))
    while exercise.status in ("asked", "right"):
        if exercise.reply() is None:
            exercise.answer(exercise.expected)
    assert (exercise.status, exercise.flawless, exercise.thrown) == ("solved", True, 0)
    if kind.goal is Goal.WIN:
        assert len(exercise.made) == shortest
        assert str(shortest) in score(exercise, shortest)
    else:
        assert score(exercise, None) == "Held."


def test_half_points_that_are_thrown_away_stay_thrown_away(tables: Tablebase) -> None:
    ending = repeated_ending(tables, EndingClass(Material(2, 0, 1, 0), Goal.WIN), "B:W12:B3,4")
    assert ending is not None
    exercise = EndingExercise(ending, tables)
    for thrown in (2, 4):
        exercise.answer(exercise.board.parse_pdn("3-8"))  # loses
        exercise.take_back()
        assert exercise.thrown == thrown
        assert f"{thrown} half points" in score(exercise, 1)
    exercise.answer(exercise.board.parse_pdn("4-8"))
    assert score(exercise, 1) == "Won in 1 ply; the shortest way has 1. Thrown away: 4 half points."


@pytest.mark.parametrize("fen", ["nonsense", "B:W12:B4", "B:W1,2,3,4:BK9,K10,K11,K12,K13"])
def test_only_positions_of_that_result_are_repeated(tables: Tablebase, fen: str) -> None:
    assert repeated_ending(tables, EndingClass(Material(2, 0, 1, 0), Goal.WIN), fen) is None


# --- the record


def test_a_failed_position_is_repeated_until_it_is_done_without_a_fault() -> None:
    results = EndingResults()
    for number in range(MOST_FAILED + 1):
        results.enter(f"position {number}", False)
    assert (len(results.failed), results.failed[0]) == (MOST_FAILED, "position 1")
    results.enter("position 1", True)
    results.enter("position 9", False)
    assert (results.failed[0], results.failed[-1], len(results.failed)) == ("position 2", "position 9", MOST_FAILED - 1)
    assert (results.tried, results.flawless) == (MOST_FAILED + 3, 1)


def test_the_record_is_kept_with_the_latest_class_last(tmp_path: Path) -> None:
    path, record = tmp_path / EndingRecord.file_name, EndingRecord()
    for kind in (TWO_AGAINST_ONE, KING_AGAINST_KING, TWO_AGAINST_ONE):
        record.of(kind).enter("B:W1:B2", False)
    save_record(record, path)
    loaded, fault = load_record(path, EndingRecord)
    assert (loaded, fault) == (record, "")
    assert list(loaded.classes) == [KING_AGAINST_KING.key, TWO_AGAINST_ONE.key]


@pytest.mark.parametrize("key", ["", "2100", "2100 lose", "9900 win", "21x0 win"])
def test_a_record_with_a_class_that_is_none_is_set_aside(tmp_path: Path, key: str) -> None:
    path = tmp_path / EndingRecord.file_name
    save_record(EndingRecord.model_construct(version=1, classes={key: EndingResults()}), path)
    record, fault = load_record(path, EndingRecord)
    assert record == EndingRecord()
    assert "damaged" in fault


@given(classes)
def test_a_key_names_its_class(kind: EndingClass) -> None:
    assert EndingClass.of_key(kind.key) == kind


# --- the scene


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setattr("gui.views.ending_scene._AT_ONCE_S", 60)  # so that a busy machine changes nothing
    with opened_app(tmp_path, animation_ms=0) as app:
        yield app


def play_best(scene: EndingScene) -> None:
    now = 0.0
    while scene.exercise is not None and scene.exercise.status in ("asked", "right"):
        now += 1.0
        scene.make(scene.exercise.expected)
        scene.update(now)


def trainer(app: App, kind: EndingClass) -> EndingScene:
    """The scene of a class, chosen on its page."""
    app.go.open("endings")
    page = app.go.scene
    assert isinstance(page, EndingPage)
    page.kind = kind
    page.menu.get_widgets()[0].apply()
    scene = app.go.scene
    assert isinstance(scene, EndingScene)
    return scene


def test_an_ending_is_won_at_the_board_and_kept(app: App, tmp_path: Path) -> None:
    scene = trainer(app, TWO_AGAINST_ONE)
    play_best(scene)
    scene.update(1e6)
    assert "the shortest way has" in scene.passage.state.text
    results = load_record(tmp_path / EndingRecord.file_name, EndingRecord)[0].classes[TWO_AGAINST_ONE.key]
    assert (results.tried, results.flawless, results.half_points, results.failed) == (1, 1, 0, [])
    assert results.plies == results.shortest > 0
    scene.draw(app.surface, 1e6)
    scene.leave()
    app.go.scene.update(1e6)
    assert any(widget.get_title() == TWO_AGAINST_ONE.title for widget in app.go.scene.menu.get_widgets())  # type: ignore[attr-defined]


def test_what_was_failed_is_asked_again(app: App) -> None:
    scene = trainer(app, EndingClass(Material(0, 1, 0, 1), Goal.WIN))
    assert scene.exercise is not None
    assert scene.tables is not None
    while all(one.value == 1 for one in known_moves(scene.tables, scene.exercise.board)):
        scene.press(Action.NEXT_PAGE)
    fen = scene.exercise.board.fen()
    wrong = next(one.move for one in known_moves(scene.tables, scene.exercise.board) if one.value < 1)
    scene.make(wrong)
    assert (scene.results.tried, scene.results.half_points, scene.results.failed) == (1, 1, [fen])
    while scene.more_buttons()[0].label != "Failed":
        scene.press("choice")
    assert scene.exercise is not None
    assert scene.exercise.board.fen() == fen
    play_best(scene)
    assert (scene.results.tried, scene.results.flawless, scene.results.failed) == (2, 1, [])
    scene.press(Action.NEXT_PAGE)
    assert scene.exercise is None
    assert "nothing to repeat" in scene.text()


def test_a_class_without_tables_or_without_such_positions_says_so(app: App) -> None:
    scene = trainer(app, NOT_COVERED)
    assert scene.exercise is None
    scene.update(0.0)
    assert "No such position" in scene.passage.state.text
    scene.leave()
    page = app.go.scene
    assert isinstance(page, EndingPage)
    page.kind = EndingClass(Material(0, 0, 0, 1), Goal.WIN)
    page.menu.get_widgets()[0].apply()
    assert app.go.scene is page


def test_the_window_lives_while_a_position_is_looked_for(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def slowly(*arguments: Any) -> Ending | None:
        assert go_on.wait(60)
        return draw_ending(*arguments)

    monkeypatch.setattr("gui.views.ending_scene._AT_ONCE_S", 0)
    monkeypatch.setattr("gui.views.ending_scene.draw_ending", slowly)
    scene = trainer(app, TWO_AGAINST_ONE)
    scene.update(0.0)
    assert "Looking for a position" in scene.passage.state.text
    scene.press(Action.NEXT_PAGE)
    assert (scene.exercise, scene.lively) == (None, True)
    go_on.set()
    while scene.exercise is None:
        scene.update(0.0)
        time.sleep(0.002)
    assert not scene.lively
    go_on.clear()
    scene.press(Action.NEXT_PAGE)
    assert scene.exercise is None
    scene.leave()
    go_on.set()
