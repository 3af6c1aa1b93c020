"""Lessons: their claims, their judge, and the scene."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

from windows import opened_app

from engine.board import Board
from engine.fen import Color
from engine.knowledge.lines import known_moves
from engine.puzzles.puzzle import Goal
from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.folder import SHIPPED
from gui.app import App
from gui.exercises.ending_exercise import VALUES, Ending, EndingExercise
from gui.exercises.exercise import Exercise
from gui.exercises.lessons import LESSONS, Steps
from gui.exercises.puzzle_record import LessonRecord, load_record
from gui.help import Action
from gui.views.lesson_scene import LessonScene

ENDINGS = {lesson.title: lesson.task for lesson in LESSONS if isinstance(lesson.task, Ending)}
STEPS = {lesson.title: lesson.task for lesson in LESSONS if isinstance(lesson.task, Steps)}
each_ending = pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
each_steps = pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)


def test_kings_said_to_be_in_a_double_corner_are_there() -> None:
    lesson = next(lesson for lesson in LESSONS if lesson.title == "Three against two in both corners")
    kings = {square for square, (color, _) in Board(lesson.task.fen).piece_map().items() if color is Color.WHITE}
    assert kings == {9, 27}
    assert "before each double corner" in lesson.text


@pytest.fixture(scope="module")
def tables() -> Iterator[Tablebase]:
    with open_tablebase(SHIPPED) as tables:
        yield tables


@each_ending
def test_a_lesson_claims_what_the_tables_say(ending: Ending, tables: Tablebase) -> None:
    assert tables.probe_wdl(Board(ending.fen)) == VALUES[ending.goal]


@each_ending
def test_best_play_does_the_lesson_in_its_moves(ending: Ending, tables: Tablebase) -> None:
    exercise = EndingExercise(ending, tables)
    while exercise.status in ("asked", "right"):
        if exercise.reply() is None:
            exercise.answer(exercise.expected)
    assert (exercise.status, exercise.flawless) == ("solved", True)
    assert exercise.shown[1] == exercise.made
    assert len(exercise.made) == exercise.step <= 2 * ending.moves


@each_ending
def test_moves_are_right_if_they_keep_the_result_and_others_are_refuted(ending: Ending, tables: Tablebase) -> None:
    exercise, thrown = EndingExercise(ending, tables), 0
    for one in known_moves(tables, exercise.board):
        exercise.answer(one.move)
        if one.value == VALUES[ending.goal]:
            assert exercise.status in ("right", "solved", "late")
            assert exercise.made == (one.move,)
            exercise.again()
        else:
            assert exercise.status == "wrong"
            thrown += VALUES[ending.goal] - one.value
            assert exercise.thrown == thrown
            assert exercise.why.startswith("It loses: " if one.value < 0 else "It only draws.")
            exercise.take_back()
        assert (exercise.board.fen(), exercise.made, exercise.why) == (ending.fen, (), "")


def test_the_refutation_is_a_line_of_the_tables(tables: Tablebase) -> None:
    exercise = EndingExercise(ENDINGS["Moves"], tables)
    exercise.answer(exercise.board.parse_pdn("3-8"))
    assert exercise.why.startswith("It loses: 1... 12x3")
    exercise = EndingExercise(ENDINGS["The opposition"], tables)
    exercise.answer(exercise.board.parse_pdn("32-28"))
    assert exercise.why.startswith("It only draws.")


@pytest.mark.parametrize("goal", list(VALUES))
def test_a_game_that_the_reply_ends_is_over(goal: Goal, tables: Tablebase) -> None:
    """By a third repetition: a draw has been held, a win has come too late."""
    endings = [Ending("W:WK26,K27,K31:BK1,K5", goal, 40)] if goal is Goal.WIN else [Ending("B:BK1:WK10", goal, 40)]
    endings += [ending for ending in ENDINGS.values() if ending.goal is goal]
    ended, rng = 0, random.Random(1)
    for ending in endings:
        exercise = EndingExercise(ending, tables)
        while exercise.status in ("asked", "right"):
            assert exercise.board.outcome() is None
            if exercise.reply() is None:
                kept = [one.move for one in known_moves(tables, exercise.board) if one.value == VALUES[goal]]
                exercise.answer(rng.choice(kept))
        ended += exercise.board.turn is exercise.color
        if exercise.board.outcome() is not None and goal is Goal.WIN and exercise.status == "late":
            assert "threefold repetition" in exercise.why
    assert ended, "a reply ended none of them"


def test_the_bridge_may_not_be_left(tables: Tablebase) -> None:
    known = known_moves(tables, Board(ENDINGS["The bridge"].fen))
    assert {one.value for one in known if one.move.start in (1, 3)} == {-1}
    assert [one.move.start for one in known if one.value == 0] == [8]


def test_a_win_that_takes_too_long_is_late(tables: Tablebase) -> None:
    ending = ENDINGS["Two kings against one"]._replace(moves=1)
    exercise = EndingExercise(ending, tables)
    exercise.answer(exercise.board.parse_pdn("18-14"))
    assert (exercise.status, exercise.flawless) == ("late", False)
    assert "within 1 move." in exercise.why
    exercise.again()
    assert exercise.status == "asked"


@each_ending
def test_the_solution_is_told_and_can_be_played(ending: Ending, tables: Tablebase) -> None:
    exercise = EndingExercise(ending, tables)
    for _ in range(3):
        exercise.hint()
    assert exercise.status == "told"
    board, moves = exercise.shown
    after = board.copy()
    for move in moves:
        after.push(move)
    assert moves[0] == exercise.expected


@each_steps
def test_moves_that_are_told_are_made_and_others_refused(steps: Steps) -> None:
    exercise = Exercise(steps.task())
    assert exercise.task.asked in (len(exercise.task.line), len(exercise.task.line) - 1)
    while exercise.status != "solved":
        others = [move for move in exercise.board.legal_moves if move != exercise.expected]
        if others:
            exercise.answer(others[0])
            assert exercise.status == "wrong"
            exercise.take_back()
        exercise.answer(exercise.expected)
        exercise.reply()
    assert exercise.task.board.fen() == steps.fen


def test_where_the_king_has_to_go_is_said() -> None:
    """Four squares are free both times, two of them forward."""
    (text,) = (lesson.text for lesson in LESSONS if lesson.title == "How kings move")
    assert all(move.partition("-")[2] in text for move in STEPS["How kings move"].line.split()[::2])


def test_what_the_rules_in_the_lessons_claim() -> None:
    choice = Board(STEPS["Who can take must take"].fen)
    assert sorted(map(str, choice.legal_moves)) == ["10x17x26", "10x19"]
    crowned = Board(STEPS["Becoming a king"].fen)
    assert list(map(str, crowned.legal_moves)) == ["22x31"]
    crowned.push_pdn("22x31")
    assert crowned.piece_map()[31][1]
    assert len(Board(STEPS["Taking"].fen).legal_moves) == 1
    assert {move.end for move in Board(STEPS["How kings move"].fen).legal_moves} == {10, 11, 18, 19}
    drawn = Board(STEPS["Draws"].fen)
    for text in STEPS["Draws"].line.split():
        assert drawn.outcome() is None
        drawn.push_pdn(text)
    assert drawn.result() == "1/2-1/2"


def test_the_record_of_lessons_outlives_the_window_and_stays_flawless() -> None:
    record = LessonRecord()
    record.enter("Moves", True)
    record.enter("Moves", False)
    record.enter("Kings", False)
    assert record.done == {"Moves": True, "Kings": False}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with opened_app(tmp_path, animation_ms=0) as app:
        yield app


def lesson_scene(app: App, title: str) -> LessonScene:
    """The scene at a lesson, reached by its buttons."""
    app.go.open(Action.LESSONS)
    scene = app.go.scene
    assert isinstance(scene, LessonScene)
    while scene.title != title:
        scene.press(Action.NEXT_PAGE)
    assert scene.exercise is not None
    return scene


def test_a_lesson_is_done_at_the_board_and_kept(app: App, tmp_path: Path) -> None:
    scene = lesson_scene(app, "Moves")
    place = scene.index
    assert scene.exercise is not None
    scene.make(scene.exercise.board.parse_pdn("3-8"))
    scene.update(0.0)
    assert "It loses: 1... 12x3" in scene.passage.state.text
    scene.press(Action.REWIND)
    scene.make(scene.exercise.board.parse_pdn("4-8"))
    scene.update(0.1)
    assert "Solved." in scene.passage.state.text
    assert load_record(tmp_path / LessonRecord.file_name, LessonRecord)[0].done == {"Moves": False}
    scene.press(Action.NEXT_PAGE)
    assert scene.index == place + 1
    scene.draw(app.surface, 0.2)
    scene.leave()
    app.go.open(Action.LESSONS)
    assert isinstance(app.go.scene, LessonScene)
    assert app.go.scene.index == 0


def test_a_lesson_that_the_reply_ends_is_kept(app: App, tmp_path: Path) -> None:
    scene = lesson_scene(app, "Payne's draw")
    exercise, now = scene.exercise, 0.0
    assert exercise is not None
    for text in ("23-19", "15x6", "6-1", "1-6", "6-1", "1-6"):
        scene.make(exercise.board.parse_pdn(text))
        while exercise.status == "right":
            scene.update(now := now + 0.1)
    assert (exercise.status, exercise.board.turn) == ("solved", exercise.color)
    scene.update(now + 0.1)
    assert "Solved." in scene.passage.state.text
    assert load_record(tmp_path / LessonRecord.file_name, LessonRecord)[0].done == {"Payne's draw": True}


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only copy of the table of two kings against one can be opened, but is damaged inside."""
    folder = tmp_path / "tables"
    shutil.copytree(SHIPPED, folder)
    path = folder / "2100.wdl"
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)
    monkeypatch.setattr("gui.views.record_scene.open_tablebase", lambda: open_tablebase(folder, shipped=False))
    return path


def test_a_damaged_table_ends_the_lesson_in_one_line_and_the_board_goes_on(app: App, damaged: Path) -> None:
    scene = lesson_scene(app, "Two kings against one")
    assert scene.exercise is not None
    scene.make(scene.exercise.board.parse_pdn("18-14"))
    scene.update(0.0)
    assert scene.exercise is None
    assert scene.text().count("\n") == 0
    assert damaged.name in scene.text()
    assert "crownhead tablebase build" in scene.text()
    assert scene.text() in scene.passage.state.text
    scene.draw(app.surface, 0.1)
    scene.press(Action.HINT)
    while scene.title != "The board":
        scene.press(Action.NEXT_PAGE)
    assert scene.exercise is not None  # moves that are told need no table
    scene.leave()
    assert app.go.scene is app.go.game


def test_a_hint_reads_the_damaged_table_as_well(app: App, damaged: Path) -> None:
    scene = lesson_scene(app, "Two kings against one")
    scene.press(Action.HINT)
    scene.draw(app.surface, 0.1)
    scene.update(0.2)
    assert damaged.name in scene.passage.state.text


def test_the_lesson_on_draws_ends_with_the_draw() -> None:
    exercise = Exercise(STEPS["Draws"].task())
    while exercise.status != "solved":
        exercise.answer(exercise.expected)
        exercise.reply()
    outcome = exercise.board.outcome()
    assert outcome is not None
    assert outcome.winner is None
