"""Trainings and tests that the experiments of Wang 2023 share, within one time budget."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import torch

from engine.tablebase.dense import DenseTables
from engine.tablebase.material import MIN_PIECES, Material, materials, materials_between
from learner.endgame.data import TEST, TRAIN, EndgameBatch, EndgameSampler
from learner.endgame.networks import EndgameNetwork, PairConfig, PairNetwork, WangNetwork
from learner.endgame.probabilities import softmax
from learner.endgame.progress import OracleProgress
from learner.endgame.resolve import children_of, resolve
from learner.endgame.training import DEFAULT_SETTINGS, EndgameTrainer, TrainingSettings, accuracy_of

from . import published
from .experiment import ShuffledRows

Kind = Literal["wang", "pair"]
NAMES: dict[Kind, str] = {"wang": "Wang's network", "pair": "PairNetwork"}
PUBLISHED_SETTINGS = DEFAULT_SETTINGS["wang"].model_copy(update={"report_s": 2.0})
SETTINGS: dict[Kind, TrainingSettings] = {
    # The published learning rate, 2e-4 with batches of 1024, is for hours on a GPU: in minutes it learns little.
    "wang": PUBLISHED_SETTINGS.model_copy(update={"learning_rate": 4e-3, "batch_size": 256, "schedule": "cosine"}),
    "pair": DEFAULT_SETTINGS["pair"].model_copy(update={"report_s": 2.0}),
}
SAMPLE_STEP = 10  # each sample has a tenth of the positions of the one before, as published
MOST_SAMPLED = 20_000_000
_FEWEST_SAMPLED = 10
_WEIGHTS: dict[Kind, float] = {"wang": 1.0, "pair": 0.5}  # relative training times; ``pair`` learns faster
_TUNING_SHARE = 0.5
_SEARCH_CHUNK = 1 << 13  # positions searched at once: limits the memory
_TEST_RATE, _FEWEST_TESTED, _MOST_TESTED = 1000, 300, 50_000  # positions per minute of training


@dataclass(frozen=True)
class Training:
    """A training, and the training whose weights it begins with.

    Attributes:
        fewest, most: fewest and most pieces of the positions.
        tenths: 0: fresh positions are drawn without end. k > 0: positions come from a fixed sample, whose size is the
            number of positions that the training with ``tenths`` 0 sees, divided by ``SAMPLE_STEP`` ** k.
        start: training whose weights to begin with; None: random weights.
        freeze_body: whether only the classifier is trained.
    """

    kind: Kind
    fewest: int
    most: int
    tenths: int = 0
    start: "Training | None" = None
    freeze_body: bool = False

    @property
    def weight(self) -> float:
        """Training time relative to that of other trainings."""
        return _WEIGHTS[self.kind] * (_TUNING_SHARE if self.freeze_body else 1.0)

    def before(self) -> Iterator["Training"]:
        """The trainings that must be done before this one."""
        if self.start is not None:
            yield self.start
        if self.tenths:
            yield Training(self.kind, self.fewest, self.most)


class Trained(NamedTuple):
    """A trained network, the number of positions it has seen, and how many of these are distinct at most."""

    network: EndgameNetwork
    seen: int
    distinct: int


class Answers(NamedTuple):
    """Answers for N positions: int8 [N] by the network alone and by one-ply search, and its confidence float32 [N]."""

    network: np.ndarray
    search: np.ndarray
    confidence: np.ndarray

    def both(self, threshold: float) -> np.ndarray:
        """int8 [N]: the network's answer where its confidence is at least ``threshold``, else that of the search."""
        return np.where(self.confidence >= threshold, self.network, self.search)


class FixedSample(EndgameSampler):
    """Draws from a fixed sample of positions, all equally often, in a new random order each time."""

    def __init__(self, tables: DenseTables, materials: Sequence[Material], seed: int, quiet: bool, size: int) -> None:
        super().__init__(tables, materials, seed, TRAIN, quiet)
        self.sample = super().draw(size)
        self._rows = ShuffledRows(size, seed)

    def draw(self, n: int) -> EndgameBatch:
        chosen = self._rows.take(n)
        return EndgameBatch(*(column[chosen] for column in self.sample))


def one_ply_search(network: EndgameNetwork, positions: np.ndarray) -> np.ndarray:
    """Values int8 [N] (1 win, 0 draw, -1 loss for the side to move) of positions uint32 [N, 4].

    This is the search of Wang 2023: unlike those of ``endgame.resolve`` it does not follow captures to their end. The
    value is the best one among the moves, by the network's answers for the positions after them. A side without a move
    has lost; a side that takes the last piece has won.
    """
    chunks = np.array_split(positions, -(-len(positions) // _SEARCH_CHUNK) or 1)
    return np.concatenate([_search(network, chunk) for chunk in chunks])


def _search(network: EndgameNetwork, positions: np.ndarray) -> np.ndarray:
    children, parents = children_of(positions, np.arange(len(positions)))
    values = (1 - network.wdl_logits(children).argmax(1)).astype(np.int8)
    _, can_move = children_of(children, np.arange(len(children)))
    values[np.setdiff1d(np.arange(len(children)), can_move)] = -1
    verdicts = np.full(len(positions), -1, np.int8)
    np.maximum.at(verdicts, parents, -values)
    return verdicts


def share(right: np.ndarray) -> float:
    return float(right.mean())


class Lab:
    """Trains each network once, for all experiments, and tests it on positions that it has not seen.

    Wang's network learns from all positions; the pair network only from positions without captures, because it is used
    after a capture search.

    Args:
        wanted: trainings that the experiments need; trainings before them are added.
        minutes: time for all trainings and ``extra``.
        extra: time needed by other work, in the unit of ``Training.weight``.
        as_published: whether Wang's network is trained with the published settings.

    Attributes:
        settings: kind of network → training settings.
        tested: number of positions of each test.
        extra_minutes: minutes for ``extra``.
    """

    def __init__(
        self,
        tables: DenseTables,
        wanted: Iterable[Training],
        minutes: float,
        extra: float,
        seed: int,
        progress: OracleProgress,
        as_published: bool = False,
    ) -> None:
        self.settings = SETTINGS | ({"wang": PUBLISHED_SETTINGS} if as_published else {})
        self.tables, self.seed, self.progress = tables, seed, progress
        self._plan = list(dict.fromkeys(self._with_before(wanted)))
        weights = sum(training.weight for training in self._plan) + extra
        self._minutes = {training: minutes * training.weight / weights for training in self._plan}
        self.extra_minutes = minutes * extra / weights
        self.tested = int(np.clip(_TEST_RATE * minutes, _FEWEST_TESTED, _MOST_TESTED))
        self._trained: dict[Training, Trained] = {}
        self._warm: set[Kind] = set()
        self._answers: dict[tuple[Training, int, int, int], tuple[EndgameBatch, Answers]] = {}

    def run(self, wanted: Iterable[Training]) -> None:
        """Does these trainings, and those before them, in the order of the plan."""
        needed = set(self._with_before(wanted))
        for training in self._plan:
            if training in needed:
                self.trained(training)

    def _with_before(self, wanted: Iterable[Training]) -> Iterator[Training]:
        for training in wanted:
            yield from self._with_before(training.before())
            yield training

    def trained(self, training: Training) -> Trained:
        """The result of a training in the plan; trains now if it is not done yet."""
        if training not in self._trained:
            self._trained[training] = self._train(training)
        return self._trained[training]

    def _train(self, training: Training) -> Trained:
        place, minutes = self._plan.index(training), self._minutes[training]
        network = self._new_network(training, self.seed + place)
        source = self.tables, materials_between(training.fewest, training.most), self.seed + place
        quiet = training.kind == "pair"
        sampler, settings, size = EndgameSampler(*source, TRAIN, quiet), self.settings[training.kind], None
        if training.tenths:
            seen = self.trained(Training(training.kind, training.fewest, training.most)).seen
            size = max(_FEWEST_SAMPLED, min(MOST_SAMPLED, seen // SAMPLE_STEP**training.tenths))
            sampler = FixedSample(*source, quiet, size)
            settings = settings.model_copy(update={"focus": 0.0})
        left = sum(self._minutes[other] for other in self._plan[place + 1 :]) + self.extra_minutes
        label = f"training {place + 1}/{len(self._plan)}, then {left:.1f} min: {NAMES[training.kind]}"
        self._warm_up(training.kind)
        self.progress.phase(label, 60 * minutes)
        report = partial(self.progress.rate, label)
        seen = EndgameTrainer(network, sampler, settings, minutes).run(report=report)[-1].positions
        return Trained(network, seen, min(seen, size or seen))

    def _warm_up(self, kind: Kind) -> None:
        """Compiles what a kind of network needs, which would take most of the time of a short training."""
        if kind not in self._warm:
            self.progress.phase("compiling")
            few = EndgameSampler(self.tables, materials(MIN_PIECES), self.seed, TRAIN, kind == "pair")
            network = self._new_network(Training(kind, MIN_PIECES, MIN_PIECES), self.seed)
            EndgameTrainer(network, few, self.settings[kind], positions=1).run()
            self._warm.add(kind)

    def why_missed(self) -> str:
        """A sentence on how the trainings of Wang's network so far differ from the published one."""
        mine = [training for training in self._trained if training.kind == "wang"]
        longest = max(self._minutes[training] for training in mine)
        most = max(self._trained[training].seen for training in mine)
        return (
            f"Here a training of {NAMES['wang']} took {longest:.1f} minutes at most and saw {most:,} positions, "
            f"repetitions counted; as published, {published.TRAINING}: more --minutes bring it closer."
        )

    def _new_network(self, training: Training, seed: int) -> EndgameNetwork:
        torch.manual_seed(seed)
        network: EndgameNetwork
        if training.kind == "wang":
            network = WangNetwork()
            if training.freeze_body:
                network.freeze(network.stem, network.blocks)
        else:
            network = PairNetwork(PairConfig(pieces=(training.start or training).most))
            network.pairs.requires_grad_(not training.freeze_body)
            network.biases.requires_grad_(not training.freeze_body)
        if training.start is not None:
            network.load_state_dict(self.trained(training.start).network.state_dict())
        return network

    def draw(self, fewest: int, most: int, split: int) -> EndgameBatch:
        """``tested`` positions with ``fewest`` to ``most`` pieces, always the same ones for a split."""
        return EndgameSampler(self.tables, materials_between(fewest, most), self.seed, split).draw(self.tested)

    def answers(self, training: Training, fewest: int, most: int, split: int = TEST) -> tuple[EndgameBatch, Answers]:
        """Positions of ``draw``, and a network's answers, alone and by one-ply search."""
        key = training, fewest, most, split
        if key not in self._answers:
            network, batch = self.trained(training).network, self.draw(fewest, most, split)
            self.progress.phase(f"testing {NAMES[training.kind]} on {fewest} to {most} pieces")
            probabilities = softmax(network.wdl_logits(batch.positions))
            verdicts = (1 - probabilities.argmax(1)).astype(np.int8)
            found = Answers(verdicts, one_ply_search(network, batch.positions), probabilities.max(1))
            self._answers[key] = batch, found
        return self._answers[key]

    def scores(self, training: Training, fewest: int, most: int, threshold: float) -> dict[str, float]:
        """Fractions of right answers: ``network``, ``search``, ``both``."""
        batch, answers = self.answers(training, fewest, most)
        return {
            "network": share(answers.network == batch.values),
            "search": share(answers.search == batch.values),
            "both": share(answers.both(threshold) == batch.values),
        }

    def network_score(self, training: Training, fewest: int, most: int) -> float:
        """Fraction of right answers of a network alone, on test positions."""
        network = self.trained(training).network
        self.progress.phase(f"testing {NAMES[training.kind]} on {fewest} to {most} pieces")
        return accuracy_of(network, self.draw(fewest, most, TEST))

    def captures(self, training: Training, fewest: int, most: int) -> tuple[EndgameBatch, np.ndarray]:
        """Test positions, and their values int8 [N] by a network after a capture search."""
        network, batch = self.trained(training).network, self.draw(fewest, most, TEST)
        self.progress.phase(f"testing {NAMES[training.kind]} with a capture search on {fewest} to {most} pieces")
        found = resolve(batch.positions, lambda positions: softmax(network.wdl_logits(positions)))
        return batch, found.values

    def capture_score(self, training: Training, fewest: int, most: int) -> float:
        """Fraction of right answers of a network after a capture search."""
        batch, verdicts = self.captures(training, fewest, most)
        return share(verdicts == batch.values)
