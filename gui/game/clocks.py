"""Clocks: none, a time for every move, or Fischer's (a time for the game and an increment for every move)."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from engine.fen import Color
from engine.pdn import PdnNode
from engine.players.time_control import TimeControl, move_budget

_SHARE_OF_A_MOVE = 0.8  # part of a time per move for thinking; the rest is for animation and delays
_LEAST_SECONDS = 0.05
TimeControlText = Annotated[
    str,
    Field(max_length=40, description="-, 1/10 (seconds for every move) or 300+3"),
    AfterValidator(lambda text: str(TimeControl.parse(text))),
]
TENTHS_BELOW_S = 20.0  # a clock shows tenths of a second below this time


class Clock:
    """The clocks of both players. Time is measured by ``now`` (monotonic seconds), not by counting frames.

    Attributes:
        running: the side whose clock runs, or would run without a pause; None before and after the game.
    """

    def __init__(self, control: TimeControl | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.reset(control or TimeControl())

    def reset(self, control: TimeControl, left: Mapping[Color, float] | None = None) -> None:
        """Stops both clocks and sets them to the full time, or to ``left`` (seconds)."""
        self.control = control
        self.running: Color | None = None
        self.paused = False
        self._since = self._now()  # time of the last ``_settle``
        self._left = dict.fromkeys(Color, control.base_s) | dict(left or {})

    def start(self, color: Color) -> None:
        """Starts the clock of ``color``; with a time for every move, it gets the full time."""
        self._settle()
        self.running = color
        if self.control.kind == "move":
            self._left[color] = self.control.base_s

    def press(self, color: Color) -> None:
        """Ends the turn of ``color``: adds its increment and starts the other clock; not after a flag has fallen."""
        self._settle()
        if self.flagged() is None:
            if self.control.kind == "fischer":
                self._left[color] += self.control.increment_s
            self.start(color.other)

    def stop(self) -> None:
        """Stops both clocks at the end of the game."""
        self._settle()
        self.running = None

    def pause(self, paused: bool = True) -> None:
        """Pauses the clocks, or continues."""
        self._settle()
        self.paused = paused

    def remaining(self, color: Color) -> float | None:
        """Seconds left, not below 0; None without a clock."""
        return None if self.control.kind == "none" else max(0.0, self._left[color] - self._unsettled(color))

    def budget(self, color: Color, moves: int) -> float | None:
        """Most seconds that an agent should think after ``moves`` own moves; None without a clock."""
        left = self.remaining(color)
        if left is None:
            return None
        if self.control.kind == "move":
            return max(_LEAST_SECONDS, _SHARE_OF_A_MOVE * left)
        return move_budget(self.control, left, moves)

    def flagged(self) -> Color | None:
        """The side whose time is over, or None."""
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
        """Sets the clocks to their times after ``nodes``, from the clocks noted in these; ``first`` made the first
        move.

        The clock of the side to move runs if one was running; a side without a note gets its full time.
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
        """Seconds that the clock of ``color`` has run since the last ``_settle``."""
        return self._now() - self._since if color is self.running and not self.paused else 0.0

    def _settle(self) -> None:
        now = self._now()
        if self.running is not None and not self.paused:
            self._left[self.running] -= now - self._since
        self._since = now
