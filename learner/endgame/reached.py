"""Samples around the positions that games reach: to train on, to calibrate with, and to measure by."""

import numpy as np

from engine.tablebase.material import Material

from .data import FLAG_CAPTURE, TRAIN, EndgameBatch, Values, codes_of, flags_of, labelled, split_of
from .networks import EndgameNetwork
from .probabilities import softmax
from .walks import walked

WALKS, PLIES = 2, 3  # from each position, and of each walk
_EASY_KEPT, _EASY = 0.25, 0.9
_CHUNK = 1 << 18


def some(positions: np.ndarray, fewest: int, most: int) -> np.ndarray:
    """The distinct positions uint32 [M, 4] of ``fewest`` to ``most`` pieces, both sides having some; plies set to 0."""
    counts = np.bitwise_count(positions[:, 0] | positions[:, 1])
    chosen = (counts >= fewest) & (counts <= most) & (positions[:, 0] > 0) & (positions[:, 1] > 0)
    result = positions[chosen].copy()
    result[:, 3] = 0
    return np.unique(result, axis=0)


def around(
    positions: np.ndarray, fewest: int, most: int, split: int, seed: int, count: int | None = None
) -> np.ndarray:
    """Positions of random walks from those of games, and these themselves: quiet ones of one split, in random order.

    Self-play leaves no samples of the positions kept for validation; walks lead to some.

    Args:
        fewest, most: pieces of the positions given and returned.
        count: at most so many are returned.
    """
    known = some(positions, fewest, most)
    if count is not None:  # walks from more would be thrown away
        random = np.random.default_rng(seed)
        known = known[random.permutation(len(known))[: 4 * count]]
    found = some(np.concatenate([known, walked(known, WALKS, PLIES, seed)]), fewest, most)
    found = found[(split_of(found) == split) & (flags_of(found) != FLAG_CAPTURE)]
    return found[np.random.default_rng(seed).permutation(len(found))[:count]]


def harder(network: EndgameNetwork, batch: EndgameBatch, seed: int) -> EndgameBatch:
    """The samples without three in four of those that a network is right and sure about, for it to learn the others."""
    right = np.concatenate(
        [
            softmax(network.wdl_logits(batch.positions[i : i + _CHUNK]))[
                np.arange(len(batch.values[i : i + _CHUNK])), batch.classes[i : i + _CHUNK]
            ]
            for i in range(0, len(batch.values), _CHUNK)
        ]
    )
    kept = (right < _EASY) | (np.random.default_rng(seed).random(len(right)) < _EASY_KEPT)
    return EndgameBatch(*(column[kept] for column in batch))


def reached_samples(
    positions: np.ndarray,
    values: Values,
    fewest: int,
    most: int,
    seed: int,
    network: EndgameNetwork | None = None,
    count: int | None = None,
) -> EndgameBatch:
    """What to train on: quiet positions of the training split around those of games, with their exact values.

    Args:
        network: see ``harder``; None keeps all. count: at most so many positions are valued.
    """
    batch = labelled(with_tables(around(positions, fewest, most, TRAIN, seed, count)), values)
    return batch if network is None else harder(network, batch, seed)


def with_tables(positions: np.ndarray) -> np.ndarray:
    """Those of the positions uint32 [N, 4] of whose slices there can be tables."""
    return positions[[Material.of_code(code).solvable for code in codes_of(positions).tolist()]]
