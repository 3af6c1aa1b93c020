"""What the search asks for: a batch of positions in, policy and win/draw/loss logits out."""

from typing import Protocol

import numpy as np


class Evaluator(Protocol):
    """A network, or anything that stands in for one."""

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Judges positions.

        Args:
            positions: uint32 [N, 4]: own, opp, kings, reversible plies, seen by the side to move.

        Returns:
            policy_logits float32 [N, 128] (layout: ``engine.encoding``), or None for equal priors;
            wdl_logits float32 [N, 3]: win, draw, loss for the side to move.
        """
        ...


class UniformEvaluator:
    """Gives every move the same prior and every position even chances; free, so it measures the search alone."""

    def __init__(self) -> None:
        self._wdl = np.zeros((0, 3), np.float32)

    def evaluate(self, positions: np.ndarray) -> tuple[None, np.ndarray]:
        """No policy, and zero WDL logits for every position."""
        if len(positions) > len(self._wdl):
            self._wdl = np.zeros((len(positions), 3), np.float32)
        return None, self._wdl[: len(positions)]
