"""The position as a picture, and the sound at the end of a game."""

import os
from collections.abc import Iterator
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

import pygame
from windows import opened_app

from engine.board import Board
from engine.fen import Color
from engine.players.time_control import TimeControl
from gui.app import App
from gui.game.opponents import OpponentSpec
from gui.game.plan import GamePlan
from gui.help import Action
from gui.views.file_pages import FilesPage

BLOCKING = "B:W12:B3,4"  # 4-8 takes the last free square


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with opened_app(tmp_path, animation_ms=0) as app:
        yield app


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs a fake xclip as the only tool; returns the file into which it writes its input."""
    folder, copied = tmp_path / "bin", tmp_path / "copied"
    folder.mkdir()
    program = folder / "xclip"
    program.write_text(f'#!/bin/sh\n[ "$4" = image/png ] && exec /bin/cat > "{copied}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return copied


def begin(app: App, *humans: Color, fen: str = BLOCKING) -> None:
    agents = dict.fromkeys(Color, OpponentSpec(kind="random"))
    app.begin(GamePlan(frozenset(humans), agents, fen, (), TimeControl.parse("-")), menu=False)
    app.frame()


def pictures(app: App) -> list[Path]:
    return sorted(app.autosave.folder.glob("*.png"))


def test_a_picture_is_saved_and_copied(app: App, tool: Path) -> None:
    begin(app, *Color)
    app.go.game.keys.perform(Action.COPY_PICTURE)
    (path,) = pictures(app)
    assert app.controller.notice == f"Copied; saved beside the kept games as {path.name}"
    assert tool.read_bytes() == path.read_bytes()
    shown = pygame.image.load(path)
    width, height = shown.get_size()
    assert width == height > 400
    app.go.game.flip()
    app.go.game.keys.perform(Action.COPY_PICTURE)
    turned = pygame.image.load(next(other for other in pictures(app) if other != path))
    pixels = [pygame.surfarray.array3d(image) for image in (shown, turned)]
    assert (pixels[0] != pixels[1]).any()


def test_without_a_clipboard_the_picture_is_saved(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    begin(app, *Color)
    app.go.show(FilesPage)
    app.copy_picture()
    assert len(pictures(app)) == 1


def test_where_nothing_can_be_saved_the_window_says_so(app: App) -> None:
    begin(app, *Color)
    app.autosave.folder = app.preferences_file / "no folder"
    app.copy_picture()
    assert "no folder" in app.controller.notice


@pytest.mark.parametrize(
    ("humans", "ends", "sound"),
    [
        ((Color.BLACK,), "4-8", "won"),
        ((Color.BLACK, Color.WHITE), "4-8", "won"),
        ((Color.BLACK,), "resign", "lost"),
        ((Color.BLACK, Color.WHITE), "draw", "drawn"),
    ],
)
def test_the_end_of_a_game_is_heard_once(
    app: App, monkeypatch: pytest.MonkeyPatch, humans: tuple[Color, ...], ends: str, sound: str
) -> None:
    heard: list[tuple[str, bool]] = []
    monkeypatch.setattr(app.sounds, "play", lambda name, on: heard.append((name, on)))
    begin(app, *humans)
    session = app.controller.session
    if ends == "resign":
        app.controller.resign()
    elif ends == "draw":
        session.offer_draw(Color.BLACK)
        session.answer_draw(True)
    else:
        app.controller.make(Board(BLOCKING).parse_pdn(ends))
    for _ in range(3):
        app.frame()
    assert [one for one in heard if one[0] != "move"] == [(sound, False)]  # as the preferences say: silent
