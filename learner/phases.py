"""Phases of the game, for a network with weights of its own for each (as layers of NNUE by the number of pieces)."""

import numpy as np

from engine.bitboard import NUM_SQUARES

_ENDS = ((20, 16, 12), (12, 9, 7))
"""Fewest pieces of the first three of four phases, without kings and with any."""
NUM_PHASES = 8


def _numbers() -> np.ndarray:
    pieces = np.arange(NUM_SQUARES + 1)
    numbers = [4 * kings + sum((pieces < end).astype(np.uint8) for end in ends) for kings, ends in enumerate(_ENDS)]
    return np.stack(numbers, 1).astype(np.uint8)


PHASES = _numbers()
"""uint8 [33, 2]: the phase of positions by the number of their pieces, and by whether there are kings."""
