"""The interface of exact tables that a search uses for leaves with few pieces."""

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from ..tablebase.probing import Tables


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
        ...

    def compiled(self) -> "Tables | None":
        """Tables that compiled code can look up by itself; None if all positions must go to ``judge``."""
        ...
