"""What a search asks about leaves of few pieces: exact tables."""

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from ..tablebase.probing import Tables


class LeafOracle(Protocol):
    """Knows how endgames end, and is never wrong.

    Attributes:
        max_pieces: positions with more pieces are never asked about.
    """

    max_pieces: int

    def judge(self, positions: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Judges positions.

        Args:
            positions: uint32 [N, 4]: own, opp, kings, reversible plies, seen by the side to move.
            patient: wait for what must be read from disk. Else it is read meanwhile, and is UNKNOWN until then.

        Returns:
            outcomes uint8 [N]: UNKNOWN, WIN, DRAW or LOSS for the side to move;
            plies int16 [N]: distance to the end of the game where it is known, else -1.
        """
        ...

    def compiled(self) -> "Tables | None":
        """What one compiled search looks up by itself; None: every position goes to ``judge``, step by step."""
        ...
