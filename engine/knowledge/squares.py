"""Rows and columns of the bits of a bitboard, and groups of squares that have a name."""

import numpy as np

from ..bitboard import NUM_SQUARES, SQUARE_OF_BIT, mask_of, row_column
from ..board import Board

LAST_ROW = 7
ROW, COLUMN = np.array([row_column(int(SQUARE_OF_BIT[bit]) + 1) for bit in range(NUM_SQUARES)]).T.copy()
STEPS = np.maximum(np.abs(ROW[:, None] - ROW), np.abs(COLUMN[:, None] - COLUMN)).astype(np.int64)
"""Steps of a king between the squares of two bits, int64 [32, 32]."""
SYSTEM = np.uint32(mask_of(square for square in range(NUM_SQUARES) if square // 4 % 2 == 0))
"""Squares whose pieces are counted for *the move* (opposition): every second row from the own back row."""
DOUBLE_CORNERS = np.uint32(mask_of((0, 4, 27, 31)))
EDGE = np.uint32(sum(1 << bit for bit in range(NUM_SQUARES) if COLUMN[bit] in (0, 7) or ROW[bit] in (0, 7)))


def has_the_move(board: Board) -> bool:
    """Whether the side to move has *the move* (the opposition): an odd number of pieces on its ``SYSTEM``."""
    own, opp, _ = board.words()
    return ((own | opp) & int(SYSTEM)).bit_count() % 2 == 1
