"""Forked games of self-play (Wu 2019, "Accelerating Self-Play Learning in Go"): they branch off from earlier games.

Games between equal players stay balanced, but in most positions of a search one side has made a bad move that the other
must punish. So some games begin after such moves.
"""

from collections import deque

import numpy as np

from engine.bitboard import turned
from engine.board import Board
from engine.fen import Color, format_fen
from engine.movegen import DISTINCT, generate, new_moves

from .records import GAME, Samples

FEWEST_PIECES = 9  # fewest pieces at which a game branches off: endgames are reached from there
_KEPT = 1000


class Forks:
    """The newest ``_KEPT`` positions at which games can begin; each is one move beside a finished game."""

    def __init__(self) -> None:
        self._positions: deque[tuple[int, int, int]] = deque(maxlen=_KEPT)

    def add(self, samples: Samples, rng: np.random.Generator) -> None:
        """Adds a position that differs from a finished game by one move, if the game allows one.

        The position to branch off from is drawn from the game's samples with a policy; the move is drawn by this
        policy, but never the most probable one.
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
        """Removes a random position and returns it with Black to move; None if there is none."""
        if not self._positions:
            return None
        index = int(rng.integers(len(self._positions)))
        position = self._positions[index]
        del self._positions[index]
        return Board(format_fen(Color.BLACK, *position))


def _after(position: np.ndarray, index: int) -> tuple[int, int, int]:
    """The position (own, opp, kings) after the legal move ``index`` in the order of ``generate`` with ``DISTINCT``."""
    moves = new_moves(1)[0]
    generate(position[0], position[1], position[2], moves, DISTINCT)
    move = moves[index]
    return int(turned(move["opp"])), int(turned(move["own"])), int(turned(move["kings"]))
