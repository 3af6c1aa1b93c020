"""The one-ply search of Wang 2023, to the letter: moves lead to positions that the network judges, captures or not.

Unlike the searches of ``learner.endgame.resolve`` it follows no exchange to its end and knows verdicts only.
"""

import numpy as np

from ..endgame.networks import EndgameNetwork
from ..endgame.resolve import children_of

_CHUNK = 1 << 13  # positions searched at a time: bounds the memory


def one_ply_search(network: EndgameNetwork, positions: np.ndarray) -> np.ndarray:
    """Verdicts int8 [N] (1 win, 0 draw, -1 loss for the side to move) of positions uint32 [N, 4].

    A move to a position that the opponent has lost wins, else one to a draw draws, else all is lost; no move loses, and
    who takes the last piece has won.
    """
    parts = [_search(network, positions[start : start + _CHUNK]) for start in range(0, len(positions), _CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int8)


def _search(network: EndgameNetwork, positions: np.ndarray) -> np.ndarray:
    children, parents = children_of(positions, np.arange(len(positions)))
    values = (1 - network.wdl_logits(children).argmax(1)).astype(np.int8)
    values[children[:, 0] == 0] = -1
    verdicts = np.full(len(positions), -1, np.int8)
    np.maximum.at(verdicts, parents, -values)
    return verdicts
