"""The real event loop without a screen: games by mouse and by keys, resizing, every scene, closing in mid-search."""

import os
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

import pygame
from programs import PATIENCE
from windows import opened_app

from engine.board import Board, Move
from engine.fen import Color
from engine.pdn import read_game
from engine.players.time_control import TimeControl
from gui.app import App
from gui.display import WindowError, start_pygame
from gui.game.endgame_info import EndgameInfo
from gui.game.opponents import Opponents, OpponentSpec
from gui.game.plan import GamePlan
from gui.views.geometry import square_rect
from gui.views.help_scene import HelpScene
from gui.views.lesson_scene import LessonScene
from gui.views.navigation import SCENES_BY_NAME
from gui.views.report_scene import ReportScene
from gui.views.setup_scene import SetupScene

Script = Generator[None, None, None]
RANDOM = OpponentSpec(kind="random")
DEEP = OpponentSpec(kind="rollout", timed=True, seconds=600)


def plan(*humans: Color, spec: OpponentSpec = RANDOM, fen: str = Board().fen(), clock: str = "-") -> GamePlan:
    return GamePlan(frozenset(humans), dict.fromkeys(Color, spec), fen, (), TimeControl.parse(clock))


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setattr("gui.window_events.IDLE_WAIT_MS", 5)
    with opened_app(tmp_path, window_width=800, window_height=600, animation_ms=15) as app:
        yield app


def drive(app: App, script: Script, seconds: float = PATIENCE) -> None:
    """Runs the program's event loop; after each frame the script makes a step, at its end the window closes."""
    deadline, frame = time.monotonic() + seconds, app.frame

    def next_frame() -> None:
        frame()
        assert time.monotonic() < deadline, f"stuck: {app.controller.message()}, {app.controller.session.texts}"
        if next(script, "done") == "done":
            pygame.event.post(pygame.event.Event(pygame.QUIT))

    app.frame = next_frame  # type: ignore[method-assign]
    app.loop()
    app.frame = frame  # type: ignore[method-assign]


def center(app: App, square: int) -> tuple[int, int]:
    return square_rect(app.go.game.board_rect, square, app.go.game.flipped).center


def mouse(kind: int, at: tuple[int, int], button: int = 1) -> None:
    pygame.event.post(pygame.event.Event(kind, pos=at, button=button, touch=False))


def motion(at: tuple[int, int], held: bool = False) -> None:
    pygame.event.post(
        pygame.event.Event(pygame.MOUSEMOTION, pos=at, rel=(0, 0), buttons=(int(held), 0, 0), touch=False)
    )


def click(at: tuple[int, int]) -> None:
    motion(at)
    mouse(pygame.MOUSEBUTTONDOWN, at)
    mouse(pygame.MOUSEBUTTONUP, at)


def key(name: str, *, ctrl: bool = False, text: str = "") -> None:
    code = pygame.key.key_code(name)
    mod = pygame.KMOD_CTRL if ctrl else 0
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=code, mod=mod, unicode=text, scancode=0))


def press_tool(app: App, name: str) -> None:
    place = app.go.game.tools.place_of(name, app.style.unit)
    assert place is not None
    click(place.center)


def until(condition: Callable[[], bool]) -> Script:
    while not condition():
        yield


def my_turn(app: App) -> bool:
    """Whether the person is to move, with no animation on the board, or the game is over."""
    controller = app.controller
    return controller.session.is_over or (not controller.agent_to_move and not app.go.game.lively)


def click_move(app: App, move: Move) -> Script:
    """Enters a move by clicks on its squares, until it is made."""
    session = app.controller.session
    before = session.version
    app.controller.input.one_click = False
    for square in move.path:
        if session.version != before:
            break
        click(center(app, square))
        yield
        yield
    yield from until(lambda: session.version != before)


def drag_move(app: App, move: Move) -> Script:
    session = app.controller.session
    before = session.version
    mouse(pygame.MOUSEBUTTONDOWN, center(app, move.start))
    yield
    for square in move.path[1:]:
        motion(center(app, square), held=True)
        yield
    mouse(pygame.MOUSEBUTTONUP, center(app, move.end))
    yield
    yield
    if session.version == before:  # a capture that branches: its squares one by one
        app.controller.input.cancel()
        yield from click_move(app, move)


def test_a_whole_game_by_mouse_against_random(app: App, tmp_path: Path) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    session = app.controller.session

    def script() -> Script:
        for turn in range(200):
            yield from until(lambda: my_turn(app))
            if session.is_over:
                return
            moves = session.board.legal_moves
            move = max(moves, key=lambda move: (len(move.captured), move.end))
            yield from (drag_move if turn % 2 else click_move)(app, move)
        pytest.fail("no end after 200 moves")

    drive(app, script())
    assert session.ending is not None
    assert app.controller.message().text == session.ending.text
    app.autosave.flush()
    (file,) = (tmp_path / "games").glob("*.pdn")
    saved = read_game(file.read_text())
    assert [node.move for node in saved.moves] == [node.move for node in session.nodes]
    assert saved.result == session.ending.result


def test_a_piece_that_is_dragged_over_several_jumps_stays_at_the_pointer(app: App) -> None:
    app.begin(plan(*Color, fen="B:W6,14,22,31:B1"), menu=False)
    scene = app.go.game

    def script() -> Script:
        yield
        mouse(pygame.MOUSEBUTTONDOWN, center(app, 1))
        for entered, square in enumerate((6, 10, 17), 1):
            motion(center(app, square), held=True)
            yield
            yield
            assert (len(scene.entry.path), scene.motion.pointer) == (entered, center(app, square))
            assert scene.motion.dragged in {number for number, _, _ in scene.picture().pieces}
        mouse(pygame.MOUSEBUTTONUP, center(app, 17))
        yield
        yield

    drive(app, script())


def test_a_game_by_keyboard_alone_with_undo_and_resignation(app: App) -> None:
    app.begin(plan(Color.WHITE), menu=False)
    session = app.controller.session

    def script() -> Script:
        for turn in range(4):
            yield from until(lambda: my_turn(app))
            move = session.board.legal_moves[0]
            before = session.version
            if turn % 2:
                for sign in session.board.pdn(move):
                    key(sign, text=sign)
                key("return", text="\r")
            else:
                app.controller.input.one_click = False
                for _ in range(32):
                    if app.controller.input.cursor == move.start:
                        break
                    key("tab")
                    yield
                key("return", text="\r")
                yield
                for _ in range(32):
                    if app.controller.input.cursor == move.path[1]:
                        break
                    key("tab")
                    yield
                key("return", text="\r")
            yield from until(lambda before=before: session.version != before)  # type: ignore[misc]
        yield from until(lambda: my_turn(app))
        plies = session.ply
        key("u", text="u")
        yield from until(lambda: session.ply == plies - 2)
        key("y", ctrl=True)
        yield from until(lambda: session.ply == plies)
        key("r", text="r")
        yield
        key("return", text="\r")  # the answer chosen at first does no harm
        yield
        yield
        assert not session.is_over
        key("r", text="r")
        yield
        key("y", text="y")
        yield from until(lambda: session.is_over)

    drive(app, script())
    assert session.ending is not None
    assert session.ending.text == "Black wins: White resigned"


def test_an_illegal_try_says_why_and_clicks_during_the_agents_move_are_harmless(app: App) -> None:
    app.begin(plan(Color.BLACK, spec=DEEP), menu=False)
    controller = app.controller
    seen = []

    def script() -> Script:
        yield
        click(center(app, 10))
        yield
        click(center(app, 22))
        yield
        yield
        seen.append(controller.message())
        controller.make(controller.session.board.parse_pdn("11-15"))
        yield from until(lambda: controller.thinking == "play" and app.thinker.snapshot.count > 0)  # type: ignore[union-attr]
        for square in (22, 18, 12):
            click(center(app, square))
            yield
        yield
        seen.append(controller.message())
        press_tool(app, "move_now")
        yield from until(lambda: len(controller.session.nodes) == 2)

    drive(app, script())
    assert seen[0].kind == "warn"
    assert seen[0].text
    assert "White" in seen[1].text


def test_closing_does_not_wait_for_a_search(app: App) -> None:
    app.begin(plan(Color.WHITE, spec=DEEP), menu=False)

    def script() -> Script:
        yield from until(lambda: app.thinker.snapshot is not None and app.thinker.snapshot.count > 0)

    drive(app, script())
    begin = time.monotonic()
    app.close()
    assert time.monotonic() - begin < 60
    assert not app.thinker.busy


def test_a_new_game_and_undo_stop_the_search(app: App) -> None:
    app.begin(plan(Color.BLACK, spec=DEEP), menu=False)
    controller = app.controller

    def script() -> Script:
        yield from until(lambda: my_turn(app))
        controller.make(controller.session.board.parse_pdn("11-15"))
        yield from until(lambda: controller.thinking == "play")
        press_tool(app, "undo")
        yield from until(lambda: controller.session.ply == 0)
        yield
        assert controller.thinking == ""
        assert not app.thinker.busy
        for _ in range(5):
            yield
        assert controller.session.ply == 0
        app.go.start_game(plan(Color.BLACK, Color.WHITE))
        yield
        assert controller.session.nodes == []

    drive(app, script())


def test_every_scene_at_every_size(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    app.controller.make(app.controller.session.board.parse_pdn("11-15"))
    kinds = []

    def script() -> Script:
        for size in ((480, 360), (360, 640), (1920, 1080)):
            app.surface = pygame.display.set_mode(size, pygame.RESIZABLE)
            pygame.event.post(pygame.event.Event(pygame.VIDEORESIZE, w=size[0], h=size[1], size=size))
            yield
            go = app.go
            for name in SCENES_BY_NAME:
                assert go.open(name)
                yield
                yield
                kinds.append(type(app.go.scene))
                key("escape")
                yield
                yield
                assert app.go.scene is app.go.game, name
                assert app.surface.get_size() == size

    drive(app, script())
    assert {SetupScene, LessonScene, HelpScene, ReportScene} < set(kinds)


def test_pointing_at_the_line_plays_it_on_the_board(app: App) -> None:
    app.begin(plan(*Color, spec=OpponentSpec(kind="alphabeta", depth=4)), menu=False)

    def script() -> Script:
        press_tool(app, "analyse")
        yield from until(lambda: len(app.go.game.line.state.moves) > 1)  # type: ignore[union-attr]
        yield
        motion(app.go.game.line._places[1].center)
        yield
        yield
        picture = app.go.game.picture()
        assert picture.ghost
        assert {number for number, _, _ in picture.pieces} != set(app.controller.session.board.piece_map())
        motion((1, 1))
        yield
        yield
        assert not app.go.game.picture().ghost

    drive(app, script())


def test_a_clock_that_runs_out_ends_the_game(app: App) -> None:
    app.begin(plan(Color.BLACK, clock="0.3+0"), menu=False)
    session = app.controller.session

    def script() -> Script:
        yield from until(lambda: session.is_over)

    drive(app, script())
    assert session.ending is not None
    assert session.ending.winner is Color.WHITE


def test_an_unfinished_game_goes_on_next_time(app: App, tmp_path: Path) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    app.controller.make(app.controller.session.board.parse_pdn("11-15"))

    def script() -> Script:
        yield from until(lambda: len(app.controller.session.nodes) == 2)

    drive(app, script())
    texts = list(app.controller.session.texts)
    app.close()
    again = App(Opponents(), EndgameInfo(), tmp_path)
    again.surface = app.surface
    again.begin(None, menu=False)
    assert again.controller.session.texts == texts
    assert again.controller.humans == {Color.BLACK}
    again.close()


def test_a_broken_preferences_file_is_said_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "preferences.json").write_text("{]")
    start_pygame()
    app = App(Opponents(), EndgameInfo(), tmp_path)
    app.open_window()
    app.begin(plan(Color.BLACK), menu=False)
    app.frame()
    assert app.controller.message().kind == "warn"
    assert "preferences" in app.controller.message().text
    app.close()
    pygame.quit()


def test_without_a_display_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame.quit()
    monkeypatch.setenv("SDL_VIDEODRIVER", "no_such_driver")
    with pytest.raises(WindowError) as raised:
        start_pygame()
    assert "display" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_nothing_is_drawn_while_nothing_happens(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)

    def script() -> Script:
        for _ in range(5):
            yield
        app.frame_seconds.clear()
        for _ in range(10):
            yield

    drive(app, script())
    assert len(app.frame_seconds) == 0


@pytest.mark.parametrize("driver", ["offscreen", "dummy"])
def test_a_window_that_nobody_can_see_counts_as_none(monkeypatch: pytest.MonkeyPatch, driver: str) -> None:
    pygame.quit()
    monkeypatch.delenv("SDL_VIDEODRIVER")
    monkeypatch.setattr(pygame.display, "init", lambda: None)
    monkeypatch.setattr(pygame.display, "get_driver", lambda: driver)
    with pytest.raises(WindowError, match="no display to open a window on"):
        start_pygame()
