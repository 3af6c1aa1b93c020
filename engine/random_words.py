"""Random numbers inside compiled functions: SplitMix64 (Steele, Lea, Flood 2014)."""

import numpy as np
from numba import njit


def new_random(seed: int) -> np.ndarray:
    """Random state uint64 [1] for ``next_random``; any integer is a seed."""
    return np.array([seed % 2**64], np.uint64)


@njit(cache=True)
def mix(word):
    """Scrambles a uint64, one to one (finalizer of SplitMix64: Steele, Lea, Flood 2014)."""
    word = np.uint64(word)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(cache=True)
def next_random(random):
    """Next uint64 of SplitMix64; ``random`` [1] uint64 is its state."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    return mix(random[0])


@njit(cache=True)
def random_below(random, n):
    """A random integer in 0 to n - 1 (bias below n / 2^32)."""
    return np.int64(((next_random(random) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
