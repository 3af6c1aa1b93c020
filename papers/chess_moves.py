"""Moves in chess endings of three and four men, for 64 positions at a time.

A **set** of positions with one side to move is an array of uint64 words [64, 64, N]: by the squares of White's king,
of Black's king, and of a third man; the bits of a word are the squares of the last man, the *roamer*. With three men
there is no third man, and N is 1; else it is 64. Squares are those of python-chess (a1 = 0, b1 = 1, ...). The functions
ask which positions of a word have a move into a set, so they follow moves backwards, like the unmoves of a retrograde
analysis. Nobody castles; a capture en passant is not among the moves here.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

WHITE, BLACK = range(2)
QUEEN, ROOK, BISHOP, KNIGHT, PAWN, KING, NOBODY = range(7)
LETTERS = "QRBNPK"
MOST_WAYS = 8 + 27 + 56
"""Most words that ``gather`` sets: moves of the king, of the third man, and of the roamer by direction and distance."""
_FIRST, _LAST = np.array([0, 0, 4, 8, 0, 0]), np.array([8, 4, 8, 16, 0, 8])  # a kind's directions
_FILES = np.array([1, -1, 0, 0, 1, -1, 1, -1, 1, 2, 2, 1, -1, -2, -2, -1])  # straight, diagonal, a knight's
_RANKS = np.array([0, 0, 1, -1, 1, 1, -1, -1, 2, 1, -1, -2, -2, -1, 1, 2])
_FARTHEST = np.array([7, 7, 7, 1, 1, 1])
_EDGES = np.array(  # by files moved, -2 to 2: squares from which one stays on the board
    [0xFCFCFCFCFCFCFCFC, 0xFEFEFEFEFEFEFEFE, 0xFFFFFFFFFFFFFFFF, 0x7F7F7F7F7F7F7F7F, 0x3F3F3F3F3F3F3F3F], np.uint64
)
_SECOND_RANK = np.array([0xFF00, 0xFF << 48], np.uint64)  # by colour
_AHEAD = np.array([1, -1])
OUTER_RANKS = np.uint64(0xFF000000000000FF)


def _images() -> np.ndarray:
    files, ranks = np.arange(64) % 8, np.arange(64) // 8
    straight = [8 * r + f for r in (ranks, 7 - ranks) for f in (files, 7 - files)]
    return np.array([*straight, *(8 * (image % 8) + image // 8 for image in straight)])


IMAGES = _images()
"""int64 [8, 64]: image of each square under each symmetry of the board; the first two keep the ranks."""


class Ending(NamedTuple):
    """Men beside the kings: kind and colour of the third man, or ``NOBODY``, and of the roamer."""

    third: int
    third_color: int
    roamer: int
    roamer_color: int

    @property
    def name(self) -> str:
        """Like ``KQvKR``."""
        men = [(self.third_color, self.third), (self.roamer_color, self.roamer)]
        sides = ["".join(LETTERS[kind] for color, kind in men if color == side and kind != NOBODY) for side in range(2)]
        return f"K{sides[WHITE]}vK{sides[BLACK]}"

    @property
    def opposite(self) -> "Ending":
        """With colours exchanged."""
        color = WHITE if self.third == NOBODY else 1 - self.third_color
        return Ending(self.third, color, self.roamer, 1 - self.roamer_color)

    @property
    def exchanged(self) -> "Ending":
        """With the third man as roamer."""
        return Ending(self.roamer, self.roamer_color, self.third, self.third_color)

    @property
    def thirds(self) -> int:
        """Number of squares of the third man."""
        return 1 if self.third == NOBODY else 64


@njit(cache=True, inline="always")
def bit_of(square):
    return np.uint64(1) << np.uint64(square)


@njit(cache=True, inline="always")
def shifted(squares, files, ranks):
    """Squares moved by up to two files and ranks; those beyond the edge vanish."""
    step = files + 8 * ranks
    squares &= _EDGES[files + 2]
    return squares << np.uint64(step) if step >= 0 else squares >> np.uint64(-step)


@njit(cache=True)
def attacks(kind, color, square, occupied):
    """Squares that a man attacks; in each direction up to the first that is occupied, which counts."""
    here, found = bit_of(square), np.uint64(0)
    if kind == PAWN:
        return shifted(here, 1, _AHEAD[color]) | shifted(here, -1, _AHEAD[color])
    for direction in range(_FIRST[kind], _LAST[kind]):
        place = here
        for _ in range(_FARTHEST[kind]):
            place = shifted(place, _FILES[direction], _RANKS[direction])
            found |= place
            if place & ~occupied == 0:
                break
    return found


@njit(cache=True)
def king_step(square, direction):
    """The next square in one of eight directions; -1 beyond the edge."""
    file, rank = (square & 7) + _FILES[direction], (square >> 3) + _RANKS[direction]
    return rank * 8 + file if 0 <= file < 8 and 0 <= rank < 8 else -1


@njit(cache=True)
def attackers(kind, color, square, occupied):
    """Squares from which a man attacks this one."""
    return attacks(kind, 1 - color, square, occupied)


@njit(cache=True)
def between(a, b):
    """Squares between two on a line; none if they are on no line."""
    for line in (ROOK, BISHOP):
        if attacks(line, WHITE, a, np.uint64(0)) & bit_of(b) != 0:
            return attacks(line, WHITE, a, bit_of(b)) & attacks(line, WHITE, b, bit_of(a))
    return np.uint64(0)


@njit(cache=True)
def legal_word(white, black, third, side, ending):
    """Positions of a word with ``side`` to move: men apart, pawns not on outer ranks, the other king not attacked."""
    if white == black:
        return np.uint64(0)
    king, other = (white, black) if side == WHITE else (black, white)
    occupied = bit_of(white) | bit_of(black)
    mine = bit_of(king)
    if attacks(KING, side, king, mine) & bit_of(other) != 0:
        return np.uint64(0)
    found = ~occupied
    if ending.third != NOBODY:
        place = bit_of(third)
        if occupied & place != 0 or (ending.third == PAWN and place & OUTER_RANKS != 0):
            return np.uint64(0)
        if ending.third_color == side and attacks(ending.third, side, third, mine) & bit_of(other) != 0:
            found &= between(third, other)
        mine |= place
        found &= ~place
    if ending.roamer == PAWN:
        found &= ~OUTER_RANKS
    if ending.roamer_color == side:
        found &= ~attackers(ending.roamer, side, other, mine)
    return found


@njit(cache=True)
def _gather_third(target, double, white, black, third, ending, ways, n):
    """Moves of the third man, see ``gather``."""
    kings = bit_of(white) | bit_of(black)
    kind, here = ending.third, bit_of(third)
    if kind == PAWN:
        if here & OUTER_RANKS != 0:
            return n
        ahead = third + 8 * _AHEAD[ending.third_color]
        ways[n] = target[white, black, ahead]
        n += 1
        if here & _SECOND_RANK[ending.third_color] != 0 and bit_of(ahead) & kings == 0:
            ways[n] = double[white, black, 2 * ahead - third] & ~bit_of(ahead)
            n += 1
        return n
    for direction in range(_FIRST[kind], _LAST[kind]):
        passed, place, square = np.uint64(0), here, third
        for _ in range(_FARTHEST[kind]):
            place = shifted(place, _FILES[direction], _RANKS[direction])
            if place & ~kings == 0:
                break
            square += _FILES[direction] + 8 * _RANKS[direction]
            ways[n] = target[white, black, square] & ~passed
            n += 1
            passed |= place
    return n


@njit(cache=True)
def _gather_roamer(word, double_word, kind, color, occupied, ways, n):
    """Moves of the roamer, see ``gather``: where it may come from, by direction and distance."""
    if kind == PAWN:
        back = -_AHEAD[color]
        ways[n] = shifted(word, 0, back)
        ways[n + 1] = shifted(shifted(double_word, 0, back) & ~occupied, 0, back) & _SECOND_RANK[color]
        return n + 2
    for direction in range(_FIRST[kind], _LAST[kind]):
        place = word
        for _ in range(_FARTHEST[kind]):
            place = shifted(place, -_FILES[direction], -_RANKS[direction])
            if place == 0:
                break
            ways[n] = place
            n += 1
            place &= ~occupied
    return n


@njit(cache=True)
def gather(target, double, white, black, third, side, ending, ways):
    """By move without a capture: which positions of a word it leads from into a set.

    Args:
        target, double: sets with the other side to move; ``double`` for a pawn's double step.
        white, black, third: the word.
        ways: uint64 [MOST_WAYS], set; holds for legal positions only.

    Returns:
        The number of moves in ``ways``.
    """
    n = 0
    for direction in range(8):
        square = king_step(white if side == WHITE else black, direction)
        if square >= 0:
            ways[n] = target[square, black, third] if side == WHITE else target[white, square, third]
            n += 1
    if ending.third != NOBODY and ending.third_color == side:
        n = _gather_third(target, double, white, black, third, ending, ways, n)
    if ending.roamer_color == side:
        occupied = bit_of(white) | bit_of(black)
        if ending.third != NOBODY:
            occupied |= bit_of(third)
        words = target[white, black, third], double[white, black, third]
        n = _gather_roamer(words[0], words[1], ending.roamer, side, occupied, ways, n)
    return n


@njit(cache=True)
def capture_word(of_third, of_roamer, white, black, third, side, ending):
    """Positions of a word with a capture into a set of endings with one man less.

    Args:
        of_third: after the third man is captured: sets [64, 64, 1] with the roamer left. A pawn that captures on the
            last rank is there what it becomes.
        of_roamer: after the roamer is captured: the third man is the roamer now; of two kings: bit 0.
    """
    found = np.uint64(0)
    king, kings = white if side == WHITE else black, bit_of(white) | bit_of(black)
    steps = attacks(KING, side, king, np.uint64(0))
    if ending.third != NOBODY and ending.third_color != side:
        if steps & bit_of(third) != 0:
            found |= of_third[third, black, 0] if side == WHITE else of_third[white, third, 0]
        if ending.roamer_color == side and of_third[white, black, 0] & bit_of(third) != 0:
            found |= attackers(ending.roamer, side, third, kings)
    if ending.roamer_color != side:
        for direction in range(8):
            square = king_step(king, direction)
            if square >= 0:
                after = of_roamer[square, black, 0] if side == WHITE else of_roamer[white, square, 0]
                if after & bit_of(third) != 0:
                    found |= bit_of(square)
        if ending.third != NOBODY and ending.third_color == side:
            found |= of_roamer[white, black, 0] & attacks(ending.third, side, third, kings)
    return found
