"""Labelled positions, trainings and tests that the experiments of Abdalla 2024 share, within one time budget."""

import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import islice
from random import Random
from typing import Literal, NamedTuple

import chess
import numpy as np
import torch
from torch import Tensor, nn

from learner.endgame.progress import OracleProgress
from learner.endgame.timed_training import TimedTrainer, TrainingSettings

from .chess_networks import AbdallaNetwork, ChessNetwork, ManPairNetwork
from .chess_positions import TEST, TRAIN, Labelled, SyzygyTables, draw_boards, label
from .experiment import ShuffledRows

Kind = Literal["pair", "cnn"]
NAMES: dict[Kind, str] = {"cnn": "Abdalla's network", "pair": "ManPairNetwork"}
NETWORKS: dict[Kind, Callable[[], ChessNetwork]] = {"cnn": AbdallaNetwork, "pair": ManPairNetwork}
SETTINGS: dict[Kind, TrainingSettings] = {
    "cnn": TrainingSettings(learning_rate=2e-3, weight_decay=0.01, batch_size=256, warmup_steps=100, report_s=2.0),
    # Without weight decay this network would overfit its pool of positions within minutes.
    "pair": TrainingSettings(learning_rate=1e-2, weight_decay=0.5, batch_size=4096, warmup_steps=100, report_s=2.0),
}
SHARES: dict[Kind | Literal["label"], float] = {"label": 0.25, "pair": 0.2, "cnn": 0.55}
"""Fraction of the time for labelling and for the training of each kind of network."""
TESTED = 5000
_CHUNK, _CHUNK_OF_THREE = 500, 50  # positions labelled at a time, and how many of them have three men
_FEWEST_LABELLED = 2 * _CHUNK


class Test(NamedTuple):
    """Fresh positions: boards, and their men and classes."""

    boards: Sequence[chess.Board]
    labelled: Labelled


class PoolTrainer(TimedTrainer):
    """Learns from labelled positions, all equally often, in a new random order each time."""

    def __init__(
        self, network: ChessNetwork, pool: Labelled, settings: TrainingSettings, minutes: float, seed: int
    ) -> None:
        super().__init__(network, settings, minutes, None)
        self._network, self._pool, self._rows = network, pool, ShuffledRows(len(pool.men), seed)

    def _loss(self) -> tuple[Tensor, int]:
        size = self.settings.batch_size
        chosen = self._rows.take(size)
        classes = torch.from_numpy(self._pool.classes[chosen])
        return nn.functional.cross_entropy(self._network(self._pool.men[chosen]), classes), size


class ChessLab:
    """Labels positions and trains each network once, for all experiments, and draws test positions.

    Args:
        minutes: time for labelling and both trainings, divided by ``SHARES``.

    Attributes:
        seen: number of positions that each network was trained on, with repetitions.
        labelling_rate: positions drawn and labelled per second; 0 before labelling.
    """

    def __init__(self, tables: SyzygyTables, minutes: float, seed: int, progress: OracleProgress) -> None:
        self.tables, self.minutes, self.seed, self.progress = tables, minutes, seed, progress
        self.seen: dict[Kind, int] = {}
        self.labelling_rate = 0.0
        self._networks: dict[Kind, ChessNetwork] = {}
        self._tests: dict[tuple[int, ...], Test] = {}

    @cached_property
    def pool(self) -> Labelled:
        """Labelled positions to train on, made at first use; a tenth of them have three men."""
        seconds = 60 * self.minutes * SHARES["label"]
        self.progress.phase("labelling positions", seconds)
        counts = {3: _CHUNK_OF_THREE, 4: _CHUNK - _CHUNK_OF_THREE} if len(self.tables.men) == 2 else {}
        sources = [
            (draw_boards(self.tables, TRAIN, (men,), Random(f"{self.seed} {men}")), counts.get(men, _CHUNK))
            for men in self.tables.men
        ]
        parts: list[Labelled] = []
        began = time.monotonic()
        while (spent := time.monotonic() - began) < seconds or len(parts) * _CHUNK < _FEWEST_LABELLED:
            boards = [board for source, count in sources for board in islice(source, count)]
            parts.append(label(self.tables, boards))
            self.progress.done(spent)
        pool = Labelled(*map(np.concatenate, zip(*parts, strict=True)))
        self.labelling_rate = len(pool.men) / spent if spent else 0.0
        return pool

    def network(self, kind: Kind) -> ChessNetwork:
        """A trained network; it is trained at first use."""
        if kind not in self._networks:
            torch.manual_seed(self.seed)
            network, minutes, pool = NETWORKS[kind](), self.minutes * SHARES[kind], self.pool
            trainer = PoolTrainer(network, pool, SETTINGS[kind], minutes, self.seed)
            label = f"training {NAMES[kind]}"
            self.progress.phase(label, 60 * minutes)
            trainer.train(partial(self.progress.rate, label))
            self._networks[kind], self.seen[kind] = network, trainer.seen
        return self._networks[kind]

    def test(self, men: Sequence[int]) -> Test:
        """``TESTED`` test positions with these numbers of men, always the same; no mirror image is in the pool."""
        key = tuple(men)
        if key not in self._tests:
            self.progress.phase(f"drawing positions of {named(men)} men to test on")
            source = Random(f"{self.seed} test {key}")
            boards = list(islice(draw_boards(self.tables, TEST, men, source), TESTED))
            self._tests[key] = Test(boards, label(self.tables, boards))
        return self._tests[key]

    def tests(self) -> dict[str, Test]:
        """Name → test: one of all positions, and one for each number of men."""
        sets = [tuple(self.tables.men), *((men,) for men in self.tables.men)]
        return {f"{named(men)} men": self.test(men) for men in dict.fromkeys(sets)}


def named(men: Sequence[int]) -> str:
    """Numbers of men as text, like "3–4"."""
    return "–".join(map(str, men))
