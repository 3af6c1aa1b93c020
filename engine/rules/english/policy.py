"""The policy's part of a move in English draughts: a hop is a step or a single jump."""

import numpy as np
from numba import njit

from ...bitboard import NUM_SQUARES, ROTATIONS, SQUARE_OF_BIT
from ..moves import is_capture, move_start
from .movegen import move_direction, move_hops

MAX_HOPS = 12  # a capture takes at most the opponent's twelve pieces


@njit(cache=True)
def hop_indices(code, hops):
    """Writes the policy indices of a move's hops into ``hops`` [>= MAX_HOPS] and returns their number."""
    bit = np.int64(move_start(code))
    jump = 2 if is_capture(code) else 1
    count = move_hops(code)
    for hop in range(count):
        direction = move_direction(code, hop)
        hops[hop] = NUM_SQUARES * direction + SQUARE_OF_BIT[bit]
        bit = (bit + jump * ROTATIONS[direction]) & 31
    return count


@njit(cache=True, inline="always")
def move_logit(policy_logits, i, code):
    """Logit of a move: the sum of its hops' logits in ``policy_logits[i]``, of [N, 128]."""
    bit = np.int64(move_start(code))
    jump = 2 if is_capture(code) else 1
    logit = np.float32(0.0)
    for hop in range(move_hops(code)):
        direction = move_direction(code, hop)
        logit += policy_logits[i, NUM_SQUARES * direction + SQUARE_OF_BIT[bit]]
        bit = (bit + jump * ROTATIONS[direction]) & 31
    return logit


@njit(cache=True)
def move_end(code):
    """The bit on which a move ends."""
    bit = np.int64(move_start(code))
    jump = 2 if is_capture(code) else 1
    for hop in range(move_hops(code)):
        bit = (bit + jump * ROTATIONS[move_direction(code, hop)]) & 31
    return bit
