"""Uniform samples of the exact endgame tables: positions with value and flag, straight from memory, without end.

A sample is drawn, not read: first a slice by its number of positions, then a place for each of its pieces, again from
the start if two meet on one square or a man stands where it would have been crowned. So every position of the slices is
equally likely, and no list of positions is ever kept.
"""

from collections.abc import Sequence
from functools import cache
from math import comb
from typing import NamedTuple, Protocol

import numpy as np
from numba import njit

from engine.bitboard import NUM_SQUARES, turned
from engine.movegen import jumpers_of
from engine.random_words import mix, next_random
from engine.tablebase.layout import NUM_KINDS, PLACES, code_of
from engine.tablebase.material import Material

TRAIN, VALIDATION, TEST = 0, 1, 2
ALL_SPLITS = -1
SPLIT_ENDS = (70, 80)
"""In percent: positions below the first number are for training, up to the second for validation, others for tests."""
VALIDATED_PIECES = 6  # most pieces of the samples that the shipped oracle is validated on
FLAG_NONE, FLAG_CAPTURE, FLAG_THREATENED = 0, 1, 2

_MAX_TRIES = 1_000_000  # tries of one draw before its conditions are taken to admit no position
_HOME_MEN = 4  # squares where only the mover's men may stand, and as many where only the opponent's
_MEN_PLACES = 28
WEIGHT_SCALE = 2.0**50


class EndgameDataError(ValueError):
    """Samples that cannot be drawn."""


class EndgameBatch(NamedTuple):
    """Samples of N positions.

    Attributes:
        positions: uint32 [N, 4], own, opponent's, kings and zero reversible plies (``engine.encoding``).
        values: int8 [N], 1 win, 0 draw, -1 loss for the side to move.
        flags: uint8 [N], ``FLAG_CAPTURE`` if the side to move can capture, ``FLAG_THREATENED`` if it cannot but the
            opponent could if it were to move, else ``FLAG_NONE`` (Wang 2023).
        codes: int16 [N], ``Material.code``.
    """

    positions: np.ndarray
    values: np.ndarray
    flags: np.ndarray
    codes: np.ndarray

    @property
    def classes(self) -> np.ndarray:
        """Values as int64 [N] places in the order of the logits: 0 win, 1 draw, 2 loss."""
        return 1 - self.values.astype(np.int64)


class Values(Protocol):
    """Exact values of positions: ``DenseTables`` in memory, ``labels.FileTables`` in files."""

    @property
    def pieces(self) -> int:
        """The most pieces of its positions."""

    def __contains__(self, material: object) -> bool: ...

    def lookup(self, positions: np.ndarray) -> np.ndarray:
        """Values int8 [N] for the sides to move of positions uint32 [N, 4] in which both have pieces."""


def labelled(positions: np.ndarray, values: Values) -> EndgameBatch:
    """Positions uint32 [N, 4], in which both sides have pieces, as samples: with exact values, flags and slices."""
    return EndgameBatch(positions, values.lookup(positions), flags_of(positions), codes_of(positions))


@cache
def count_positions(material: Material) -> int:
    """Number of positions of a slice, exactly: no man on its own promotion row, no two pieces on one square."""
    men = sum(
        comb(_HOME_MEN, home)
        * comb(_MEN_PLACES - _HOME_MEN, material.own_men - home)
        * comb(_MEN_PLACES - (material.own_men - home), material.opp_men)
        for home in range(min(_HOME_MEN, material.own_men) + 1)
    )
    free = NUM_SQUARES - material.own_men - material.opp_men
    return men * comb(free, material.own_kings) * comb(free - material.own_kings, material.opp_kings)


@njit(cache=True)
def split_of_position(own, opp, kings):
    """``TRAIN``, ``VALIDATION`` or ``TEST``, by a hash of the position alone."""
    word = mix(np.uint64(own) << np.uint64(32) | np.uint64(opp))
    word = mix(word ^ np.uint64(kings) ^ np.uint64(0x9E3779B97F4A7C15)) % np.uint64(100)
    if word < np.uint64(SPLIT_ENDS[0]):
        return TRAIN
    return VALIDATION if word < np.uint64(SPLIT_ENDS[1]) else TEST


@njit(cache=True)
def flag_of(own, opp, kings):
    """``FLAG_CAPTURE``, ``FLAG_THREATENED`` or ``FLAG_NONE`` of a position."""
    if jumpers_of(own, opp, kings) != 0:
        return FLAG_CAPTURE
    return FLAG_THREATENED if jumpers_of(turned(opp), turned(own), turned(kings)) != 0 else FLAG_NONE


@njit(inline="always")
def _of_each(positions, what, found):
    """``found`` [N], set to what a compiled function says of each of positions uint32 [N, 3 or more]."""
    for i in range(positions.shape[0]):
        found[i] = what(positions[i, 0], positions[i, 1], positions[i, 2])
    return found


@njit(cache=True, nogil=True)
def split_of(positions):
    """uint8 [N]: ``TRAIN`` (70 %), ``VALIDATION`` (10 %) or ``TEST`` (20 %) of positions uint32 [N, 3 or more]."""
    return _of_each(positions, split_of_position, np.empty(positions.shape[0], np.uint8))


def held_out(positions: np.ndarray) -> np.ndarray:
    """Which positions, uint32 [N, 4], are kept for validation and testing: bool [N].

    Networks that play never train on them, so that an oracle's validation of their win/draw/loss heads is honest.
    """
    few = np.bitwise_count(positions[:, 0] | positions[:, 1]) <= VALIDATED_PIECES
    few[few] = split_of(positions[few]) != TRAIN
    return few


@njit(cache=True, nogil=True)
def flags_of(positions):
    """uint8 [N]: the flags (see ``EndgameBatch``) of positions uint32 [N, 3 or more]."""
    return _of_each(positions, flag_of, np.empty(positions.shape[0], np.uint8))


@njit(cache=True, nogil=True)
def codes_of(positions):
    """int16 [N]: ``Material.code`` of positions uint32 [N, 3 or more]."""
    return _of_each(positions, code_of, np.empty(positions.shape[0], np.int16))


class _Source(NamedTuple):
    """What is drawn from, S slices: ends, counts and codes, see ``EndgameSampler``; the random state uint64 [1]."""

    ends: np.ndarray
    counts: np.ndarray
    codes: np.ndarray
    state: np.ndarray


class Sampler(Protocol):
    """What draws samples of some slices, S of them.

    Attributes:
        materials: the slices. split, quiet: see ``EndgameSampler``.
        state: where the sequence stands, an integer, not negative; set it to go on from there.
        weights: float64 [S], how often each slice is drawn; they sum to one.
        ends: int64, running sums of the weights that slices are drawn by at present: a part of the state.
    """

    state: int
    ends: np.ndarray
    weights: np.ndarray
    materials: tuple[Material, ...]
    split: int | None
    quiet: bool

    def reweigh(self, factors: np.ndarray) -> None:
        """Draws slice i in proportion to ``weights[i] * factors[i]`` from now on; factors float64 [S], not negative."""

    def draw(self, n: int) -> EndgameBatch:
        """The next ``n`` samples."""


class SeededSampler:
    """What samplers have that draw a slice by its weight with random numbers of their own; see ``Sampler``.

    Args:
        weights: float64 [S], how often each slice is drawn; they sum to one.
    """

    def __init__(
        self, materials: Sequence[Material], weights: np.ndarray, seed: int, split: int | None, quiet: bool
    ) -> None:
        self.materials, self.weights = tuple(materials), weights
        self.split, self.quiet = split, quiet
        self.ends = np.zeros(len(materials), np.int64)
        self.reweigh(np.ones(len(materials)))
        self._state = np.array([seed & (2**64 - 1)], np.uint64)

    @property
    def state(self) -> int:
        return int(self._state[0])

    @state.setter
    def state(self, value: int) -> None:
        self._state[0] = np.uint64(value)

    def reweigh(self, factors: np.ndarray) -> None:
        """See ``Sampler``. A slice with a weight stays possible, however small its factor is."""
        weights = self.weights * factors
        self.ends[:] = np.cumsum(np.maximum(self.weights > 0, np.rint(weights * (WEIGHT_SCALE / weights.sum()))))


class EndgameSampler(SeededSampler):
    """Draws positions uniformly from all positions of a set of slices; the same seed draws the same positions.

    See ``Sampler``; ``weights`` are the slices' shares of all positions, ``state`` is below 2**64.

    Args:
        tables: the exact values of every slice.
        materials: the slices.
        seed: any integer.
        split: draw only from ``TRAIN``, ``VALIDATION`` or ``TEST``; None draws from all.
        quiet: draw only positions where the side to move cannot capture.

    Raises:
        EndgameDataError: no slice, a slice that the tables lack, or an unknown split.
    """

    def __init__(
        self,
        tables: Values,
        materials: Sequence[Material],
        seed: int,
        split: int | None = None,
        quiet: bool = False,
    ) -> None:
        if not materials:
            raise EndgameDataError("there is no slice to draw from: name at least one")
        for material in materials:
            if material not in tables:
                raise EndgameDataError(f"the tables lack slice {material.name}: solve or open it first")
        if split not in (None, TRAIN, VALIDATION, TEST):
            raise EndgameDataError(f"split {split!r} is none of {TRAIN}, {VALIDATION}, {TEST}, None")
        counts = [count_positions(material) for material in materials]
        self.tables, self.positions = tables, sum(counts)
        super().__init__(materials, np.array(counts, np.float64) / self.positions, seed, split, quiet)
        self._counts = np.array(self.materials, np.int64)
        self._codes = np.array([material.code for material in self.materials], np.int16)

    def draw(self, n: int) -> EndgameBatch:
        """The next ``n`` samples; other threads may run meanwhile, but one sampler serves one thread.

        Raises ``EndgameDataError`` if no position of a slice that was drawn meets the conditions.
        """
        positions = np.zeros((n, 4), np.uint32)
        flags, codes = np.empty(n, np.uint8), np.empty(n, np.int16)
        split = ALL_SPLITS if self.split is None else self.split
        source = _Source(self.ends, self._counts, self._codes, self._state)
        if not _draw(source, split, self.quiet, positions, flags, codes):
            raise EndgameDataError(f"no position with these conditions found in {_MAX_TRIES:,} tries")
        return EndgameBatch(positions, self.tables.lookup(positions), flags, codes)


def draw_positions(materials: Sequence[Material], n: int, seed: int) -> np.ndarray:
    """Positions uint32 [n, 4] drawn uniformly from all of these numbers of pieces; there need be no tables of them."""
    numbers = np.array([count_positions(material) for material in materials], np.float64)
    sampler = SeededSampler(materials, numbers / numbers.sum(), seed, None, False)
    codes, positions = np.zeros(len(materials), np.int16), np.zeros((n, 4), np.uint32)
    source = _Source(sampler.ends, np.array(materials, np.int64), codes, np.array([sampler.state], np.uint64))
    _draw(source, ALL_SPLITS, False, positions, np.empty(n, np.uint8), np.empty(n, np.int16))
    return positions


@njit(cache=True)
def _place(counts, state):
    """(placed, own, opp, kings): one try to put the pieces of a slice on squares of their own."""
    taken, own, kings = np.uint32(0), np.uint32(0), np.uint32(0)
    bits, left = np.uint64(0), 0
    for kind in range(NUM_KINDS):
        for _ in range(counts[kind]):
            if left == 0:
                bits, left = next_random(state), 12
            bit = np.uint32(1) << np.uint32(bits & np.uint64(31))
            bits >>= np.uint64(5)
            left -= 1
            if bit & taken != 0 or bit & np.uint32(PLACES[kind]) == 0:
                return False, own, taken, kings
            taken |= bit
            if kind < 2:
                own |= bit
            if kind & 1:
                kings |= bit
    return True, own, np.uint32(taken ^ own), kings


@njit(cache=True, nogil=True)
def _draw(source, split, quiet, positions, flags, out_codes):
    ends, counts, codes, state = source
    total = np.uint64(ends[-1])
    for i in range(positions.shape[0]):
        tries = 0
        while True:
            index = np.searchsorted(ends, np.int64(next_random(state) % total), side="right")
            placed, own, opp, kings = False, np.uint32(0), np.uint32(0), np.uint32(0)
            # A slice once drawn stays: it is its positions, not the luck of placing them, that make it likely.
            while not placed:
                placed, own, opp, kings = _place(counts[index], state)
            if split == ALL_SPLITS or split_of_position(own, opp, kings) == split:
                flag = flag_of(own, opp, kings)
                if not (quiet and flag == FLAG_CAPTURE):
                    break
            tries += 1
            if tries == _MAX_TRIES:
                return False
        positions[i, 0], positions[i, 1], positions[i, 2] = own, opp, kings
        flags[i] = flag
        out_codes[i] = codes[index]
    return True
