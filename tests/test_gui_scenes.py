"""Scenes in the real event loop without a screen: which way the board lies, menus by keys, pasting, setting up."""

import itertools
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

import pygame
import pygame_menu
from pygame_menu.widgets import RangeSlider
from windows import frames_until, opened_app

from engine.board import Board
from engine.fen import START_FEN, Color
from engine.reasons.reason import Kind, Proof, Reason
from gui.app import App
from gui.display import start_pygame
from gui.game import autosave
from gui.game.endgame_info import EndgameInfo
from gui.game.game_report import GameReport, MoveReport
from gui.game.opponents import CheckpointEntry, Opponents, OpponentSpec
from gui.game.pdn_files import PdnGames
from gui.game.plan import BOTH, GamePlan
from gui.game.snapshot import MoveRow, Snapshot
from gui.help import Action
from gui.menus import MenuScene
from gui.views import game_facts as facts
from gui.views.board_scene import Passage, TextPanel
from gui.views.file_pages import GamesPage, KeptPage, LoadPage
from gui.views.geometry import Rect
from gui.views.help_scene import HelpScene
from gui.views.library_pages import LibraryPage
from gui.views.menu_pages import CheckpointPage, MainPage, OpponentPage, store_spec
from gui.views.mistakes_scene import MistakesScene
from gui.views.report_scene import MistakesState, ReportScene, _adds
from gui.views.setup_scene import SetupScene

TWO_GAMES = """[Event "one"]
[Black "A"]
[White "B"]
[Result "*"]

1. 11-15 22-18 *

[Event "two"]
[Black "C"]
[White "D"]
[Result "1-0"]

1. 9-14 1-0
"""
VARIANT = '[Event "a"]\n[GameType "20,W,10,10,N2,0"]\n[Result "*"]\n\n1. 32-28 *\n'


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setattr("gui.window_events.IDLE_WAIT_MS", 5)
    clipboard: list[str] = [""]
    monkeypatch.setattr("gui.app.get_text", lambda: clipboard[0])
    monkeypatch.setattr("gui.views.setup_scene.get_text", lambda: clipboard[0])
    with opened_app(tmp_path, window_width=800, window_height=600, animation_ms=0) as app:
        app.clipboard = clipboard  # type: ignore[attr-defined]
        yield app


def plan(*humans: Color, fen: str = START_FEN) -> GamePlan:
    return GamePlan(frozenset(humans), dict.fromkeys(Color, OpponentSpec(kind="random")), fen)


def press(app: App, *names: str, ctrl: bool = False, shift: bool = False) -> None:
    """Presses keys, all of them between two frames."""
    for name in names:
        code, text = pygame.key.key_code(name), name if len(name) == 1 and not ctrl else ""
        mod = (pygame.KMOD_CTRL if ctrl else 0) | (pygame.KMOD_SHIFT if shift else 0)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=code, mod=mod, unicode=text, scancode=0))
    frames(app)


def frames(app: App, count: int = 3) -> None:
    for _ in range(count):
        for event in app._events():
            app._dispatch(event)
        app.frame()


def paste(app: App, text: str) -> None:
    app.clipboard[0] = text  # type: ignore[attr-defined]
    press(app, "v", ctrl=True)


def page_of(app: App) -> Any:
    assert isinstance(app.go.scene, MenuScene)
    return app.go.scene


@pytest.mark.parametrize(
    ("humans", "bottom", "flipped"),
    [
        ({Color.BLACK}, "own", True),
        ({Color.WHITE}, "own", False),
        (BOTH, "own", False),
        (set(), "own", False),
        ({Color.BLACK}, "white", False),
        ({Color.WHITE}, "black", True),
        (BOTH, "black", True),
    ],
)
def test_ones_own_side_is_at_the_bottom_unless_pinned(app: App, humans: set[Color], bottom: str, flipped: bool) -> None:
    app.preferences.bottom = bottom  # type: ignore[assignment]
    app.begin(plan(*humans), menu=False)
    frames(app)
    assert app.go.game.flipped is flipped


def test_the_board_turns_by_key_for_this_game_and_with_the_sides(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    frames(app)
    assert app.go.game.flipped
    press(app, "f")
    assert not app.go.game.flipped
    app.go.open(Action.SETUP)
    assert isinstance(app.go.scene, SetupScene)
    assert not app.go.scene.flipped
    app.go.start_game(plan(Color.BLACK))
    frames(app)
    assert app.go.game.flipped
    press(app, "t")  # the other side
    assert app.controller.humans == {Color.WHITE}
    assert not app.go.game.flipped


def test_keys_typed_ahead_reach_the_page_they_are_meant_for(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=True)
    frames(app)
    assert isinstance(page_of(app), MainPage)
    press(app, "down", "return", "down", "down", "down", "return")  # New game, then Against
    assert isinstance(page_of(app), OpponentPage)
    press(app, "escape", "escape", "escape", "f")  # back at the board, and turn it
    assert app.go.scene is app.go.game
    assert not app.go.game.flipped


def test_a_position_and_a_game_are_pasted(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    paste(app, "W:WK18,27,32:BK3,20")
    assert app.controller.session.fen() == "W:W27,32,K18:B20,K3"
    assert app.controller.humans == BOTH
    assert "random" not in app.controller.session.names.values()
    paste(app, "1. 11-15 22-18 2. 15x22")
    assert app.controller.session.texts == ["11-15", "22-18", "15x22"]


@pytest.mark.parametrize(
    "text", ["", "hello", "1. 11-15 11-15", VARIANT, "B:W1,2:B31", "B:W21:B21", "W:W:B1", "W:W:B", "B:WK1:B"]
)
def test_a_bad_paste_is_said_in_one_line_and_changes_nothing(app: App, text: str) -> None:
    app.begin(plan(*Color), menu=False)
    app.controller.make(app.controller.session.board.parse_pdn("11-15"))
    before = list(app.controller.session.texts)
    paste(app, text)
    message = app.controller.message()
    assert message.kind == "warn"
    assert message.text
    assert "\n" not in message.text
    assert app.controller.session.texts[: len(before)] == before


def test_of_several_games_one_is_chosen(app: App, tmp_path: Path) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    paste(app, TWO_GAMES)
    assert isinstance(page_of(app), GamesPage)
    frames_until(app, lambda: page_of(app).found)
    press(app, "down", "return")
    assert app.go.scene is app.go.game
    assert app.controller.session.names[Color.BLACK] == "C"
    (tmp_path / "two.pdn").write_text(TWO_GAMES)
    app.preferences.last_folder = str(tmp_path)
    app.go.show(LoadPage)
    press(app, *["down"] * 2)  # the path, the folder above, the file
    press(app, "return")
    for _ in range(200):
        frames(app)
        if isinstance(page_of(app), LibraryPage):
            break
    press(app, *["down"] * 4)  # the search, the result, the position, the analysis
    press(app, "return")
    assert app.controller.session.names[Color.BLACK] == "A"
    frames(app)
    app.autosave.flush()
    assert app.autosave.games() == []


def test_the_list_of_games_comes_back_as_it_was_left(app: App, tmp_path: Path) -> None:
    def titles() -> list[str]:
        return [widget.get_title() for widget in page_of(app).menu.get_widgets()]

    (tmp_path / "two.pdn").write_text(TWO_GAMES)
    library = app.shelf.open(tmp_path / "two.pdn")
    library.wait()
    app.go.show(lambda app: LibraryPage(app, library))
    frames(app)
    press(app, "t", "w", "o", "return")
    found = titles()
    assert [title for title in found if title[0].isdigit()] == ["1 game, shown 1 to 1", "2.  C - D, 1-0, 1 move"]
    press(app, *["down"] * 4, "return")
    assert app.controller.session.names[Color.BLACK] == "C"
    app.go.open("files")
    frames(app)
    press(app, *["down"] * 2, "return")
    frames(app)
    assert titles() == found
    assert page_of(app).menu.get_selected_widget().get_title() == "2.  C - D, 1-0, 1 move"


def test_the_window_lives_while_pasted_games_are_read(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr("gui.app.PdnGames", lambda text: go_on.wait(60) and PdnGames(text))
    app.begin(plan(Color.BLACK), menu=False)
    paste(app, TWO_GAMES)
    assert page_of(app)._foot[0] == "Reading …"
    assert [widget.get_title() for widget in page_of(app).menu.get_widgets()] == ["Back"]
    go_on.set()
    frames_until(app, lambda: page_of(app).found)
    assert [widget.get_title()[:2] for widget in page_of(app).menu.get_widgets()] == ["1.", "2.", "Ba"]


def test_saved_games_are_read_once_and_not_by_the_window(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    app.begin(plan(*BOTH), menu=False)
    app.controller.make(app.controller.session.board.legal_moves[0])
    app.autosave.flush()
    readers, look_at = [], autosave._look_at
    monkeypatch.setattr(
        autosave, "_look_at", lambda *file: readers.append(threading.current_thread().name) or look_at(*file)
    )
    app.go.show(KeptPage)
    frames_until(app, lambda: page_of(app).found)
    app.restyle()
    frames(app)
    assert readers == ["pdn"]
    press(app, "return")
    assert app.go.scene is app.go.game
    assert len(app.controller.session.nodes) == 1


def test_networks_are_looked_for_beside_the_window(app: App) -> None:
    """Their ratings need torch, and importing it takes seconds."""
    lookers: list[str] = []
    entry = CheckpointEntry("run 1", "runs/run/1", 120.0)
    find = lambda: lookers.append(threading.current_thread().name) or [entry]  # noqa: E731
    app.opponents = Opponents(network=lambda spec: pytest.fail("made"), find_checkpoints=find)
    app.begin(plan(*BOTH), menu=False)
    store_spec(app, "agent", OpponentSpec(kind="alphabeta"))
    app.go.show(lambda app: OpponentPage(app, "agent"))
    page_of(app)._kind("network")
    frames(app)
    assert lookers == []
    app.go.show(lambda app: CheckpointPage(app, app.go.scene))
    press(app, "up")
    assert page_of(app).menu.get_selected_widget().get_title() == "Back"
    frames_until(app, lambda: page_of(app).found)
    assert page_of(app).menu.get_selected_widget().get_title() == "Back", "though the list has come before it"
    press(app, "down", "down", "return")
    frames_until(app, lambda: page_of(app).found)
    assert lookers == ["player", "player"]
    titles = [widget.get_title() for widget in page_of(app).menu.get_widgets()]
    assert "Network: run 1 — Elo 120 …" in titles


@pytest.mark.parametrize(("text", "part"), [("1. 11-15 11-15", "illegal"), (VARIANT, "international"), ("\0\1\2", "")])
def test_a_broken_file_is_said_on_the_page(app: App, tmp_path: Path, text: str, part: str) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    (tmp_path / "bad.pdn").write_text(text)
    app.preferences.last_folder = str(tmp_path)
    page = LoadPage(app)
    app.go.show(lambda app: page)
    said: list[tuple[str, bool]] = []
    page.say = lambda text, alarm=False: said.append((text, alarm))
    page._open(tmp_path / "bad.pdn")
    for _ in range(500):
        frames(app, 1)
        if any(alarm for _, alarm in said):
            break
    line, alarm = said[-1]
    assert alarm
    assert part in line
    assert "\n" not in line
    assert app.controller.session.nodes == []


def test_a_checkpoint_that_is_none_is_said_and_the_window_lives(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)

    def broken(spec: OpponentSpec) -> None:
        raise ValueError(f"{spec.checkpoint}: no checkpoint")

    app.opponents._factories["network"] = broken  # type: ignore[assignment]
    spec = OpponentSpec(kind="network", checkpoint="/nowhere")
    app.go.start_game(GamePlan(frozenset({Color.WHITE}), dict.fromkeys(Color, spec)))
    for _ in range(500):
        frames(app, 1)
        if app.controller.alarm:
            break
    assert "no checkpoint" in app.controller.message().text
    assert app.controller.paused
    press(app, "t")  # the person plays the other side instead
    app.controller.make(app.controller.session.board.parse_pdn("11-15"))
    assert app.controller.session.texts == ["11-15"]


def test_several_games_without_events_are_found_too(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    paste(app, re.sub(r"\[Event .*\]\n", "", TWO_GAMES))
    assert isinstance(page_of(app), GamesPage)
    app.go.to_game()
    paste(app, "1. 11-15 * what a game")
    assert app.go.scene is app.go.game


def test_keys_that_come_with_the_one_that_opens_help(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    press(app, "f1", "tab")
    assert isinstance(app.go.scene, HelpScene)
    assert app.go.scene.about == "setup"


def test_lessons_opened_from_their_help_are_the_same(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    press(app, "f2")
    lessons = app.go.scene
    press(app, "f1")
    assert isinstance(app.go.scene, HelpScene)
    press(app, "f2")
    assert app.go.scene is lessons
    assert len(app.go.scenes) == 2


def test_an_analysis_of_a_set_up_position_has_no_clock(app: App) -> None:
    app.preferences.time_control = "60+1"
    app.begin(plan(Color.BLACK), menu=False)
    for name, kind in (("analyse", "none"), (Action.SET_DONE, "fischer")):
        app.go.open(Action.SETUP)
        scene = app.go.scene
        assert isinstance(scene, SetupScene)
        scene.setup.load_fen("B:W21,22:B11")
        frames(app)
        scene.press(name)
        assert app.controller.session.start_fen == "B:W21,22:B11"
        assert app.controller.clock.control.kind == kind


def test_the_menu_leads_back_to_a_set_up_position(app: App) -> None:
    def first_button(fen: str) -> str:
        app.controller.start(GamePlan(BOTH, fen=fen))
        app.go.open(Action.MENU)
        assert isinstance(app.go.scene, MainPage)
        title = app.go.scene.menu.get_widgets()[0].get_title()
        app.go.back()
        return str(title)

    assert first_button(START_FEN) == "Play"
    assert first_button("W:W30:B3") == "Go on with this game"


def setting_up(app: App) -> SetupScene:
    app.begin(plan(Color.BLACK), menu=False)
    app.go.open(Action.SETUP)
    scene = app.go.scene
    assert isinstance(scene, SetupScene)
    return scene


def test_the_set_up_by_keys(app: App) -> None:
    scene = setting_up(app)
    press(app, "c")
    assert not any(button.enabled for row in scene.rows for button in row.buttons if button.name == Action.SET_DONE)
    scene.setup.cursor = 18
    press(app, "4", "space", "2", "left", "space", "t")
    assert scene.setup.fen() == "W:WK18:BK17" if not scene.flipped else scene.setup.fen().startswith("W:WK18:BK")
    paste(app, "B:W5,21:B12")
    assert scene.setup.fen() == "B:W5,21:B12"
    press(app, "c", ctrl=True)
    assert "clipboard" in scene.passage.state.note or scene.passage.state.note == "Copied"
    paste(app, "nonsense")
    assert scene.passage.state.warnings
    press(app, "return", ctrl=True)
    assert app.go.scene is app.go.game
    assert app.controller.session.start_fen == "B:W5,21:B12"


def test_a_position_in_the_making_is_not_dropped_by_a_slip(app: App) -> None:
    scene = setting_up(app)
    press(app, "c")
    press(app, "z")
    assert scene.setup.fen() == START_FEN
    press(app, "t", "escape")
    assert app.go.scene is scene
    press(app, "escape")  # stays
    assert app.go.scene is scene
    press(app, "escape", "left", "return")
    assert app.go.scene is app.go.game


def test_a_man_on_the_kings_row_cannot_be_played(app: App) -> None:
    scene = setting_up(app)
    scene.setup.cursor = 30
    press(app, "0", "space", "1", "space")
    assert any("30" in line for line in scene.passage.state.warnings)
    press(app, "return", ctrl=True)
    assert app.go.scene is scene


@pytest.mark.parametrize("fen", ["W:W:BK30", "W:W12:B3,8"])
def test_what_is_no_game_is_not_analysed_either(app: App, fen: str) -> None:
    scene = setting_up(app)
    scene.setup.load_fen(fen)
    frames(app)
    enabled = {button.name: button.enabled for row in scene.rows for button in row.buttons}
    assert not enabled[Action.SET_DONE]
    assert not enabled[Action.ANALYSE]
    assert scene.passage.state.warnings
    scene.press("analyse")
    assert app.go.scene is scene


def test_a_report_shows_the_better_move(app: App) -> None:
    """Black gives two men for nothing: that is the worst move, and the board shows what was better."""
    app.begin(plan(*Color, fen="B:W14,18,22,26:B1,2,3,9"), menu=False)
    app.controller.agents = dict.fromkeys(Color, OpponentSpec(kind="alphabeta", depth=6))
    app.controller.kinds = ("alphabeta",)
    for _ in range(4):
        board = app.controller.session.board
        app.controller.make(min(board.legal_moves, key=lambda move: (len(move.captured), move.end)))
    app.go.open(Action.REPORT)
    scene = app.go.scene
    assert isinstance(scene, ReportScene)
    for _ in range(2000):
        frames(app, 1)
        if app.thinker.review is not None and not app.thinker.review.busy:
            break
    frames(app)
    assert "accuracy" in scene.passage.state.text
    assert scene.mistakes.state.rows
    press(app, "down")
    assert scene.chosen == 0
    move = scene._worst[0]
    assert scene.ply == move.ply
    assert [arrow.path for arrow in scene.picture().arrows] == [move.move.path, move.best.path]
    frames(app)
    assert move.reason is not None
    assert move.reason.text.startswith(move.pdn)
    assert move.reason.text in scene.passage.state.text
    press(app, "end")
    assert scene.ply == 4
    press(app, *["tab"] * 5, "return")
    assert isinstance(app.go.scene, MistakesScene)


def fault(ply: int, loss: float, reason: str = "") -> MoveReport:
    board = Board()
    move, best = board.legal_moves[:2]
    told = Reason(Kind.CAPTURE, Proof.SEARCH, reason, (), ()) if reason else None
    return MoveReport(ply, Color.BLACK, move, board.pdn(move), False, best, board.pdn(best), loss, 0.0, reason=told)


def test_a_chosen_fault_stays_chosen_and_its_reason_has_room(app: App) -> None:
    app.begin(plan(*Color), menu=False)
    app.controller.kinds = ("random",)
    for _ in range(6):
        app.controller.make(app.controller.session.board.legal_moves[0])
    app.go.open(Action.REPORT)
    scene = app.go.scene
    assert isinstance(scene, ReportScene)
    number, first = scene._number, fault(4, 0.3, "and so on, " * 60 + "to the end")
    assert number is not None

    def report(*moves: MoveReport) -> None:
        shown = Snapshot(number, "report", "thinking", "", "", 0, Color.BLACK, report=GameReport(moves))
        app.thinker.review = shown
        frames(app, 2)
        assert app.thinker.review is shown

    app.thinker.cancel()  # the report is made by hand
    while app.thinker.busy:
        frames(app, 1)
    report(first)
    usual = scene.passage.rect.h
    press(app, "down")
    frames(app)
    assert scene.chosen == 0
    assert scene.passage.rect.h > usual
    assert scene.passage.rect.bottom <= scene.mistakes.rect.y
    report(first, fault(0, 0.9), fault(2, 0.6))
    assert scene.chosen == 2
    assert scene._move() is first
    report(*(fault(ply, 0.9) for ply in (0, 2, 6, 8, 10, 12, 14, 16)), first)  # no longer among the worst
    assert scene.chosen is None


@pytest.mark.parametrize(("size", "scale"), [((480, 360), 1.0), ((1100, 760), 2.0), ((800, 600), 1.5)])
def test_the_chosen_fault_is_in_sight_in_any_window(tmp_path: Path, size: tuple[int, int], scale: float) -> None:
    width, height = size
    with opened_app(tmp_path, window_width=width, window_height=height, animation_ms=0, ui_scale=scale) as app:
        app.begin(plan(*Color), menu=False)
        app.go.open(Action.REPORT)
        scene = app.go.scene
        assert isinstance(scene, ReportScene)
        scene.mistakes.state = MistakesState((("1. 9-14", "11-16", "5 %"),) * 8, None)
        panel, unit = scene.mistakes, app.style.unit
        for chosen in (None, 0, 4, 7):
            panel.state = panel.state._replace(chosen=chosen)
            heights = range(panel.rect.y, panel.rect.bottom)
            shown = {row for y in heights if (row := panel.row_at((panel.rect.x, y), unit)) is not None}
            assert (chosen or 0) in shown
            assert len(shown) >= 2
        assert scene.graph.rect.h >= 2 * unit


def test_a_text_that_does_not_fit_can_be_scrolled(app: App) -> None:
    panel = TextPanel(Passage("Title", "\n\n".join(f"row {number}" for number in range(40))))
    panel.rect = Rect(0, 0, 300, 200)
    surface = pygame.Surface((300, 200))
    panel.draw(surface, app.style)
    shown = [pygame.surfarray.array3d(surface)]
    while panel.scroll(5) and panel._first < panel._last_first:
        panel.draw(surface, app.style)
        shown.append(pygame.surfarray.array3d(surface))
    assert len(shown) > 5
    assert all((one != other).any() for one, other in itertools.pairwise(shown))
    panel.state = Passage("Title", "short")
    panel.draw(surface, app.style)
    assert not panel.scroll(1)


def test_keys_scroll_the_text_of_a_scene(app: App) -> None:
    app.go.open(Action.SETUP)
    scene = app.go.scene
    assert isinstance(scene, SetupScene)
    scene.passage.rect = Rect(*scene.passage.rect[:3], 3 * app.style.unit)
    frames(app, 2)
    firsts = []
    for key in ("down", "up", "up", "down"):
        press(app, key, shift=True)
        firsts.append(scene.passage._first)
    assert firsts == [1, 0, 0, 1]


def test_a_report_does_not_tell_a_line_twice() -> None:
    reason = "23-18 loses a man by the shot 15-19 24x15 10x28."
    assert not _adds(("15-19", "24x15", "10x28", "18-14"), reason)
    assert _adds(("12-16", "24x15"), reason)
    assert not _adds((), reason)


def test_the_first_window_suits_a_fine_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_pygame()
    monkeypatch.setattr(pygame.display, "get_desktop_sizes", lambda: [(3840, 2160)])
    app = App(Opponents(), EndgameInfo(), tmp_path)
    app.open_window()
    assert app.surface.get_size() == (2200, 1520)
    app.toggle_fullscreen()
    app.toggle_fullscreen()
    assert (app.preferences.window_width, app.preferences.window_height) == (2200, 1520)
    app.save_preferences()
    second = App(Opponents(), EndgameInfo(), tmp_path)
    second.open_window()
    assert second.surface.get_size() == (2200, 1520)
    monkeypatch.setattr(pygame.display, "get_desktop_sizes", lambda: [(1024, 700)])
    again = App(Opponents(), EndgameInfo(), tmp_path)
    again.open_window()
    assert again.surface.get_size() == (1016, 636)  # less the frame
    for each in (app, second, again):
        each.close()
    pygame.quit()


def test_a_click_on_the_track_of_the_strength_moves_it(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    app.controller.agents = dict.fromkeys(Color, OpponentSpec(kind="alphabeta", depth=3))
    app.go.show(lambda app: OpponentPage(app, "agent"))
    frames(app)
    page = app.go.scene
    assert isinstance(page, OpponentPage)
    page.change(kind="alphabeta", depth=3)
    frames(app)
    (slider,) = (widget for widget in page.menu.get_widgets() if isinstance(widget, RangeSlider))
    assert page.menu.get_selected_widget() is not slider
    at = slider._test_get_pos_value(14)
    for kind in (pygame.MOUSEBUTTONDOWN, pygame.MOUSEBUTTONUP):
        pygame.event.post(pygame.event.Event(kind, button=1, pos=at))
        frames(app)
    assert page.spec.depth == 15


def test_an_engine_that_tells_no_draws_is_shown_without_them() -> None:
    seen = Snapshot(1, "analyse", "thinking", "engine", START_FEN, 0, Color.BLACK, value=0.24, count=1)
    head = facts.thought_head(seen, ())
    assert head.wdl is None
    assert head.hint == "Black may expect 62 % of the points"
    assert head.effort == ("1 simulation",)


def test_an_analysis_that_ended_without_a_proof_says_why() -> None:
    move = Board().legal_moves[0]
    for row, status, full in (
        (MoveRow(move), "done", True),
        (MoveRow(move), "thinking", False),
        (MoveRow(move, proof="draw"), "done", False),
    ):
        seen = Snapshot(1, "analyse", status, "engine", START_FEN, 0, Color.BLACK, (row,))  # type: ignore[arg-type]
        assert ("memory full" in facts.thought_head(seen, ()).effort) is full


def test_the_table_of_moves_scrolls() -> None:
    rows = tuple(MoveRow(move, pdn=str(move)) for move in Board().legal_moves)
    seen = Snapshot(1, "analyse", "thinking", "engine", START_FEN, 0, Color.BLACK, rows)
    shown = facts.table_state(seen, None, 5)
    assert (shown.before, len(shown.rows), shown.behind) == (0, 5, 2)
    shown = facts.table_state(seen, None, 5, first=99)
    assert (shown.before, shown.behind) == (2, 0)
    assert [row.texts[0] for row in shown.rows] == [row.pdn for row in rows[2:]]
    assert facts.table_state(seen, None, 20).behind == 0


def test_a_long_list_of_games_is_laid_out_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Laying it out with every further line took seconds, during which keys waited."""
    games = "\n".join(TWO_GAMES for _ in range(100))
    laid_out, lay_out = [], pygame_menu.Menu._update_widget_position
    monkeypatch.setattr(
        pygame_menu.Menu, "_update_widget_position", lambda self, *args: (laid_out.append(1), lay_out(self, *args))[1]
    )
    app.begin(plan(*BOTH), menu=False)
    app.go.show(lambda app: GamesPage(app, "many", lambda: PdnGames(games)))
    frames_until(app, lambda: page_of(app).found)
    assert len(app.go.scene.menu.get_widgets()) == 201  # type: ignore[attr-defined]
    assert len(laid_out) < 10


def made(app: App, *texts: str) -> None:
    """Makes moves in the game, all of them between two frames."""
    for text in texts:
        board = app.controller.session.board
        app.controller.session.push(next(move for move in board.legal_moves if board.pdn(move) == text))
    frames(app)


def test_a_line_that_was_exchanged_is_not_animated(app: App) -> None:
    """The board of the last frame is then not the one before the last move, and may have no piece to move."""
    app.preferences.animation_ms = 200
    app.begin(plan(*Color), menu=False)
    made(app, "11-15", "23-19")
    app.controller.session.go_to(0)
    made(app, "9-14", "24-20", "14-17")
    assert app.controller.session.texts == ["9-14", "24-20", "14-17"]
    assert app.go.game.motion.animation is None
    made(app, "21x14")
    assert app.go.game.motion.animation is not None


def test_a_typed_move_is_entered_also_with_the_focus_on_a_button(app: App) -> None:
    app.begin(plan(*Color), menu=False)
    press(app, "f6", "1", "1", "-", "1", "5", "return")
    assert app.controller.session.texts == ["11-15"]
    assert app.go.scene is app.go.game


@pytest.mark.parametrize("scene", [None, Action.SETUP, Action.LESSONS, Action.OPENINGS])
def test_arrow_keys_lead_from_a_button_to_the_board(app: App, scene: Action | None) -> None:
    """Enter pressed the button once more: a hint, another tool, the menu."""
    app.begin(plan(*Color), menu=False)
    if scene is None:
        frames(app)
        for away in ("down", "tab"):
            press(app, "f6", away, "return")
            assert app.go.scene is app.go.game
            assert app.go.game.keys.focus is None
        return
    app.go.open(scene)
    board_scene: Any = app.go.scene
    press(app, "tab")
    assert board_scene.focus is not None
    press(app, "down", "return")
    assert app.go.scene is board_scene
    assert board_scene.focus is None
    if scene is Action.SETUP:
        assert board_scene.setup.pieces != Board().piece_map()
    elif scene is Action.LESSONS:
        assert board_scene.exercise.hints == 0
    else:
        assert board_scene.tree.ply == 1


def test_a_judgement_outlives_a_resized_window(app: App) -> None:
    app.begin(plan(*Color), menu=False)
    made(app, "11-15")
    press(app, "c")
    page = page_of(app)
    page._glyph = 3
    app.zoom(1.25)
    frames(app)
    page._keep()
    assert app.controller.session.annotation()[0] == 3


def test_who_has_played_a_finished_game_remains(app: App) -> None:
    app.begin(plan(Color.BLACK), menu=False)
    session = app.controller.session
    session.resign(Color.BLACK)
    before = session.to_game().headers
    app.controller.take_over()
    assert session.to_game().headers == before
    assert app.controller.humans == {Color.WHITE}


def test_a_preference_does_not_turn_a_board_that_was_turned(app: App) -> None:
    app.begin(plan(*Color), menu=False)
    frames(app)
    press(app, "f")
    assert app.go.game.flipped
    app.preferences.one_click = not app.preferences.one_click
    app.apply_preferences()
    frames(app)
    assert app.go.game.flipped
