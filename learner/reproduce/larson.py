"""What ``crownhead reproduce larson`` does: expert moves predicted by the network of Larson 2016 and by ours."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from ..batch import TrainingBatch
from ..endgame.progress import OracleProgress
from ..expert.accuracy import TOPS, MoveAccuracy, move_accuracy
from ..expert.commands import describe, read_with_progress, train_with_progress
from ..expert.games import ExpertSamples, Split, split_by_game
from ..expert.pretrain import CONFIG, Pretraining, expert_batch, output_batch
from ..network import NETWORKS, ConvUnit, Network, NetworkConfig
from ..report import make_writable_folder
from ..trainer import TrainerConfig
from .experiment import Experiment, Measure, Row, chosen_experiments, report_experiments

PUBLISHED_CONFIG = TrainerConfig(learning_rate=1e-3, batch_size=128, ema_decay=0.999, weight_decay=0.0)
"""Adam, batches of 128 (Larson 2016; his rate is not given: Adam's usual one)."""
PUBLISHED_STEPS, PUBLISHED_GAMES = 150_000, 22_000
OWN_NETWORK = "4x48"
_TITLE = "Larson 2016, “Deep reinforcement learning for checkers: pretraining a policy”, done again"
_INTRODUCTION = (
    "A policy learns the moves of expert games and is asked about games that it has not seen. The published network "
    "sees one number a square, has modules of parallel convolutions, and learns the first step of a move among all 128 "
    "outputs, legal or not; beside it stands a residual network of this project, which chooses among the legal moves "
    "and is never told about others. Both learn results too, and get the same games and the same time."
)
_MEASURES = [Measure(f"top{k}", f"among the first {k}") for k in TOPS]


class InceptionNetwork(Network):
    """The network of Larson 2016, as far as it is described: one number a square, convolutions of several sizes.

    Its heads are those of ``Network``. ``config`` gives modules and channels; the rest of it does not count.
    """

    def __init__(self, modules: int = 4, channels: int = 96) -> None:
        super().__init__(NetworkConfig(blocks=modules, channels=channels))
        self.stem = ConvUnit(1, channels, 3, "relu")
        self.blocks = nn.Sequential(*(_Inception(channels) for _ in range(modules)))

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        x = self.blocks(self.stem(piece_numbers(planes)))
        return self.policy_head(x), self.wdl_head(x)


class _Inception(nn.Module):
    """Convolutions of 1x1, 3x3 and 5x5 side by side, their channels put together (Szegedy et al. 2015)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        narrow = channels // 4
        sizes = {1: narrow, 3: channels - 2 * narrow, 5: narrow}
        self.branches = nn.ModuleList(ConvUnit(channels, outputs, size, "relu") for size, outputs in sizes.items())

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def piece_numbers(planes: Tensor) -> Tensor:
    """One number a square, [N, 1, 8, 4]: own man 1, own king 3, opponent's man -1, opponent's king -3, none 0."""
    return planes[:, 0:1] + 3 * planes[:, 1:2] - planes[:, 2:3] - 3 * planes[:, 3:4]


def larson_command(
    games: Path, experiment: str | None, minutes: float, seed: int, out: Path, quiet: bool
) -> dict[str, Any]:
    """Trains both networks and compares them; see ``crownhead reproduce larson --help``.

    Args:
        games: a collection in PDN.
        experiment: of ``NETWORKS_COMPARED``; None for both.
        minutes: of the trainings together.
        out: gets the report; after Ctrl-C, with what was learnt until then.

    Returns:
        For each experiment, by name, ``Experiment.to_json``.

    Raises:
        ValueError: an unknown experiment, bad minutes, or games that cannot be learnt from.
        StorageError: a file cannot be read, or the report not written.
    """
    names = chosen_experiments(experiment, NETWORKS_COMPARED, minutes, out)
    make_writable_folder(out)
    torch.set_num_threads(1)
    began = time.monotonic()
    with OracleProgress(quiet) as progress:
        read = read_with_progress(games, progress)
        split = split_by_game(read, seed)
        learnt, whole = _train([NETWORKS_COMPARED[name] for name in names], split, minutes, seed, progress)
        found = [_predictions(learnt, split)] if learnt else []
    facts: dict[str, str | int | float] = {
        **describe(read, split),
        "minutes of training": minutes if whole else "interrupted",
        "minutes in all": round((time.monotonic() - began) / 60, 1),
        "seed": seed,
        "torch": torch.__version__,
    }
    page = report_experiments(out, _TITLE, _INTRODUCTION, facts, found)
    if not whole:
        raise KeyboardInterrupt(f"what was learnt until then is reported in {page}")
    console = Console(quiet=quiet)
    for result in found:
        result.print(console)
    console.print(f"Report: {page}", soft_wrap=True)
    return {result.name: result.to_json() for result in found}


@dataclass(frozen=True)
class Compared:
    """A network that takes part, and how it learns."""

    name: str
    make: Callable[[], Network]
    config: TrainerConfig
    batch_of: Callable[[ExpertSamples], TrainingBatch]


NETWORKS_COMPARED = {
    "published": Compared("network as published", InceptionNetwork, PUBLISHED_CONFIG, output_batch),
    "own": Compared(f"this project's {OWN_NETWORK}", lambda: Network(NETWORKS[OWN_NETWORK]), CONFIG, expert_batch),
}
"""By name of the experiment."""


def _train(
    compared: Sequence[Compared], split: Split, minutes: float, seed: int, progress: OracleProgress
) -> tuple[dict[str, Pretraining], bool]:
    """Trainings by name, and whether all got their time."""
    learnt: dict[str, Pretraining] = {}
    share = minutes / len(compared)
    for one in compared:
        torch.manual_seed(seed)
        training = Pretraining(one.make(), split.train, share, seed, one.config, one.batch_of)
        learnt[one.name] = training
        if train_with_progress(training, share, progress) is None:
            return learnt, False
    return learnt, True


def _predictions(learnt: dict[str, Pretraining], split: Split) -> Experiment:
    rows, notes = [], []
    for name, training in learnt.items():
        network = training.trainer.ema_network
        unseen = move_accuracy(network, split.test)
        rows += [
            _row(f"{name}: of the legal moves", unseen.legal),
            _row(f"{name}: legal, where there is a choice", unseen.with_choice),
            _row(f"{name}: of all 128 outputs", unseen.raw),
            _row(f"{name}: legal, seen positions too", move_accuracy(network, split.test_with_seen).legal),
        ]
        notes.append(_describe(name, training, unseen, split.test))
    notes.append(
        f"Published: {PUBLISHED_STEPS:,} batches of 128 from about {PUBLISHED_GAMES:,} games; its figures are not set "
        "beside these, because those games are not at hand and positions seen in training were not taken out."
    )
    return Experiment(
        "predictions",
        "Moves of games that were not learnt from",
        "How often is the expert's move among the network's first? Test positions that other games have as well, most "
        "of them openings, do not count, except in the last row of each network.",
        _MEASURES,
        rows,
        [],
        notes,
    )


def _row(name: str, shares: dict[int, float]) -> Row:
    return Row(name, measured={f"top{k}": share for k, share in shares.items()})


def _describe(name: str, training: Pretraining, accuracy: MoveAccuracy, test: ExpertSamples) -> str:
    parameters = sum(parameter.numel() for parameter in training.trainer.network.parameters())
    outcome = "" if accuracy.outcome is None else f", results right in {accuracy.outcome:.1%}"
    return (
        f"{name}: {parameters:,} parameters, {training.trainer.steps:,} steps of {training.trainer.config.batch_size}, "
        f"{training.epochs:.1f} epochs; {len(test.moves):,} test positions{outcome}."
    )
