"""Games of self-play that begin beside earlier ones (forked games: Wu 2019, "Accelerating Self-Play Learning in Go").

A game between equals rarely leaves the balance, but most positions of a search do: one side has made a move that is not
the best, and the other has to show why. So games begin after such moves.
"""

from collections import deque

import numpy as np

from engine.bitboard import turned
from engine.board import Board
from engine.fen import Color, format_fen
from engine.movegen import DISTINCT, generate, new_moves

from .records import GAME, Samples

FEWEST_PIECES = 9  # fewest pieces of a position to begin at: endgames are reached from there
_KEPT = 1000


class Forks:
    """Positions for games to begin at, each beside a finished game; the newest are kept."""

    def __init__(self) -> None:
        self._positions: deque[tuple[int, int, int]] = deque(maxlen=_KEPT)

    def add(self, samples: Samples, rng: np.random.Generator) -> None:
        """Keeps the position after a move of a finished game that was not the search's choice, if there is one.

        The game's position is drawn among those with a policy, the move by the policy without its largest share.
        """
        pieces = np.bitwise_count(samples.positions[:, 0] | samples.positions[:, 1])
        rows = np.flatnonzero(samples.has_policy & (samples.kind == GAME) & (pieces >= FEWEST_PIECES))
        if len(rows) == 0:
            return
        row = rows[rng.integers(len(rows))]
        first, last = samples.policy_offsets[row : row + 2]
        policy = samples.move_probabilities[first:last].astype(float)
        policy[policy.argmax()] = 0
        if policy.sum() > 0:
            index = int(rng.choice(len(policy), p=policy / policy.sum()))
            self._positions.append(_after(samples.positions[row], index))

    def take(self, rng: np.random.Generator) -> Board | None:
        """A position, drawn among those kept, which is kept no longer; None if there is none. Black is to move."""
        if not self._positions:
            return None
        index = int(rng.integers(len(self._positions)))
        position = self._positions[index]
        del self._positions[index]
        return Board(format_fen(Color.BLACK, *position))


def _after(position: np.ndarray, index: int) -> tuple[int, int, int]:
    """The position after a legal move, by its index in the order of ``movegen.generate(distinct=True)``."""
    moves = new_moves(1)[0]
    generate(position[0], position[1], position[2], moves, DISTINCT)
    move = moves[index]
    return int(turned(move["opp"])), int(turned(move["own"])), int(turned(move["kings"]))
