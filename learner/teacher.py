"""A teacher: another network whose answers are mixed into the targets (knowledge distillation, Hinton et al. 2015)."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from engine.search import Evaluator

from .batch import TrainingBatch
from .loss import mix_wdl, move_logits


class Teacher:
    """Mixes a network's answers into batches.

    Args:
        evaluator: evaluator of the network; it must give a policy.
        policy_weight: weight of its move probabilities in the policy target, 0 to 1. Above 0, samples without a policy
            get the network's.
        value_weight: weight of its win/draw/loss in the value target, 0 to 1.
    """

    def __init__(self, evaluator: Evaluator, policy_weight: float, value_weight: float) -> None:
        self._evaluator = evaluator
        self._policy_weight, self._value_weight = policy_weight, value_weight

    def mixed(self, batch: TrainingBatch) -> TrainingBatch:
        """The batch, on the CPU, with the network's answers mixed into its targets.

        Raises:
            ValueError: the evaluator gives no policy.
        """
        positions = batch.positions.numpy().view(np.uint32)
        policy_logits, wdl_logits = self._evaluator.evaluate(positions)
        if policy_logits is None:
            raise ValueError("an evaluator without a policy cannot teach")
        wdl = mix_wdl(batch.wdl, torch.from_numpy(wdl_logits).softmax(1), self._value_weight)
        moves = move_logits(torch.from_numpy(policy_logits), batch.hops).softmax(1)
        return replace(batch, wdl=wdl, policy=self._mixed_policy(batch.policy, moves))

    def _mixed_policy(self, policy: Tensor, moves: Tensor) -> Tensor:
        if self._policy_weight == 0:
            return policy
        has_policy = policy.sum(1, keepdim=True) > 0
        return torch.where(has_policy, (1 - self._policy_weight) * policy + self._policy_weight * moves, moves)
