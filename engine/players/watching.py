"""Searches that can be watched and stopped: a player begins one, its caller advances it in time slices."""

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
    """What a search knows about one move, seen by the side that makes the move.

    Attributes:
        visits: simulations through the move; 0 if the search does not count them.
        prior: the network's prior probability of the move, or None.
        value: P(win) - P(loss), in [-1, 1]; None while it is unknown.
        wdl: probabilities of win, draw, loss; None if only the value is known.
        proof: proven result of the game after the move, or None.
        proof_plies: plies from after the move to the proven end, or None.
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
    """What a search has found so far, seen by the side to move.

    Attributes:
        moves: moves about which something is known; the first is the move to play.
        line: the expected line of play, beginning with ``moves[0].move``.
        value, wdl: value and probabilities of the position, see ``MoveThought``.
        count: work done, in the search's ``unit``.
        kept: part of ``count`` that was done for an earlier board.
        depth: plies searched in full; None for a search without a depth.
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
        unit: unit of ``Thought.count``.
    """

    unit: Unit

    @property
    def count(self) -> int:
        """Work done for this board, in ``unit``: ``Thought.count`` less ``Thought.kept``, without making a thought."""

    @property
    def progress(self) -> float:
        """Fraction of the work that is done, 0 to 1."""

    def advance(self, seconds: float) -> bool:
        """Continues the search for about ``seconds`` (at least one step); returns True if there is more to do."""

    def thought(self) -> Thought:
        """What has been found so far; call ``advance`` first."""

    def choose(self) -> Move:
        """The move to play if the search stops now; call ``advance`` first. Call it once: it may draw at random."""


@runtime_checkable
class PlanningPlayer(Protocol):
    """A player that plans how to win an ending before it searches.

    Attributes:
        planning_s: seconds that ``begin`` may take for it; None: half of the player's own, or no limit.
    """

    planning_s: float | None


@runtime_checkable
class WatchablePlayer(Player, Protocol):
    """A player whose searches can be watched."""

    def begin(self, board: Board, purpose: Purpose = "move") -> Thinking:
        """Begins a search of a board, which is not changed. The player's earlier search cannot be continued afterwards.

        Args:
            purpose: ``move``: the search that ``choose`` makes, except that the caller keeps the time limit. ``game``:
                the same without the player's limit, as far as its memory allows. ``analysis``: like ``game``, but
                without noise and without contempt for draws.

        Raises:
            PlayerError: the board has no legal move.
        """
