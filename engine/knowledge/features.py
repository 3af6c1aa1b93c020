"""Yes-or-no features of an endgame position, as players use them; they are computed and named here.

The features of a side are computed as if it were to move, except whether a king alone could stop its men; those of the
opponent are seen from its side of the board.
Features are packed into words: bit i is set if feature i holds.

Terms of the game: a *safe move* loses no piece in the captures that follow it. The *double corners* are 1 and 5, and
28 and 32; the *single corners* are 4 and 29. A man in the *dog hole* (28 for Black, 5 for White) is blocked by an enemy
man in front of it, on the enemy's back row. The *bridge* is men on 1 and 3 (White: 30 and 32).
A side to move has *the move* (the opposition) if the number of pieces on every second row from its back row is odd.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import lowest_bit, mask_of, popcount, turned
from ..movegen import DISTINCT, generate, jumpers_of, move_start
from .duels import duels, runs
from .exchanges import Buffers, capture_balance, loses_in_three, new_buffers, wins_in_three, wins_in_two, wins_now
from .squares import COLUMN, DOUBLE_CORNERS, EDGE, LAST_ROW, ROW, STEPS, SYSTEM

WORDS = 2


class Feature(NamedTuple):
    """Texts for a feature that holds and for one that does not. In ``FEATURES`` they begin with the subject."""

    yes: str
    no: str


_OF_A_SIDE = (
    Feature("has a king", "has no king"),
    Feature("has two or more kings", "has fewer than two kings"),
    Feature("has a man", "has no man"),
    Feature("has two or more men", "has fewer than two men"),
    Feature("has a king in a double corner", "has no king in a double corner"),
    Feature("has a king in a single corner", "has no king in a single corner"),
    Feature("has a king at the edge outside the double corners", "has no king at the edge outside the double corners"),
    Feature("has a king in the centre", "has no king in the centre"),
    Feature("has kings, all more than two steps from a double corner", "has a king near a double corner, or none"),
    Feature("has kings, none of which can move safely", "has a king that can move safely, or no king"),
    Feature("has no safe move", "has a safe move"),
    Feature("has at most one safe move", "has two or more safe moves"),
    Feature("can win a piece at once, by captures or a shot", "cannot win a piece at once"),
    Feature("can exchange evenly", "cannot exchange evenly"),
    Feature("can win a piece by force within two moves", "cannot win a piece by force within two moves"),
    Feature("can win a piece by force within three moves", "cannot win a piece by force within three moves"),
    Feature("loses a piece by force within three moves", "need not lose a piece within three moves"),
    Feature("has a man one step from crowning", "has no man one step from crowning"),
    Feature("has a man at most two steps from crowning", "has no man within two steps of crowning"),
    Feature("has a man at most three steps from crowning", "has no man within three steps of crowning"),
    Feature("has a man at most four steps from crowning", "has no man within four steps of crowning"),
    Feature("has a man at most five steps from crowning", "has no man within five steps of crowning"),
    Feature("has a man three or more steps from crowning", "has all men within two steps of crowning"),
    Feature("has a man five or more steps from crowning", "has all men within four steps of crowning"),
    Feature("has a man with no enemy piece anywhere ahead", "has no man with a clear way ahead"),
    Feature("has a man that no enemy king alone could stop", "has no man that gets past every single enemy king"),
    Feature("has men, none of which an enemy king alone could stop", "has a man that a king alone stops, or no man"),
    Feature("has a man on its back row", "has no man on its back row"),
    Feature("holds the bridge", "does not hold the bridge"),
    Feature("has a man in the dog hole", "has no man in the dog hole"),
    Feature("has a man at the side of the board", "has no man at the side of the board"),
    Feature("has a man without a safe move", "has a safe move with every man"),
    Feature("has men, none with a safe move", "has a man with a safe move, or no man"),
    Feature("has a king within two steps of an enemy man", "has no king within two steps of an enemy man"),
    Feature("has a king within three steps of an enemy man", "has no king within three steps of an enemy man"),
    Feature("would win one against one against some enemy man", "would win one against one against no enemy man"),
    Feature("would win one against one against every enemy man", "would not win one against one against every man"),
    Feature("would win one against one against some enemy king", "would win one against one against no enemy king"),
    Feature(
        "would win one against one against some enemy man, moving second",
        "would win one against one against no enemy man, moving second",
    ),
    Feature(
        "would win one against one against every enemy man, moving second",
        "would not win one against one against every man, moving second",
    ),
    Feature(
        "would win one against one against some enemy king, moving second",
        "would win one against one against no enemy king, moving second",
    ),
    Feature("has a single piece", "has two or more pieces"),
)
_OF_BOTH = (
    Feature("the side to move has more pieces", "the side to move has no more pieces than the opponent"),
    Feature("the side to move has fewer pieces", "the side to move has at least as many pieces"),
    Feature("the side to move has more kings", "the side to move has no more kings than the opponent"),
    Feature("the side to move has fewer kings", "the side to move has at least as many kings"),
    Feature("the side to move has the move", "the opponent has the move"),
    Feature("the side to move crowns first", "the side to move does not crown first"),
    Feature("the opponent crowns first", "the opponent does not crown first"),
    Feature("the side to move crowns two or more moves ahead", "the side to move is not two moves ahead in crowning"),
    Feature("the opponent crowns two or more moves ahead", "the opponent is not two moves ahead in crowning"),
    Feature("two kings of opposite sides are within two steps", "no two kings of opposite sides are within two steps"),
    Feature(
        "two kings of opposite sides are within three steps", "no two kings of opposite sides are within three steps"
    ),
    Feature("it is men alone against men alone", "it is not men alone against men alone"),
    Feature("it is men alone against kings and men", "it is not men alone against kings and men"),
    Feature("it is men alone against kings alone", "it is not men alone against kings alone"),
    Feature("it is kings and men against men alone", "it is not kings and men against men alone"),
    Feature("it is kings and men on both sides", "it is not kings and men on both sides"),
    Feature("it is kings and men against kings alone", "it is not kings and men against kings alone"),
    Feature("it is kings alone against men alone", "it is not kings alone against men alone"),
    Feature("it is kings alone against kings and men", "it is not kings alone against kings and men"),
    Feature("it is kings alone on both sides", "it is not kings alone on both sides"),
)
_SIDE, _BOTH = len(_OF_A_SIDE), len(_OF_BOTH)
_SUBJECTS = "the side to move", "the opponent"
FEATURES = (
    *(Feature(*(f"{subject} {text}" for text in feature)) for subject in _SUBJECTS for feature in _OF_A_SIDE),
    *_OF_BOTH,
)
"""All features: those of the side to move, then those of the opponent, then those of both."""
NUM_FEATURES = len(FEATURES)

_SINGLE_CORNERS = np.uint32(mask_of((3, 28)))
_SIDES = np.uint32(sum(1 << bit for bit in range(32) if COLUMN[bit] in (0, 7)))
_CENTRE = np.uint32(sum(1 << bit for bit in range(32) if 2 <= COLUMN[bit] <= 5 and 2 <= ROW[bit] <= 5))
_BACK_ROW = np.uint32(mask_of(range(4)))
_BRIDGE = np.uint32(mask_of((0, 2)))
_DOG_HOLE, _BEFORE_IT = np.uint32(mask_of((27,))), np.uint32(mask_of((31,)))
_AHEAD = np.array(
    [
        sum(1 << b for b in range(32) if ROW[b] > ROW[a] and abs(COLUMN[b] - COLUMN[a]) <= ROW[b] - ROW[a])
        for a in range(32)
    ],
    np.uint32,
)
_FAR = 99


class Lookup(NamedTuple):
    """Tables and buffers of the kernels: ``duels()``, ``runs()`` and ``new_buffers()``."""

    duels: np.ndarray
    runs: np.ndarray
    buffers: Buffers


def new_lookup() -> Lookup:
    return Lookup(duels(), runs(), new_buffers())


@njit(cache=True)
def steps_between(pieces, others):
    """Smallest number of king steps from one of ``pieces`` to one of ``others``; ``_FAR`` if either is empty."""
    nearest = _FAR
    while pieces != 0:
        i = lowest_bit(pieces)
        pieces &= pieces - np.uint32(1)
        rest = others
        while rest != 0:
            nearest = min(nearest, STEPS[i, lowest_bit(rest)])
            rest &= rest - np.uint32(1)
    return nearest


@njit(cache=True)
def to_crown(men):
    """(fewest, most) steps that one of ``men`` needs to be crowned; (``_FAR``, 0) without men."""
    fewest, most = _FAR, 0
    while men != 0:
        steps = LAST_ROW - ROW[lowest_bit(men)]
        fewest, most = min(fewest, steps), max(most, steps)
        men &= men - np.uint32(1)
    return fewest, most


@njit(cache=True)
def _put(word, at, holds):
    return np.uint64(word | (np.uint64(1) << np.uint64(at))) if holds else np.uint64(word)


@njit(cache=True)
def _of_kings(word, own, opp, kings):
    mine, men = np.uint32(own & kings), np.uint32(opp & ~kings)
    word = _put(word, 4, mine & DOUBLE_CORNERS != 0)
    word = _put(word, 5, mine & _SINGLE_CORNERS != 0)
    word = _put(word, 6, mine & EDGE & ~DOUBLE_CORNERS != 0)
    word = _put(word, 7, mine & _CENTRE != 0)
    word = _put(word, 8, mine != 0 and steps_between(mine, DOUBLE_CORNERS) > 2)
    near = steps_between(mine, men)
    word = _put(word, 33, near <= 2)
    return _put(word, 34, near <= 3)


@njit(cache=True)
def _of_moves(word, own, opp, kings, buffers):
    """Sets the features about safe moves and exchanges."""
    safe, exchange, starts = 0, False, np.uint32(0)
    moves = buffers.ahead[0]
    count = generate(own, opp, kings, moves, DISTINCT)
    for i in range(count):
        move = moves[i]
        after, before, crowned = turned(move.opp), turned(move.own), turned(move.kings)
        balance = -capture_balance(after, before, crowned, buffers)
        if balance >= 0:
            safe += 1
            starts |= np.uint32(1) << move_start(move.code)
            exchange |= balance == 0 and jumpers_of(after, before, crowned) != 0
    men = np.uint32(own & ~kings)
    word = _put(word, 9, own & kings != 0 and own & kings & starts == 0)
    word = _put(word, 10, safe == 0)
    word = _put(word, 11, safe <= 1)
    word = _put(word, 13, exchange)
    word = _put(word, 31, men & ~starts != 0)
    return _put(word, 32, men != 0 and men & starts == 0)


@njit(cache=True)
def _of_men(word, own, opp, kings, tables, first):
    """Sets the features about men; ``first``: whether their side is to move."""
    men, enemies = np.uint32(own & ~kings), np.uint32(opp & kings)
    fewest, most = to_crown(men)
    for steps in range(1, 6):
        word = _put(word, 16 + steps, fewest <= steps)
    word = _put(word, 22, most >= 3)
    word = _put(word, 23, most >= 5)
    clear = some = False
    every = men != 0
    rest = men
    while rest != 0:
        man = lowest_bit(rest)
        rest &= rest - np.uint32(1)
        clear |= _AHEAD[man] & opp == 0
        passes = True
        left = enemies
        while left != 0:
            passes &= tables.runs[0 if first else 1, lowest_bit(left), man]
            left &= left - np.uint32(1)
        some |= passes
        every &= passes
    word = _put(word, 24, clear)
    word = _put(word, 25, some)
    word = _put(word, 26, every)
    word = _put(word, 27, men & _BACK_ROW != 0)
    word = _put(word, 28, men & _BRIDGE == _BRIDGE)
    word = _put(word, 29, men & _DOG_HOLE != 0 and opp & ~kings & _BEFORE_IT != 0)
    return _put(word, 30, men & _SIDES != 0)


@njit(cache=True)
def _of_duels(word, at, own, opp, kings, values, first):
    """Sets features ``at`` to ``at + 2``: whether the side would win one against one against some enemy man, every
    enemy man, some enemy king; ``first``: whether the own piece moves first.
    """
    some_man = some_king = False
    every = opp & ~kings != 0
    rest = opp
    while rest != 0:
        enemy = lowest_bit(rest)
        rest &= rest - np.uint32(1)
        enemy_king = np.int64(kings >> enemy & np.uint32(1))
        beaten = False
        left = own
        while left != 0:
            mine = lowest_bit(left)
            left &= left - np.uint32(1)
            king = np.int64(kings >> mine & np.uint32(1))
            if first:
                beaten |= values[king, enemy_king, mine, enemy] == 1
            else:
                beaten |= values[enemy_king, king, 31 - enemy, 31 - mine] == -1
        if enemy_king:
            some_king |= beaten
        else:
            some_man |= beaten
            every &= beaten
    word = _put(word, at, some_man)
    word = _put(word, at + 1, every)
    return _put(word, at + 2, some_king)


@njit(cache=True)
def _of_side(own, opp, kings, tables, moves_next):
    """The features of a side, seen by it, as if it were to move; ``moves_next``: whether it really is."""
    word, men = np.uint64(0), np.uint32(own & ~kings)
    word = _put(word, 0, own & kings != 0)
    word = _put(word, 1, popcount(own & kings) >= 2)
    word = _put(word, 2, men != 0)
    word = _put(word, 3, popcount(men) >= 2)
    word = _put(word, 41, popcount(own) == 1)
    word = _of_kings(word, own, opp, kings)
    word = _of_moves(word, own, opp, kings, tables.buffers)
    word = _put(word, 12, wins_now(own, opp, kings, tables.buffers))
    word = _put(word, 14, wins_in_two(own, opp, kings, tables.buffers))
    word = _put(word, 15, wins_in_three(own, opp, kings, tables.buffers))
    word = _put(word, 16, loses_in_three(own, opp, kings, tables.buffers))
    word = _of_men(word, own, opp, kings, tables, moves_next)
    word = _of_duels(word, 35, own, opp, kings, tables.duels, True)
    return _of_duels(word, 38, own, opp, kings, tables.duels, False)


@njit(cache=True)
def _kind(pieces, kings):
    """0: men alone, 1: kings and men, 2: kings alone."""
    if pieces & kings == 0:
        return 0
    return 2 if pieces & ~kings == 0 else 1


@njit(cache=True)
def _of_both(own, opp, kings):
    word = np.uint64(0)
    mine, theirs = to_crown(np.uint32(own & ~kings))[0], to_crown(turned(np.uint32(opp & ~kings)))[0]
    near = steps_between(np.uint32(own & kings), np.uint32(opp & kings))
    word = _put(word, 0, np.int64(popcount(own)) > np.int64(popcount(opp)))
    word = _put(word, 1, np.int64(popcount(own)) < np.int64(popcount(opp)))
    word = _put(word, 2, np.int64(popcount(own & kings)) > np.int64(popcount(opp & kings)))
    word = _put(word, 3, np.int64(popcount(own & kings)) < np.int64(popcount(opp & kings)))
    word = _put(word, 4, popcount((own | opp) & SYSTEM) & 1 != 0)
    word = _put(word, 5, mine < _FAR and mine <= theirs)
    word = _put(word, 6, theirs < mine)
    word = _put(word, 7, mine < _FAR and mine + 2 <= theirs)
    word = _put(word, 8, theirs < _FAR and theirs + 2 <= mine)
    word = _put(word, 9, near <= 2)
    word = _put(word, 10, near <= 3)
    return _put(word, 11 + 3 * _kind(own, kings) + _kind(opp, kings), True)


@njit(cache=True, nogil=True)
def write_features(own, opp, kings, tables, words):
    """Writes the features of a position, seen by the side to move, into ``words``, uint64 [WORDS]."""
    mine = _of_side(own, opp, kings, tables, True)
    theirs = _of_side(turned(opp), turned(own), turned(kings), tables, False)
    both = _of_both(own, opp, kings)
    side = np.uint64(_SIDE)
    words[0] = mine | theirs << side
    words[1] = theirs >> (np.uint64(64) - side) | both << (np.uint64(2) * side - np.uint64(64))


@njit(cache=True, nogil=True)
def write_many(positions, tables, words):
    """Writes the features of positions uint32 [N, 3 or more] into ``words``, uint64 [N, WORDS]."""
    for i in range(positions.shape[0]):
        write_features(positions[i, 0], positions[i, 1], positions[i, 2], tables, words[i])


def features_of(positions: np.ndarray) -> np.ndarray:
    """The features of quiet positions uint32 [N, 3 or more], seen by the side to move: uint64 [N, WORDS]."""
    words = np.zeros((len(positions), WORDS), np.uint64)
    write_many(positions, new_lookup(), words)
    return words
