"""Time controls, and how a player divides its time among its moves."""

import re
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from ..errors import DraughtsError
from .base import Player

SHORTEST_S = 0.001
LONGEST_S = 24 * 3600.0
_NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
_GAME_MOVES = 40  # number of a player's moves that a game is expected to have
_LEAST_MOVES = 15  # smallest number of moves to plan for, however late in the game
_INCREMENT_SHARE = 0.8  # part of the increment that a move may use
_MOST = 0.5  # largest part of a clock's time for one move
_OVERHEAD_S = 0.03  # seconds left on the clock for sending the move
_ANSWER_S = 0.003  # seconds of a move's time reserved for reading the answer from the tree, which takes 1 to 2 ms
_SHOWN = 40


class TimeControlError(DraughtsError):
    """A time control cannot be parsed, or a time is out of range."""


def _plain(seconds: float) -> str:
    """A number of seconds as ``TimeControl.parse`` reads it, to the microsecond."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class TimeControl:
    """How much time the players have.

    Attributes:
        kind: ``none``; ``move``: a time for every move, not carried over; ``fischer``: a clock for the whole game.
        base_s: seconds for each move (``move``), or on the clock at the start (``fischer``).
        increment_s: seconds added for every move (``fischer``).

    Raises:
        TimeControlError: ``kind`` is unknown or a time is out of range.
    """

    kind: Literal["none", "move", "fischer"] = "none"
    base_s: float = 0.0
    increment_s: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("none", "move", "fischer"):
            raise TimeControlError(f"clock {self.kind!r}: must be none, move or fischer")
        if self.kind != "none" and not SHORTEST_S <= self.base_s <= LONGEST_S:
            raise TimeControlError(f"clock: {self.base_s:g} s is not in {SHORTEST_S:g} s to {LONGEST_S / 3600:g} hours")
        if not 0 <= self.increment_s <= LONGEST_S:
            raise TimeControlError(
                f"clock: an increment of {self.increment_s:g} s is not in 0 s to {LONGEST_S / 3600:g} hours"
            )

    @classmethod
    def parse(cls, text: str) -> "TimeControl":
        """Parses the format of PGN's tag TimeControl: ``-`` (none), ``1/10`` (10 s for every move), ``300+3``, ``300``.

        Raises ``TimeControlError`` if the text has another format, or a time is out of range.
        """
        text = text.strip()
        if text in ("-", ""):
            return cls()
        if match := re.fullmatch(rf"1/{_NUMBER}", text):
            return cls("move", float(match[1]))
        return cls.parse_fischer(text, "-, 1/10 (seconds for every move) or 300+3 (seconds and increment)")

    @classmethod
    def parse_fischer(cls, text: str, possible: str = "seconds and increment, like 60+0.6") -> "TimeControl":
        """Parses ``300+3`` or ``300`` alone; ``possible`` is what the message names. Raises what ``parse`` does."""
        match = re.fullmatch(rf"{_NUMBER}(?:\+{_NUMBER})?", text.strip())
        if match is None:
            raise TimeControlError(f"clock {text[:_SHOWN]!r}: write {possible}")
        return cls("fischer", float(match[1]), float(match[2] or 0))

    def __str__(self) -> str:
        if self.kind == "none":
            return "-"
        if self.kind == "move":
            return f"1/{_plain(self.base_s)}"
        return f"{_plain(self.base_s)}+{_plain(self.increment_s)}"

    @property
    def label(self) -> str:
        """Text for people: ``no clock``, ``10 s per move``, ``5 min + 3 s``."""
        if self.kind == "none":
            return "no clock"
        if self.kind == "move":
            return f"{_duration(self.base_s)} per move"
        return _duration(self.base_s) + (f" + {_duration(self.increment_s)}" if self.increment_s else "")


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 and seconds % 30 == 0 else f"{seconds:g} s"


def move_budget(control: TimeControl, remaining_s: float, moves_made: int) -> float | None:
    """Seconds to think about the next move, None without limit.

    With a clock: the remaining time divided by the number of moves expected to follow, and most of the increment; at
    most half of the remaining time.

    Args:
        remaining_s: seconds on the player's clock, before the increment for this move is added.
        moves_made: number of moves that the player has made in this game.
    """
    if control.kind == "none":
        return None
    if control.kind == "move":
        return control.base_s
    return clock_share(remaining_s, control.increment_s, moves_made)


def clock_share(remaining_s: float, increment_s: float, moves_made: int, moves: int | None = None) -> float:
    """``move_budget`` with a clock; ``moves``: number of moves that the clock must last for, if known."""
    moves = moves or max(_LEAST_MOVES, _GAME_MOVES - moves_made)
    left = max(0.0, remaining_s - _OVERHEAD_S)
    return max(SHORTEST_S, min(left / moves + _INCREMENT_SHARE * increment_s, left if moves == 1 else _MOST * left))


def search_time(budget_s: float) -> float:
    """Seconds of a move's time for the search; the rest is for reading its answer."""
    return budget_s - min(_ANSWER_S, budget_s / 4)


@runtime_checkable
class ClockedPlayer(Protocol):
    """A player that divides the time of a clock among its moves by itself."""

    def set_clock(self, remaining_s: float, increment_s: float) -> None:
        """Tells the player its clock before its next move; the increment for that move is not yet added."""


def give_time(player: Player, control: TimeControl, remaining_s: float, moves_made: int) -> float | None:
    """Tells a player how long it may think about its next move, by its attribute ``seconds`` or by ``set_clock``.

    Returns:
        See ``move_budget``; None also for a player that has neither.
    """
    budget = move_budget(control, remaining_s, moves_made)
    if control.kind == "fischer" and isinstance(player, ClockedPlayer):
        player.set_clock(remaining_s, control.increment_s)
    elif budget is not None and hasattr(player, "seconds"):
        player.seconds = budget
    else:
        return None
    return budget
