"""The policy's part of a move in Russian draughts: a hop is one step from square to square.

The runs of kings are cut into steps, those over pieces that are taken included. Quiet moves of different pieces share
no step, because none passes another, so steps can tell any distribution over them.
"""

import numpy as np
from numba import njit

from ...bitboard import NUM_SQUARES, ROTATIONS, SQUARE_OF_BIT
from ..moves import move_start
from .movegen import MOST_RUNS, MOST_STEPS, move_direction, move_hops, move_steps

MAX_HOPS = MOST_RUNS * MOST_STEPS


@njit(cache=True)
def hop_indices(code, hops):
    """Writes the policy indices of a move's hops into ``hops`` [>= MAX_HOPS] and returns their number."""
    bit, count = np.int64(move_start(code)), np.int64(0)
    for run in range(move_hops(code)):
        direction = move_direction(code, run)
        for _ in range(move_steps(code, run)):
            hops[count] = NUM_SQUARES * direction + SQUARE_OF_BIT[bit]
            bit = (bit + ROTATIONS[direction]) & 31
            count += 1
    return count


@njit(cache=True, inline="always")
def move_logit(policy_logits, i, code):
    """Logit of a move: the sum of its hops' logits in ``policy_logits[i]``, of [N, 128]."""
    bit, logit = np.int64(move_start(code)), np.float32(0.0)
    for run in range(move_hops(code)):
        direction = move_direction(code, run)
        for _ in range(move_steps(code, run)):
            logit += policy_logits[i, NUM_SQUARES * direction + SQUARE_OF_BIT[bit]]
            bit = (bit + ROTATIONS[direction]) & 31
    return logit


@njit(cache=True)
def move_end(code):
    """The bit on which a move ends."""
    bit = np.int64(move_start(code))
    for run in range(move_hops(code)):
        bit = (bit + move_steps(code, run) * ROTATIONS[move_direction(code, run)]) & 31
    return bit
