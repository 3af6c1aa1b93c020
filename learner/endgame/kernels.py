"""The pair network's compiled parts: sums of pair vectors forward and backward, and the whole network for inference.

The first layer gates one half of its sum by the other: with a = clip(x[:w/2], 0, ``CEILING``) it gives a and
a * x[w/2:], so that it multiplies what pairs say rather than only adding it (gated linear units, Dauphin et al. 2017).

Widths are read from the arrays: loops whose lengths are compile-time constants are unrolled before they are turned into
vector instructions, and run at a quarter of the speed.
"""

import numpy as np
from numba import njit

from .features import MAX_FEATURES, encode_one

CEILING = 4.0


@njit(cache=True, fastmath=True, inline="always")
def _sum_pairs(features, count, row, pairs, biases, width, sums):
    """``sums`` [width] = bias of the row + vectors of all pairs; ``pairs`` and ``biases`` are flat."""
    start = np.uint64(row) * np.uint64(width)
    for c in range(width):
        sums[c] = biases[start + np.uint64(c)]
    for i in range(count):
        a = np.uint64(features[i])
        first = a * (a + np.uint64(1)) // np.uint64(2)
        for j in range(i + 1):
            start = (first + np.uint64(features[j])) * np.uint64(width)
            for c in range(width):
                sums[c] += pairs[start + np.uint64(c)]


@njit(cache=True, fastmath=True, nogil=True)
def pool_forward(features, counts, rows, pairs, biases, sums, outputs):
    """Sums of pair vectors, and these gated.

    Args:
        features, counts, rows: see ``features.encode_many``.
        pairs: float32 [NUM_PAIRS, W]. biases: float32 [rows, W].
        sums, outputs: float32 [N, W], written.
    """
    width = pairs.shape[1]
    half = width // 2
    flat_pairs, flat_biases = pairs.reshape(-1), biases.reshape(-1)
    x = np.zeros(width, np.float32)
    zero, ceiling = np.float32(0), np.float32(CEILING)
    for n in range(features.shape[0]):
        _sum_pairs(features[n], counts[n], rows[n], flat_pairs, flat_biases, width, x)
        for c in range(width):
            sums[n, c] = x[c]
        for c in range(half):
            gate = min(max(x[c], zero), ceiling)
            outputs[n, c] = gate
            outputs[n, c + half] = gate * x[c + half]


@njit(cache=True, fastmath=True, nogil=True)
def pool_backward(features, counts, rows, sums, grad_outputs, grad_pairs, grad_biases):
    """Adds the gradients of ``pool_forward`` to ``grad_pairs`` and ``grad_biases``."""
    width = grad_pairs.shape[1]
    half = width // 2
    flat_pairs, flat_biases = grad_pairs.reshape(-1), grad_biases.reshape(-1)
    g = np.zeros(width, np.float32)
    zero, ceiling = np.float32(0), np.float32(CEILING)
    for n in range(features.shape[0]):
        for c in range(half):
            x, y = sums[n, c], sums[n, c + half]
            on_gate, on_product = grad_outputs[n, c], grad_outputs[n, c + half]
            g[c] = on_gate + on_product * y if x > zero and x < ceiling else zero
            g[c + half] = on_product * min(max(x, zero), ceiling)
        start = np.uint64(rows[n]) * np.uint64(width)
        for c in range(width):
            flat_biases[start + np.uint64(c)] += g[c]
        for i in range(counts[n]):
            a = np.uint64(features[n, i])
            first = a * (a + np.uint64(1)) // np.uint64(2)
            for j in range(i + 1):
                start = (first + np.uint64(features[n, j])) * np.uint64(width)
                for c in range(width):
                    flat_pairs[start + np.uint64(c)] += g[c]


@njit(cache=True, fastmath=True, inline="always")
def _dense(inputs, n_in, weights, offset, n_out, outputs):
    """``outputs`` += inputs @ weights, where ``weights`` is flat and its matrix begins at ``offset``."""
    for i in range(n_in):
        x = inputs[i]
        start = np.uint64(offset) + np.uint64(i) * np.uint64(n_out)
        for o in range(n_out):
            outputs[o] += x * weights[start + np.uint64(o)]


@njit(cache=True, fastmath=True, nogil=True)
def judge_positions(positions, pool, layers, out, out_bias, logits):
    """Win, draw and loss logits [N, 3] of positions uint32 [N, 3 or more] (``networks.PairNetwork``).

    Args:
        pool: ``features.slice_table`` and, all float32, pairs [NUM_PAIRS, W] and biases [rows, W].
        layers: experts [groups, W, H], their bias [H], hidden [H, K] and its biases [rows, K].
        out: [K, 3]. out_bias: [3].
    """
    slices, pairs, biases = pool
    experts, expert_bias, hidden, hidden_bias = layers
    width, first, second = pairs.shape[1], experts.shape[2], hidden.shape[1]
    half = width // 2
    flat_pairs, flat_biases, flat_experts = pairs.reshape(-1), biases.reshape(-1), experts.reshape(-1)
    flat_hidden = hidden.reshape(-1)
    features = np.zeros(MAX_FEATURES, np.uint8)
    x, y, z = np.zeros(width, np.float32), np.zeros(first, np.float32), np.zeros(second, np.float32)
    zero, ceiling = np.float32(0), np.float32(CEILING)
    for n in range(positions.shape[0]):
        count, row, group = encode_one(positions[n, 0], positions[n, 1], positions[n, 2], slices, features)
        _sum_pairs(features, count, row, flat_pairs, flat_biases, width, x)
        for c in range(half):
            x[c] = min(max(x[c], zero), ceiling)
            x[c + half] *= x[c]
        for c in range(first):
            y[c] = expert_bias[c]
        _dense(x, width, flat_experts, group * width * first, first, y)
        for c in range(first):
            y[c] = max(y[c], zero)
        for c in range(second):
            z[c] = hidden_bias[row, c]
        _dense(y, first, flat_hidden, 0, second, z)
        for k in range(3):
            logit = out_bias[k]
            for c in range(second):
                logit += max(z[c], zero) * out[c, k]
            logits[n, k] = logit
