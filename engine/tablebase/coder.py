"""Adaptive binary arithmetic coding, with the same code for encoding and decoding.

The coder is the carry-less one of the PAQ family (M. Mahoney, "Adaptive weighing of context models for lossless data
compression", 2005). It splits an interval of 32-bit numbers in proportion to the probability of the next bit, and
writes leading bytes on which both ends agree. It uses only integers, so decoding gives the same result on every
machine.

A *model* is one uint32: the probability of a one in the upper 22 bits, and the number of times it was used in the lower
10.
"""

import numpy as np
from numba import njit

LOW, HIGH, CODE, PLACE, END = range(5)  # indices in a coder's state, int64 [5]
STATE_SIZE = 5
LIMIT = 255  # largest count: a model adapts as a mean over about this number of bits
_PROBABILITY_BITS = 22
_COUNT_BITS = 10
_RATES = np.array([65536 / (n + 1.6) for n in range(LIMIT + 1)], np.int64)


def model(probability: float, count: int) -> int:
    """A model with this probability of a one, which adapts as if it had seen ``count`` bits."""
    scaled = min(max(round(probability * (1 << _PROBABILITY_BITS)), 1), (1 << _PROBABILITY_BITS) - 1)
    return scaled << _COUNT_BITS | min(count, LIMIT)


@njit(cache=True)
def start_encoding(state):
    """Initialises a coder to write from index 0 of its buffer on."""
    state[LOW], state[HIGH], state[CODE], state[PLACE] = 0, 0xFFFFFFFF, 0, 0


@njit(cache=True)
def start_decoding(state, data, place, end):
    """Initialises a coder to read ``data[place:end]``; beyond the end it reads zeros."""
    state[LOW], state[HIGH], state[CODE], state[PLACE], state[END] = 0, 0xFFFFFFFF, 0, place, end
    for _ in range(4):
        _shift_in(state, data)


@njit(cache=True)
def _shift_in(state, data):
    place = state[PLACE]
    state[CODE] = (state[CODE] << 8 | (np.int64(data[place]) if place < state[END] else 0)) & 0xFFFFFFFF
    state[PLACE] = place + 1


@njit(cache=True, inline="always")
def code_bit(state, data, models, index, bit, decoding):
    """Encodes ``bit``, or decodes it; returns it and adapts the model.

    Args:
        state: int64 [STATE_SIZE], the coder's state.
        data: uint8, buffer that is written or read.
        models: uint32, all models.
        index: index of the model to use.
        bit: the bit to encode; ignored when decoding.
    """
    memory = np.int64(models[index])
    probability = memory >> _COUNT_BITS
    count = memory & LIMIT
    low, high = state[LOW], state[HIGH]
    middle = low + ((high - low) * max(probability, 64) >> _PROBABILITY_BITS)
    if decoding:
        bit = 1 if state[CODE] <= middle else 0
    if bit:
        high = middle
    else:
        low = middle + 1
    while (low ^ high) >> 24 == 0:
        if decoding:
            _shift_in(state, data)
        else:
            data[state[PLACE]] = high >> 24
            state[PLACE] += 1
        low = (low << 8) & 0xFFFFFFFF
        high = (high << 8 | 255) & 0xFFFFFFFF
    state[LOW], state[HIGH] = low, high
    probability += ((bit << _PROBABILITY_BITS) - probability) * _RATES[count] >> 16
    probability = min(max(probability, 1), (1 << _PROBABILITY_BITS) - 1)
    models[index] = probability << _COUNT_BITS | min(count + 1, LIMIT)
    return bit


@njit(cache=True)
def finish_encoding(state, data):
    """Writes as few bytes as suffice to decode, since zeros are read beyond them; returns the total number of bytes."""
    low, high, place = state[LOW], state[HIGH], state[PLACE]
    if low > 0:
        for kept in range(1, 5):
            unit = 1 << (32 - 8 * kept)
            value = (low + unit - 1) // unit * unit
            if value <= high:
                for i in range(kept):
                    data[place + i] = value >> (24 - 8 * i) & 255
                return place + kept
    return place
