"""A position as the pair network sees it: a list of piece-squares, a slice with a parity, and who has more pieces.

**Features** are numbered 0-119: own men (28 places), own kings (32), opponent's men (28), opponent's kings (32), each
kind in the order of its bits, always from the side to move. A position's are listed in increasing order.

**Pairs** of features a >= b are numbered ``a (a + 1) / 2 + b``; a feature with itself stands for the piece alone.

**Parity** is that of the number of pieces on odd rows. Every step changes it, so it tells who "has the move" (the
opposition), which decides many endgames and which no sum over pairs can tell.

**Rows**: ``2 * slice + parity``, of the tables of biases. Slices that were not trained on borrow the row of one with
fewer pieces: pieces go from both sides in turn, so that who is ahead stays so.

**Groups**: ``2 * (0 fewer, 1 as many, 2 more own pieces) + parity``.
"""

from functools import cache

import numpy as np
from numba import njit

from engine.bitboard import SQUARE_OF_BIT, lowest_bit, mask_of, popcount
from engine.tablebase.layout import NUM_KINDS, PLACES
from engine.tablebase.material import MIN_PIECES, NUM_CODES, Material, materials_between

NUM_FEATURES = 120
NUM_PAIRS = NUM_FEATURES * (NUM_FEATURES + 1) // 2
NUM_GROUPS = 6
MAX_FEATURES = 24  # twelve pieces a side
_OFFSETS = (0, 28, 60, 88)
_LARGEST_COUNT = 7  # most pieces of one kind in ``Material.code``
_ODD_ROWS = mask_of(square for square in range(32) if square // 4 % 2)


def _feature_table() -> np.ndarray:
    """uint8 [4, 32]: feature of a piece of each kind on each bit; a man where none can stand takes its neighbour's."""
    table = np.zeros((NUM_KINDS, len(SQUARE_OF_BIT)), np.uint8)
    for kind, places in enumerate(PLACES):
        for bit in range(32):
            table[kind, bit] = _OFFSETS[kind] + max(0, (places & ((2 << bit) - 1)).bit_count() - 1)
    return table


FEATURE_OF_BIT = _feature_table()


def _smaller(material: Material) -> Material:
    """One piece less on each side, or on the larger one if a side has only one; of the kind there are more of."""
    own_men, own_kings, opp_men, opp_kings = material
    own, opp = own_men + own_kings, opp_men + opp_kings
    if own > 1 and (opp > 1 or own >= opp):
        own_men, own_kings = (own_men - 1, own_kings) if own_men >= own_kings else (own_men, own_kings - 1)
    if opp > 1 and (own > 1 or opp > own):
        opp_men, opp_kings = (opp_men - 1, opp_kings) if opp_men >= opp_kings else (opp_men, opp_kings - 1)
    return Material(own_men, own_kings, opp_men, opp_kings)


@cache
def slice_table(pieces: int) -> np.ndarray:
    """int32 [NUM_CODES]: place among the slices of 2 to ``pieces`` pieces of every code, counts above 7 taken as 7."""
    places = {material: i for i, material in enumerate(materials_between(MIN_PIECES, pieces))}
    table = np.zeros(NUM_CODES, np.int32)
    for code in range(NUM_CODES):
        material = Material.of_code(code)
        while material not in places and any(material[:2]) and any(material[2:]):
            material = _smaller(material)
        table[code] = places.get(material, 0)
    return table


@njit(cache=True)
def _clipped_code(own, opp, kings):
    most = np.int64(_LARGEST_COUNT)
    return (
        min(np.int64(popcount(own & ~kings)), most) << 9
        | min(np.int64(popcount(own & kings)), most) << 6
        | min(np.int64(popcount(opp & ~kings)), most) << 3
        | min(np.int64(popcount(opp & kings)), most)
    )


@njit(cache=True)
def encode_one(own, opp, kings, slices, features):
    """Writes a position's features, at most ``MAX_FEATURES``; returns (their number, its row, its group)."""
    count = 0
    for kind in range(NUM_KINDS):
        pieces = np.uint32((own if kind < 2 else opp) & (kings if kind & 1 else ~kings))
        while pieces != 0 and count < MAX_FEATURES:
            features[count] = FEATURE_OF_BIT[kind, lowest_bit(pieces)]
            pieces &= pieces - np.uint32(1)
            count += 1
    parity = np.int64(popcount((own | opp) & np.uint32(_ODD_ROWS)) & 1)
    ahead = np.int64(popcount(own)) - np.int64(popcount(opp))
    group = 2 * (1 if ahead == 0 else (2 if ahead > 0 else 0)) + parity
    return count, 2 * np.int64(slices[_clipped_code(own, opp, kings)]) + parity, group


@njit(cache=True, nogil=True)
def encode_many(positions, slices, features, counts, rows, groups):
    """Encodes positions [N, 3 or more] uint32 into features [N, MAX_FEATURES], counts, groups uint8 [N], rows int64."""
    for i in range(positions.shape[0]):
        count, row, group = encode_one(positions[i, 0], positions[i, 1], positions[i, 2], slices, features[i])
        counts[i], rows[i], groups[i] = count, row, group
