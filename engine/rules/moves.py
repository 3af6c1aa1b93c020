"""What the moves of all games have in common: the record of a move, and the first bits of its code.

A generated move holds the position it leads to, still seen by the player who made it, and a ``code`` that tells how:

    bits 0-4 start bit | bit 5 capture | the rest by the rules of the game
"""

import numpy as np
from numba import njit

from ..bitboard import REACH, ROTATIONS, rotated
from ..records import record

MOVE = record([("own", np.uint32), ("opp", np.uint32), ("kings", np.uint32), ("code", np.uint64)])
CAPTURE_FLAG = 32
# Which captures to generate, see ``generate``. NumPy's values, because Numba compiles a function anew for each value of
# a plain True or False that stands in a call, but once for a type.
DISTINCT, EVERY_PATH = np.bool_(True), np.bool_(False)


@njit(cache=True)
def move_start(code):
    """The start bit of a move."""
    return np.uint32(code & np.uint64(31))


@njit(cache=True)
def is_capture(code):
    """Whether the move captures."""
    return (code & np.uint64(CAPTURE_FLAG)) != 0


@njit(cache=True)
def write_move(moves, n, own, opp, kings, code, distinct):
    """Writes a move behind the first ``n`` and returns their number; with ``distinct``, not where one leads there."""
    if distinct:
        for i in range(n):
            if moves[i].own == own and moves[i].opp == opp and moves[i].kings == kings:
                return n
    moves[n].own = own
    moves[n].opp = opp
    moves[n].kings = kings
    moves[n].code = code
    return n + 1


@njit(cache=True)
def launches(opp, empty, direction):
    """Squares from which a piece could jump in ``direction``: an opponent one step on, an empty square behind it."""
    reach = np.uint32(REACH[direction])
    back = ROTATIONS[direction ^ 2]
    return rotated(rotated(empty & reach, back) & opp & reach, back)
