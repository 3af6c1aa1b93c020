"""Captures and crownings for all squares of a word's roamer at once, compared with one position after another."""

import numpy as np
import pytest
from numba import njit

from engine.bitboard import FAR_ROW, step
from engine.movegen import jumpers_of
from engine.tablebase.captures import capture_places, crowning_places
from engine.tablebase.layout import NUM_KINDS, layout_of
from engine.tablebase.material import Material, materials
from engine.tablebase.solve import free_places, grid_of, place_word, seen_by_mover

WORDS = 300  # of each slice
PAIRS = [
    pair for pieces in range(2, 9) for pair in materials(pieces) if pair.leads and max(sum(pair[:2]), sum(pair[2:])) < 5
]


@njit(cache=True)
def one_by_one(grid, pieces, taken):
    """The results of ``capture_places`` and ``crowning_places``, on the squares where the roamer may stand."""
    captures, crownings = np.uint32(0), np.uint32(0)
    others = pieces[grid.roamer]
    places = free_places(grid.roamer, taken)
    for square in range(32):
        bit = np.uint32(1) << np.uint32(square)
        if places & bit == 0:
            continue
        pieces[grid.roamer] = others | bit
        own, opp, kings = seen_by_mover(grid, pieces)
        if jumpers_of(own, opp, kings) != 0:
            captures |= bit
        free = np.uint32(~(own | opp) & np.uint32(FAR_ROW))
        if (step(own & ~kings, 0) | step(own & ~kings, 1)) & free != 0:
            crownings |= bit
    pieces[grid.roamer] = others
    return places, captures, crownings


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_all_places_at_once(pair: Material):
    layout = layout_of(pair)
    words = np.random.default_rng(pair.code).integers(layout.words, size=WORDS)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    met = 0
    for second in (False, True):
        grid = grid_of(layout, second)
        for word in words.tolist():
            taken = place_word(grid, word, ranks, pieces)
            places, captures, crownings = one_by_one(grid, pieces, taken)
            if places:
                assert capture_places(grid, pieces, taken) & places == captures
                assert crowning_places(grid, pieces, taken) & places == crownings
                met += captures != 0
    assert met
