"""A pair network in whole numbers: small in a file, and with the same logits on every machine.

Every weight is an integer times its tensor's step; steps, and all that is computed, are integers in ``2 ** -BITS``.
Products are shifted back after each layer, so a logit differs a little from the float network's and never from itself.
"""

import struct
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from .features import encode_one, slice_table
from .kernels import CEILING
from .mixing import UNIT
from .networks import PairConfig, PairNetwork
from .weight_coding import decode_weights, encode_weights

BITS = 10
_CEILING = int(CEILING) << BITS
_TO_LOGIT = 2 * BITS - (UNIT.bit_length() - 1)
ROUNDED_STEP = 768
"""Step of the pairs of a network that was trained to be rounded; others are rounded half as coarsely."""
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


class _Rounded(nn.Module):
    """Rounds to multiples of a step; gradients pass unchanged (straight-through, Bengio et al. 2013)."""

    def forward(self, weights: Tensor) -> Tensor:
        step = ROUNDED_STEP / (1 << BITS)
        return weights + ((weights / step).round() * step - weights).detach()

    def right_inverse(self, weights: Tensor) -> Tensor:
        return weights


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
    step = ROUNDED_STEP if on_grid else ROUNDED_STEP // 2
    quantised = {}
    for name in _shapes(network.config):
        most = _MOST.get(name, 16383)
        multiples = np.rint(weights[name] / STEPS.get(name, step))
        quantised[name] = np.clip(np.nan_to_num(multiples), -most, most).astype(np.int16)
    return step, quantised


def pack(quantised: dict[str, np.ndarray]) -> bytes:
    """The weights, coded: for each tensor uint32 length, little-endian, and ``weight_coding``."""
    parts = []
    for name, weights in quantised.items():
        coded = encode_weights(weights.reshape(-1, weights.shape[-1]), name == "pairs")
        parts += [struct.pack("<I", len(coded)), coded]
    return b"".join(parts)


def unpack(config: PairConfig, step: int, packed: bytes) -> IntegerNetwork:
    """The network of ``pack``.

    Raises:
        IntegerNetworkError: the weights do not fit one another, or the step is out of range.
    """
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
def judge_integer(own, opp, kings, network, features, sums, first, second, logits):
    """Win, draw and loss logits of one position, in ``1 / mixing.UNIT``.

    Args:
        own, opp, kings: uint32, seen by the side to move.
        network: ``IntegerNetwork``. features: uint8 [MAX_FEATURES], sums: int64 [W], first: int64 [H], second:
            int64 [K], overwritten.
        logits: int64 [3], set.
    """
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
