"""What a codec of chess endings knows of positions two plies further on: a minimax search in values known by now.

White is to move in the positions that are coded one by one. Those that a move of White and a reply of Black lead to are
such positions again, and many of them have been coded before. The search takes all positions of a word at once
(``chess_moves``). Where pawns of both sides are there, a double step may be answered by a capture en passant, which may
change the value of the position it leads to: nothing is known of it then.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from .chess_moves import BLACK, MOST_WAYS, NOBODY, PAWN, WHITE, attacks, bit_of, gather, king_step

# Sets of positions with Black to move, by what is known: perhaps not won by Black; not won by Black; unclear, by the
# number of replies that may win (1, 2, 3 to 5, more); perhaps lost for Black; lost for Black.
_HOLDABLE, _HELD, _ONE, _TWO, _FEW, _MANY, _LOSABLE, _LOSING = range(8)
_NUM_SETS = 8
AHEAD_BITS = 9


class White(NamedTuple):
    """Positions with White to move, by what is known by now: uint64 [64, 64, N] each.

    Attributes:
        legal: all.
        safe: with a capture or a promotion that does not lose.
        lost, not_won: known to be lost, and to be lost or drawn.
        unknown: without a value yet. may_lose: lost, or without a value and perhaps lost.
    """

    legal: np.ndarray
    safe: np.ndarray
    lost: np.ndarray
    not_won: np.ndarray
    unknown: np.ndarray
    may_lose: np.ndarray


class Black(NamedTuple):
    """Positions with Black to move, by what is known in advance: uint64 [64, 64, N] each.

    Attributes:
        legal, stalemate: all, and stalemates.
        won, safe: with a capture or a promotion that wins, and that does not lose.
    """

    legal: np.ndarray
    stalemate: np.ndarray
    won: np.ndarray
    safe: np.ndarray


class Buffers(NamedTuple):
    """Memory of a search.

    Attributes:
        sets: uint64 [_NUM_SETS, 64, 64, N], by what is known of positions with Black to move.
        nothing: uint64 [64, 64, N], an empty set.
        ways: see ``gather``. counter: see ``_count``.
    """

    sets: np.ndarray
    nothing: np.ndarray
    ways: np.ndarray
    counter: np.ndarray


class Found(NamedTuple):
    """What a search found of the open positions of a word: which are won and lost, and which may be, of the others."""

    won: np.uint64
    lost: np.uint64
    may_win: np.uint64
    may_lose: np.uint64


def new_buffers(thirds: int) -> Buffers:
    """Memory for endings with N = ``thirds``."""
    sets = np.zeros((_NUM_SETS + 1, 64, 64, thirds), np.uint64)
    return Buffers(sets[:-1], sets[-1], np.zeros(MOST_WAYS, np.uint64), np.zeros(3, np.uint64))


@njit(cache=True)
def _union(ways, n):
    found = np.uint64(0)
    for i in range(n):
        found |= ways[i]
    return found


@njit(cache=True)
def _count(ways, n, counter):
    """By position how many of the words hold it, up to 7: three words of binary digits, the lowest first."""
    counter[:] = 0
    for i in range(n):
        carry = ways[i] & ~(counter[0] & counter[1] & counter[2])
        for digit in range(3):
            counter[digit], carry = counter[digit] ^ carry, counter[digit] & carry


@njit(cache=True)
def _is_doubtful(ending):
    """Whether nothing is known after a double step: pawns of both sides are there."""
    return ending.third == PAWN and ending.roamer == PAWN and ending.roamer_color == BLACK


@njit(cache=True)
def _judge(white, black, third, ending, known, against, buffers):
    """Sets what is known of the positions of a word with Black to move."""
    sets, nothing, ways, counter = buffers
    doubtful = _is_doubtful(ending)
    legal = against.legal[white, black, third]
    n = gather(known.lost, nothing if doubtful else known.lost, white, black, third, BLACK, ending, ways)
    won = against.won[white, black, third] | _union(ways, n)
    n = gather(known.may_lose, known.legal if doubtful else known.may_lose, white, black, third, BLACK, ending, ways)
    _count(ways, n, counter)
    a, b, c = counter
    some = (a | b | c) & ~won & legal
    n = gather(known.not_won, nothing if doubtful else known.not_won, white, black, third, BLACK, ending, ways)
    losable = legal & ~(against.stalemate[white, black, third] | against.safe[white, black, third] | won)
    losable &= ~_union(ways, n)
    n = gather(known.unknown, known.legal if doubtful else known.unknown, white, black, third, BLACK, ending, ways)
    sets[_HOLDABLE, white, black, third] = legal & ~won
    sets[_HELD, white, black, third] = legal & ~won & ~some
    sets[_ONE, white, black, third] = some & a & ~b & ~c
    sets[_TWO, white, black, third] = some & ~a & b & ~c
    sets[_FEW, white, black, third] = some & (a & b & ~c | ~b & c)
    sets[_MANY, white, black, third] = some & b & c
    sets[_LOSABLE, white, black, third] = losable
    sets[_LOSING, white, black, third] = losable & ~_union(ways, n)


@njit(cache=True)
def _judge_next(white, black, third, ending, known, against, buffers):
    """Sets what is known of all positions that a move of White leads to from a word."""
    for direction in range(8):
        square = king_step(white, direction)
        if square >= 0:
            _judge(square, black, third, ending, known, against, buffers)
    if ending.third == PAWN:
        _judge(white, black, third + 8, ending, known, against, buffers)
        if third < 16:
            _judge(white, black, third + 16, ending, known, against, buffers)
    elif ending.third != NOBODY:
        steps = attacks(ending.third, WHITE, third, bit_of(white) | bit_of(black))
        for square in range(64):
            if steps & bit_of(square) != 0:
                _judge(white, black, square, ending, known, against, buffers)
    if ending.roamer_color == WHITE:
        _judge(white, black, third, ending, known, against, buffers)


@njit(cache=True)
def search_word(white, black, third, ending, known, against, buffers, ahead):
    """Searches two plies from the open positions of a word with White to move; returns ``Found``.

    Args:
        known, against: ``White`` and ``Black``.
        ahead: int64 [64], set: what was seen of each position, 9 bits: the sets of unclear positions that a move leads
            to (4), the number of moves that Black may have no winning reply to (3), whether one surely holds, whether
            one may win.
    """
    _judge_next(white, black, third, ending, known, against, buffers)
    sets, nothing, ways, counter = buffers
    doubtful = _is_doubtful(ending)
    reached = np.zeros(_NUM_SETS, np.uint64)
    for kind in range(_NUM_SETS - 1, -1, -1):  # the first set at last: its moves are counted
        certain = nothing if kind in (_HELD, _LOSING) else against.legal
        n = gather(sets[kind], certain if doubtful else sets[kind], white, black, third, WHITE, ending, ways)
        reached[kind] = _union(ways, n)
    _count(ways, n, counter)
    here = known.unknown[white, black, third]
    won = here & reached[_LOSING]
    may_lose = here & known.may_lose[white, black, third] & ~won
    lost = may_lose & ~reached[_HOLDABLE] & ~known.safe[white, black, third]
    may_win = here & reached[_LOSABLE] & ~won & ~lost
    may_lose &= ~reached[_HELD] & ~lost
    for square in range(64):
        seen, place = np.int64(0), np.uint64(square)
        for bits in (reached[_MANY], reached[_FEW], reached[_TWO], reached[_ONE], counter[2], counter[1], counter[0]):
            seen = 2 * seen + np.int64(bits >> place & np.uint64(1))
        for bits in (reached[_HELD], reached[_LOSABLE]):
            seen = 2 * seen + np.int64(bits >> place & np.uint64(1))
        ahead[square] = seen
    return Found(won, lost, may_win, may_lose)
