"""One search for the server: it runs in time slices, reports on itself, and ends at its limits or when stopped."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from ..board import Board, Move
from ..players.base import Player, search_moves
from ..players.search_player import SearchPlayer
from ..players.watching import PlanningPlayer, Thinking, Thought, WatchablePlayer
from .level import Level
from .messages import format_message
from .notation import format_move
from .score import score_of_end, score_of_value

Mode = Literal["think", "analyze", "ponder"]
_SLICE = 0.02  # seconds of search between two checks of the limits and of ``stop``
_TELL = 0.1  # seconds between two ``info`` lines
_PLANNING, _LONGEST_PLANNING = 0.2, 1.0  # seconds, without and with a time; a plan goes on at the next move
_EARLY = 0.005  # seconds that the search ends before its limit, for the last step and the answer


@dataclass(eq=False)
class Search:
    """A position to search, with limits. Another thread may call ``stop`` and ``hit``.

    Attributes:
        level: limits; None for the player's own.
        begun: ``time.monotonic()`` from which the time limit counts.
        pondering: whether it is not yet known that the move pondered on was played.
        stopped: whether ``stop`` was called.
        over: whether the answer has been written.
        released: set as soon as the search may answer: at once, or after ``stop`` or ``hit``.
    """

    board: Board
    level: Level | None
    mode: Mode
    begun: float = field(default_factory=time.monotonic)
    pondering: bool = field(init=False)
    stopped: bool = field(init=False, default=False)
    over: bool = field(init=False, default=False)
    released: threading.Event = field(init=False, default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.pondering = self.mode == "ponder"
        if not self.pondering and not self.endless:
            self.released.set()

    @property
    def endless(self) -> bool:
        """Whether only ``stop`` ends the search (after pondering)."""
        return self.mode == "analyze" if self.level is None else self.level.infinite

    @property
    def planning_s(self) -> float:
        """Seconds that the player may plan before it searches, without looking at ``stop``."""
        seconds = None if self.level is None or self.endless else self.level.seconds(self.board.ply // 2)
        return _PLANNING if seconds is None else min(seconds / 2, _LONGEST_PLANNING)

    def stop(self) -> None:
        """Ends the search; it then answers at once."""
        self.stopped = True
        self.released.set()

    def hit(self) -> None:
        """Notes that the move pondered on was played: from now on the limits count."""
        self.begun = time.monotonic()
        self.pondering = False
        if not self.endless:
            self.released.set()


def answer(player: Player, search: Search, write: Callable[[str], None]) -> str:
    """Searches, writes ``info`` lines, and returns the ``done`` line as soon as it may be sent.

    Raises ``PlayerError`` without a legal move, ``IllegalMoveError`` if the player's move is not legal.
    """
    moves = search_moves(search.board)
    line: tuple[Move, ...]
    if len(moves) == 1 and search.mode == "think" and not search.endless:
        line = (moves[0],)
    elif isinstance(player, WatchablePlayer):
        line = _watch(player, search, write)
    else:
        line = tuple(player.choose([search.board.copy()]))
    search.board.copy().push(line[0])
    search.released.wait()
    done = {"move": format_move(line[0])}
    if len(line) > 1:
        done["ponder"] = format_move(line[1])
    return format_message("done", done)


def _watch(player: WatchablePlayer, search: Search, write: Callable[[str], None]) -> tuple[Move, ...]:
    """Returns the move to play, and after it the expected reply if one is known."""
    started = told = time.monotonic()
    thinking = _begin(player, search)
    level, own = (None, None) if search.endless else (search.level, getattr(player, "seconds", None))
    seconds = own if level is None else level.seconds(search.board.ply // 2)
    counted = level is not None and (level.nodes is not None or _goes_by_depth(level, thinking))
    forced = search.mode == "ponder" and not search.endless and len(search_moves(search.board)) == 1
    while True:
        left = _SLICE
        if seconds is not None and not search.pondering:
            left = min(left, search.begun + seconds - _EARLY - time.monotonic())
        more = thinking.advance(0.0 if counted else max(0.0, left))
        now = time.monotonic()
        if search.stopped or not more:
            break
        if not search.pondering:
            if forced or (seconds is not None and now >= search.begun + seconds - _EARLY):
                break
            if level is not None and counted and _is_enough(level, thinking):
                break
        if now - told >= _TELL:
            told = now
            write(_info(thinking.thought(), now - started))
    thought = thinking.thought()
    write(_info(thought, time.monotonic() - started))
    move = thinking.choose()
    return (move, *(thought.line[1:2] if thought.line[:1] == (move,) else ()))


def _begin(player: WatchablePlayer, search: Search) -> Thinking:
    """Begins the search: with the player's own limits if the level has none that it can use, else without limits."""
    if isinstance(player, PlanningPlayer):
        player.planning_s = search.planning_s
    by_depth = search.mode == "analyze" and search.level is not None and search.level.by_depth
    if by_depth and isinstance(player, SearchPlayer):
        # Its own limit, but not its own search, which is partial and may draw its move.
        search.level = Level(nodes=max(1, player.config.num_simulations))
    if search.level is None and search.mode != "analyze":
        return player.begin(search.board)
    thinking = player.begin(search.board, "analysis" if search.mode == "analyze" else "game")
    level = search.level
    usable = level is None or not level.by_depth or _goes_by_depth(level, thinking)
    return thinking if usable else player.begin(search.board)


def _goes_by_depth(level: Level, thinking: Thinking) -> bool:
    """Whether a level's depth can limit a search: one that has a depth. Makes a step of the search to find out."""
    if level.depth is None:
        return False
    thinking.advance(0.0)
    return thinking.thought().depth is not None


def _is_enough(level: Level, thinking: Thinking) -> bool:
    if level.nodes is not None and thinking.count >= level.nodes:
        return True
    depth = None if level.depth is None else thinking.thought().depth
    return depth is not None and depth >= (level.depth or 0)


def _info(thought: Thought, seconds: float) -> str:
    """The ``info`` line; ``nps`` is in millions, as in Scan. A search without a depth shows the length of its line."""
    nodes = thought.count - thought.kept
    args: dict[str, object] = {"depth": len(thought.line) if thought.depth is None else thought.depth}
    best = thought.moves[0]
    if best.proof in ("win", "loss"):
        plies = None if best.proof_plies is None else best.proof_plies + 1
        args["score"] = f"{score_of_end(best.proof == 'win', plies):.2f}"
    elif thought.value is not None:
        args["score"] = f"{score_of_value(0.0 if best.proof == 'draw' else thought.value):.2f}"
    args |= {"nodes": nodes, "time": f"{seconds:.3f}"}
    if seconds > 0:
        args["nps"] = f"{nodes / seconds / 1e6:.6f}"
    args["pv"] = " ".join(format_move(move) for move in thought.line)
    return format_message("info", args)
