"""A student's forward pass compiled by Numba, and whole batches of a search with it.

Matrices lie in tiles as in ``winograd``. The wide layer adds up the weights of the pieces that are on the board: two
thirds of its inputs are never on, and none has a value but one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.bitboard import NUM_SQUARES, lowest_bit
from engine.encoding import NUM_POLICY, REVERSIBLE_SCALE
from engine.search.kernels import backup_leaves, select_leaves

from .batches import has_few
from .lanes import WIDTH, bent, load, multiply_add, spread, store
from .tiles import BLOCK, ROWS
from .winograd import multiply, place

STRIP = 4 * WIDTH
"""Units of the wide layer that are computed together."""


class StudentWeights(NamedTuple):
    """Flat arrays of float32; all matrices but the first are in tiles.

    Attributes:
        pieces: [4 * 32, units], own men, own kings, the opponent's men and kings by the bits of their squares.
        counter, bias: [units], of the reversible plies, and of the wide layer.
        policy, policy_bias, hidden, hidden_bias, wdl, wdl_bias: of the other layers.
    """

    pieces: np.ndarray
    counter: np.ndarray
    bias: np.ndarray
    policy: np.ndarray
    policy_bias: np.ndarray
    hidden: np.ndarray
    hidden_bias: np.ndarray
    wdl: np.ndarray
    wdl_bias: np.ndarray


class StudentBuffers(NamedTuple):
    """Room for the intermediate results of so many positions; ``ones`` are as many as the widest layer has units.

    Attributes:
        rows: int64 [32], where the weights of one position's pieces begin.
    """

    ones: np.ndarray
    rows: np.ndarray
    units: np.ndarray
    policy: np.ndarray
    hidden: np.ndarray
    wdl: np.ndarray


@njit(inline="always")
def _list_pieces(pieces, kind, units, rows, n):
    """Adds where the weights of the pieces of one kind begin to ``rows``; returns the new number."""
    while pieces != 0:
        rows[n] = (kind * NUM_SQUARES + np.int64(lowest_bit(pieces))) * units
        pieces = np.uint32(pieces & (pieces - np.uint32(1)))
        n += 1
    return n


@njit(inline="always")
def _wide_layer(positions, weights, buffers):
    units, rows = weights.bias.size, buffers.rows
    zero = spread(np.float32(0.0))
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        count = _list_pieces(np.uint32(own & ~kings), 0, units, rows, 0)
        count = _list_pieces(np.uint32(own & kings), 1, units, rows, count)
        count = _list_pieces(np.uint32(opp & ~kings), 2, units, rows, count)
        count = _list_pieces(np.uint32(opp & kings), 3, units, rows, count)
        counter = spread(np.float32(positions[i, 3] / REVERSIBLE_SCALE))
        for unit in range(0, units, STRIP):
            a = multiply_add(counter, load(weights.counter, unit), load(weights.bias, unit))
            b = multiply_add(counter, load(weights.counter, unit + WIDTH), load(weights.bias, unit + WIDTH))
            c = multiply_add(counter, load(weights.counter, unit + 2 * WIDTH), load(weights.bias, unit + 2 * WIDTH))
            d = multiply_add(counter, load(weights.counter, unit + 3 * WIDTH), load(weights.bias, unit + 3 * WIDTH))
            for piece in range(count):
                at = rows[piece] + unit
                a, b = a + load(weights.pieces, at), b + load(weights.pieces, at + WIDTH)
                c, d = c + load(weights.pieces, at + 2 * WIDTH), d + load(weights.pieces, at + 3 * WIDTH)
            at = place(i, unit, units)
            store(buffers.units, at, bent(a, zero))
            store(buffers.units, at + ROWS * WIDTH, bent(b, zero))
            store(buffers.units, at + 2 * ROWS * WIDTH, bent(c, zero))
            store(buffers.units, at + 3 * ROWS * WIDTH, bent(d, zero))


@njit(inline="always")
def student_forward(positions, weights, buffers, policy_logits, wdl_logits):
    """Policy and win/draw/loss logits of positions.

    Args:
        positions: uint32 [N, 4], not more than there is room for in the buffers.
        weights: ``StudentWeights``.
        buffers: ``StudentBuffers``.
        policy_logits, wdl_logits: float32 [N or more, 128] and [N or more, 3], filled.
    """
    n, units, hidden = positions.shape[0], weights.bias.size, weights.hidden_bias.size
    bend, straight, ones = spread(np.float32(0.0)), spread(np.float32(1.0)), buffers.ones
    _wide_layer(positions, weights, buffers)
    multiply(buffers.units, weights.policy, ones, weights.policy_bias, buffers.policy, n, units, NUM_POLICY, straight)
    multiply(buffers.units, weights.hidden, ones, weights.hidden_bias, buffers.hidden, n, units, hidden, bend)
    multiply(buffers.hidden, weights.wdl, ones, weights.wdl_bias, buffers.wdl, n, hidden, BLOCK, straight)
    for i in range(n):
        for logit in range(0, NUM_POLICY, WIDTH):
            at = place(i, logit, NUM_POLICY)
            for lane in range(WIDTH):
                policy_logits[i, logit + lane] = buffers.policy[at + lane]
        for result in range(3):
            wdl_logits[i, result] = buffers.wdl[place(i, 0, BLOCK) + result]


@njit(nogil=True, cache=True)
def evaluate_student(positions, weights, buffers, policy_logits, wdl_logits):
    """``student_forward`` for whoever is not compiled."""
    student_forward(positions, weights, buffers, policy_logits, wdl_logits)


@njit(nogil=True, cache=True)
def search_student(select, backup, leaves, weights, buffers, few, batches):
    """What ``LockstepSearch.step`` does with an evaluator that remembers nothing, so many times.

    Args:
        select, backup, leaves: see ``batches.search_batches``.
        few, batches: see ``engine.search.batches``.

    Returns:
        Numbers of positions judged and of leaves that wait.
    """
    lanes = leaves.shape[0]
    room = buffers.policy.size // NUM_POLICY
    policy, wdl = np.empty((lanes, NUM_POLICY), np.float32), np.empty((lanes, 3), np.float32)
    judged = 0
    for _ in range(batches):
        n = select_leaves(*(*select, np.int64(0)))  # the type by which it is called elsewhere, too
        if n == 0 or has_few(leaves, n, few):
            return judged, n
        for first in range(0, n, room):
            part = slice(first, min(first + room, n))
            student_forward(leaves[part], weights, buffers, policy[part], wdl[part])
        backup_leaves(*(*backup, n, policy, wdl))
        judged += n
    return judged, 0
