"""``crownhead reproduce larson``: predicts expert moves with the network of Larson 2016 and one of this project."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from engine.encoding import NUM_POLICY
from learner.batch import TrainingBatch
from learner.endgame.progress import OracleProgress
from learner.expert.accuracy import PIECES, TOPS, MoveAccuracy, move_accuracy
from learner.expert.commands import read_with_progress, train_with_progress
from learner.expert.games import ExpertSamples, Split, split_by_game
from learner.expert.pretrain import CONFIG, Pretraining, expert_batch
from learner.network import NETWORKS, Network, make_network
from learner.report import Figure, Table, make_writable_folder, percent
from learner.residual import ConvUnit, ResidualConfig, ResidualNetwork
from learner.trainer import TrainerConfig

from .experiment import Experiment, Facts, Measure, Row, chosen_experiments, print_experiments, run_experiments
from .figures import draw_curves

PUBLISHED_CONFIG = TrainerConfig(learning_rate=1e-3, batch_size=128, ema_decay=0.999, weight_decay=0.0)
"""Adam and batches of 128, as in Larson 2016; the learning rate is not published: here Adam's usual one."""
PUBLISHED_STEPS, PUBLISHED_GAMES, PUBLISHED_POSITIONS = 150_000, 22_000, 440_000  # games and positions: approximate
MODULES, CHANNELS = 4, 96
OWN_NETWORK = "4x48"
_TITLE = "Larson 2016, “Deep reinforcement learning for checkers: pretraining a policy”, done again"
_INTRODUCTION = (
    "A policy learns the moves of expert games and is asked about games that it has not seen. The published network "
    "sees one number a square, has modules of parallel convolutions, and learns the first step of a move among all 128 "
    "outputs, legal or not; beside it stands a residual network of this project, which chooses among the legal moves "
    "and is never told about others. Both learn results too, and get the same games and the same time."
)
_NOTES = (
    "The published accuracies, of other games, are not available, so none are shown beside these.",
    "Published are one number a square, 128 outputs, parallel convolutions and Adam; how many convolutions (here "
    f"{MODULES} modules of {CHANNELS} channels, with batch norm) and at what rate (here "
    f"{PUBLISHED_CONFIG.learning_rate:g}) is not known. Here weights are averaged over steps, and a second head "
    "learns results.",
)
_MEASURES = [Measure(f"top{k}", f"among the first {k}") for k in TOPS]


class InceptionNetwork(ResidualNetwork):
    """The network of Larson 2016 as far as it is described: one number per square, convolutions of several sizes.

    Its heads are those of ``ResidualNetwork``. ``config`` has its modules (``blocks``) and channels; other fields are
    not used.
    """

    def __init__(self, modules: int = MODULES, channels: int = CHANNELS) -> None:
        super().__init__(ResidualConfig(blocks=modules, channels=channels))
        self.stem = ConvUnit(1, channels, 3, "relu")
        self.blocks = nn.Sequential(*(_Inception(channels) for _ in range(modules)))

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        x = self.blocks(self.stem(piece_numbers(planes)))
        return self.policy_head(x), self.wdl_head(x)


class _Inception(nn.Module):
    """Parallel convolutions of 1x1, 3x3 and 5x5, their channels concatenated (Szegedy et al. 2015)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        narrow = channels // 4
        sizes = {1: narrow, 3: channels - 2 * narrow, 5: narrow}
        self.branches = nn.ModuleList(ConvUnit(channels, outputs, size, "relu") for size, outputs in sizes.items())

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def piece_numbers(planes: Tensor) -> Tensor:
    """One number per square, [N, 1, 8, 4]: own man 1, own king 3, opponent's man -1, opponent's king -3, empty 0."""
    return planes[:, 0:1] + 3 * planes[:, 1:2] - planes[:, 2:3] - 3 * planes[:, 3:4]


def larson_command(
    games: Path, experiment: str | None, minutes: float, seed: int, out: Path, quiet: bool
) -> dict[str, Any]:
    """Trains both networks and compares them; see ``crownhead reproduce larson --help``.

    Returns:
        Name of each experiment → ``Experiment.to_json``.

    Raises:
        ValueError: the experiment is unknown, ``minutes`` is out of range, or the games cannot be learnt from.
        StorageError: a file cannot be read, or the report cannot be written.
        KeyboardInterrupt: Ctrl-C; the message says what the report contains.
    """
    names = chosen_experiments(experiment, NETWORKS_COMPARED, minutes, out, _TITLE)
    torch.set_num_threads(1)
    began = time.monotonic()
    with OracleProgress(quiet) as progress:
        read = read_with_progress(games, progress)
        make_writable_folder(out)  # before training, to find errors early
        study = _Study(split_by_game(read, seed), minutes / len(names), seed, progress)

        def facts() -> Facts:
            return {
                "games": len(read.keys),
                "games left out because they are there twice": read.twice,
                "games that cannot be read": len(read.unread),
                "games without a result": read.unfinished,
                "positions to test on": len(study.split.test.moves),
                "positions of test games that other games have": len(study.split.seen.moves),
                "minutes of training": "interrupted" if study.interrupted else minutes,
                "minutes in all": round((time.monotonic() - began) / 60, 1),
                "seed": seed,
                "torch": torch.__version__,
            }

        steps = [("predictions", partial(study.add, NETWORKS_COMPARED[name])) for name in names]
        page, found = run_experiments(out, _TITLE, _INTRODUCTION, facts, steps)
    if study.interrupted:
        raise KeyboardInterrupt(f"what was learnt until then is reported in {page}")
    return print_experiments(page, found, quiet)


def output_batch(samples: ExpertSamples) -> TrainingBatch:
    """``expert_batch`` with the first hop among all 128 outputs, legal or not, as the target (Larson 2016)."""
    batch = expert_batch(samples)
    moves = torch.from_numpy(samples.moves.astype(np.int64))
    first_hops = batch.hops[torch.arange(len(moves)), moves, 0].long()
    outputs = torch.arange(NUM_POLICY, dtype=torch.uint8).expand(len(moves), NUM_POLICY)
    return replace(batch, hops=outputs[:, :, None], policy=one_hot(first_hops, NUM_POLICY).float())


@dataclass(frozen=True)
class Compared:
    """A network to compare, with its training settings and how its batches are made."""

    name: str
    make: Callable[[], Network]
    config: TrainerConfig
    batch_of: Callable[[ExpertSamples], TrainingBatch]


NETWORKS_COMPARED = {
    "published": Compared("network as published", InceptionNetwork, PUBLISHED_CONFIG, output_batch),
    "own": Compared(f"this project's {OWN_NETWORK}", lambda: make_network(NETWORKS[OWN_NETWORK]), CONFIG, expert_batch),
}
"""Name of an experiment → its network."""


class _Study:
    """Networks that learn one after another from the same games.

    Attributes:
        interrupted: whether Ctrl-C has ended a training; the network is measured as it is, and no other is trained.
    """

    def __init__(self, split: Split, minutes: float, seed: int, progress: OracleProgress) -> None:
        self.split, self.interrupted = split, False
        self._minutes, self._seed, self._progress = minutes, seed, progress
        self._learnt: dict[str, Pretraining] = {}
        self._accuracies: dict[str, tuple[MoveAccuracy, MoveAccuracy]] = {}

    def add(self, one: Compared) -> Experiment:
        """Trains a network and compares all networks so far; raises ``KeyboardInterrupt`` if interrupted before."""
        if self.interrupted:
            raise KeyboardInterrupt
        torch.manual_seed(self._seed)
        training = Pretraining(one.make(), self.split.train, self._minutes, self._seed, one.config, one.batch_of)
        self.interrupted = train_with_progress(training, self._minutes, self._progress) is None
        self._progress.phase(f"testing {one.name}")
        network = training.trainer.ema_network
        unseen, both = (move_accuracy(network, samples) for samples in (self.split.test, self.split.test_with_seen))
        self._learnt[one.name], self._accuracies[one.name] = training, (unseen, both)
        return self._experiment()

    def _experiment(self) -> Experiment:
        rows = [
            Row(f"{name}: {which}", measured={f"top{k}": share for k, share in shares.items()})
            for name, (unseen, both) in self._accuracies.items()
            for which, shares in (
                ("of the legal moves", unseen.legal),
                ("legal, where there is a choice", unseen.with_choice),
                ("of all 128 outputs", unseen.raw),
                ("legal, seen positions too", both.legal),
            )
        ]
        curves = {
            row.name: [(k, row.measured[f"top{k}"]) for k in TOPS]
            for row in rows
            if row.name.endswith(("legal moves", "outputs"))
        }
        png = draw_curves({}, curves, "among the network's first")
        notes = [_describe(name, self._learnt[name], unseen) for name, (unseen, _) in self._accuracies.items()]
        return Experiment(
            "predictions",
            "Moves of games that were not learnt from",
            "How often is the expert's move among the network's first? Test positions that other games have as well, "
            "most of them openings, do not count, except in the last row of each network.",
            _MEASURES,
            rows,
            [Figure("predictions", png, "How often the expert's move is found, at unseen positions.")],
            [*notes, *_NOTES],
            [self._by_pieces(), self._sizes()],
        )

    def _by_pieces(self) -> Table:
        """Accuracy of the networks by number of pieces."""
        found = {name: unseen.by_pieces for name, (unseen, _) in self._accuracies.items()}
        counts = {pieces: count for shares in found.values() for pieces, (count, _) in shares.items()}
        return Table(
            "By pieces on the board: the expert's move is the network's first legal one, where there is a choice "
            "(Larson 2016: “blunders as the board becomes sparse”)",
            ["pieces", "positions", *found],
            [
                [pieces, counts[pieces], *(percent(shares[pieces][1]) for shares in found.values())]
                for pieces in reversed(PIECES)
                if pieces in counts
            ],
        )

    def _sizes(self) -> Table:
        """Sizes of the training sets and trainings, published and here."""
        train, trainings = self.split.train, self._learnt.values()
        games = len(np.unique(train.games))
        return Table(
            "What was learnt from",
            ["", "published", *self._learnt],
            [
                ["games", PUBLISHED_GAMES, *(games for _ in trainings)],
                ["positions", PUBLISHED_POSITIONS, *(len(train.moves) for _ in trainings)],
                ["steps", PUBLISHED_STEPS, *(training.trainer.steps for training in trainings)],
                ["positions in a step", PUBLISHED_CONFIG.batch_size, *(t.trainer.config.batch_size for t in trainings)],
            ],
        )


def _describe(name: str, training: Pretraining, accuracy: MoveAccuracy) -> str:
    parameters = sum(parameter.numel() for parameter in training.trainer.network.parameters())
    outcome = "" if accuracy.outcome is None else f", results right in {percent(accuracy.outcome, 1)}"
    return f"{name}: {parameters:,} parameters, {training.epochs:.1f} epochs{outcome}."
