"""Samples from lists, and of two sources at once: positions drawn uniformly, and positions that games reach.

Endgames of games are more balanced than uniform samples, and lie in other slices.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from engine.random_words import next_random
from engine.tablebase.material import Material

from .data import EndgameBatch, EndgameDataError, Sampler, SeededSampler


class ListSampler(SeededSampler):
    """Draws from a list of samples: first a slice, by its weight, then any of its samples. See ``data.Sampler``.

    Slices weigh by the square root of their samples: games shuffle kings for long, and most samples would be of that.

    Args:
        samples: at least one; all of slices of ``materials``.
        split, quiet: what the samples were chosen by; only told to others.

    Raises:
        EndgameDataError: there is no sample, or one of another slice.
    """

    def __init__(
        self, samples: EndgameBatch, materials: Sequence[Material], seed: int, split: int | None, quiet: bool
    ) -> None:
        numbers = {material.code: i for i, material in enumerate(materials)}
        slices = np.array([numbers.get(code, -1) for code in samples.codes.tolist()], np.int64)
        if len(slices) == 0 or slices.min() < 0:
            raise EndgameDataError("the samples to draw from are none, or not all of the slices asked for")
        order = np.argsort(slices, kind="stable")
        self._samples = EndgameBatch(*(column[order] for column in samples))
        counts = np.bincount(slices, minlength=len(materials))
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        roots = np.sqrt(counts)
        super().__init__(materials, roots / roots.sum(), seed, split, quiet)

    def draw(self, n: int) -> EndgameBatch:
        rows = np.empty(n, np.int64)
        _choose(self.ends, self._starts, self._state, rows)
        return EndgameBatch(*(column[rows] for column in self._samples))


class MixedSampler:
    """Draws a part of each batch from one sampler, the rest from another; see ``data.Sampler``.

    Args:
        uniform, reached: samplers of the same slices, which are this one's.
        fraction: of a batch that ``reached`` draws, 0 to 1.
    """

    def __init__(self, uniform: Sampler, reached: Sampler, fraction: float) -> None:
        if uniform.materials != reached.materials:
            raise EndgameDataError("two samplers of different slices cannot be mixed")
        self._uniform, self._reached, self.fraction = uniform, reached, fraction
        self.materials, self.split, self.quiet = uniform.materials, uniform.split, uniform.quiet
        self.weights = (1 - fraction) * uniform.weights + fraction * reached.weights
        size = len(self.materials)
        self.ends = np.concatenate([uniform.ends, reached.ends])
        uniform.ends, reached.ends = self.ends[:size], self.ends[size:]

    @property
    def state(self) -> int:
        return self._uniform.state | self._reached.state << 64

    @state.setter
    def state(self, value: int) -> None:
        self._uniform.state, self._reached.state = value & (2**64 - 1), value >> 64

    def reweigh(self, factors: np.ndarray) -> None:
        self._uniform.reweigh(factors)
        self._reached.reweigh(factors)

    def draw(self, n: int) -> EndgameBatch:
        """The next ``n`` samples, those of ``reached`` first."""
        few = round(n * self.fraction)
        parts = zip(self._reached.draw(few), self._uniform.draw(n - few), strict=True)
        return EndgameBatch(*(np.concatenate(columns) for columns in parts))


@njit(cache=True, nogil=True)
def choose_row(ends, starts, state):
    """A row of one of S slices: the slice by its weight, then any of its rows.

    Args:
        ends: int64 [S], see ``data.Sampler``. starts: int64 [S + 1], where each slice's rows begin.
        state: random state uint64 [1].
    """
    place = np.searchsorted(ends, np.int64(next_random(state) % np.uint64(ends[-1])), side="right")
    return starts[place] + np.int64(next_random(state) % np.uint64(starts[place + 1] - starts[place]))


@njit(cache=True, nogil=True)
def _choose(ends, starts, state, rows):
    for i in range(rows.shape[0]):
        rows[i] = choose_row(ends, starts, state)
