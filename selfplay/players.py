"""Players by their text on the command line, networks included."""

import os
from pathlib import Path

from engine.players import parse_player
from engine.players.base import Player, PlayerError
from engine.players.search_player import SearchPlayer
from engine.search import SearchConfig
from learner.checkpoint import INFO_FILE, load_checkpoint
from learner.evaluator import NetworkEvaluator
from learner.network import Network

from .run_folder import RunFolder
from .threads import choose_device


def checkpoint_folder(path: str | os.PathLike[str]) -> Path:
    """The checkpoint that a path names: a checkpoint's folder, or a run's (its best).

    Raises:
        PlayerError: neither.
        RunError: the run's state cannot be read.
    """
    folder = Path(path)
    if (folder / INFO_FILE).is_file():
        return folder
    run = RunFolder(folder)
    if run.config_path.is_file():
        return run.best_checkpoint
    raise PlayerError(
        f"{str(path)!r} is no player: write random, rollout:SIMULATIONS, alphabeta:DEPTH, "
        "or the folder of a checkpoint or a run"
    )


def network_player(
    network: Network, name: str, config: SearchConfig, seconds: float | None = None, device: str = "auto"
) -> SearchPlayer:
    """A player that searches with a network."""
    return SearchPlayer(name, NetworkEvaluator(network, device=choose_device(device)), config, seconds)


def make_player(
    text: str, simulations: int | None = None, seconds: float | None = None, device: str = "auto"
) -> Player:
    """The player that ``text`` names.

    Args:
        text: ``random``, ``rollout:SIMULATIONS``, ``alphabeta:DEPTH``, or the folder of a checkpoint or a run.
        simulations: of a network player's search per move (default 64).
        seconds: per move, instead of simulations or depth, for the players that can be timed.

    Raises:
        PlayerError: no such player.
        CheckpointError: the checkpoint cannot be read.
    """
    player = parse_player(text, seconds)
    if player is not None:
        return player
    checkpoint = load_checkpoint(checkpoint_folder(text))
    config = SearchConfig() if simulations is None else SearchConfig(num_simulations=simulations)
    return network_player(checkpoint.network, text, config, seconds, device)
