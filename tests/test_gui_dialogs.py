"""Keys while a question is open, keys that are held, and what a person reads: in the real event loop, no screen."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

import pygame
from programs import PATIENCE
from windows import opened_app

from engine.fen import Color
from gui.app import App
from gui.game.opponents import OpponentSpec
from gui.game.plan import GamePlan
from gui.help import Action
from gui.views.geometry import Rect
from gui.views.help_scene import HelpScene, KeysPanel, _unbroken
from gui.views.scene import TIP_SECONDS


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setattr("gui.window_events.IDLE_WAIT_MS", 5)
    with opened_app(tmp_path, window_width=480, window_height=360, animation_ms=0) as app:
        app.begin(GamePlan(frozenset(Color), dict.fromkeys(Color, OpponentSpec(kind="random"))), menu=False)
        app.controller.make(app.controller.session.board.parse_pdn("11-15"))
        yield app


def frames(app: App, count: int = 3) -> None:
    for _ in range(count):
        for event in app._events():
            app._dispatch(event)
        app.frame()


def press(app: App, name: str, *, ctrl: bool = False) -> None:
    text = name if len(name) == 1 and not ctrl else ""
    mod = pygame.KMOD_CTRL if ctrl else 0
    code = pygame.key.key_code(name)
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=code, mod=mod, unicode=text, scancode=0))
    frames(app)


def test_questions_are_answered_by_y_and_n(app: App) -> None:
    for offered, answer, over in (("d", "n", False), ("r", "n", False), ("d", "y", True)):
        press(app, offered)
        assert app.go.scene.question is not None
        press(app, answer)
        assert app.go.scene.question is None
        assert app.controller.session.is_over is over
    assert app.controller.session.ending is not None
    assert app.controller.session.ending.text == "Draw: agreed"


def test_the_answer_chosen_at_first_does_not_resign(app: App) -> None:
    press(app, "r")
    press(app, "return")
    assert app.go.scene.question is None
    assert not app.controller.session.is_over


def test_questions_of_other_scenes_have_the_same_keys(app: App) -> None:
    """Over the board that sets up a position, Y, N and Shift+Tab did nothing."""
    app.go.open(Action.SETUP)
    setup = app.go.scene
    press(app, "c")
    press(app, "escape")
    assert setup.question is not None
    press(app, "n")
    assert (setup.question, app.go.scene) == (None, setup)
    press(app, "escape")
    assert setup.question is not None
    assert [setup.question.key(key) for key in ("return", "shift+tab", "return")] == ["no", None, "yes"]
    press(app, "y")
    assert app.go.scene is app.go.game


@pytest.mark.parametrize("name", ["r", "d"])
def test_a_question_ends_with_its_game(app: App, name: str) -> None:
    press(app, name)
    assert app.go.scene.question is not None
    app.controller.session.flag(Color.WHITE)
    frames(app)
    assert app.go.scene.question is None


@pytest.mark.parametrize("name", ["r", "d"])
def test_at_an_earlier_position_resigning_and_draws_are_about_the_last_one(app: App, name: str) -> None:
    controller = app.controller
    for text in ("23-19", "9-14", "22-17"):
        controller.make(controller.session.board.parse_pdn(text))
    controller.go_to(1)
    controller.make(controller.session.board.parse_pdn("23-19"))  # the same move again: play goes on from here
    assert not controller.session.at_end
    press(app, name)
    assert controller.session.at_end
    assert app.go.scene.question is not None
    press(app, "y")
    assert controller.session.ending is not None
    assert len(controller.session.nodes) == 4


def test_keys_of_the_window_work_while_a_question_is_open(app: App) -> None:
    press(app, "r")
    theme = app.style.theme.name
    press(app, "t", ctrl=True)
    assert app.style.theme.name != theme
    press(app, "f11")
    assert app.preferences.fullscreen
    press(app, "f11")
    assert not app.preferences.fullscreen
    press(app, "f1")
    assert isinstance(app.go.scene, HelpScene)
    press(app, "escape")
    assert app.go.scene is app.go.game
    assert app.go.scene.question is not None  # still to be answered
    app.running = True
    press(app, "q", ctrl=True)
    assert not app.running
    assert not app.controller.session.is_over


LONG = (
    "preferences: the value of 'time_control' does not fit; the defaults are used, and the file is kept as "
    "preferences.json.broken"
)


def test_a_long_message_is_whole_in_the_smallest_window(app: App) -> None:
    status = app.go.game.status
    frames(app)
    low = status.rect.h
    app.controller.say(LONG, alarm=True)
    frames(app)
    lines, size = status._lines(app.style, status.rect.w - 2 * app.style.gap - status._badge(app.style) - app.style.gap)
    assert " ".join(lines) == LONG
    assert status.rect.h >= len(lines) * app.style.text.height(size) > low
    others = [panel.rect for panel in app.go.game.panels if panel is not status and panel.rect.h > 0]
    assert not any(status.rect.colliderect(rect) for rect in others)
    app.controller.say(LONG * 5, alarm=True)
    frames(app)
    assert status.rect.bottom < app.surface.get_height() * 2 // 3
    app.controller.say("", alarm=False)
    frames(app)
    assert status.rect.h == low


def test_only_so_many_lines_with_an_ellipsis_at_the_end(app: App) -> None:
    lines = app.style.text.wrap("eight little words that do not fit here", 12, 60, most=2)
    assert len(lines) == 2
    assert lines[-1].endswith("…")
    assert all(app.style.text.width(line, 12) <= 60 for line in lines)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1. 11-15 22-18 2. 11-16", "11-16 is illegal: Black must capture"),
        ('[FEN "B:W1:B32"]\n1. 11-15', "column 1: position: a man of White on 1"),
        ("B:W21:B21", "position: square 21 holds pieces of both sides"),
        ("b:w'21:b22", "is not a square"),
    ],
)
def test_what_is_wrong_is_said_without_fen(app: App, monkeypatch: pytest.MonkeyPatch, text: str, part: str) -> None:
    monkeypatch.setattr("gui.app.get_text", lambda: text)
    app.paste()
    message = app.controller.message().text
    assert part in message
    assert "FEN" not in message
    assert ":W" not in message
    assert len(message) < 120


class Held(dict[int, bool]):
    """What ``pygame.key.get_pressed`` returns."""

    def __missing__(self, code: int) -> bool:
        return False


def test_of_held_keys_only_those_of_navigation_repeat(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A held character key types once, even if frames are longer than the repeat delay; arrow keys repeat."""
    held = Held()
    monkeypatch.setattr(pygame.key, "get_pressed", lambda: held)
    monkeypatch.setattr("gui.key_repeat.DELAY_S", 0.0)
    entry = app.controller.input
    held[pygame.key.key_code("2")] = True
    press(app, "2")
    frames(app, 5)
    assert entry.typed == "2"
    press(app, "escape")
    held.clear()
    entry.cursor = 32
    press(app, "up")
    frames(app, 5)
    assert row_of(entry.cursor) == 6  # let go at once
    held[pygame.key.key_code("up")] = True
    press(app, "up")
    deadline = time.monotonic() + PATIENCE
    while row_of(entry.cursor) > 2:
        assert time.monotonic() < deadline
        frames(app, 1)


def row_of(square: int | None) -> int:
    assert square is not None
    return (square - 1) // 4


def test_the_page_of_a_comment_begins_in_its_text(app: App) -> None:
    app.controller.make(app.controller.session.board.parse_pdn("23-19"))
    press(app, "c")
    for name in (*"good", "return"):
        press(app, name)
    assert app.go.scene is app.go.game
    assert app.controller.session.nodes[-1].comments == ["good"]


@pytest.mark.parametrize("words", [150, 10_000])
def test_a_long_comment_is_kept_whole(app: App, words: int) -> None:
    session = app.controller.session
    comments = ["[%clk 0:01:00]", "first", " ".join(["word"] * words)]
    session.load_pdn(f"1. 11-15 {''.join(f'{{{text}}}' for text in comments)} *")
    for typed in ("", "x"):
        press(app, "c")
        for name in (*typed, "return"):
            press(app, name)
        assert app.go.scene is app.go.game
        if not typed:
            assert session.nodes[0].comments == comments
    assert session.annotation()[1] == ("x" if words > 1000 else f"first {comments[2]}x")


def test_a_tooltip_does_not_outlive_a_page_over_it(app: App) -> None:
    scene = app.go.game
    frames(app)
    scene.tip("Menu (F10)", Rect(10, 10, 20, 20), scene.motion.now - TIP_SECONDS)
    frames(app)
    assert scene._over is not None
    app.go.open(Action.HELP)
    app.go.back()
    frames(app)
    assert scene._over is None


@pytest.mark.parametrize("scene", ["game", "setup", "exercise", "report"])
def test_columns_of_keys_part_neither_texts_nor_headings_from_their_keys(app: App, scene: str) -> None:
    rows = KeysPanel._rows(scene, 200, app.style)
    for length in range(3, 30):
        placed = _unbroken(rows, length)
        assert all(text for _, text in placed[length - 1 :: length])
        if length > 4:  # longer than any entry with its heading
            assert all(keys or text == " " for keys, text in placed[::length])
        assert [row for row in placed if row != ("", " ")] == rows


def test_the_keys_have_as_many_pages_as_they_need(app: App) -> None:
    app.go.open(Action.HELP)
    frames(app)
    scene = app.go.scene
    assert isinstance(scene, HelpScene)
    pages = scene.keys.pages
    assert pages > 1  # in so small a window
    for page in (*range(1, pages), pages - 1):
        press(app, "page down")
        assert scene._page == page
    for _ in range(pages):
        press(app, "page up")
    assert scene._page == 0
