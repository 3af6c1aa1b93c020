"""Counts the won, drawn and lost positions of a slice, and finds its longest win."""

import numpy as np
from numba import njit

from ..bitboard import borrowed, lowest_bit, popcount
from ..fen import Color, format_fen
from .distance import Halves
from .layout import NUM_KINDS, Layout
from .material import slices_of
from .slice_file import SliceCounts
from .solve import Grid, canonical_places, grid_of, place_word, seen_by_mover
from .solver import Values


@njit(cache=True, nogil=True)
def _count_words(grid, values, counts):
    """Adds the numbers of canonical positions, of won and of lost ones in all words to ``counts``, int64 [3]."""
    values, counts = borrowed(values), borrowed(counts)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    for word in range(grid.words):
        taken = place_word(grid, word, ranks, pieces)
        places = canonical_places(grid.roamer, taken, pieces[grid.roamer])
        counts[0] += popcount(places)
        counts[1] += popcount(places & values[word, 0])
        counts[2] += popcount(places & values[word, 1])


@njit(cache=True, nogil=True)
def _longest_win(grid, values, halves):
    """(half distance, word, bit) of a longest win; half distance 0 if no position is won."""
    values, halves = borrowed(values), borrowed(halves)
    best, best_word, best_bit = 0, np.int64(0), np.uint32(0)
    for word in range(grid.words):
        places = values[word, 0]
        while places != 0:
            bit = lowest_bit(places)
            places &= places - np.uint32(1)
            if halves[word, bit] > best:
                best, best_word, best_bit = np.int64(halves[word, bit]), word, bit
    return best, best_word, best_bit


def fen_of(grid: Grid, word: int, bit: int) -> str:
    """FEN of the position of a word and bit; the side to move is Black."""
    pieces = np.zeros(NUM_KINDS, np.uint32)
    place_word(grid, word, np.zeros(NUM_KINDS, np.int64), pieces)
    pieces[grid.roamer] |= np.uint32(1) << np.uint32(bit)
    return format_fen(Color.BLACK, *map(int, seen_by_mover(grid, pieces)))


def count_pair(layout: Layout, values: Values, halves: Halves | None = None) -> dict[str, SliceCounts]:
    """Counts of both slices of a pair, by name.

    Args:
        values: values of the pair, see ``solver.Values``.
        halves: half distances of the pair; without them ``longest_win`` is None.
    """
    counts = {}
    for side, material in enumerate(slices_of(layout.material)):
        grid, found = grid_of(layout, side == 1), np.zeros(3, np.int64)
        _count_words(grid, values[side], found)
        positions, won, lost = found.tolist()
        counts[material.name] = SliceCounts(win=won, draw=positions - won - lost, loss=lost)
        if halves is not None:
            half, word, bit = _longest_win(grid, values[side], halves[side])
            counts[material.name].longest_win = 2 * half - 1 if half else None
            counts[material.name].longest_fen = fen_of(grid, word, bit) if half else None
    return counts
