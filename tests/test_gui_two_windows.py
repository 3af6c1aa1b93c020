"""Two windows at once: what one stores is not lost when the other stores its own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from windows import opened_app

from engine.puzzles.puzzle import Goal, Proof, Puzzle, Theme
from gui.app import App
from gui.exercises.exercise import Exercise, task_of
from gui.exercises.puzzle_record import LessonRecord, PuzzleRecord, load_record, save_record
from gui.game.opponents import OpponentSpec
from gui.preferences import load_preferences
from gui.views.lesson_scene import LessonScene
from gui.views.menu_pages import store_spec
from gui.views.puzzle_scene import PuzzleScene

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
WON = Puzzle("W:WK15,K32:B19,K24", ("32-27", "24x31", "15x24"), 3, Goal.WIN, Theme.OPPOSITION, Proof.TABLES, 1138, 134)
DRAWN = Puzzle("W:WK15,K30:BK22,K23", ("15-10", "23-18"), 1, Goal.DRAW, Theme.ENDING, Proof.TABLES, 871, 144)
BAD = Puzzle("W:WK15,K30:BK22,K23", ("1-2",), 1, Goal.DRAW, Theme.DEFENCE, Proof.TABLES, 871, 144)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with opened_app(tmp_path, lambda: (WON, DRAWN, BAD)) as app:
        yield app


def test_preferences(tmp_path: Path) -> None:
    with opened_app(tmp_path) as one, opened_app(tmp_path) as two:
        one.preferences.collection, one.preferences.time_control = "/games/big.pdn", "300+3"
        one.save_preferences()
        two.save_preferences()  # nothing was changed there
        two.preferences.sounds = False
        two.save_preferences()
        kept, _ = load_preferences(one.preferences_file)
        assert (kept.collection, kept.time_control, kept.sounds) == ("/games/big.pdn", "300+3", False)
        one.preferences_file.unlink()
        two.save_preferences()
        assert load_preferences(one.preferences_file)[0].sounds is False


def test_the_opponents_of_different_seats(tmp_path: Path) -> None:
    with opened_app(tmp_path) as one, opened_app(tmp_path) as two:
        for window, who in ((one, "agent"), (two, "first")):
            store_spec(window, who, OpponentSpec(kind="random"))
            window.save_preferences()
        store_spec(two, "first", OpponentSpec(kind="rollout"))
        two.save_preferences()
        kept, _ = load_preferences(one.preferences_file)
        assert {who: spec["kind"] for who, spec in kept.opponents.items()} == {"agent": "random", "first": "rollout"}


def test_puzzles(app: App) -> None:
    one, two = PuzzleScene(app), PuzzleScene(app)
    for scene, puzzle in ((one, WON), (two, DRAWN)):
        scene.puzzle = puzzle
        scene.begin(Exercise(task_of(puzzle)))
        scene.ended(scene.exercise)
    assert set(load_record(one._path, PuzzleRecord)[0].results) == {WON.fen, DRAWN.fen}


def test_lessons(app: App) -> None:
    one, two = LessonScene(app), LessonScene(app)
    for scene, index in ((one, 0), (two, 1)):
        scene.index = index
        scene.solved(scene.exercise)
    assert len(load_record(one._path, LessonRecord)[0].done) == 2


def test_a_record_that_cannot_be_read_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "puzzles.json"
    path.mkdir()  # reading it fails for root, too
    record, told = load_record(path, PuzzleRecord)
    assert (record, "cannot be read" in told) == (PuzzleRecord(), True)
    save_record(record, path)
    assert sorted(os.listdir(tmp_path)) == ["puzzles.json", "puzzles.json.broken"]


def test_the_only_puzzle_of_a_theme_comes_again(app: App) -> None:
    app.go.open("puzzles")
    scene = app.go.scene
    assert isinstance(scene, PuzzleScene)
    while scene.choices[0] != "opposition":
        scene.press("choice")
    for _ in range(2):
        scene.press("next_page")
        assert scene.puzzle == WON


def test_the_fault_of_a_bad_puzzle_goes_with_it(app: App) -> None:
    app.go.open("puzzles")
    scene = app.go.scene
    assert isinstance(scene, PuzzleScene)
    while scene.puzzle != BAD:
        scene.press("next_page")
    assert "1-2" in scene.note()
    scene.press("next_page")
    assert "1-2" not in scene.note()
