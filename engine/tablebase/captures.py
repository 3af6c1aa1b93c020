"""Squares of a word's roamer with which the side to move has a capture, or can crown a man: all squares at once."""

import numpy as np
from numba import njit

from ..bitboard import FAR_ROW, HOME_ROW, step
from .layout import ALL_SQUARES


@njit(cache=True)
def capture_places(grid, pieces, taken):
    """Squares (uint32) of the roamer with which the side to move has a capture; valid only for squares where it may
    stand.

    Args:
        grid: layout and side to move (``second``).
        pieces: uint32 [4], squares of the other pieces by kind.
        taken: squares of all other pieces.
    """
    side = 1 if grid.second else 0
    theirs = np.uint32(pieces[2 - 2 * side] | pieces[3 - 2 * side])
    own_roamer, free = grid.roamer >> 1 == side, np.uint32(~taken)
    places, landings = np.uint32(0), np.uint32(0)
    for direction in range(4):
        back, men_too = direction ^ 2, direction >> 1 == side
        movers = np.uint32(pieces[2 * side + 1] | (pieces[2 * side] if men_too else np.uint32(0)))
        beside = step(movers, direction)
        landings |= step(beside & theirs, direction) & free
        if not own_roamer:  # the roamer is captured
            places |= beside & step(free, back)
        elif men_too or grid.roamer & 1 == 1:  # the roamer captures
            places |= step(step(free, back) & theirs, back)
    # captures among the other pieces, unless the roamer stands on the only square to land on
    return np.uint32(places | _unless_only(landings))


@njit(cache=True)
def crowning_places(grid, pieces, taken):
    """Squares (uint32) of the roamer with which a man of the side to move can step to its promotion row.

    See ``capture_places`` for the arguments.
    """
    side = 1 if grid.second else 0
    row = np.uint32((HOME_ROW if grid.second else FAR_ROW) & ~taken)
    places, landings = np.uint32(0), np.uint32(0)
    for direction in range(2 * side, 2 * side + 2):
        landings |= step(pieces[2 * side], direction) & row
        if grid.roamer == 2 * side:
            places |= step(row, direction ^ 2)
    return np.uint32(places | _unless_only(landings))


@njit(cache=True)
def _unless_only(squares):
    """No squares if ``squares`` is empty, all other squares if it is a single one, else all squares."""
    if squares == 0:
        return np.uint32(0)
    return np.uint32(ALL_SQUARES) if squares & (squares - np.uint32(1)) != 0 else np.uint32(~squares)
