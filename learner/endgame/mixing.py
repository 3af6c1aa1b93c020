"""Mixing of predictions in whole numbers: what a lossless codec needs to decode alike on every machine.

Predictions of one bit are *stretched* to log-odds ln(p / (1 - p)), weighed, added and *squashed* back to a probability;
the weights follow the coding cost downhill (logistic mixing of the PAQ family: M. Mahoney, "Adaptive weighing of
context models for lossless data compression", 2005). Log-odds are integers in ``1 / UNIT``, probabilities integers in
``1 / ONE`` as in ``engine.tablebase.coder``. The tables are made with decimal arithmetic, which rounds correctly
everywhere; the C library's ``exp`` does not.
"""

from decimal import Context, Decimal

import numpy as np
from numba import njit

from engine.tablebase.coder import code_bit

UNIT = 256
TOP = 12 * UNIT - 1  # largest log-odds
PROBABILITY_BITS = 22
ONE = 1 << PROBABILITY_BITS
COUNT_BITS = 10
FRESH_MODEL = (ONE // 2) << COUNT_BITS  # a model that has seen nothing; see ``engine.tablebase.coder``
WEIGHT_BITS = 16
_MEMORY = (1 << COUNT_BITS) - 1  # about how many bits a model remembers
_STRETCH_SHIFT = 6
_LEARNING_SHIFT = 21
_DECIMAL = Context(prec=20)


def _exp(log_odds: int) -> Decimal:
    return _DECIMAL.exp(_DECIMAL.divide(Decimal(log_odds), Decimal(UNIT)))


def _squash_table() -> np.ndarray:
    """int64 [2 TOP + 1]: probability of every log-odds."""
    upper = [int(_DECIMAL.divide(Decimal(ONE), 1 + _exp(-x))) for x in range(TOP + 1)]
    return np.array([ONE - p for p in upper[:0:-1]] + upper, np.int64)


def _stretch_table() -> np.ndarray:
    """int16: the log-odds nearest to every probability, given by its upper 16 bits."""
    between = (SQUASH[1:] + SQUASH[:-1]) // 2
    middles = (np.arange(ONE >> _STRETCH_SHIFT) << _STRETCH_SHIFT) + (1 << _STRETCH_SHIFT - 1)
    return (np.searchsorted(between, middles) - TOP).astype(np.int16)


def _softplus_table() -> np.ndarray:
    """int64: ln(1 + exp(-d)) for differences d, until it vanishes."""
    return np.array([round(_DECIMAL.ln(1 + _exp(-d)) * UNIT) for d in range(7 * UNIT)], np.int64)


SQUASH = _squash_table()
STRETCH = _stretch_table()
_SOFTPLUS = _softplus_table()
_RATES = np.array([(2 << WEIGHT_BITS) // (2 * n + 3) for n in range(_MEMORY + 1)], np.int64)


@njit(cache=True, inline="always")
def add_logits(a, b):
    """ln(exp(a) + exp(b)) of log-odds."""
    difference = abs(a - b)
    return max(a, b) + (_SOFTPLUS[difference] if difference < _SOFTPLUS.shape[0] else 0)


@njit(cache=True, inline="always")
def clip_logit(logit):
    """Log-odds within the tables' range."""
    return min(max(logit, -TOP), TOP)


@njit(cache=True)
def predict(models, used, weights, inputs):
    """Probability of a one, mixed from the models and ``inputs[0]``, which the caller sets.

    Args:
        models: uint32, see ``engine.tablebase.coder``. used: int64 [N], the models asked; used[0] is not read.
        weights: int64 [N], in ``2 ** -WEIGHT_BITS``. inputs: int64 [N], from 1 on set to what the models say.
    """
    total = weights[0] * inputs[0]
    for i in range(1, used.shape[0]):
        inputs[i] = STRETCH[models[used[i]] >> np.uint32(COUNT_BITS + _STRETCH_SHIFT)]
        total += weights[i] * inputs[i]
    return SQUASH[clip_logit(total >> WEIGHT_BITS) + TOP]


@njit(cache=True)
def learn(models, used, weights, inputs, probability, bit):
    """Weights and models learn from a bit that ``predict`` gave this probability."""
    wanted = bit << PROBABILITY_BITS
    error = wanted - probability
    for i in range(used.shape[0]):
        weights[i] += (inputs[i] * error + (1 << (_LEARNING_SHIFT - 1))) >> _LEARNING_SHIFT
        if i:
            memory = np.int64(models[used[i]])
            p, count = memory >> COUNT_BITS, memory & _MEMORY
            p += (wanted - p) * _RATES[count] >> WEIGHT_BITS
            models[used[i]] = min(max(p, 1), ONE - 1) << COUNT_BITS | min(count + 1, _MEMORY)


@njit(cache=True, inline="always")
def code_mixed(bit, models, used, weights, inputs, scratch, coding):
    """Codes a bit as ``predict`` expects it, and learns from it; returns the bit and the probability of a one.

    ``scratch`` is uint32 [1]; ``coding`` is coder and data of ``engine.tablebase.coder``, and whether it decodes.
    """
    coder, data, decoding = coding
    probability = predict(models, used, weights, inputs)
    scratch[0] = probability << COUNT_BITS
    coded = code_bit(coder, data, scratch, 0, np.int64(bit), decoding)
    learn(models, used, weights, inputs, probability, coded)
    return coded, probability
