"""The interface of evaluators: a batch of positions in, policy and win/draw/loss logits out."""

from typing import Protocol

import numpy as np


class Evaluator(Protocol):
    """A network, or anything that stands in for one."""

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Evaluates positions.

        Args:
            positions: uint32 [N, 4]: own, opp, kings, reversible plies, seen by the side to move.

        Returns:
            policy_logits float32 [N, 128] (layout: ``engine.encoding``), or None for equal priors;
            wdl_logits float32 [N, 3]: win, draw, loss for the side to move.
        """
        ...
