"""Clocks: none, a time for every move, or Fischer's (a time for the game and an increment for every move)."""

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.errors import DraughtsError
from engine.fen import Color
from engine.pdn import PdnNode

LONGEST_S = 24 * 3600.0
TENTHS_BELOW_S = 20.0  # a clock shows tenths when so little is left
_NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,3})?)"


class ClockError(DraughtsError):
    """A time control that cannot be read, or a time out of range."""


@dataclass(frozen=True)
class TimeControl:
    """How much time the players have.

    Attributes:
        base_s: seconds for each move (``move``) or for the whole game (``fischer``).
        increment_s: seconds added after every move (``fischer``).

    Raises:
        ClockError: a time out of range.
    """

    kind: Literal["none", "move", "fischer"] = "none"
    base_s: float = 0.0
    increment_s: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("none", "move", "fischer"):
            raise ClockError(f"clock {self.kind!r}: must be none, move or fischer")
        if self.kind != "none" and not 0.1 <= self.base_s <= LONGEST_S:
            raise ClockError(f"clock: {self.base_s:g} s is not in 0.1 s to {LONGEST_S / 3600:g} hours")
        if not 0 <= self.increment_s <= LONGEST_S:
            raise ClockError(
                f"clock: an increment of {self.increment_s:g} s is not in 0 s to {LONGEST_S / 3600:g} hours"
            )

    @classmethod
    def parse(cls, text: str) -> "TimeControl":
        """Reads the form of PGN's tag TimeControl: ``-`` (none), ``1/10`` (10 s for every move), ``300+3``, ``300``.

        Raises:
            ClockError: the text is of another form, or a time out of range.
        """
        text = text.strip()
        if text in ("-", ""):
            return cls()
        if match := re.fullmatch(rf"1/{_NUMBER}", text):
            return cls("move", float(match[1]))
        if match := re.fullmatch(rf"{_NUMBER}(?:\+{_NUMBER})?", text):
            return cls("fischer", float(match[1]), float(match[2] or 0))
        raise ClockError(
            f"clock {text[:40]!r}: write -, 1/10 (seconds for every move) or 300+3 (seconds and increment)"
        )

    def __str__(self) -> str:
        if self.kind == "none":
            return "-"
        if self.kind == "move":
            return f"1/{self.base_s:g}"
        return f"{self.base_s:g}+{self.increment_s:g}"

    @property
    def label(self) -> str:
        """For people: ``no clock``, ``10 s per move``, ``5 min + 3 s``."""
        if self.kind == "none":
            return "no clock"
        if self.kind == "move":
            return f"{_duration(self.base_s)} per move"
        return _duration(self.base_s) + (f" + {_duration(self.increment_s)}" if self.increment_s else "")


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 and seconds % 30 == 0 else f"{seconds:g} s"


class Clock:
    """The clocks of both players. Time is measured on ``now``, never counted in frames.

    Args:
        control: the times; none if left out.
        now: seconds on a clock that never goes back.

    Attributes:
        running: the side whose time runs, also while paused.
        paused: whether time stands still.
    """

    def __init__(self, control: TimeControl | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.reset(control or TimeControl())

    def reset(self, control: TimeControl | None = None) -> None:
        """Full times and nobody's running; the time control stays if left out."""
        if control is not None:
            self.control = control
        self.running: Color | None = None
        self.paused = False
        self._since = self._now()  # when the time now running was last added to the accounts
        self._left = dict.fromkeys(Color, self.control.base_s)
        self._used = dict.fromkeys(Color, 0.0)

    def start(self, color: Color) -> None:
        """Lets the time of ``color`` run; with a time for every move, the whole of it."""
        self._settle()
        self.running = color
        if self.control.kind == "move":
            self._left[color] = self.control.base_s

    def press(self, color: Color) -> None:
        """``color`` has moved: it gains the increment, and the other side's time runs. A fallen flag stays fallen."""
        self._settle()
        if self.flagged() is None:
            if self.control.kind == "fischer":
                self._left[color] += self.control.increment_s
            self.start(color.other)

    def stop(self) -> None:
        """The game is over: nobody's time runs."""
        self._settle()
        self.running = None

    def pause(self) -> None:
        """Time stands still until ``resume``."""
        self._settle()
        self.paused = True

    def resume(self) -> None:
        """Time runs on after ``pause``."""
        self._settle()
        self.paused = False

    def remaining(self, color: Color) -> float | None:
        """Seconds left, not below 0; None without a clock."""
        return None if self.control.kind == "none" else max(0.0, self._left[color] - self._unsettled(color))

    def used(self, color: Color) -> float:
        """Seconds of thinking altogether."""
        return self._used[color] + self._unsettled(color)

    def flagged(self) -> Color | None:
        """The side whose time is over."""
        return next((color for color in Color if self.remaining(color) == 0), None)

    def text(self, color: Color) -> str:
        """The time left, rounded up: ``1:02:03``, ``4:05``, ``0:09.8`` when little is left; "" without a clock."""
        left = self.remaining(color)
        if left is None:
            return ""
        tenths = math.ceil(left * 10 - 1e-6)
        if tenths < TENTHS_BELOW_S * 10:
            return f"0:{tenths // 10:02}.{tenths % 10}"
        seconds = math.ceil(left - 1e-6)
        hours, minutes = divmod(seconds // 60, 60)
        return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"

    def rewind(self, nodes: Sequence[PdnNode], first: Color) -> None:
        """Sets the times as they were after some moves, from the clocks noted with these.

        The time of the side to move runs if time was running; a side without a note has its full time.

        Args:
            nodes: the moves made.
            first: the side that made the first of them.
        """
        self._settle()
        self._left = dict.fromkeys(Color, self.control.base_s)
        mover = first
        for node in nodes:
            if node.clock is not None and self.control.kind == "fischer":
                self._left[mover] = node.clock
            mover = mover.other
        if self.running is not None:
            self.running = mover

    def _unsettled(self, color: Color) -> float:
        """Seconds of ``color`` that have run since the accounts were settled."""
        return self._now() - self._since if color is self.running and not self.paused else 0.0

    def _settle(self) -> None:
        now = self._now()
        if self.running is not None and not self.paused:
            self._left[self.running] -= now - self._since
            self._used[self.running] += now - self._since
        self._since = now
