"""Puzzles, one's own mistakes and the rematch at the board."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pygame", reason="the window needs pygame")

import pygame
from programs import until
from real_window import MISSING, screen, window
from windows import frames_until, opened_app

from engine.board import Board, Move
from engine.fen import Color
from engine.players.time_control import TimeControl
from engine.puzzles.book import PuzzleBook, write_book
from engine.puzzles.puzzle import Goal, Proof, Puzzle, Theme
from gui.app import App
from gui.exercises.exercise import MOST_HINTS, Exercise, numbered_line, task_of, task_of_mistake
from gui.exercises.puzzle_record import CHOICES, PuzzleRecord, load_record, save_record
from gui.game.game_report import MoveReport
from gui.game.opponents import OpponentSpec
from gui.game.plan import BOTH, GamePlan
from gui.help import Action
from gui.preferences import Preferences
from gui.views.geometry import square_rect
from gui.views.mistakes_scene import MistakesScene
from gui.views.puzzle_scene import PuzzleScene

EXCHANGE = Puzzle(
    "W:WK15,K32:B19,K24", ("32-27", "24x31", "15x24"), 3, Goal.WIN, Theme.OPPOSITION, Proof.TABLES, 1138, 134
)
DRAW = Puzzle("W:WK15,K30:BK22,K23", ("15-10", "23-18"), 1, Goal.DRAW, Theme.ENDING, Proof.TABLES, 871, 144)


def numbered(count: int, theme: Theme = Theme.ENDING) -> list[Puzzle]:
    """Puzzles, 10 rating points from one to the next, whose positions do not matter."""
    return [
        Puzzle(f"{theme} {number}", (), 1, Goal.WIN, theme, Proof.TABLES, 600 + 10 * number, 140)
        for number in range(count)
    ]


def move(exercise: Exercise, text: str) -> Move:
    return exercise.board.parse_pdn(text)


# --- solving


def test_the_right_moves_and_the_forced_reply() -> None:
    exercise = Exercise(task_of(EXCHANGE))
    assert exercise.color is Color.WHITE
    exercise.answer(move(exercise, "32-27"))
    assert exercise.status == "right"
    exercise.answer(move(exercise, "24x31"))  # it is not the solver's turn
    assert exercise.step == 1
    assert exercise.reply() == EXCHANGE.moves[1]
    assert exercise.reply() is None
    exercise.answer(move(exercise, "15x24"))
    assert (exercise.status, exercise.flawless) == ("solved", True)
    exercise.again()
    assert (exercise.status, exercise.board.fen()) == ("asked", EXCHANGE.fen)


def test_a_wrong_move_is_taken_back_and_stays_a_fault() -> None:
    exercise = Exercise(task_of(EXCHANGE))
    exercise.answer(move(exercise, "32-28"))
    assert exercise.status == "wrong"
    exercise.answer(move(exercise, "24-20"))
    assert exercise.step == 1
    exercise.take_back()
    assert (exercise.status, exercise.board.fen(), exercise.flawless) == ("asked", EXCHANGE.fen, False)
    exercise.answer(move(exercise, "32-27"))
    assert exercise.status == "right"


def test_hints_come_in_steps() -> None:
    exercise = Exercise(task_of(EXCHANGE))
    assert exercise.hinted == ()
    exercise.hint()
    assert (exercise.hinted, exercise.status, exercise.flawless) == ((32,), "asked", False)
    exercise.hint()
    assert exercise.hinted == (32, 27)
    exercise.hint()
    assert (exercise.status, exercise.hints) == ("told", MOST_HINTS)
    assert numbered_line(exercise.task.board, exercise.task.line) == "1... 32-27 2. 24x31 15x24"


def test_hints_begin_anew_at_the_next_move() -> None:
    exercise = Exercise(task_of(EXCHANGE))
    exercise.hint()
    exercise.hint()
    exercise.answer(move(exercise, "32-27"))
    assert exercise.reply() is not None
    assert (exercise.status, exercise.hinted, exercise.flawless) == ("asked", (), False)
    exercise.hint()
    assert exercise.hinted == (15,)


def mistake(fen: str, played: str, line: tuple[str, ...], before: float, after: float) -> tuple[Board, MoveReport]:
    board = Board(fen)
    best = board.parse_pdn(line[0])
    report = MoveReport(0, board.turn, board.parse_pdn(played), played, False, best, line[0], before, after, line)
    return board, report


def test_another_answer_to_a_mistake_is_judged() -> None:
    board, report = mistake(EXCHANGE.fen, "32-28", EXCHANGE.line, 1.0, 0.5)
    exercise = Exercise(task_of_mistake(board, report))
    assert "50 %" in exercise.task.question
    exercise.answer(move(exercise, "15-10"))
    assert exercise.status == "judging"
    exercise.judged(0.5)
    assert (exercise.status, exercise.flawless) == ("wrong", False)
    exercise.take_back()
    exercise.answer(move(exercise, "15-11"))
    exercise.judged(0.97)  # as good, up to what a search may err
    assert (exercise.status, exercise.found_another) == ("solved", True)
    exercise.judged(0.0)
    assert exercise.status == "solved"


def test_the_mistake_itself_is_wrong_whatever_a_search_says() -> None:
    board, report = mistake(EXCHANGE.fen, "32-28", EXCHANGE.line, 1.0, 0.5)
    exercise = Exercise(task_of_mistake(board, report))
    exercise.answer(move(exercise, "32-28"))
    assert (exercise.status, exercise.flawless) == ("wrong", False)


def test_an_answer_that_ends_the_game_needs_no_judge() -> None:
    board, report = mistake("B:W12:B3,4", "3-7", ("3-8",), 1.0, 0.2)
    exercise = Exercise(task_of_mistake(board, report))
    exercise.answer(move(exercise, "4-8"))
    assert exercise.status == "solved"


def test_forced_replies_are_looked_through_before_an_answer_is_judged() -> None:
    board, report = mistake(EXCHANGE.fen, "32-28", EXCHANGE.line, 1.0, 0.5)
    exercise = Exercise(task_of_mistake(board, report))
    exercise.answer(move(exercise, "15-18"))
    judged = exercise.board_to_judge()
    assert judged.outcome() is not None or len(judged.distinct_moves) > 1
    assert judged.move_stack[:1] == [exercise.board.peek()]
    assert exercise.board.ply == 1


# --- the record


def test_results_move_the_rating_once_and_streaks_always() -> None:
    record = PuzzleRecord()
    first, second, *_ = numbered(3)
    gain = record.enter(first, True)
    assert gain > 0
    assert (record.streak, record.best_streak, record.deviation < 350) == (1, 1, True)
    rating = record.rating
    assert record.enter(first, True) == 0  # its solution may be remembered
    assert (record.rating, record.streak) == (rating, 2)
    assert record.enter(second, False) < 0
    assert (record.streak, record.best_streak) == (0, 2)
    assert "1 of 2 solved" in record.summary


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 3))
def test_a_record_outlives_any_row_of_results(results: list[bool], seed: int) -> None:
    record, puzzles, rng = PuzzleRecord(), numbered(30), random.Random(seed)
    for solved in results:
        puzzle = record.choose(puzzles, "all", rng)
        assert puzzle is not None
        record.enter(puzzle, solved)
    assert PuzzleRecord.model_validate(record.model_dump(mode="json")) == record
    assert record.best_streak >= record.streak


def test_puzzles_are_chosen_by_strength_theme_and_what_was_solved() -> None:
    record, rng = PuzzleRecord(rating=1000), random.Random(1)
    puzzles = [*numbered(100), *numbered(100, Theme.SHOT_2)]
    drawn = [record.choose(puzzles, "shots", rng) for _ in range(50)]
    assert all(puzzle is not None and puzzle.theme is Theme.SHOT_2 for puzzle in drawn)
    assert all(puzzle is not None and abs(puzzle.rating - 1000) <= 100 for puzzle in drawn)
    few = numbered(2)
    record.results = {few[0].fen: False}
    assert record.choose(few, "all", rng) is few[1]
    record.results[few[1].fen] = True
    assert record.choose(few, "all", rng) is few[0]
    assert record.choose(few, "defence", rng) is None
    assert set().union(*CHOICES.values()) == set(Theme)


def test_the_record_is_kept_and_a_broken_one_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "new" / PuzzleRecord.file_name
    assert load_record(path, PuzzleRecord) == (PuzzleRecord(), "")
    record = PuzzleRecord(rating=1234, results={EXCHANGE.fen: True})
    save_record(record, path)
    assert load_record(path, PuzzleRecord) == (record, "")
    path.write_bytes(path.read_bytes().replace(b"1234", b"2234"))
    found, message = load_record(path, PuzzleRecord)
    assert found == PuzzleRecord()
    assert "damaged" in message
    assert path.with_name(path.name + ".broken").exists()


# --- the window


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setattr("gui.window_events.IDLE_WAIT_MS", 5)
    with opened_app(tmp_path, lambda: (EXCHANGE,), window_width=800, window_height=600, animation_ms=0) as app:
        yield app


def click(app: App, *squares: int) -> None:
    scene = app.go.scene
    assert isinstance(scene, PuzzleScene | MistakesScene)
    for square in squares:
        at = square_rect(scene.board_rect, square, scene.flipped).center
        for kind in (pygame.MOUSEBUTTONDOWN, pygame.MOUSEBUTTONUP):
            scene.handle(pygame.event.Event(kind, pos=at, button=1, touch=False))
    app.frame()


def press(app: App, name: str) -> None:
    """A button of the scene, by the mouse."""
    scene, unit = app.go.scene, app.style.unit
    assert isinstance(scene, PuzzleScene | MistakesScene)
    place = next(rect for row in scene.rows for button, rect in row.places(unit) if button.name == name)
    scene.handle(pygame.event.Event(pygame.MOUSEBUTTONDOWN, pos=place.center, button=1, touch=False))
    app.frame()


def test_a_puzzle_is_solved_with_the_mouse_and_counts(app: App) -> None:
    app.go.open("puzzles")
    scene = app.go.scene
    assert isinstance(scene, PuzzleScene)
    app.frame()
    exercise = scene.exercise
    assert exercise is not None
    click(app, 32, 27)
    assert exercise.status == "right"
    frames_until(app, lambda: exercise.status == "asked")
    click(app, 15, 24)
    assert exercise.status == "solved"
    assert "Solved" in scene.passage.state.text
    record, _ = load_record(app.autosave.folder.parent / PuzzleRecord.file_name, PuzzleRecord)
    assert record == scene.record
    assert (record.results, record.streak) == ({EXCHANGE.fen: True}, 1)
    press(app, Action.REWIND)
    click(app, 32, 28)
    assert exercise.status == "wrong"
    click(app, 32, 27)  # a click on the board takes the wrong answer back first
    assert exercise.status in ("asked", "right")
    assert scene.record.streak == 1  # it counts once


def test_enter_presses_the_chosen_button_even_after_arrow_keys(app: App) -> None:
    app.go.open("puzzles")
    scene = app.go.scene
    assert isinstance(scene, PuzzleScene)
    app.frame()
    for name in ("left", "tab", "return"):
        code = pygame.key.key_code(name)
        scene.handle(pygame.event.Event(pygame.KEYDOWN, key=code, mod=0, unicode="", scancode=0))
        app.frame()
    assert scene.entry.message == ""
    assert scene.entry.cursor is not None
    assert scene.exercise is None or scene.exercise.status != "asked" or scene.picture().marked


def test_hints_and_themes_by_button(app: App) -> None:
    app.go.open("puzzles")
    scene = app.go.scene
    assert isinstance(scene, PuzzleScene)
    press(app, Action.HINT)
    assert scene.picture().marked == {32}
    press(app, Action.HINT)
    assert scene.picture().marked == {32, 27}
    press(app, Action.HINT)
    assert "32-27" in scene.passage.state.text
    assert scene.record.results == {EXCHANGE.fen: False}
    press(app, "choice")
    assert scene.exercise is None  # there is no shot
    assert "no puzzle of this kind" in scene.passage.state.text
    press(app, "leave")
    assert app.go.scene is app.go.game


def test_damaged_puzzles_are_told_of(app: App, tmp_path: Path) -> None:
    def broken() -> tuple[Puzzle, ...]:
        raise OSError("the disk is on fire")

    app.puzzles = broken
    app.go.open("puzzles")
    app.frame()
    scene = app.go.scene
    assert isinstance(scene, PuzzleScene)
    assert "on fire" in scene.passage.state.text


def test_mistakes_are_judged_by_the_tables(app: App) -> None:
    board, report = mistake(EXCHANGE.fen, "32-28", EXCHANGE.line, 1.0, 0.5)
    app.go.show(lambda app: MistakesScene(app, [board], [report]))
    scene = app.go.scene
    assert isinstance(scene, MistakesScene)
    app.frame()
    exercise = scene.exercise
    assert exercise is not None
    click(app, 15, 10)
    frames_until(app, lambda: exercise.status != "judging")
    assert exercise.status == "wrong"
    click(app, 32, 27)
    frames_until(app, lambda: exercise.status in ("solved", "asked"))
    if exercise.status == "asked":  # the first click took the wrong answer back
        click(app, 32, 27)
    assert exercise.status == "solved"
    assert "0 of 1 right" in scene.passage.state.note


def test_the_report_leads_to_the_mistakes(app: App) -> None:
    spec = OpponentSpec(kind="alphabeta", depth=3)
    app.controller.start(GamePlan(BOTH, dict.fromkeys(Color, spec), EXCHANGE.fen))
    for text in ("32-28", "24-27"):
        app.controller.make(app.controller.session.board.parse_pdn(text))
    app.go.open(Action.REPORT)
    scene = app.go.scene
    frames_until(app, lambda: app.thinker.review is not None and app.thinker.review.status == "done", 60)
    app.frame()
    scene.press("retry")  # type: ignore[attr-defined]
    assert isinstance(app.go.scene, MistakesScene)
    app.frame()
    exercise = app.go.scene.exercise
    assert exercise is not None
    assert exercise.board.fen() == EXCHANGE.fen
    assert "32-28" in exercise.task.question
    moral = exercise.task.moral
    assert moral.startswith("32-28 ")
    assert moral not in app.go.scene.passage.state.text
    for _ in range(MOST_HINTS):
        app.go.scene.press(Action.HINT)
    app.frame()
    assert exercise.status == "told"
    assert moral in app.go.scene.passage.state.text


def test_a_rematch_swaps_the_colours(app: App) -> None:
    controller, weak, deep = app.controller, OpponentSpec(kind="random"), OpponentSpec(kind="rollout", rollouts=5)
    agents, control = {Color.BLACK: deep, Color.WHITE: weak}, TimeControl.parse("60+1")
    controller.start(GamePlan(frozenset({Color.BLACK}), agents, opening=("11-15", "22-18"), control=control))
    controller.rematch()
    assert controller.humans == {Color.BLACK}  # the game goes on
    controller.resign()
    controller.rematch()
    session = controller.session
    assert (controller.humans, session.is_over, session.texts) == ({Color.WHITE}, False, ["11-15", "22-18"])
    assert controller.agents == {Color.WHITE: deep, Color.BLACK: weak}
    assert controller.clock.control == control
    assert session.names[Color.WHITE] == "Human"


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"a window needs {', '.join(MISSING)} installed")
def test_a_puzzle_in_a_real_window(tmp_path: Path) -> None:
    path, record = tmp_path / "mine.json.zst", tmp_path / "crownhead" / PuzzleRecord.file_name
    (tmp_path / "crownhead").mkdir()
    write_book(path, PuzzleBook("self-play", 1, 100, puzzles=(EXCHANGE,)))
    preferences = Preferences(animation_ms=40, sounds=False)
    with screen() as display, window(display, tmp_path, "--puzzles", str(path), preferences=preferences) as seen:
        seen.still_picture()
        seen.click_move(EXCHANGE.moves[0], False)
        seen.still_picture()
        seen.drag_move(EXCHANGE.moves[2], False)
        until(record.exists, "the record")
        found, _ = load_record(record, PuzzleRecord)
        assert found.results == {EXCHANGE.fen: True}
        seen.close()
        assert "Traceback" not in seen.errors.read_text()
