"""Compares how well and how fast networks learn the same samples: python tests/measure_networks.py RUN wide256 wide512

Trains networks from random weights on the shards of a run, with the run's settings of the trainer, except for the last
shards. On these it measures the divergence of the policy from its target and the cross-entropy of win, draw and loss
(nats). Also prints milliseconds per step.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from learner.batch import TrainingBatch
from learner.loss import training_loss
from learner.network import NETWORKS, Network, make_network
from learner.network_base import planes_on
from learner.trainer import Trainer
from selfplay.games.records import Samples, joined
from selfplay.games.replay import to_training_batch
from selfplay.games.shards import read_shard
from selfplay.machines.threads import use_single_thread
from selfplay.run.config import read_config


def held_out(samples: Samples, weight: float, size: int = 2048) -> list[TrainingBatch]:
    starts = range(0, len(samples), size)
    return [to_training_batch(samples.take(np.arange(at, min(at + size, len(samples)))), weight) for at in starts]


@torch.no_grad()
def figures_on(network: Network, batches: list[TrainingBatch]) -> dict[str, float]:
    """The measures as means over the positions."""
    total = sum(map(len, batches))
    sums: dict[str, float] = {}
    for batch in batches:
        for name, value in training_loss(*network(planes_on(torch.device("cpu"), batch.positions)), batch)[1].items():
            sums[name] = sums.get(name, 0.0) + float(value) * len(batch) / total
    return sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("networks", nargs="+", choices=NETWORKS)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--held", type=int, default=3, help="shards held out")
    asked = parser.parse_args()
    use_single_thread()
    config = read_config(asked.run / "config.json").trainer
    shards = [read_shard(path).samples for path in sorted((asked.run / "shards").glob("*.shard"))]
    samples, held = joined(shards[: -asked.held]), held_out(joined(shards[-asked.held :]), config.wdl_search_weight)
    print(f"{len(samples)} samples, {sum(map(len, held))} held out")
    for name in asked.networks:
        torch.manual_seed(1)
        trainer, rng, learning = Trainer(make_network(NETWORKS[name]), config), np.random.default_rng(1), 0.0
        for step in range(asked.steps):
            batch = to_training_batch(
                samples.take(rng.integers(len(samples), size=config.batch_size)), config.wdl_search_weight
            )
            begun = time.perf_counter()
            trainer.step(batch, step / asked.steps)
            learning += time.perf_counter() - begun
        found = figures_on(trainer.ema_network, held)
        shown = ", ".join(f"{key} {found[key]:.4f}" for key in ("policy_kl", "wdl_loss", "policy_top1", "wdl_accuracy"))
        print(f"{name}: {shown}, {1e3 * learning / asked.steps:.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
