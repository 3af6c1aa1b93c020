"""Quantities of a won position, from which ``rules`` estimates the plies to the end of the game.

The estimate is a weighted sum of the quantities; the weights (points) depend on the pieces on the board. A sum of
distances cannot describe how one or two kings hunt a lone piece. For this there are tables, each over two or three
*factors* of the hunt. Every cell of a table is a quantity that is 1 or 0; during a hunt all other quantities are 0.
"""

from itertools import product

import numpy as np
from numba import njit

from ..bitboard import lowest_bit, popcount, turned
from ..movegen import DISTINCT, generate
from .exchanges import capture_balance, wins_in_three, wins_in_two, wins_now
from .squares import COLUMN, DOUBLE_CORNERS, EDGE, LAST_ROW, ROW, STEPS, SYSTEM

_COUNTED = (
    "winner's men",
    "winner's kings",
    "loser's men",
    "loser's kings",
    "steps of the winner's men to crowning",
    "steps of the loser's men to crowning",
    "steps from each loser's piece to the nearest winner's king",
    "steps from each loser's piece to the farthest winner's king",
    "loser's kings in a double corner",
    "loser's kings on the edge",
    "steps of the loser's kings to a double corner",
    "steps of the loser's kings from the centre",
    "winner's kings in a double corner",
    "the winner has the move",
    "loser's safe moves",
    "a piece is won at once",
    "a piece is won within two moves",
    "a piece is won within three moves",
)
FACTORS = (
    ("nearest king", 6),  # steps from the nearest hunter to the hunted piece
    ("second king", 7),  # steps from the second nearest hunter
    ("corner", 5),  # steps from the hunted piece to a double corner
    ("edge", 2),  # the hunted piece is on the edge
    ("move", 2),  # the hunters have the move (the opposition)
    ("inside", 2),  # a hunter in a double corner is at most two steps from the hunted piece
    ("apart", 6),  # steps between the two nearest hunters
)
"""Name and number of values of each factor; larger values count as the largest."""
TABLES = ((0, 1), (2, 3, 4), (5, 4, 0), (2, 1, 4), (6, 2), (0, 2, 4))
"""Indices in ``FACTORS`` of each table."""
_CELLS = tuple(
    "hunt: " + ", ".join(f"{FACTORS[f][0]} {value}" for f, value in zip(table, values, strict=True))
    for table in TABLES
    for values in product(*(range(FACTORS[f][1]) for f in table))
)
QUANTITIES = (*_COUNTED, *_CELLS)
NUM_COUNTED, NUM_QUANTITIES = len(_COUNTED), len(QUANTITIES)
_SIZES = np.array([size for _, size in FACTORS])
_TABLES = np.array([[*table, *(-1,) * (3 - len(table))] for table in TABLES])
_CORNER_STEPS = np.array([min(int(STEPS[b, c]) for c in range(32) if int(DOUBLE_CORNERS) >> c & 1) for b in range(32)])
_CENTRE_STEPS = np.array([int(max(abs(2 * ROW[b] - 7), abs(2 * COLUMN[b] - 7)) // 2) for b in range(32)])


@njit(cache=True)
def _crowning_steps(men):
    steps = 0
    while men != 0:
        steps += LAST_ROW - ROW[lowest_bit(men)]
        men &= men - np.uint32(1)
    return steps


@njit(cache=True)
def _hunt(kings, prey):
    """Steps to the nearest and to the farthest of ``kings``, summed over ``prey``; without kings 7 and 0 for each."""
    nearest = farthest = 0
    while prey != 0:
        i = lowest_bit(prey)
        prey &= prey - np.uint32(1)
        low, high = LAST_ROW, 0
        left = kings
        while left != 0:
            steps = STEPS[lowest_bit(left), i]
            left &= left - np.uint32(1)
            low, high = min(low, steps), max(high, steps)
        nearest, farthest = nearest + low, farthest + high
    return nearest, farthest


@njit(cache=True)
def _two_nearest(kings, prey):
    """Bit numbers of the kings nearest and second nearest to bit ``prey``; twice the same if there is only one king."""
    first = second = -1
    while kings != 0:
        bit = np.int64(lowest_bit(kings))
        kings &= kings - np.uint32(1)
        if first < 0 or STEPS[bit, prey] < STEPS[first, prey]:
            first, second = bit, first
        elif second < 0 or STEPS[bit, prey] < STEPS[second, prey]:
            second = bit
    return first, second if second >= 0 else first


@njit(cache=True)
def _write_hunt(kings, prey, has_move, out):
    """Sets the cells that hold to 1 in ``out``, float64 [cells], for a hunt of one piece by one or two kings."""
    hunted = np.int64(lowest_bit(prey))
    first, second = _two_nearest(kings, hunted)
    factors = np.zeros(_SIZES.shape[0], np.int64)
    factors[0], factors[1] = STEPS[first, hunted], STEPS[second, hunted]
    factors[2], factors[3], factors[4] = _CORNER_STEPS[hunted], prey & EDGE != 0, has_move
    left = np.uint32(kings & DOUBLE_CORNERS)
    while left != 0:
        factors[5] |= STEPS[lowest_bit(left), hunted] <= 2
        left &= left - np.uint32(1)
    factors[6] = STEPS[first, second]
    start = 0
    for table in range(_TABLES.shape[0]):
        cell, cells = 0, 1
        for factor in _TABLES[table]:
            if factor >= 0:
                cell = cell * _SIZES[factor] + min(factors[factor], _SIZES[factor] - 1)
                cells *= _SIZES[factor]
        out[start + cell] = 1.0
        start += cells


@njit(cache=True)
def _safe_moves(own, opp, kings, buffers):
    safe = 0
    moves = buffers.ahead[0]
    for i in range(generate(own, opp, kings, moves, DISTINCT)):
        move = moves[i]
        safe += capture_balance(turned(move.opp), turned(move.own), turned(move.kings), buffers) <= 0
    return safe


@njit(cache=True)
def write_quantities(own, opp, kings, winning, buffers, out):
    """Writes the quantities of a position into ``out``, float64 [NUM_QUANTITIES].

    ``winning``: whether the side to move wins; otherwise it loses.
    """
    if not winning:
        own, opp, kings = turned(opp), turned(own), turned(kings)
    mine, prey = np.uint32(own & kings), np.uint32(opp & kings)
    out[0], out[1] = popcount(own & ~kings), popcount(mine)
    out[2], out[3] = popcount(opp & ~kings), popcount(prey)
    out[4] = _crowning_steps(np.uint32(own & ~kings))
    out[5] = _crowning_steps(turned(np.uint32(opp & ~kings)))
    out[6], out[7] = _hunt(mine, opp)
    out[8], out[9] = popcount(prey & DOUBLE_CORNERS), popcount(prey & EDGE)
    out[10] = out[11] = 0
    left = prey
    while left != 0:
        out[10] += _CORNER_STEPS[lowest_bit(left)]
        out[11] += _CENTRE_STEPS[lowest_bit(left)]
        left &= left - np.uint32(1)
    out[12] = popcount(mine & DOUBLE_CORNERS)
    out[13] = (popcount((own | opp) & SYSTEM) & 1) == (1 if winning else 0)
    out[14] = _safe_moves(turned(opp), turned(own), turned(kings), buffers)
    out[15] = wins_now(own, opp, kings, buffers)
    out[16] = wins_in_two(own, opp, kings, buffers)
    out[17] = wins_in_three(own, opp, kings, buffers)
    out[NUM_COUNTED:] = 0.0
    if mine == own and popcount(own) <= 2 and popcount(opp) == 1:
        _write_hunt(mine, opp, np.int64(out[13]), out[NUM_COUNTED:])
        out[:NUM_COUNTED] = 0.0


@njit(cache=True, nogil=True)
def write_many(positions, buffers, out):
    """Writes the quantities of positions uint32 [N, 3 or more], won for their side to move, into ``out``, float64
    [N, NUM_QUANTITIES]."""
    for i in range(positions.shape[0]):
        write_quantities(positions[i, 0], positions[i, 1], positions[i, 2], True, buffers, out[i])
