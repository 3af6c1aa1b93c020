"""Static evaluation for the alpha-beta player: material, advancement, and little else.

Scores are integers in hundredths of a man for the side to move. A position won in n plies scores ``WIN - n``.
"""

import numpy as np
from numba import njit

from ..bitboard import HOME_ROW, mask_of, popcount, turned

DRAW = 0
WIN = 30_000
LEAST_WIN = WIN - 1_000  # scores above it are wins in ``WIN - score`` plies

MAN = 100
KING = 130
BACK_ROW = 12  # for each man on the home row while the opponent has men
ADVANCE = 2  # for each row a man has advanced, times the fraction of pieces gone from the board
TRADE = 2  # times the material score divided by the number of pieces: the side that is ahead wants exchanges
MOST_PIECES = 24

_ROW_1, _ROW_2, _ROW_4 = (mask_of(s for s in range(32) if s // 4 & bit) for bit in (1, 2, 4))


@njit(cache=True)
def _rows(men):
    """Sum of the rows that men have advanced, seen by their own side."""
    return (
        np.int64(popcount(men & _ROW_1)) + 2 * np.int64(popcount(men & _ROW_2)) + 4 * np.int64(popcount(men & _ROW_4))
    )


@njit(cache=True)
def _guard(men, opp_men):
    """Number of men on the home row, seen by their own side; 0 if the opponent has no men to crown."""
    return np.int64(popcount(men & HOME_ROW)) if opp_men != 0 else 0


@njit(cache=True)
def evaluate(own, opp, kings):
    """Score of a position for the side to move; see the module."""
    own_men, opp_men = np.uint32(own & ~kings), np.uint32(opp & ~kings)
    men = np.int64(popcount(own_men)) - np.int64(popcount(opp_men))
    crowned = np.int64(popcount(own & kings)) - np.int64(popcount(opp & kings))
    pieces = np.int64(popcount(own | opp))
    opp_men = turned(opp_men)
    score = MAN * men + KING * crowned
    score += TRADE * score // pieces
    score += ADVANCE * (_rows(own_men) - _rows(opp_men)) * (MOST_PIECES - pieces) // MOST_PIECES
    return score + BACK_ROW * (_guard(own_men, opp_men) - _guard(opp_men, own_men))
