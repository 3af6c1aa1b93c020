"""A family of networks of one's own: trained here on shards of self-play, or by the commands.

python examples/own_network.py runs/laptop/shards     # a folder of *.shard; without one, a few games are played
crownhead --import examples/own_network.py train --preset smoke --set network=dense128 --run runs/dense
"""

import argparse
from pathlib import Path
from typing import Literal

import numpy as np
from torch import Tensor, nn

from engine.board import Board
from engine.players.search_player import SearchPlayer
from engine.search import SearchConfig, UniformEvaluator
from learner.inference import make_evaluator
from learner.network import NETWORKS, make_network, register_family
from learner.network_base import FamilyConfig, Network
from learner.trainer import Trainer, TrainerConfig
from selfplay.actors.actor import Actor
from selfplay.games.records import Samples, joined
from selfplay.games.replay import to_training_batch
from selfplay.games.shards import read_shard
from selfplay.run.config import SelfPlayConfig


class DenseConfig(FamilyConfig):
    family: Literal["dense"] = "dense"
    units: int = 128


class DenseNetwork(Network):
    """A dense layer below both heads: planes [N, 6, 8, 4] → policy logits [N, 128], win/draw/loss logits [N, 3]."""

    def __init__(self, config: DenseConfig) -> None:
        super().__init__()
        self.config = config
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(6 * 8 * 4, config.units), nn.ReLU())
        self.policy, self.wdl = nn.Linear(config.units, 128), nn.Linear(config.units, 3)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(planes)
        return self.policy(features), self.wdl(features)


register_family(DenseConfig, DenseNetwork, {"dense128": DenseConfig(), "dense256": DenseConfig(units=256)})


def played() -> Samples:
    """Samples of a few games, played without a network."""
    config, search = SelfPlayConfig(games_in_lockstep=16, max_plies=80), SearchConfig(num_simulations=16)
    return joined([game.samples for game in Actor(config, search, UniformEvaluator(), seed=1).play(500)[0]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards", type=Path, nargs="?", help="folder of recorded shards")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")
    shards = (sorted(options.shards.glob("*.shard")) or parser.error("no shards there")) if options.shards else []
    samples = joined([read_shard(path).samples for path in shards]) if shards else played()
    rng, trainer = np.random.default_rng(1), Trainer(make_network(NETWORKS["dense128"]), TrainerConfig(warmup_steps=10))
    for _ in range(options.steps):
        batch = to_training_batch(samples.take(rng.integers(0, len(samples), 256)), search_value_weight=0.5)
        figures = trainer.step(batch)
    print(f"after {trainer.steps} steps: policy {figures['policy_loss']:.3f}, wdl {figures['wdl_loss']:.3f} nats")
    player = SearchPlayer("dense", make_evaluator(trainer.ema_network), SearchConfig(num_simulations=100))
    print(len(samples), "samples; first move:", Board().pdn(player.choose([Board()])[0]))


if __name__ == "__main__":
    main()
