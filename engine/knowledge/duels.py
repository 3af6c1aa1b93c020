"""Small tables of one piece against one: who wins, and which men a lone king cannot stop. Made on first use."""

from functools import cache

import numpy as np
from numba import njit

from ..bitboard import NUM_SQUARES
from ..tablebase.dense import load_tables
from ..tablebase.folder import SHIPPED
from ..tablebase.layout import lookup
from .squares import COLUMN, LAST_ROW, ROW, STEPS

_BITS = range(NUM_SQUARES)


@njit(cache=True)
def _fill(slices, words, values):
    one = np.uint32(1)
    for own_king in range(2):
        for opp_king in range(2):
            for i in range(NUM_SQUARES):
                for j in range(NUM_SQUARES):
                    if i == j or (not own_king and ROW[i] == LAST_ROW) or (not opp_king and ROW[j] == 0):
                        continue
                    own, opp = one << np.uint32(i), one << np.uint32(j)
                    kings = np.uint32(own * own_king | opp * opp_king)
                    values[own_king, opp_king, i, j] = lookup(own, opp, kings, slices, words)


@cache
def duels() -> np.ndarray:
    """Values of one piece against one for the side to move: int8 [2, 2, 32, 32].

    Indices: whether the own piece is a king, whether the opponent's is, bit of the own piece, bit of the opponent's.
    They come from the two-piece tables of the package.
    """
    tables = load_tables(SHIPPED, 2)
    values = np.zeros((2, 2, NUM_SQUARES, NUM_SQUARES), np.int8)
    _fill(tables.slices, tables.words, values)
    return values


@cache
def runs() -> np.ndarray:
    """Whether a lone man reaches the king row against a lone king, whatever the king does: bool [2, 32, 32].

    Indices: side to move (0 the man, 1 the king), the king's bit, the man's bit. The board is seen by the man, which
    moves towards row 7, where no king can capture it.
    """
    crowned = np.zeros((2, NUM_SQUARES, NUM_SQUARES), bool)
    steps = {bit: [to for to in _BITS if STEPS[bit, to] == 1 and ROW[bit] != ROW[to]] for bit in _BITS}
    places = {(int(ROW[bit]), int(COLUMN[bit])): bit for bit in _BITS}

    def takes(taker: int, taken: int) -> bool:
        behind = (2 * int(ROW[taken]) - int(ROW[taker]), 2 * int(COLUMN[taken]) - int(COLUMN[taker]))
        return taken in steps[taker] and behind in places

    def man_runs(king: int, man: int) -> bool:
        ahead = [bit for bit in steps[man] if ROW[bit] > ROW[man]]
        if king in ahead and takes(man, king):
            return True
        free = [bit for bit in ahead if bit != king]
        return any(ROW[bit] == LAST_ROW or crowned[1, king, bit] for bit in free)

    def king_fails(king: int, man: int) -> bool:
        return not takes(king, man) and all(crowned[0, bit, man] for bit in steps[king] if bit != man)

    pairs = [(king, man) for king in _BITS for man in _BITS if king != man and ROW[man] < LAST_ROW]
    while True:
        before = crowned.sum()
        for king, man in pairs:
            crowned[0, king, man] = crowned[0, king, man] or man_runs(king, man)
            crowned[1, king, man] = crowned[1, king, man] or king_fails(king, man)
        if crowned.sum() == before:
            return crowned
