"""The real program in a real window: its own screen (Xvfb), mouse and keys (xdotool), pictures (ImageMagick).

The program's state is not accessed: the game is read from the file in which it is saved automatically.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from programs import PATIENCE, ROOT, until

from engine.board import Board, Move
from engine.pdn import PdnGame, read_game
from gui.preferences import FILE_NAME, Preferences, save_preferences
from gui.views.geometry import Rect, game_layout, square_rect

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
import pygame

NEEDED = ("Xvfb", "xdotool", "import")
MISSING = [name for name in NEEDED if shutil.which(name) is None]


@contextmanager
def screen(width: int = 1400, height: int = 1000) -> Iterator[str]:
    """A virtual screen; yields the value for DISPLAY."""
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp", "-noreset"],
        pass_fds=(writing,),
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        with open(reading) as answers:
            number = answers.readline().strip()
        assert number, "Xvfb does not start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait(10)


class RealWindow:
    """``crownhead play`` on a screen.

    Args:
        display: value of DISPLAY from ``screen``.
        home: folder for preferences and games.
        options: options of the command line.
        preferences: preferences to write before the start; None keeps those in ``home``.
        audio: SDL's audio driver.
    """

    def __init__(
        self, display: str, home: Path, *options: str, preferences: Preferences | None = None, audio: str = "dummy"
    ) -> None:
        self.home, self.preferences = home, preferences or Preferences()
        if preferences is not None:
            save_preferences(preferences, home / "crownhead" / FILE_NAME)
        self._environment = {
            **os.environ,
            "DISPLAY": display,
            "XDG_CONFIG_HOME": str(home),
            "XDG_DATA_HOME": str(home),
            "SDL_VIDEODRIVER": "x11",
            "SDL_AUDIODRIVER": audio,
        }
        self.started = time.monotonic()
        self.errors = home / "stderr.txt"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "crownhead.py"), "play", *options],
                env=self._environment, stderr=errors, cwd=home,
            )  # fmt: skip
        self.id = until(self._find, "the window")

    def _find(self) -> str:
        assert self.process.poll() is None, self.errors.read_text()
        found = self._run("xdotool", "search", "--onlyvisible", "--class", "crownhead", check=False)
        return found.decode().split()[0] if found.strip() else ""

    def _place(self) -> str:
        """Size and position on the screen in the form of ImageMagick; "" if the window is gone.

        While it opens, SDL may replace the window by a second one.
        """
        self.id = self._find() or self.id
        told = self._run("xdotool", "getwindowgeometry", "--shell", self.id, check=False).decode()
        of = dict(line.split("=") for line in told.splitlines())
        return f"{of['WIDTH']}x{of['HEIGHT']}+{of['X']}+{of['Y']}" if of else ""

    def _run(self, *command: str, check: bool = True) -> bytes:
        done = subprocess.run(command, env=self._environment, check=check, stdout=subprocess.PIPE, timeout=60,
                              stderr=None if check else subprocess.DEVNULL)  # fmt: skip
        return done.stdout

    # --- hands

    def click(self, x: int, y: int) -> None:
        self._run("xdotool", "mousemove", "--window", self.id, str(x), str(y), "click", "1")

    def keys(self, *names: str) -> None:
        """Presses keys, by xdotool's names."""
        self._run("xdotool", "key", "--window", "0", *names)

    def hold_key(self, name: str, seconds: float) -> None:
        """Presses a key for some time."""
        self._run("xdotool", "keydown", name)
        time.sleep(seconds)
        self._run("xdotool", "keyup", name)

    def focus(self) -> None:
        """Gives the window the keyboard focus, as there is no window manager."""
        self._run("xdotool", "windowfocus", "--sync", self.id)

    @property
    def board(self) -> Rect:
        """The board's rectangle in the window."""
        return game_layout(self.preferences.window_width, self.preferences.window_height).board

    def square(self, number: int, flipped: bool) -> tuple[int, int]:
        return square_rect(self.board, number, flipped).center

    def click_move(self, move: Move, flipped: bool) -> None:
        for square in move.path:
            self.click(*self.square(square, flipped))

    def drag_move(self, move: Move, flipped: bool) -> None:
        points = [self.square(square, flipped) for square in move.path]
        command = ["xdotool", "mousemove", "--window", self.id, *map(str, points[0]), "mousedown", "1"]
        for x, y in points[1:]:
            command += ["mousemove", "--window", self.id, str(x), str(y), "sleep", "0.05"]
        self._run(*command, "mouseup", "1")

    # --- eyes

    def game(self) -> PdnGame | None:
        """The newest saved game; None before the first move."""
        files = sorted((self.home / "crownhead" / "games").glob("*.pdn"), key=lambda path: path.stat().st_mtime)
        return read_game(files[-1].read_text()) if files else None

    def plies(self) -> int:
        game = self.game()
        return len(game.moves) if game else 0

    def position(self, start: Board | None = None) -> Board:
        """The board after the moves saved so far."""
        game = self.game()
        board = Board(game.start_fen) if game else (start or Board())
        for node in game.moves if game else ():
            board.push(node.move)
        return board

    def picture(self, keep: Path | None = None) -> np.ndarray:
        """The picture of the window: uint8 [width, height, 3]; also saved as PNG if ``keep`` says so."""
        path = keep or self.home / "picture.bmp"  # which takes no time to compress
        # A picture of the whole screen, because "import" would wait for ever for a window that is gone.
        crop = ("-crop", until(self._place, "the window's place"), "+repage")
        self._run("import", "-window", "root", *crop, "-depth", "8", "-define", "png:compression-level=9", str(path))
        return pygame.surfarray.array3d(pygame.image.load(path))

    def still_picture(self, keep: Path | None = None, seconds: float = 1.0) -> np.ndarray:
        """The picture once it has not changed for some time."""
        before, since, deadline = self.picture(), time.monotonic(), time.monotonic() + PATIENCE
        while time.monotonic() - since < seconds:
            assert time.monotonic() < deadline, "the window never comes to rest"
            time.sleep(0.1)
            now = self.picture()
            if not np.array_equal(now, before):
                before, since = now, time.monotonic()
        return self.picture(keep) if keep else before

    def close(self) -> float:
        """Closes the window by its key; returns the seconds this took."""
        self.focus()
        begin = time.monotonic()
        self.keys("ctrl+q")
        code = self.process.wait(PATIENCE)
        assert code == 0, self.errors.read_text()
        return time.monotonic() - begin

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)


@contextmanager
def window(
    display: str, home: Path, *options: str, preferences: Preferences | None = None, audio: str = "dummy"
) -> Iterator[RealWindow]:
    """A ``RealWindow`` that is closed at the end of the test."""
    made = RealWindow(display, home, *options, preferences=preferences, audio=audio)
    try:
        yield made
    except AssertionError as error:
        with contextlib.suppress(OSError, subprocess.SubprocessError, pygame.error):
            made.picture(home / "failed.png")
            error.add_note(f"what the window showed then: {home / 'failed.png'}")
        raise
    finally:
        made.kill()
