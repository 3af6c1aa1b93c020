"""The one-ply search of Wang 2023, to the letter: moves lead to positions that the network judges, captures or not.

Unlike the searches of ``learner.endgame.resolve`` it follows no exchange to its end and knows verdicts only.
"""

import numpy as np
from numba import njit

from engine.bitboard import turned
from engine.movegen import DISTINCT, MAX_MOVES, MOVE, count_moves, generate

from ..endgame.networks import EndgameNetwork

_CHUNK = 1 << 13  # positions searched at a time: bounds the memory


@njit(cache=True, nogil=True)
def _count_children(positions):
    """At least as many as ``_fill_children`` will write."""
    moves = np.empty(MAX_MOVES, MOVE)
    n = 0
    for i in range(positions.shape[0]):
        n += count_moves(positions[i, 0], positions[i, 1], positions[i, 2], moves)
    return n


@njit(cache=True, nogil=True)
def _fill_children(positions, children, parents):
    moves = np.empty(MAX_MOVES, MOVE)
    n = 0
    for i in range(positions.shape[0]):
        for j in range(generate(positions[i, 0], positions[i, 1], positions[i, 2], moves, DISTINCT)):
            children[n, 0] = turned(moves[j].opp)
            children[n, 1] = turned(moves[j].own)
            children[n, 2] = turned(moves[j].kings)
            parents[n] = i
            n += 1
    return n


def one_ply_search(network: EndgameNetwork, positions: np.ndarray) -> np.ndarray:
    """Verdicts int8 [N] (1 win, 0 draw, -1 loss for the side to move) of positions uint32 [N, 4].

    A move to a position that the opponent has lost wins, else one to a draw draws, else all is lost; no move loses, and
    who takes the last piece has won.
    """
    parts = [_search(network, positions[start : start + _CHUNK]) for start in range(0, len(positions), _CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int8)


def _search(network: EndgameNetwork, positions: np.ndarray) -> np.ndarray:
    room = _count_children(positions)
    children, parents = np.zeros((room, 4), np.uint32), np.empty(room, np.int64)
    n = _fill_children(positions, children, parents)
    children, parents = children[:n], parents[:n]
    values = (1 - network.wdl_logits(children).argmax(1)).astype(np.int8)
    values[children[:, 0] == 0] = -1
    verdicts = np.full(len(positions), -1, np.int8)
    np.maximum.at(verdicts, parents, -values)
    return verdicts
