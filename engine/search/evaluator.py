"""The interfaces of what a search asks about positions: an evaluator, and exact tables."""

from typing import Protocol

import numpy as np

from ..tablebase.probing import Tables


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


class LeafOracle(Protocol):
    """Exact values of endgames.

    Attributes:
        max_pieces: largest number of pieces of a position that is looked up.
    """

    max_pieces: int

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Looks positions up.

        Args:
            positions: uint32 [N, 4]: own, opp, kings, reversible plies, seen by the side to move.
            patient: whether to wait for blocks that must be read from disk. If not, they are read in the background and
                their positions are UNKNOWN until then.
            distances: whether to look distances up, too, which takes as long again.

        Returns:
            outcomes uint8 [N]: UNKNOWN, WIN, DRAW or LOSS for the side to move;
            plies int16 [N]: distance to the end of the game, -1 if unknown.
        """

    def compiled(self) -> Tables | None:
        """Tables that compiled code can look up by itself; None if all positions must go to ``judge``."""
