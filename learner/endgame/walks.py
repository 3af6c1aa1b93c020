"""Positions a few random moves beside others: what a search meets around the positions of games."""

from collections.abc import Sequence

import numpy as np
from numba import njit

from engine.bitboard import turned
from engine.movegen import DISTINCT, MAX_MOVES, MOVE, generate, jumpers_of
from engine.random_words import next_random
from engine.tablebase.layout import code_of
from engine.tablebase.material import NUM_CODES, Material

from .data import ALL_SPLITS, EndgameBatch, EndgameDataError, Values, codes_of, labelled, split_of_position
from .mixture import ListSampler, choose_row

_MAX_TRIES = 10_000  # walks for one sample, before its conditions are taken to admit none


class WalkSampler(ListSampler):
    """Draws samples at the ends of random walks from a list of positions: there is no end of them to learn by heart.

    Which slice a walk begins in is drawn by weight; it may end in another of ``materials``. See ``data.Sampler``.

    Args:
        values: exact values of all positions of ``materials``.
        starts: uint32 [N, 4], of slices of ``materials``; at least one.
        plies: most of a walk; it has 0 or more, captures not counted.
    """

    def __init__(
        self,
        values: Values,
        starts: np.ndarray,
        materials: Sequence[Material],
        seed: int,
        split: int | None,
        plies: int,
    ) -> None:
        unknown, codes = np.zeros(len(starts), np.int8), codes_of(starts)
        super().__init__(EndgameBatch(starts, unknown, unknown.astype(np.uint8), codes), materials, seed, split, True)
        self._values, self._plies = values, plies
        self._wanted = np.zeros(NUM_CODES, np.bool_)
        self._wanted[[material.code for material in materials]] = True

    def draw(self, n: int) -> EndgameBatch:
        positions = np.zeros((n, 4), np.uint32)
        split = ALL_SPLITS if self.split is None else self.split
        source = self._samples.positions, self.ends, self._starts, self._state
        if not _draw_ends(source, split, self._plies, self._wanted, positions):
            raise EndgameDataError(f"no position with these conditions found on {_MAX_TRIES:,} walks")
        return labelled(positions, self._values)


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


@njit(cache=True, nogil=True)
def _draw_ends(source, split, plies, wanted, positions):
    starts, ends, first, state = source
    moves = np.empty(MAX_MOVES, MOVE)
    for i in range(positions.shape[0]):
        found = False
        for _ in range(_MAX_TRIES):
            row = choose_row(ends, first, state)
            own, opp, kings = starts[row, 0], starts[row, 1], starts[row, 2]
            left = np.int64(next_random(state) % np.uint64(plies + 1))
            while opp != 0 and own != 0:
                quiet = jumpers_of(own, opp, kings) == 0
                if quiet and left == 0:
                    found = wanted[code_of(own, opp, kings)] and (
                        split == ALL_SPLITS or split_of_position(own, opp, kings) == split
                    )
                    break
                count = generate(own, opp, kings, moves, DISTINCT)
                if count == 0:
                    break
                move = moves[np.int64(next_random(state) % np.uint64(count))]
                own, opp, kings = turned(move.opp), turned(move.own), turned(move.kings)
                left -= 1 if quiet else 0
            if found:
                positions[i, 0], positions[i, 1], positions[i, 2] = own, opp, kings
                break
        if not found:
            return False
    return True
