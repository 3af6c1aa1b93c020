"""Trains one network with the usual loss and one with a loss and a value target of one's own, on the same samples.

The own target believes the search more, the later in the game a position is; the own loss leaves out easy positions.
"""

import argparse

import numpy as np
import torch
from torch import Tensor

from engine.search import SearchConfig, UniformEvaluator
from learner.batch import TrainingBatch
from learner.loss import cross_entropy, training_loss
from learner.network import NETWORKS, make_network
from learner.trainer import Trainer, TrainerConfig
from selfplay.actors.actor import Actor
from selfplay.games.records import Samples, joined
from selfplay.games.replay import to_training_batch
from selfplay.run.config import SelfPlayConfig


def late_trust(samples: Samples) -> TrainingBatch:
    """A batch whose value target goes from the game's result to the search's win/draw/loss over 60 plies."""
    usual = to_training_batch(samples, search_value_weight=0.0)
    trust = np.minimum(samples.ply / 60, 1.0)[:, None]
    search = samples.search_wdl.astype(np.float64)
    search /= search.sum(1, keepdims=True)
    wdl = (1 - trust) * usual.wdl.numpy() + trust * search
    return TrainingBatch(usual.positions, usual.hops, usual.policy, torch.from_numpy(wdl).float())


def hardest_half(
    policy_logits: Tensor, wdl_logits: Tensor, batch: TrainingBatch, policy_weight: float, wdl_weight: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """The usual cross-entropies, but the value is learnt only from the half of the positions judged worst."""
    policy, figures = training_loss(policy_logits, wdl_logits, batch, policy_weight, wdl_weight=0.0)
    each = cross_entropy(wdl_logits, batch.wdl)
    hard = each.topk(max(1, len(each) // 2)).values.mean()
    return policy + wdl_weight * hard, figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--network", default="tiny", choices=sorted(NETWORKS))
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    actor = Actor(
        SelfPlayConfig(games_in_lockstep=16, max_plies=80), SearchConfig(num_simulations=16), UniformEvaluator(), seed=1
    )
    samples = joined([game.samples for game in actor.play(500)[0]])
    for name, loss, batch_of in (("usual", training_loss, to_training_batch), ("own", hardest_half, late_trust)):
        torch.manual_seed(1)
        rng = np.random.default_rng(1)
        trainer = Trainer(make_network(NETWORKS[options.network]), TrainerConfig(warmup_steps=10), loss=loss)
        for _ in range(options.steps):
            figures = trainer.step(batch_of(samples.take(rng.integers(0, len(samples), 128))))
        print(f"{name}: policy {figures['policy_loss']:.3f}, wdl {figures['wdl_loss']:.3f} nats")


if __name__ == "__main__":
    main()
