"""Training of endgame networks on endless samples, within a time or a number of positions, resumable at any moment."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from engine.tablebase.material import NUM_CODES, Material

from ..checkpoint import CheckpointError, check_version, read_tensors, with_prefix, write_tensors
from ..network_base import NetworkError, check_tensors
from .data import EndgameBatch, Sampler
from .networks import EndgameNetwork
from .timed_training import CurvePoint, TimedTrainer, TrainingSettings

STATE_SCHEMA_VERSION: Literal[1] = 1
_CLASS_SAMPLE = 1 << 16
_FOCUS_STEPS, _FOCUS_DECAY = 50, 0.99
_FOCUS_PRIOR = np.array([0.1, 1.0])  # a cost, and the number of positions that it counts as, for every slice
_MODEL, _OPTIMIZER = "model.", "optimizer."

DEFAULT_SETTINGS = {
    "pair": TrainingSettings(focus=0.6, weight_decay=0.03),
    "wang": TrainingSettings(
        optimizer="radam", learning_rate=2e-4, batch_size=1024, warmup_steps=0, schedule="constant", class_weights=True
    ),
    "selfplay": TrainingSettings(learning_rate=1e-3, batch_size=1024),
}
"""What each kind of network trains best with; for "wang", as published."""


def accuracy_of(network: EndgameNetwork, batch: EndgameBatch) -> float:
    """Share of a batch that the network judges right."""
    return float((network.wdl_logits(batch.positions).argmax(1) == batch.classes).mean())


class EndgameTrainer(TimedTrainer):
    """A training of an endgame network, resumable at any moment.

    Args:
        sampler: where every batch comes from. Its state is saved too, so a resumed run sees the same positions.
        minutes, positions: the budget, one of them, see ``TimedTrainer``.
        validation: a fixed batch for the learning curve.
        beginning: what the training began with, by name, such as its seed: a resumed run must agree in it, as far as
            the saved state has these names.

    Raises:
        EndgameTrainingError: an impossible budget.
    """

    def __init__(
        self,
        network: EndgameNetwork,
        sampler: Sampler,
        settings: TrainingSettings | None = None,
        minutes: float | None = None,
        positions: int | None = None,
        validation: EndgameBatch | None = None,
        beginning: Mapping[str, int | str | None] | None = None,
    ) -> None:
        settings = settings or DEFAULT_SETTINGS[network.kind]
        super().__init__(network, settings, minutes, positions)
        self.network, self.sampler, self.validation = network, sampler, validation
        self._beginning = dict(beginning or {})
        self._slice_losses = np.zeros((2, len(sampler.materials)))  # sums of losses and of positions, of late
        self._place = np.zeros(NUM_CODES, np.int64)
        self._place[[material.code for material in sampler.materials]] = np.arange(len(sampler.materials))
        self._class_weights = torch.ones(3)
        if settings.class_weights:
            counts = np.bincount(sampler.draw(_CLASS_SAMPLE).classes, minlength=3).clip(1)
            self._class_weights = torch.from_numpy((_CLASS_SAMPLE / counts) ** 0.5).float()

    def run(
        self,
        state_path: Path | str | None = None,
        report: Callable[[CurvePoint], object] = lambda point: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[CurvePoint]:
        """Trains to the end of the budget and returns the learning curve (``TimedTrainer.train``).

        Args:
            state_path: where the state is saved; if it exists, the training goes on from it.

        Raises:
            KeyboardInterrupt: see ``TimedTrainer.train``.
            EndgameTrainingError: the training diverged.
            CheckpointError: the state belongs to another training, is damaged, or cannot be written.
        """
        if state_path is None:
            return self.train(report, stop)
        if Path(state_path).exists():
            self.load(state_path)
        return self.train(report, stop, partial(self.save, state_path))

    def _loss(self) -> tuple[Tensor, int]:
        batch = self.sampler.draw(self.settings.batch_size)
        classes = torch.from_numpy(batch.classes)
        losses = nn.functional.cross_entropy(
            self.network(batch.positions), classes, self._class_weights, reduction="none"
        )
        self._last = batch, losses.detach().numpy()
        return losses.sum() / self._class_weights[classes].sum(), len(batch.values)

    def step(self) -> float:
        value = super().step()
        if self.settings.focus:
            self._refocus(*self._last)
        return value

    def _accuracy(self) -> float | None:
        return None if self.validation is None else accuracy_of(self.network, self.validation)

    def _refocus(self, batch: EndgameBatch, losses: np.ndarray) -> None:
        """Keeps account of what each slice costs, and now and then draws the slices accordingly."""
        places, size = self._place[batch.codes], self._slice_losses.shape[1]
        self._slice_losses *= _FOCUS_DECAY
        self._slice_losses += np.stack([np.bincount(places, losses, size), np.bincount(places, minlength=size)])
        if self.steps % _FOCUS_STEPS == 0:
            cost, positions = self._slice_losses + _FOCUS_PRIOR[:, None]
            self.sampler.reweigh((cost / positions) ** self.settings.focus)

    def save(self, path: Path | str) -> None:
        """Writes weights, optimizer, samples' state and learning curve, whole or not at all (``CheckpointError``)."""
        tensors = {_MODEL + name: tensor for name, tensor in self.network.state_dict().items()}
        for name, parameter in self._learned.items():
            for key, tensor in self._optimizer.state[parameter].items():
                tensors[f"{_OPTIMIZER}{name}.{key}"] = tensor
        tensors["class_weights"] = self._class_weights
        tensors["slice_losses"] = torch.from_numpy(self._slice_losses)
        tensors["slice_ends"] = torch.from_numpy(self.sampler.ends)
        info = {
            "schema_version": STATE_SCHEMA_VERSION,
            "identity": self._identity(),
            "beginning": self._beginning,
            "minutes": self.minutes,
            "positions": self.positions,
            "seconds": self.seconds,
            "seen": self.seen,
            "steps": self.steps,
            "sampler": str(self.sampler.state),
            "curve": [point._asdict() for point in self.curve],
        }
        write_tensors(path, tensors, info)

    def load(self, path: Path | str) -> None:
        """Goes on from a saved state; the budget is the one given here.

        Raises:
            CheckpointError: the file is missing, damaged, or of another network, other settings or other samples.
        """
        tensors, info = read_tensors(path)
        check_version(Path(path), info, STATE_SCHEMA_VERSION)
        for name, ours in self._identity().items():
            if info.get("identity", {}).get(name) != ours:
                raise _another(path, name)
        _compare(path, info, self._beginning)
        model = with_prefix(tensors, _MODEL)
        try:
            check_tensors(model, self.network.state_dict())
        except NetworkError as error:
            raise CheckpointError(f"{path}: {error}") from error
        self.network.load_state_dict(model)
        for name, parameter in self._learned.items():
            self._optimizer.state[parameter] = with_prefix(tensors, f"{_OPTIMIZER}{name}.")
        self._class_weights = tensors["class_weights"]
        self._slice_losses = tensors["slice_losses"].numpy()
        self.sampler.ends[:] = tensors["slice_ends"].numpy()
        self.seconds, self.seen, self.steps = info["seconds"], info["seen"], info["steps"]
        self.sampler.state = int(info["sampler"])
        self.curve = [CurvePoint(**point) for point in info["curve"]]

    def _identity(self) -> dict[str, Any]:
        """What a saved state must agree in."""
        sampler = self.sampler
        return {
            "kind": self.network.kind,
            "config": self.network.config.model_dump(),
            "settings": self.settings.model_dump(exclude={"report_s", "save_s"}),
            "learned": sorted(self._learned),
            "samples": [[m.name for m in sampler.materials], sampler.weights.tolist(), sampler.split, sampler.quiet],
        }


def check_beginning(
    path: Path | str,
    beginning: Mapping[str, int | str | None],
    network: EndgameNetwork,
    materials: Sequence[Material],
) -> None:
    """Raises ``CheckpointError`` if a training's state is there that cannot be read, or that began otherwise.

    Args:
        materials: the slices that samples are drawn from.
    """
    if Path(path).exists():
        _, info = read_tensors(path)
        check_version(Path(path), info, STATE_SCHEMA_VERSION)
        _compare(path, info, beginning)
        begun = info.get("identity", {})
        slices = [material.name for material in materials]
        for name, there, ours in (
            ("kind", begun.get("kind"), network.kind),
            ("config", begun.get("config"), network.config.model_dump()),
            ("numbers of pieces", begun.get("samples", [None])[0], slices),
        ):
            if there != ours:
                raise _another(path, name)


def _compare(path: Path | str, info: Mapping[str, Any], beginning: Mapping[str, int | str | None]) -> None:
    begun = info.get("beginning", {})  # states of earlier versions have none
    for name, mine in beginning.items():
        if begun.get(name, mine) != mine:
            raise _another(path, name)


def _another(path: Path | str, name: str) -> CheckpointError:
    return CheckpointError(f"{path}: the state of another training (not the same {name}): choose another folder")
