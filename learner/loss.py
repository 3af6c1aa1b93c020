"""The training loss: soft-target cross-entropies of the moves and of win, draw and loss (Silver et al. 2018).

Everything here is for the side to move, differentiable, and in the precision of the logits given.
"""

from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from engine.encoding import NO_HOP

from .batch import TrainingBatch

NO_MOVE_LOGIT = -1e9
"""Logit where there is no move: its probability is zero, and zero times its logarithm is no NaN."""

Array = TypeVar("Array", np.ndarray, Tensor)


class Loss(Protocol):
    """What a ``Trainer`` makes smaller: ``training_loss`` or another function of the same arguments."""

    def __call__(
        self, policy_logits: Tensor, wdl_logits: Tensor, batch: TrainingBatch, policy_weight: float, wdl_weight: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, a scalar with gradient, and figures to report, scalars without.

        Args:
            policy_logits: [N, 128] float32.
            wdl_logits: [N, 3] float32.
            policy_weight, wdl_weight: as the trainer's configuration has them.
        """


def mix_wdl(result_wdl: Array, search_wdl: Array, weight: float) -> Array:
    """Win/draw/loss target [..., 3]: ``weight`` of the search's, the rest of the game's result.

    Raises:
        ValueError: ``weight`` is outside 0 to 1.
    """
    if not 0.0 <= weight <= 1.0:
        raise ValueError(f"the weight of the search's win/draw/loss is {weight}, not between 0 and 1")
    return (1.0 - weight) * result_wdl + weight * search_wdl


def move_logits(policy_logits: Tensor, hops: Tensor) -> Tensor:
    """Logit of every legal move: the sum over its hops; ``NO_MOVE_LOGIT`` where there is no move.

    Args:
        policy_logits: [N, 128].
        hops: [N, M, H] uint8, padded with ``NO_HOP`` (``TrainingBatch.hops``).

    Returns:
        [N, M].
    """
    padded = torch.cat([policy_logits, policy_logits.new_zeros(len(policy_logits), 1)], 1)
    logits = padded.gather(1, hops.flatten(1).long()).view(hops.shape).sum(2)
    return logits.masked_fill(hops[:, :, 0] == NO_HOP, NO_MOVE_LOGIT)


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy in nats of each row of ``logits`` [N, K] with probabilities ``target`` [N, K]; zero rows give 0."""
    return -(target * log_softmax(logits, 1)).sum(1)


def training_loss(
    policy_logits: Tensor,
    wdl_logits: Tensor,
    batch: TrainingBatch,
    policy_weight: float = 1.0,
    wdl_weight: float = 1.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss of a batch, and its parts and other figures as scalars without gradient.

    Policy figures are means over the samples with a policy target, win/draw/loss figures over all.

    Args:
        policy_logits: [N, 128].
        wdl_logits: [N, 3].

    Returns:
        ``policy_weight`` x policy cross-entropy + ``wdl_weight`` x win/draw/loss cross-entropy (nats), and

        - loss, policy_loss, wdl_loss: the sum and its unweighted parts;
        - policy_kl: policy_loss less the entropy of its target, the part that learning can remove;
        - policy_entropy: of the network's move probabilities;
        - policy_top1: how often the network's first move is the target's first;
        - wdl_accuracy: how often the likeliest outcome is the target's likeliest.
    """
    logits = move_logits(policy_logits, batch.hops)
    has_policy = batch.policy.sum(1) > 0
    num_policy = has_policy.sum().clamp(min=1)
    policy_loss = cross_entropy(logits, batch.policy).sum() / num_policy
    wdl_loss = cross_entropy(wdl_logits, batch.wdl).mean()
    loss = policy_weight * policy_loss + wdl_weight * wdl_loss
    with torch.no_grad():
        target_entropy = -torch.xlogy(batch.policy, batch.policy).sum() / num_policy
        entropy = cross_entropy(logits, log_softmax(logits, 1).exp())
        same_move = logits.argmax(1) == batch.policy.argmax(1)
        figures = {
            "loss": loss.detach(),
            "policy_loss": policy_loss.detach(),
            "wdl_loss": wdl_loss.detach(),
            "policy_kl": policy_loss.detach() - target_entropy,
            "policy_entropy": (entropy * has_policy).sum() / num_policy,
            "policy_top1": (same_move & has_policy).sum() / num_policy,
            "wdl_accuracy": (wdl_logits.argmax(1) == batch.wdl.argmax(1)).float().mean(),
        }
    return loss, figures
