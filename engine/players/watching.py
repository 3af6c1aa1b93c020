"""Searches that can be watched and stopped: a player begins one, its caller advances it in slices and looks at it."""

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from ..board import Board, Move
from .base import Player

Proof = Literal["win", "draw", "loss"]
Unit = Literal["simulations", "roll-outs", "nodes"]
Wdl = tuple[float, float, float]
Purpose = Literal["move", "game", "analysis"]


@dataclass(frozen=True)
class MoveThought:
    """What a search knows of one move; everything is seen by the side that makes it.

    Attributes:
        visits: simulations through it; 0 where the search does not count them.
        prior: what the network gave it, or None.
        value: P(win) - P(loss), in [-1, 1]; None while nothing is known.
        wdl: probabilities of win, draw, loss; None where only the value is known.
        proof: how the game ends after it, where that is proven.
        proof_plies: plies to the proven end after the move, where they are known.
    """

    move: Move
    visits: int = 0
    prior: float | None = None
    value: float | None = None
    wdl: Wdl | None = None
    proof: Proof | None = None
    proof_plies: int | None = None


@dataclass(frozen=True)
class Thought:
    """What a search has found so far; everything is seen by the side to move.

    Attributes:
        moves: those it can say something about, the one it would play first.
        line: the expected line of play, beginning with ``moves[0].move``.
        value, wdl: of the position, see ``MoveThought``.
        count: work done, in the search's unit.
        kept: how much of it was done for an earlier board.
        depth: plies searched in full by a search that goes by depth.
    """

    moves: tuple[MoveThought, ...]
    line: tuple[Move, ...]
    value: float | None
    wdl: Wdl | None
    count: int
    kept: int = 0
    depth: int | None = None

    @property
    def best(self) -> Move:
        return self.moves[0].move


class Thinking(Protocol):
    """One search of one board.

    Attributes:
        unit: what ``Thought.count`` counts.
    """

    unit: Unit

    @property
    def progress(self) -> float:
        """The part of the work that is done, 0 to 1."""

    def advance(self, seconds: float) -> bool:
        """Searches on for about ``seconds`` (one step at least); True while there is more to do."""

    def thought(self) -> Thought:
        """What has been found so far; only after ``advance``."""

    def choose(self) -> Move:
        """The move the player makes if it stops here; only after ``advance``. Ask once: it may be drawn at random."""


@runtime_checkable
class WatchablePlayer(Player, Protocol):
    """A player whose searches can be watched."""

    def begin(self, board: Board, purpose: Purpose = "move") -> Thinking:
        """Begins to search a board, which is left as it is; the player's earlier search is over then.

        Args:
            purpose: ``move``: the search that ``choose`` makes; a limit in seconds is left to the caller. ``game``: the
                same, but not to the player's limit: as far as its memory goes. ``analysis``: as far as that, too, and
                to find the best move of either side: without noise, and without contempt for draws.

        Raises:
            PlayerError: the board has no legal move.
        """
