"""What a codec of tables knows of a position one step further on: from values known by now, or from the network.

A minimax search of two plies. The first side is to move in the positions that are coded one by one; half of those that
two steps lead to come before in this order, and their values decide most of those that one step leads to. The network
judges the others.
"""

import numpy as np
from numba import njit

from engine.bitboard import step, turned
from engine.tablebase.layout import NUM_KINDS
from engine.tablebase.solve import free_places
from engine.tablebase.wdl_codec import DRAWN, LOST, NOT_YET, WON

from .integer_network import judge_integer
from .mixing import TOP, add_logits


@njit(cache=True, inline="always")
def state_at(word, bit, values, unknown):
    """State of a position, of those known by now; ``NOT_YET`` without a bit."""
    if bit == 0 or unknown[word, 0] & bit != 0:
        return NOT_YET
    if values[word, 0] & bit != 0:
        return WON
    return LOST if values[word, 1] & bit != 0 else DRAWN


@njit(cache=True)
def _replies(grid, ranks, taken, word, bit, mine, seen):
    """Counts in ``seen`` int64 [4] the states of the positions that the other side's steps lead to.

    Args:
        taken: squares of all pieces except the roamer. bit: the roamer's.
        mine: values and open positions with the first side to move, each uint32 [words, 2].
    """
    values, unknown = mine
    seen[:] = 0
    for kind in range(2, NUM_KINDS):
        entry = grid.base[kind] + ranks[kind]
        for i in range(grid.first[entry], grid.first[entry + 1]):
            if grid.targets[i] & (taken | bit) == 0:
                seen[state_at(word + grid.jumps[i], bit, values, unknown)] += 1
    if grid.roamer >= 2:
        free = free_places(grid.roamer, taken)
        for direction in range(4):
            place = step(bit, direction)
            if (grid.roamer & 1 or direction >= 2) and place & free != 0:
                seen[state_at(word, place, values, unknown)] += 1


@njit(cache=True)
def _consider(after, grid, ranks, taken, word, bit, mine, theirs, judge, ahead):
    """Takes a position that a step leads to into ``ahead``, see ``look_ahead``.

    Args:
        after: own, opp, kings of the position, seen by the side that has made the step.
        ranks, taken, word, bit: of the position.
    """
    values, unknown = theirs
    network, buffers, logits, seen = judge
    if unknown[word, 0] & bit == 0:
        if values[word, 0] & bit == 0:  # a draw: a lost one has made the position before a won one
            ahead[1] = -TOP
        return
    _replies(grid, ranks, taken, word, bit, mine, seen)
    if seen[LOST] > 0:
        return
    safe = seen[DRAWN] > 0 or unknown[word, 1] & bit == 0
    if seen[NOT_YET] == 0:
        ahead[1 if safe else 0] = -TOP if safe else TOP
        return
    own, opp, kings = after
    judge_integer(turned(opp), turned(own), turned(kings), network, buffers, logits)
    if not safe:
        ahead[0] = max(ahead[0], logits[2] - add_logits(logits[0], logits[1]))
    ahead[1] = min(ahead[1], logits[0] - logits[1])


@njit(cache=True)
def look_ahead(own, opp, kings, grid, ranks, taken, word, bit, mine, theirs, judge, ahead):
    """What the network, and values known by now, say of the positions one step further on.

    Args:
        mine, theirs: values and open positions with this and with the other side to move, each uint32 [words, 2].
        judge: the network, and three buffers: its own, logits int64 [3], counts int64 [4].
        ahead: int64 [2], set: log-odds that the likeliest loss of the opponent is one, and that the unlikeliest of its
            wins is one.
    """
    ahead[0], ahead[1] = -TOP, TOP
    for kind in range(2):
        rank = ranks[kind]
        entry = grid.base[kind] + rank
        for i in range(grid.first[entry], grid.first[entry + 1]):
            if grid.targets[i] & (taken | bit) == 0:
                jump = grid.jumps[i]
                ranks[kind] = rank + jump // grid.strides[kind]
                moved = np.uint32(grid.masks[entry] ^ grid.masks[grid.base[kind] + ranks[kind]])
                crowned = moved if kind == 1 else np.uint32(0)
                after = own ^ moved, opp, kings ^ crowned
                _consider(after, grid, ranks, taken ^ moved, word + jump, bit, mine, theirs, judge, ahead)
                ranks[kind] = rank
    if grid.roamer < 2:
        king, free = grid.roamer & 1, free_places(grid.roamer, taken)
        for direction in range(4):
            place = step(bit, direction)
            if (king or direction < 2) and place & free != 0:
                moved = np.uint32(bit | place)
                crowned = moved if king else np.uint32(0)
                after = own ^ moved, opp, kings ^ crowned
                _consider(after, grid, ranks, taken, word, place, mine, theirs, judge, ahead)
