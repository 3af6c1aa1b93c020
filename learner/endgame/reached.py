"""Samples around the positions that games reach: to train on, to calibrate with, and to measure by."""

from functools import cache

import numpy as np

from engine.tablebase.material import NUM_CODES, Material

from .data import FLAG_CAPTURE, EndgameSampler, Sampler, codes_of, flags_of, labelled, split_of
from .labels import beside
from .mixture import ListSampler
from .walks import WalkSampler, walked

WALKS, PLIES = 2, 3  # from each position, and of each walk
LONGEST_WALK = 8  # plies; a search looks as far
LIST, BESIDE = 700_000, 8  # positions, and how many beside each, where their values are looked up in files


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
        count: most positions that are returned.
    """
    known = some(positions, fewest, most)
    if count is not None:  # walks from more would be thrown away
        random = np.random.default_rng(seed)
        known = known[random.permutation(len(known))[: 4 * count]]
    found = some(np.concatenate([known, walked(known, WALKS, PLIES, seed)]), fewest, most)
    found = found[(split_of(found) == split) & (flags_of(found) != FLAG_CAPTURE)]
    return found[np.random.default_rng(seed).permutation(len(found))[:count]]


def reached_sampler(positions: np.ndarray, uniform: EndgameSampler, dense: bool, seed: int) -> Sampler:
    """Draws samples around the positions of games, of the slices and the split of another sampler.

    Args:
        dense: exact values lie in memory, so that every walk can be a new one; else a list is valued once, with
            positions beside these whose values cost little (``labels.beside``).
    """
    pieces = [material.pieces for material in uniform.materials]
    fewest, most = min(pieces), max(pieces)
    assert uniform.split is not None
    if dense:
        starts = with_tables(some(positions, fewest, most))
        return WalkSampler(uniform.tables, starts, uniform.materials, seed, uniform.split, LONGEST_WALK)
    found = with_tables(around(positions, fewest, most, uniform.split, seed, LIST))
    near = beside(found, BESIDE, seed)
    near = near[(split_of(near) == uniform.split) & (flags_of(near) != FLAG_CAPTURE)]
    found = np.unique(np.concatenate([found, near]), axis=0)
    return ListSampler(labelled(found, uniform.tables), uniform.materials, seed, uniform.split, True)


def with_tables(positions: np.ndarray) -> np.ndarray:
    """The positions, of uint32 [N, 4], whose slices can have tables."""
    return positions[_solvable()[codes_of(positions)]]


@cache
def _solvable() -> np.ndarray:
    """bool [NUM_CODES]: of which slices there can be tables."""
    return np.array([Material.of_code(code).solvable for code in range(NUM_CODES)])
