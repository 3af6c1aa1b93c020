"""What the search asks for: a batch of positions in, policy and win/draw/loss logits out."""

from typing import Protocol

import numpy as np

from ..encoding import NUM_POLICY


class Evaluator(Protocol):
    """A network, or anything that stands in for one."""

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Judges positions.

        Args:
            positions: uint32 [N, 4]: own, opp, kings, reversible plies, seen by the side to move.

        Returns:
            policy_logits float32 [N, 128] (layout: ``engine.encoding``); wdl_logits float32 [N, 3]: win, draw, loss
            for the side to move.
        """
        ...


class UniformEvaluator:
    """Gives every move the same prior and every position even chances; free, so it measures the search alone."""

    def __init__(self) -> None:
        self._policy = np.zeros((0, NUM_POLICY), np.float32)
        self._wdl = np.zeros((0, 3), np.float32)

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Zero logits for every position."""
        n = len(positions)
        if n > len(self._policy):
            self._policy = np.zeros((n, NUM_POLICY), np.float32)
            self._wdl = np.zeros((n, 3), np.float32)
        return self._policy[:n], self._wdl[:n]
