"""Trains a network of one's own on shards of self-play, and plays a move with it.

python examples/own_network.py runs/laptop/shards     # a folder of *.shard; without one, a few games are played
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from engine.board import Board
from engine.players.search_player import SearchPlayer
from engine.search import SearchConfig, UniformEvaluator
from learner.inference import make_evaluator
from learner.network_base import Network
from learner.trainer import Trainer, TrainerConfig
from selfplay.actor import Actor
from selfplay.config import SelfPlayConfig
from selfplay.records import Samples, joined
from selfplay.replay import to_training_batch
from selfplay.shards import read_shard, write_shard


class DenseConfig(BaseModel, frozen=True):
    units: int = 128


class DenseNetwork(Network):
    """Two dense layers below both heads: planes [N, 6, 8, 4] → policy logits [N, 128], win/draw/loss logits [N, 3]."""

    def __init__(self, config: DenseConfig) -> None:
        super().__init__()
        self.config = config  # type: ignore[assignment]
        layers = nn.Linear(6 * 8 * 4, config.units), nn.ReLU(), nn.Linear(config.units, config.units), nn.ReLU()
        self.body = nn.Sequential(nn.Flatten(), *layers)
        self.policy, self.wdl = nn.Linear(config.units, 128), nn.Linear(config.units, 3)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(planes)
        return self.policy(features), self.wdl(features)

    def policy_parts(self) -> list[nn.Module]:
        return [self.policy]

    def body_parts(self) -> list[nn.Module]:
        return [self.body]


def samples_of(folder: Path) -> Samples:
    """All samples of a folder's shards; where there are none, games are played without a network, and stored."""
    if not any(folder.glob("*.shard")):
        config = SelfPlayConfig(games_in_lockstep=16, max_plies=80)
        games, _ = Actor(config, SearchConfig(num_simulations=16), UniformEvaluator(), seed=1).play(500)
        write_shard(folder / "00000000.shard", games)
    return joined([read_shard(path).samples for path in sorted(folder.glob("*.shard"))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards", type=Path, nargs="?", help="folder of recorded shards")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        samples = samples_of(options.shards or Path(scratch))
    torch.manual_seed(1)
    rng, trainer = np.random.default_rng(1), Trainer(DenseNetwork(DenseConfig()), TrainerConfig(warmup_steps=10))
    for _ in range(options.steps):
        rows = rng.integers(0, len(samples), 256)
        figures = trainer.step(to_training_batch(samples.take(rows), search_value_weight=0.5))
    print(f"after {trainer.steps} steps: policy {figures['policy_loss']:.3f}, wdl {figures['wdl_loss']:.3f} nats")
    player = SearchPlayer("dense", make_evaluator(trainer.ema_network), SearchConfig(num_simulations=100))
    print(len(samples), "samples; first move:", Board().pdn(player.choose([Board()])[0]))


if __name__ == "__main__":
    main()
