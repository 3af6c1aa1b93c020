"""A pair network in whole numbers: small in a file, and with the same logits on every machine.

Every weight is an integer times its tensor's step; steps, and all that is computed, are integers in ``2 ** -BITS``.
Products are shifted back after each layer, so a logit differs a little from the float network's and never from itself.

**Coding of the weights**: neighbouring weights are alike, and so are the sizes within one row. A weight is coded as the
number of its binary digits (one bit for each digit: is there another?), the digits below the first, and the sign; each
bit is predicted by a mixture (``mixing``) of models whose contexts are the weights before it.
"""

import struct
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from engine.tablebase.coder import STATE_SIZE, finish_encoding, start_decoding, start_encoding

from .features import MAX_FEATURES, encode_one, slice_table
from .kernels import CEILING
from .mixing import FRESH_MODEL, UNIT, WEIGHT_BITS, code_mixed
from .networks import PairConfig, PairNetwork

BITS = 10
_CEILING = int(CEILING) << BITS
_TO_LOGIT = 2 * BITS - (UNIT.bit_length() - 1)
ROUNDED_STEP = 768
"""Step of the pairs of a network that was trained to be rounded."""
FINE_STEP = ROUNDED_STEP // 4
"""Step of others. Half as fine, a network of 0.9 million weights takes a quarter less and predicts 8 % worse."""
STEPS = {
    "biases": 128,
    "expert_weights": 32,
    "expert_bias": 64,
    "hidden_weights": 16,
    "hidden_bias": 64,
    "out_weights": 16,
    "out_bias": 16,
}
MAX_STEP = 1 << BITS
_MOST = {"pairs": 127}  # largest multiple of a step; others are kept in 15 bits
_NUM_INPUTS = 6
_CONTEXT_BITS = 16
_NODE_BITS = 6
_DIGITS, _SIGN = 16, 63  # nodes: more digits? 0-15, digits 16-62, sign 63
_MOST_DIGITS = 15
_WEIGHT_BYTES = 3 * 2 * (_MOST_DIGITS + 1)  # room for a weight, at most three bytes a bit


class IntegerNetworkError(ValueError):
    """Weights that are no such network."""


class IntegerNetwork(NamedTuple):
    """All weights int32 in ``2 ** -BITS``, as the kernels read them; shapes as in ``PairNetwork``.

    Attributes:
        slices: int32 [NUM_CODES], see ``features.slice_table``.
    """

    slices: np.ndarray
    pairs: np.ndarray
    biases: np.ndarray
    expert_weights: np.ndarray
    expert_bias: np.ndarray
    hidden_weights: np.ndarray
    hidden_bias: np.ndarray
    out_weights: np.ndarray
    out_bias: np.ndarray


class Buffers(NamedTuple):
    """What ``judge_integer`` works in: uint8 [MAX_FEATURES], and int64 of the network's width and its two layers."""

    features: np.ndarray
    sums: np.ndarray
    first: np.ndarray
    second: np.ndarray


class _Rounded(nn.Module):
    """Rounds to multiples of a step; gradients pass unchanged (straight-through, Bengio et al. 2013)."""

    def forward(self, weights: Tensor) -> Tensor:
        step = ROUNDED_STEP / (1 << BITS)
        return weights + ((weights / step).round() * step - weights).detach()


def train_rounded(network: PairNetwork) -> None:
    """From now on the network is trained as it will judge when its pairs are rounded."""
    nn.utils.parametrize.register_parametrization(network, "pairs", _Rounded())


def finish_rounded(network: PairNetwork) -> None:
    """Ends ``train_rounded``: the pairs become what they are rounded to."""
    nn.utils.parametrize.remove_parametrizations(network, "pairs", leave_parametrized=True)


def _shapes(config: PairConfig) -> dict[str, tuple[int, ...]]:
    """Shapes of a network's tensors, in the order in which they are packed."""
    with torch.device("meta"):
        return {name: tuple(weights.shape) for name, weights in PairNetwork(config).named_parameters()}


def quantise(network: PairNetwork, rows: np.ndarray) -> tuple[int, dict[str, np.ndarray]]:
    """Step of the pairs, and all weights as int16 multiples of their steps.

    Args:
        rows: the rows of biases (``features``) that will be used; the others become zero.
    """
    weights = {name: p.detach().numpy().astype(np.float64) * (1 << BITS) for name, p in network.named_parameters()}
    unused = np.ones(len(weights["biases"]), bool)
    unused[rows] = False
    weights["biases"][unused], weights["hidden_bias"][unused] = 0, 0
    on_grid = np.abs(np.remainder(weights["pairs"] / ROUNDED_STEP + 0.5, 1) - 0.5).max() < 0.01
    step = ROUNDED_STEP if on_grid else FINE_STEP
    quantised = {}
    for name in _shapes(network.config):
        most = _MOST.get(name, 16383)
        multiples = np.rint(weights[name] / STEPS.get(name, step))
        quantised[name] = np.clip(np.nan_to_num(multiples), -most, most).astype(np.int16)
    return step, quantised


def pack(quantised: dict[str, np.ndarray]) -> bytes:
    """The weights, coded: for each tensor uint32 length, little-endian, and the coded weights."""
    parts = []
    for name, weights in quantised.items():
        coded = encode_weights(weights.reshape(-1, weights.shape[-1]), name == "pairs")
        parts += [struct.pack("<I", len(coded)), coded]
    return b"".join(parts)


def unpack(config: PairConfig, step: int, packed: bytes) -> IntegerNetwork:
    """The network of ``pack``; raises ``IntegerNetworkError`` if weights do not fit or the step is out of range."""
    if not 1 <= step <= MAX_STEP:
        raise IntegerNetworkError(f"the step of its weights is {step}")
    weights, start = {}, 0
    for name, shape in _shapes(config).items():
        if start + 4 > len(packed):
            raise IntegerNetworkError("its weights are cut short")
        (length,) = struct.unpack_from("<I", packed, start)
        coded = packed[start + 4 : start + 4 + length]
        rows = int(np.prod(shape)) // shape[-1]
        multiples = decode_weights(coded, (rows, shape[-1]), name == "pairs")
        weights[name] = (multiples.reshape(shape) * STEPS.get(name, step)).astype(np.int32)
        start += 4 + length
    if start != len(packed):
        raise IntegerNetworkError("its weights do not fit its network")
    return IntegerNetwork(slice_table(config.pieces), **weights)


@njit(cache=True)
def _sum_pairs(features, count, row, pairs, biases, sums):
    width = sums.shape[0]
    for c in range(width):
        sums[c] = biases[row, c]
    for i in range(count):
        a = np.int64(features[i])
        for j in range(i + 1):
            pair = a * (a + 1) // 2 + np.int64(features[j])
            for c in range(width):
                sums[c] += pairs[pair, c]


@njit(cache=True)
def new_buffers(network):
    """``Buffers`` for an ``IntegerNetwork``."""
    first, second = network.expert_bias.shape[0], network.out_weights.shape[0]
    sums = np.zeros(network.pairs.shape[1], np.int64)
    return Buffers(np.zeros(MAX_FEATURES, np.uint8), sums, np.zeros(first, np.int64), np.zeros(second, np.int64))


@njit(cache=True)
def judge_integer(own, opp, kings, network, buffers, logits):
    """Win, draw and loss logits of one position, in ``1 / mixing.UNIT``.

    Args:
        own, opp, kings: uint32, seen by the side to move.
        network: ``IntegerNetwork``. buffers: ``Buffers``, overwritten.
        logits: int64 [3], set.
    """
    features, sums, first, second = buffers
    count, row, group = encode_one(own, opp, kings, network.slices, features)
    _sum_pairs(features, count, row, network.pairs, network.biases, sums)
    half = sums.shape[0] // 2
    for o in range(first.shape[0]):
        first[o] = np.int64(network.expert_bias[o]) << BITS
    for c in range(half):
        gate = min(max(sums[c], 0), _CEILING)
        if gate != 0:
            product = gate * sums[c + half] >> BITS
            for o in range(first.shape[0]):
                first[o] += gate * network.expert_weights[group, c, o]
                first[o] += product * network.expert_weights[group, c + half, o]
    for o in range(second.shape[0]):
        second[o] = np.int64(network.hidden_bias[row, o]) << BITS
    for c in range(first.shape[0]):
        x = first[c] >> BITS
        if x > 0:
            for o in range(second.shape[0]):
                second[o] += x * network.hidden_weights[c, o]
    for k in range(3):
        logits[k] = np.int64(network.out_bias[k]) << BITS
        for c in range(second.shape[0]):
            logits[k] += max(second[c] >> BITS, 0) * network.out_weights[c, k]
        logits[k] >>= _TO_LOGIT


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
