"""Positions a few random moves beside others: what a search meets around the positions of games."""

import numpy as np
from numba import njit

from engine.bitboard import turned
from engine.movegen import DISTINCT, MAX_MOVES, MOVE, generate, jumpers_of
from engine.random_words import next_random


def walked(positions: np.ndarray, walks: int, plies: int, seed: int) -> np.ndarray:
    """The distinct positions on random walks from positions uint32 [N, 4], themselves left out.

    Captures, which are compulsory, do not count as plies of a walk, and positions with one are not listed: networks
    judge those where nothing can be captured. A walk ends early where a side has no move or no piece.

    Args:
        walks: from each position. plies: of each, at least 1; every position on the way is listed.
        seed: any integer.

    Returns:
        uint32 [M, 4], each seen by its own side to move, sorted.
    """
    found = np.zeros((len(positions) * walks * plies, 4), np.uint32)
    n = _walk(positions, walks, plies, np.array([seed & (2**64 - 1)], np.uint64), found)
    return np.unique(found[:n], axis=0)


@njit(cache=True, nogil=True)
def _walk(positions, walks, plies, state, found):
    moves = np.empty(MAX_MOVES, MOVE)
    n = 0
    for i in range(positions.shape[0]):
        for _ in range(walks):
            own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
            left = plies
            while left > 0:
                count = generate(own, opp, kings, moves, DISTINCT) if opp != 0 else 0
                if count == 0:
                    break
                move = moves[np.int64(next_random(state) % np.uint64(count))]
                own, opp, kings = turned(move.opp), turned(move.own), turned(move.kings)
                if own != 0 and opp != 0 and jumpers_of(own, opp, kings) == 0:
                    found[n, 0], found[n, 1], found[n, 2] = own, opp, kings
                    n += 1
                    left -= 1
    return n
