"""Index of a position in a slice's arrays: a 32-bit word for all squares of one piece.

Both slices of a pair are stored as seen by the *first* side (``Material.leads``), whichever side is to move. One piece
of the pair is the *roamer*. The squares of the other pieces give the number of a word; bit b of the word is the
position with the roamer on bit b. So a word has up to 31 positions, and one rotation moves the roamer in all of them.

    word = sum over the four kinds of rank(kind) * stride(kind)

The rank of k pieces of a kind is that of their squares in the combinatorial number system (colexicographic order, Knuth
4A, 7.2.1.3); men have 28 squares. Ranks of different kinds are independent, so that a step only adds to the number of a
word. A sixth of all words therefore have two pieces on one square and stay empty. If there are several pieces of the
roamer's kind, a position has several copies, one with each of them as the roamer; all have the same value.
"""

from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import (
    BIT_OF_SQUARE,
    FAR_ROW,
    HOME_ROW,
    NUM_SQUARES,
    REACH,
    ROTATIONS,
    SQUARE_OF_BIT,
    lowest_bit,
    popcount,
    turned,
)
from ..records import record
from .material import MAX_PIECES, NUM_CODES, Material

NUM_KINDS = 4  # first side's men and kings, second side's men and kings: side = kind // 2, king = kind % 2
FIRST_SQUARE = (0, 0, 4, 0)  # lowest square of each kind, seen by the first side
NUM_PLACES = (28, 32, 28, 32)
DIRECTIONS = ((0, 1), (0, 1, 2, 3), (2, 3), (0, 1, 2, 3))
ALL_SQUARES = 0xFFFFFFFF
PLACES = (ALL_SQUARES ^ FAR_ROW, ALL_SQUARES, ALL_SQUARES ^ HOME_ROW, ALL_SQUARES)
BINOMIAL = np.array([[comb(n, k) for k in range(MAX_PIECES + 1)] for n in range(NUM_SQUARES + 1)], np.int64)

# [byte of a bitboard, its value]: its squares, as a word with bit i for square i
SQUARES_OF_BYTE = np.array(
    [[sum(1 << int(SQUARE_OF_BIT[8 * b + i]) for i in range(8) if v >> i & 1) for v in range(256)] for b in range(4)],
    np.uint32,
)

SLICE = record(
    [
        ("start", np.int64),  # first word of the slice in the array of all slices; -1: no such slice
        ("stride", np.int64, NUM_KINDS),  # words from one rank to the next, of each kind
        ("turned", np.uint8),  # 1 if the side to move is the second side
        ("roamer", np.uint8),  # kind of the roamer
    ]
)


class Layout(NamedTuple):
    """The numbering of the words of one pair of slices.

    Attributes:
        material: slice with the first side to move.
        roamer: kind of the roamer.
        counts: number of pieces of each kind without the roamer.
        order: kinds from the slowest to the fastest index; kinds without pieces come first.
        sizes: number of ranks of each kind.
        strides: words from one rank to the next, of each kind.
        words: number of words.
    """

    material: Material
    roamer: int
    counts: tuple[int, ...]
    order: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    words: int


@cache
def layout_of(material: Material) -> Layout:
    """The layout of a slice's pair."""
    pair = material.pair
    # A single piece of its kind gives no copies of positions; a king has more squares than a man.
    roamer = min((kind for kind in range(NUM_KINDS) if pair[kind]), key=lambda kind: (pair[kind], -(kind % 2)))
    counts = tuple(pair[kind] - (kind == roamer) for kind in range(NUM_KINDS))
    sizes = tuple(comb(NUM_PLACES[kind], counts[kind]) for kind in range(NUM_KINDS))
    order = tuple(sorted(range(NUM_KINDS), key=lambda kind: (counts[kind] > 0, kind % 2, kind)))
    strides, words = [0] * NUM_KINDS, 1
    for kind in reversed(order):
        strides[kind] = words
        words *= sizes[kind]
    return Layout(pair, roamer, counts, order, sizes, tuple(strides), words)


class Placements(NamedTuple):
    """All placements of k pieces of one kind: ``masks`` [R] uint32 by rank, and the steps of one piece.

    The steps from rank r are those from ``first[r]`` to ``first[r + 1] - 1``: ``targets`` [S] uint32 (the square
    stepped to) and ``ranks`` [S] int32 (of the pieces after the step). Steps that crown a man are not included.
    """

    masks: np.ndarray
    first: np.ndarray
    targets: np.ndarray
    ranks: np.ndarray


@cache
def placements(kind: int, count: int, back: bool = False) -> Placements:
    """The placements of ``count`` pieces of a kind; ``back``: with backward steps, which undo steps."""
    masks = np.zeros(comb(NUM_PLACES[kind], count), np.uint32)
    _fill_masks(masks, count, FIRST_SQUARE[kind], BIT_OF_SQUARE)
    first = np.zeros(len(masks) + 1, np.int64)
    targets, to = np.zeros(len(masks) * 4 * count, np.uint32), np.zeros(len(masks) * 4 * count, np.int32)
    directions = np.array(DIRECTIONS[kind]) ^ (2 if back else 0)
    n = _fill_steps(masks, kind, directions, np.uint32(PLACES[kind]), first, targets, to)
    return Placements(masks, first, targets[:n].copy(), to[:n].copy())


@njit(cache=True, nogil=True)
def _fill_masks(masks, count, first_square, bit_of_square):
    """Fills ``masks`` by rank, which is the order of the numbers whose bits are the squares."""
    squares = np.int64((1 << count) - 1)
    for rank in range(masks.shape[0]):
        left = squares
        while left != 0:
            masks[rank] |= np.uint32(1) << np.uint32(bit_of_square[lowest_bit(left) + first_square])
            left &= left - 1
        lowest = squares & -squares  # the next number with as many bits (Gosper's hack)
        higher = squares + lowest
        squares = higher | (((squares ^ higher) >> 2) // max(lowest, 1))


@njit(cache=True, nogil=True)
def _fill_steps(masks, kind, directions, places, first, targets, ranks):
    n = 0
    for r in range(masks.shape[0]):
        first[r] = n
        left = masks[r]
        while left != 0:
            bit = np.uint32(left & (~left + np.uint32(1)))
            left ^= bit
            start = lowest_bit(bit)
            for direction in directions:
                land = np.uint32(1) << np.uint32((start + ROTATIONS[direction]) & 31)
                if land & np.uint32(REACH[direction]) & places & ~masks[r] != 0:
                    targets[n] = land
                    ranks[n] = rank_of(np.uint32((masks[r] ^ bit) | land), kind)
                    n += 1
    first[masks.shape[0]] = n
    return n


@njit(cache=True)
def rank_of(word, kind):
    """Rank of the pieces of one kind among all placements of the same number (see the module)."""
    squares = np.uint32(
        SQUARES_OF_BYTE[0, word & 255]
        | SQUARES_OF_BYTE[1, (word >> 8) & 255]
        | SQUARES_OF_BYTE[2, (word >> 16) & 255]
        | SQUARES_OF_BYTE[3, word >> 24]
    )
    if kind == 2:
        squares >>= np.uint32(4)
    rank = np.int64(0)
    i = 1
    while squares != 0:
        rank += BINOMIAL[lowest_bit(squares), i]
        squares &= squares - np.uint32(1)
        i += 1
    return rank


@njit(cache=True)
def code_of(own, opp, kings):
    """``Material.code`` of a position; 0, which is not the code of a slice, with more than ``MAX_PIECES`` pieces."""
    if popcount(own | opp) > MAX_PIECES:
        return np.int64(0)
    return (
        np.int64(popcount(own & ~kings)) << 9
        | np.int64(popcount(own & kings)) << 6
        | np.int64(popcount(opp & ~kings)) << 3
        | np.int64(popcount(opp & kings))
    )


@njit(cache=True)
def locate(own, opp, kings, slices):
    """(word, bit) of a position in the array of all slices; word is -1 if its slice is not in ``slices``.

    Args:
        own, opp, kings: uint32, seen by the side to move; both sides must have pieces, and no man may be on its
        promotion row.
        slices: [NUM_CODES] of ``SLICE``.
    """
    entry = slices[code_of(own, opp, kings)]
    if entry.start < 0:
        return np.int64(-1), np.uint32(0)
    if entry.turned != 0:
        own, opp, kings = turned(opp), turned(own), turned(kings)
    word = entry.start
    bit = np.uint32(0)
    for kind in range(NUM_KINDS):
        pieces = np.uint32((own if kind < 2 else opp) & (kings if kind & 1 else ~kings))
        if kind == entry.roamer:
            bit = lowest_bit(pieces)
            pieces &= pieces - np.uint32(1)
        if pieces != 0:
            word += entry.stride[kind] * rank_of(pieces, kind)
    return word, bit


@njit(cache=True)
def lookup(own, opp, kings, slices, words):
    """Value of a position for its side to move: 1 win, 0 draw, -1 loss.

    Args:
        own, opp, kings: uint32, seen by the side to move. A side without pieces has lost.
        slices: [NUM_CODES] of ``SLICE``, which must include the position's slice.
        words: uint32 [words of all slices, 2], won and lost positions.
    """
    if opp == 0:
        return 1
    if own == 0:
        return -1
    word, bit = locate(own, opp, kings, slices)
    return np.int64((words[word, 0] >> bit) & np.uint32(1)) - np.int64((words[word, 1] >> bit) & np.uint32(1))


def no_slices() -> np.ndarray:
    """An empty directory of slices, [NUM_CODES] of ``SLICE``."""
    slices = np.zeros(NUM_CODES, SLICE)
    slices["start"] = -1
    return slices


def add_slice(slices: np.ndarray, material: Material, start: int) -> None:
    """Enters a slice whose words begin at ``start`` into the directory."""
    layout = layout_of(material)
    slices[material.code] = (start, layout.strides, not material.leads, layout.roamer)
