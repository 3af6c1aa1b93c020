"""How long to think: the ``level`` command of the Hub protocol."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from ..players.time_control import clock_share
from .messages import HubError, shown

_GREATEST = 1e15  # largest number accepted in a level
Number = TypeVar("Number", int, float)


class Level(NamedTuple):
    """Limits of a search. The first limit that is reached ends it; None means no limit.

    Attributes:
        depth: plies to search.
        nodes: nodes to search, in the player's own unit (nodes, simulations or roll-outs).
        move_time: seconds for the move.
        time: seconds on the clock, before the increment for this move is added.
        moves: number of moves that ``time`` must last for; None for the rest of the game.
        inc: seconds added to the clock for every move.
        infinite: whether the search goes on until it is stopped.
    """

    depth: int | None = None
    nodes: int | None = None
    move_time: float | None = None
    time: float | None = None
    moves: int | None = None
    inc: float = 0.0
    infinite: bool = False

    @property
    def timed(self) -> bool:
        return (self.time, self.move_time) != (None, None)

    @property
    def limited(self) -> bool:
        """Whether these limits end a search."""
        return not self.infinite and (self.timed or (self.depth, self.nodes) != (None, None))

    @property
    def by_depth(self) -> bool:
        """Whether depth is the only limit."""
        return self.limited and self.nodes is None and not self.timed

    def seconds(self, moves_made: int) -> float | None:
        """Seconds for the player's next move after ``moves_made`` own moves; None: no limit. See ``clock_share``."""
        if self.time is None:
            return self.move_time
        share = clock_share(self.time + self.inc, self.inc, moves_made, self.moves)
        return share if self.move_time is None else min(share, self.move_time)


def parse_level(args: Mapping[str, str]) -> Level | None:
    """The level that a command's arguments give, None if they give no limit. Unknown arguments are ignored.

    Raises ``HubError`` if a value is not a number, or is out of range.
    """
    level = Level(
        depth=_number(args, "depth", int, 1),
        nodes=_number(args, "nodes", int, 1),
        move_time=_number(args, "move-time", float, 0.0),
        time=_number(args, "time", float, -_GREATEST),
        moves=_number(args, "moves", int, 0) or None,
        inc=_number(args, "inc", float, 0.0) or 0.0,
        infinite="infinite" in args,
    )
    return level if level.limited or level.infinite else None


def _number(args: Mapping[str, str], name: str, kind: Callable[[str], Number], least: float) -> Number | None:
    if name not in args:
        return None
    try:
        value = kind(args[name])
    except ValueError:
        value = None
    if value is None or not least <= value <= _GREATEST:
        whole = "a whole number" if kind is int else "a number"
        from_there = f" from {least:g} up" if least >= 0 else ""
        raise HubError(f"level: {name} is {shown(args[name])}, not {whole}{from_there}")
    return value
