"""Positions that occurred in games: in the shards of a run, or in recorded games."""

from pathlib import Path

import numpy as np

from engine.files import cannot_read
from engine.tablebase.material import MIN_PIECES
from learner.endgame.reached import some
from learner.expert.games import read_expert_games

from ..games.shards import SUFFIX, read_shard
from .config import read_config
from .folder import RunFolder


class ReachedError(ValueError):
    """A folder or file has no games."""


def reached_positions(place: Path, most: int) -> np.ndarray:
    """The distinct positions with at most ``most`` pieces: uint32 [N, 4], seen by the side to move, reversible plies 0.

    Args:
        place: folder of a run or of shards, whose samples all count, also those inside search trees; or games in PDN.

    Raises:
        ReachedError: the folder has no shards.
        ShardError: a shard is damaged.
        OtherGameError: the run or its shards are of another game.
        ExpertGamesError: the PDN file has no game.
        StorageError: the file cannot be read.
    """
    if not place.is_dir():
        return some(read_expert_games(place).samples.positions, MIN_PIECES, most)
    of_shards = [some(read_shard(path).samples.positions, MIN_PIECES, most) for path in shards_of(place)]
    return np.unique(np.concatenate(of_shards), axis=0)


def shards_of(place: Path) -> list[Path]:
    """The shards of a run or in a folder, oldest first.

    Raises:
        ReachedError: there are none.
        ConfigError, OtherGameError: the run's configuration cannot be read, or is for another game.
        StorageError: a folder cannot be read.
    """
    run = RunFolder(place)
    if run.config_path.is_file():
        read_config(run.config_path)  # raises
    folders = [folder for folder in (run.shards, place) if folder.is_dir()]
    shards = next((found for folder in folders if (found := _shards_in(folder))), [])
    if not shards:
        raise ReachedError(f"{place} has no games: name the folder of a run, or of its shards")
    return shards


def _shards_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        raise cannot_read(folder, error) from error
