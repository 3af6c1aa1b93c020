"""The board's window for tests."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pygame

from gui.app import App
from gui.display import start_pygame
from gui.game.endgame_info import EndgameInfo
from gui.game.opponents import Opponents
from gui.preferences import Preferences, save_preferences


@contextmanager
def opened_app(folder: Path, *arguments: Any, **preferences: Any) -> Iterator[App]:
    """The program with an open window, without sounds, with its files in ``folder``; ``arguments``: for ``App``."""
    save_preferences(Preferences(sounds=False, **preferences), folder / "preferences.json")
    start_pygame()
    app = App(Opponents(), EndgameInfo(), folder, *arguments)
    app.open_window()
    yield app
    app.close()
    pygame.quit()


def frames_until(app: App, look: Callable[[], object], seconds: float = 60.0) -> None:
    """Draws frames until ``look`` returns something true."""
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline
        app.frame()
        time.sleep(0.005)
