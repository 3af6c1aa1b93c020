"""Positions that games reached: of a run's shards, or of recorded games."""

from pathlib import Path

import numpy as np

from learner.expert.games import read_expert_games

from .run_folder import RunFolder
from .shards import SUFFIX, read_shard


class ReachedError(ValueError):
    """A place without games."""


def reached_positions(place: Path, most: int) -> np.ndarray:
    """The distinct positions of at most ``most`` pieces, uint32 [N, 4] with plies 0, whoever is to move.

    Args:
        place: the folder of a run, or one of shards: all samples of them count, those inside search trees too. Or a
            collection of games in PDN.

    Raises:
        ReachedError: nothing of this kind is there.
        ShardError: a shard is damaged. ExpertGamesError: the collection has no game. StorageError: it cannot be read.
    """
    if not place.is_dir():
        return _few(read_expert_games(place).samples.positions, most)
    folders = RunFolder(place).shards, place
    shards = next((found for folder in folders if (found := sorted(folder.glob(f"*{SUFFIX}")))), [])
    if not shards:
        raise ReachedError(f"{place} has no games: name a run, a folder of shards, or a file in PDN")
    return np.unique(np.concatenate([_few(read_shard(path).samples.positions, most) for path in shards]), axis=0)


def _few(positions: np.ndarray, most: int) -> np.ndarray:
    few = positions[np.bitwise_count(positions[:, 0] | positions[:, 1]) <= most].copy()
    few[:, 3] = 0
    return np.unique(few, axis=0)
