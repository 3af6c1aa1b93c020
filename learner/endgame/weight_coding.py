"""Arithmetic coding of quantised weights: neighbouring weights are alike, and so are the sizes within one row.

A weight is coded as the number of its binary digits (one bit for each digit: is there another?), the digits below the
first, and the sign; each bit is predicted by a mixture (``mixing``) of models whose contexts are the weights before it.
"""

import numpy as np
from numba import njit

from engine.tablebase.coder import STATE_SIZE, finish_encoding, start_decoding, start_encoding

from .mixing import FRESH_MODEL, WEIGHT_BITS, code_mixed

_NUM_INPUTS = 6
_CONTEXT_BITS = 16
_NODE_BITS = 6
_DIGITS, _SIGN = 16, 63  # nodes: more digits? 0-15, digits 16-62, sign 63
_MOST_DIGITS = 15
_WEIGHT_BYTES = 3 * 2 * (_MOST_DIGITS + 1)  # room for a weight, at most three bytes a bit


@njit(cache=True, inline="always")
def _clipped(number, most):
    return min(max(number, -most), most)


@njit(cache=True)
def _code_node(node, bit, contexts, memory, coding):
    models, mixers, used, inputs, scratch = memory
    for i in range(1, _NUM_INPUTS):
        used[i] = (i << _CONTEXT_BITS) | (contexts[i] << _NODE_BITS) | node
    return code_mixed(bit, models, used, mixers[node], inputs, scratch, coding)[0]


@njit(cache=True)
def _code_weight(weight, contexts, memory, coding):
    size = abs(weight)
    digits = 0
    while digits < _MOST_DIGITS and _code_node(digits, size >> digits != 0, contexts, memory, coding):
        digits += 1
    if digits == 0:
        return 0
    found = 1
    for i in range(digits - 2, -1, -1):
        node = _DIGITS + (found if found < 16 else 16 + i)
        found = found * 2 + _code_node(node, size >> i & 1, contexts, memory, coding)
    return -found if _code_node(_SIGN, weight < 0, contexts, memory, coding) else found


@njit(cache=True)
def _code_weights(weights, triangular, coder, data, decoding):
    """Codes int64 [rows, columns]; rows of a triangular table are numbered a (a + 1) / 2 + b."""
    models = np.full(_NUM_INPUTS << _CONTEXT_BITS, FRESH_MODEL, np.uint32)
    mixers = np.full((1 << _NODE_BITS, _NUM_INPUTS), (2 << WEIGHT_BITS) // 6, np.int64)
    used, inputs = np.zeros(_NUM_INPUTS, np.int64), np.zeros(_NUM_INPUTS, np.int64)
    contexts, scratch = np.zeros(_NUM_INPUTS, np.int64), np.zeros(1, np.uint32)
    memory, coding = (models, mixers, used, inputs, scratch), (coder, data, decoding)
    a = b = 0
    for r in range(weights.shape[0]):
        upper = r - a if triangular and b < a else r - 2
        for c in range(weights.shape[1]):
            left = weights[r - 1, c] if r > 0 else 0
            above = weights[upper, c] if upper >= 0 else 0
            size = np.int64(0)
            for i in range(max(0, c - 4), c):
                size += abs(weights[r, i])
            row = _clipped(size * 4 // max(1, min(c, 4)), 15)
            left_place, above_place = _clipped(left, 7) + 7, _clipped(above, 7) + 7
            contexts[1] = left_place * 15 + above_place
            contexts[2] = row * 16 + min(c, 15)
            contexts[3] = left_place * 16 + row
            contexts[4] = above_place * 16 + row
            contexts[5] = _clipped(left + above, 15) + 15 + 32 * (row // 2)
            weights[r, c] = _code_weight(weights[r, c], contexts, memory, coding)
        b += 1
        if b > a:
            a, b = a + 1, 0


def encode_weights(weights: np.ndarray, triangular: bool) -> bytes:
    """Codes a table of whole numbers below 2 ** 15, [rows, columns].

    Args:
        triangular: rows are pairs a >= b, numbered as in ``features``.
    """
    coder, data = np.zeros(STATE_SIZE, np.int64), np.zeros(weights.size * _WEIGHT_BYTES + 8, np.uint8)
    start_encoding(coder)
    _code_weights(weights.astype(np.int64), triangular, coder, data, False)
    return data[: finish_encoding(coder, data)].tobytes()


def decode_weights(coded: bytes, shape: tuple[int, int], triangular: bool) -> np.ndarray:
    """The table int64 [rows, columns] that ``encode_weights`` coded; other bytes give other numbers."""
    coder, data = np.zeros(STATE_SIZE, np.int64), np.frombuffer(coded + b"\0", np.uint8).copy()
    weights = np.zeros(shape, np.int64)
    start_decoding(coder, data, 0, len(coded))
    _code_weights(weights, triangular, coder, data, True)
    return weights
