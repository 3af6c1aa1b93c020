"""Legal moves of English draughts (rules: WCDF, sections 1.12-1.21): captures are compulsory, multi-jumps are one move.

The code of a move (see ``engine.rules.moves``) continues with

    bits 6-10 hops | from bit 12: two bits of direction per hop

Buffers hold ``MAX_MOVES`` moves: with at most twelve pieces a side (``Board`` admits no more) a position has at most 42
moves, and at most 40 captures, different paths counted apart (tests/test_movegen.py).
"""

import numpy as np
from numba import njit

from ...bitboard import FAR_ROW, lowest_bit, popcount, rotated, step
from ..moves import CAPTURE_FLAG, EVERY_PATH, is_capture, launches, write_move

MAX_MOVES = 48
HOPS_SHIFT = 6
PATH_SHIFT = 12
_SHORTEST_CIRCLE = 4  # two paths lead to one position only if their captures close a circle


@njit(cache=True)
def move_hops(code):
    """Number of single steps or jumps the move is made of."""
    return np.int64((code >> np.uint64(HOPS_SHIFT)) & np.uint64(31))


@njit(cache=True)
def move_direction(code, hop):
    """Direction (0-3) of hop number ``hop``."""
    return np.int64((code >> np.uint64(PATH_SHIFT + 2 * hop)) & np.uint64(3))


@njit(cache=True)
def _record(moves, n, own, opp, kings, code, distinct):
    may_repeat = is_capture(code) and move_hops(code) >= _SHORTEST_CIRCLE
    return write_move(moves, n, own, opp, kings, code, distinct and may_repeat)


@njit(cache=True)
def _captures_of(own, opp, kings, start, moves, n, distinct, keep):
    """Walks every capture of the piece on bit ``start``, depth first; returns ``n`` plus their number.

    Written as a loop that takes its last hop back: Numba cannot cache a function that calls itself. The path is the
    stack. The start square is empty while the piece jumps and a jumped piece is off the board at once. A man never
    jumps on from the far row, because forward leads off the board.

    Args:
        keep: write the captures into ``moves``; else only count them.
    """
    piece = np.uint32(np.uint32(1) << start)
    king = (kings & piece) != 0
    directions = 4 if king else 2
    rest = np.uint32(own ^ piece)
    path = np.uint64(0)
    hops = 0
    direction = 0
    at_end = False
    while True:
        over = land = np.uint32(0)
        while direction < directions:
            over = np.uint32(step(piece, direction) & opp)
            land = np.uint32(step(over, direction) & ~(rest | opp))
            if land != 0:
                break
            direction += 1
        if land != 0:
            path |= np.uint64(direction) << np.uint64(2 * hops)
            hops += 1
            opp = np.uint32(opp ^ over)
            piece = land
            direction = 0
            at_end = True
            continue
        if at_end:
            if keep:
                code = np.uint64(start) | np.uint64(CAPTURE_FLAG) | (np.uint64(hops) << np.uint64(HOPS_SHIFT))
                crowned = np.uint32(piece if king else piece & FAR_ROW)
                after = np.uint32((kings & (rest | opp)) | crowned)
                code |= path << np.uint64(PATH_SHIFT)
                n = _record(moves, n, np.uint32(rest | piece), opp, after, code, distinct)
            else:
                n += 1
            at_end = False
        if hops == 0:
            return n
        hops -= 1
        direction = np.int64((path >> np.uint64(2 * hops)) & np.uint64(3))
        path ^= np.uint64(direction) << np.uint64(2 * hops)
        over = step(piece, direction ^ 2)
        piece = step(over, direction ^ 2)
        opp = np.uint32(opp | over)
        direction += 1


@njit(cache=True)
def jumpers_of(own, opp, kings):
    """The pieces of the side to move that can capture."""
    empty = np.uint32(~(own | opp))
    jumpers = own & (launches(opp, empty, 0) | launches(opp, empty, 1))
    own_kings = np.uint32(own & kings)
    if own_kings != 0:
        jumpers |= own_kings & (launches(opp, empty, 2) | launches(opp, empty, 3))
    return np.uint32(jumpers)


@njit(cache=True)
def generate(own, opp, kings, moves, distinct):
    """Writes the legal moves into ``moves`` and returns their number.

    Args:
        own, opp, kings: uint32, seen by the side to move.
        moves: [MAX_MOVES] of ``MOVE``; positions are written as the mover sees them.
        distinct: keep one of several captures that reach the same position (the first in order of direction).
    """
    n = np.int64(0)  # a plain 0 is a value of its own again
    jumpers = jumpers_of(own, opp, kings)
    if jumpers != 0:
        while jumpers != 0:
            start = lowest_bit(jumpers)
            jumpers &= jumpers - np.uint32(1)
            n = _captures_of(own, opp, kings, start, moves, n, distinct, True)
        return n
    empty = np.uint32(~(own | opp))
    for direction in range(4):
        movers = own if direction < 2 else np.uint32(own & kings)
        targets = np.uint32(step(movers, direction) & empty)
        starts = step(targets, direction ^ 2)
        while starts != 0:
            start = lowest_bit(starts)
            starts &= starts - np.uint32(1)
            piece = np.uint32(np.uint32(1) << start)
            land = step(piece, direction)
            king = (kings & piece) != 0 or (land & FAR_ROW) != 0
            code = np.uint64(start) | np.uint64(1 << HOPS_SHIFT) | (np.uint64(direction) << np.uint64(PATH_SHIFT))
            after = np.uint32((kings & ~piece) | (land if king else np.uint32(0)))
            n = _record(moves, n, np.uint32(own ^ (piece | land)), opp, after, code, EVERY_PATH)
    return n


@njit(cache=True)
def count_moves(own, opp, kings, moves):
    """Number of legal moves, different capture paths counted apart, mostly without walking them.

    Args:
        moves: a buffer, not written to.
    """
    empty = np.uint32(~(own | opp))
    own_kings = np.uint32(own & kings)
    right, left = launches(opp, empty, 0), launches(opp, empty, 1)
    jumpers = np.uint32(own & (right | left))
    if own_kings != 0:
        jumpers |= own_kings & (launches(opp, empty, 2) | launches(opp, empty, 3))
    if jumpers == 0:
        n = np.int64(popcount(step(own, 0) & empty)) + np.int64(popcount(step(own, 1) & empty))
        if own_kings != 0:
            n += np.int64(popcount(step(own_kings, 2) & empty)) + np.int64(popcount(step(own_kings, 3) & empty))
        return n
    # A man's single jump is one capture; only kings and men that can jump on have to be walked.
    men_right, men_left = np.uint32(jumpers & right & ~kings), np.uint32(jumpers & left & ~kings)
    on = right | left
    on_right = rotated(rotated(men_right, 1), 1) & on
    on_left = rotated(rotated(men_left, 7), 7) & on
    walked = np.uint32(jumpers & kings)
    if (on_right | on_left) != 0:
        walked |= rotated(on_right, 30) | rotated(on_left, 18)
    n = np.int64(popcount(men_right & ~walked)) + np.int64(popcount(men_left & ~walked))
    while walked != 0:
        start = lowest_bit(walked)
        walked &= walked - np.uint32(1)
        n = _captures_of(own, opp, kings, start, moves, n, EVERY_PATH, False)
    return n
