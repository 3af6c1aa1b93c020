"""Lessons: their claims, their judge, and the scene."""

import os
from collections.abc import Iterator
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

from windows import opened_app

from engine.board import Board
from engine.knowledge.lines import known_moves
from engine.puzzles.puzzle import Goal
from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.folder import SHIPPED
from gui.app import App
from gui.help import Action
from gui.lessons import LESSONS, Lesson, LessonExercise
from gui.puzzle_record import LESSONS_FILE_NAME, LessonRecord, load_kept
from gui.views.lesson_scene import LessonScene

VALUES = {Goal.WIN: 1, Goal.DRAW: 0}
BY_TITLE = {lesson.title: lesson for lesson in LESSONS}
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.title)


@pytest.fixture(scope="module")
def tables() -> Iterator[Tablebase]:
    with open_tablebase(SHIPPED) as tables:
        yield tables


@each_lesson
def test_a_lesson_claims_what_the_tables_say(lesson: Lesson, tables: Tablebase) -> None:
    assert tables.probe_wdl(Board(lesson.fen)) == VALUES[lesson.goal]


@each_lesson
def test_best_play_does_the_lesson_in_its_moves(lesson: Lesson, tables: Tablebase) -> None:
    exercise = LessonExercise(lesson, tables)
    while exercise.status in ("asked", "right"):
        if exercise.reply() is None:
            exercise.answer(exercise.expected)
    assert (exercise.status, exercise.flawless) == ("solved", True)
    assert exercise.shown[1] == exercise.made
    assert len(exercise.made) == exercise.step <= 2 * lesson.moves


@each_lesson
def test_moves_are_right_if_they_keep_the_result_and_others_are_refuted(lesson: Lesson, tables: Tablebase) -> None:
    exercise = LessonExercise(lesson, tables)
    for one in known_moves(tables, exercise.board):
        exercise.answer(one.move)
        if one.value == VALUES[lesson.goal]:
            assert exercise.status in ("right", "solved", "late")
            assert exercise.made == (one.move,)
            exercise.again()
        else:
            assert exercise.status == "wrong"
            assert exercise.why.startswith("It loses: " if one.value < 0 else "It only draws.")
            exercise.take_back()
        assert (exercise.board.fen(), exercise.made, exercise.why) == (lesson.fen, (), "")


def test_the_refutation_is_a_line_of_the_tables(tables: Tablebase) -> None:
    exercise = LessonExercise(BY_TITLE["Moves"], tables)
    exercise.answer(exercise.board.parse_pdn("3-8"))
    assert exercise.why.startswith("It loses: 1... 12x3")
    exercise = LessonExercise(BY_TITLE["The opposition"], tables)
    exercise.answer(exercise.board.parse_pdn("32-28"))
    assert exercise.why.startswith("It only draws.")


def test_the_bridge_may_not_be_left(tables: Tablebase) -> None:
    known = known_moves(tables, Board(BY_TITLE["The bridge"].fen))
    assert {one.value for one in known if one.move.start in (1, 3)} == {-1}
    assert [one.move.start for one in known if one.value == 0] == [8]


def test_a_win_that_takes_too_long_is_late(tables: Tablebase) -> None:
    lesson = BY_TITLE["Two kings against one"]._replace(moves=1)
    exercise = LessonExercise(lesson, tables)
    exercise.answer(exercise.board.parse_pdn("18-14"))
    assert (exercise.status, exercise.flawless) == ("late", False)
    assert "within 1 move." in exercise.why
    exercise.again()
    assert exercise.status == "asked"


@each_lesson
def test_the_solution_is_told_and_can_be_played(lesson: Lesson, tables: Tablebase) -> None:
    exercise = LessonExercise(lesson, tables)
    for _ in range(3):
        exercise.hint()
    assert exercise.status == "told"
    board, moves = exercise.shown
    after = board.copy()
    for move in moves:
        after.push(move)
    assert moves[0] == exercise.expected


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


def test_a_lesson_is_done_at_the_board_and_kept(app: App, tmp_path: Path) -> None:
    app.go.open("lessons")
    scene = app.go.scene
    assert isinstance(scene, LessonScene)
    assert scene.exercise is not None
    scene.make(scene.exercise.board.parse_pdn("3-8"))
    scene.update(0.0)
    assert "It loses: 1... 12x3" in scene.passage.state.text
    scene.press(Action.REWIND)
    scene.make(scene.exercise.board.parse_pdn("4-8"))
    scene.update(0.1)
    assert "Solved." in scene.passage.state.text
    assert load_kept(tmp_path / LESSONS_FILE_NAME, LessonRecord)[0].done == {"Moves": False}
    scene.press(Action.NEXT_PAGE)
    assert scene.index == 1
    scene.draw(app.surface, 0.2)
    scene.leave()
    app.go.open("lessons")
    assert isinstance(app.go.scene, LessonScene)
    assert app.go.scene.index == 1
