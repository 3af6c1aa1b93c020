"""Teaching a student: passes over samples in random order, with a learning rate that falls to nothing."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from .batch import TrainingBatch
from .loss import training_loss
from .network import planes_on
from .student import Student
from .trainer import TrainerConfig, TrainingError, make_optimizer

BATCH_SIZE = 4096
POLICY_WEIGHT = 0.5  # only some of the samples have a policy, and values decide more in a search this fast
_LEARNING_RATE = 2e-3
_WARMUP_STEPS = 200
_WEIGHT_DECAY = 1e-4


@dataclass(frozen=True)
class TeachingStep:
    """Where a teaching stands: steps made of all, and the loss of the last."""

    step: int
    steps: int
    loss: float


def teach(
    student: Student,
    number: int,
    batch_of: Callable[[np.ndarray], TrainingBatch],
    epochs: float,
    seed: int,
    report: Callable[[TeachingStep], None] = lambda step: None,
    batch_size: int = BATCH_SIZE,
) -> int:
    """Trains a student on the CPU, in place. The caller sets torch's threads.

    Args:
        number: of samples, at least one.
        batch_of: makes a batch of the samples whose numbers it is given, int64 [B].
        epochs: how often each sample is learnt from.
        seed: of their order.

    Returns:
        Number of steps made.

    Raises:
        TrainingError: the loss is not finite.
    """
    size = min(batch_size, number)
    steps = max(1, round(number * epochs / size))
    config = TrainerConfig(
        learning_rate=_LEARNING_RATE,
        schedule="cosine",
        schedule_steps=steps,
        warmup_steps=min(_WARMUP_STEPS, steps // 2),
        weight_decay=_WEIGHT_DECAY,
        final_factor=0.0,
        policy_weight=POLICY_WEIGHT,
    )
    student.train().requires_grad_(True)
    optimizer = make_optimizer(student, config)
    for step, rows in zip(range(steps), _orders(number, size, seed), strict=False):
        batch = batch_of(rows)
        policy_logits, wdl_logits = student(planes_on(torch.device("cpu"), batch.positions))
        loss, _ = training_loss(policy_logits, wdl_logits, batch, config.policy_weight, config.wdl_weight)
        if not math.isfinite(found := loss.item()):
            raise TrainingError(f"step {step}: the loss is not finite; are the samples sound?")
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate_at(step)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        report(TeachingStep(step + 1, steps, found))
    student.eval().requires_grad_(False)
    return steps


def _orders(number: int, size: int, seed: int) -> Iterator[np.ndarray]:
    """Numbers of samples, so many at a time, pass after pass."""
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(number)
        for start in range(0, number - size + 1, size):
            yield order[start : start + size]
