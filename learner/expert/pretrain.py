"""Training a network on recorded games: their moves for the policy, their results for the win/draw/loss head."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engine.outcomes import UNKNOWN

from ..batch import TrainingBatch, make_batch
from ..network import Network
from ..trainer import Trainer, TrainerConfig
from .games import ExpertSamples

CONFIG = TrainerConfig(
    learning_rate=2e-3, schedule="cosine", schedule_steps=1000, batch_size=256, ema_decay=0.999, weight_decay=0.05
)
_LOOK_STEPS = 25  # between two looks at the clock
_EVEN = 1 / 3


class PretrainPoint(NamedTuple):
    """Where a training stands. ``epochs``: how often each sample has been drawn, on average."""

    seconds: float
    steps: int
    epochs: float
    loss: float
    top1: float


class Pretraining:
    """Trains for a given time; the learning rate follows the clock, so that it ends low however fast the machine is.

    ``seed`` gives the order of the samples; ``batch_of`` makes the batches (None: ``expert_batch``).

    Attributes:
        trainer: its ``ema_network`` is the one to use.
    """

    def __init__(
        self,
        network: Network,
        samples: ExpertSamples,
        minutes: float,
        seed: int,
        config: TrainerConfig = CONFIG,
        batch_of: Callable[[ExpertSamples], TrainingBatch] | None = None,
    ) -> None:
        self._batch_of = batch_of or expert_batch
        self._samples, self._seconds, self._config = samples, 60 * minutes, config
        self._rng = np.random.default_rng(seed)
        self.trainer = Trainer(network, config)

    def run(self, report: Callable[[PretrainPoint], None] = lambda point: None) -> PretrainPoint:
        """Trains to the end of its time; KeyboardInterrupt leaves what has been learnt in ``trainer``."""
        begun = time.monotonic()
        trainer, size = self.trainer, self._config.batch_size
        while True:
            for _ in range(_LOOK_STEPS):
                figures = trainer.step(self.draw(size))
            elapsed = time.monotonic() - begun
            point = PretrainPoint(elapsed, trainer.steps, self.epochs, figures["loss"], figures["policy_top1"])
            report(point)
            if elapsed >= self._seconds:
                return point
            if self._config.schedule != "constant":
                expected = max(trainer.steps + 1, round(trainer.steps * self._seconds / elapsed))
                warmup = min(self._config.warmup_steps, expected // 10)
                trainer.config = self._config.model_copy(update={"schedule_steps": expected, "warmup_steps": warmup})

    @property
    def epochs(self) -> float:
        """How often each sample has been drawn, on average."""
        return self.trainer.steps * self._config.batch_size / len(self._samples.moves)

    def draw(self, size: int) -> TrainingBatch:
        return self._batch_of(self._samples.take(self._rng.integers(len(self._samples.moves), size=size)))


def expert_batch(samples: ExpertSamples) -> TrainingBatch:
    """A batch whose policy is the move made and whose outcome is the game's; an even chance of each if unknown."""
    offsets = np.concatenate([[0], np.cumsum(samples.choices, dtype=np.int64)])
    probabilities = np.zeros(offsets[-1], np.float32)
    probabilities[offsets[:-1] + samples.moves] = 1.0
    wdl = np.full((len(samples.moves), 3), _EVEN, np.float32)
    known = samples.results != UNKNOWN
    wdl[known] = np.eye(3, dtype=np.float32)[samples.results[known]]
    return make_batch(samples.positions, probabilities, offsets, np.ones(len(samples.moves), bool), wdl)
