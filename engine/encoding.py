"""Inputs and outputs of networks, channel by channel, and how the policy output becomes a logit per legal move.

**Positions** travel as uint32 [N, 4]: ``own``, ``opp``, ``kings``, reversible plies; always seen by the side to move.

**Planes** are float32 [N, 6, 8, 4], rows from the home row of the side to move forward, four dark squares a row:

    0 own men | 1 own kings | 2 opponent's men | 3 opponent's kings | 4 reversible plies / 80 | 5 one on odd rows

(In other games than English draughts the number of reversible plies that end it stands for the 80.)

**Policy output** is [N, 128]: ``logit[32 * direction + square]`` belongs to one hop from ``square`` in ``direction``: a
step or a single jump; where kings fly, every step of a move. The logit of a move is the sum over its hops, so a
multi-jump scores like the product of its jumps. Two legal moves that lead to different positions never have the same
hops (tests/test_encoding.py), so they never share a logit.

**WDL output** is [N, 3]: win, draw, loss for the side to move; value = P(win) - P(loss).
"""

import numpy as np
from numba import njit

from .bitboard import BIT_OF_SQUARE, NUM_DIRECTIONS, NUM_SQUARES
from .movegen import DISTINCT, MAX_MOVES, MOVE, generate
from .rules import played

NUM_PLANES = 6
NUM_POLICY = NUM_DIRECTIONS * NUM_SQUARES
NO_HOP = NUM_POLICY  # pads tables of hops; its logit is 0
MAX_HOPS = played.MAX_HOPS
REVERSIBLE_SCALE = float(played.REVERSIBLE_PLIES_TO_DRAW)
hop_indices = played.hop_indices
move_logit = played.move_logit


@njit(cache=True)
def encode_planes(positions):
    """Planes [N, 6, 8, 4] float32 of positions [N, 4] uint32 (see above)."""
    n = positions.shape[0]
    planes = np.zeros((n, NUM_PLANES, 8, 4), np.float32)
    for i in range(n):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        counter = np.float32(positions[i, 3] / REVERSIBLE_SCALE)
        for square in range(NUM_SQUARES):
            row, column = square >> 2, square & 3
            bit = np.uint32(1) << np.uint32(BIT_OF_SQUARE[square])
            if (own | opp) & bit:
                planes[i, (0 if own & bit else 2) + (1 if kings & bit else 0), row, column] = 1.0
            planes[i, 4, row, column] = counter
            planes[i, 5, row, column] = row & 1
    return planes


@njit(cache=True)
def _fill_hop_table(positions, table, counts):
    moves = np.empty(MAX_MOVES, MOVE)
    for i in range(positions.shape[0]):
        counts[i] = generate(positions[i, 0], positions[i, 1], positions[i, 2], moves, DISTINCT)
        for j in range(counts[i]):
            hop_indices(moves[j].code, table[i, j])


def hop_table(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Policy indices of all legal moves of all positions, in the order of ``movegen.generate(distinct=True)``.

    Args:
        positions: [N, 4] uint32.

    Returns:
        table [N, M, H] uint8, where M and H are the most moves and hops found and unused places hold ``NO_HOP``;
        number of legal moves [N] int64. The logit of move j is the sum of the logits at ``table[i, j]``.
    """
    counts = np.zeros(len(positions), np.int64)
    table = np.full((len(positions), MAX_MOVES, MAX_HOPS), NO_HOP, np.uint8)
    _fill_hop_table(positions, table, counts)
    most_moves = max(1, int(counts.max(initial=0)))
    table = table[:, :most_moves]
    most_hops = max(1, int((table != NO_HOP).any(axis=(0, 1)).sum()))
    return table[:, :, :most_hops], counts
