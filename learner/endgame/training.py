"""Training of endgame networks on endless samples, within a time or a number of positions, resumable at any moment."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from engine.tablebase.material import NUM_CODES

from ..checkpoint import CheckpointError, check_version, read_tensors, write_tensors
from ..network import NetworkError, check_tensors
from .data import EndgameBatch, EndgameSampler
from .networks import EndgameNetwork

STATE_SCHEMA_VERSION: Literal[1] = 1
_CLASS_SAMPLE = 1 << 16
_OPTIMIZERS: dict[str, Any] = {
    "adam": partial(torch.optim.AdamW, fused=True),
    "radam": partial(torch.optim.RAdam, decoupled_weight_decay=True),
}
_FOCUS_STEPS, _FOCUS_DECAY = 50, 0.99
_FOCUS_PRIOR = np.array([0.1, 1.0])  # as if each slice had cost this much in so many positions
_MODEL, _OPTIMIZER = "model.", "optimizer."


class EndgameTrainingError(ValueError):
    """Training that cannot begin or go on."""


class TrainingSettings(BaseModel):
    """How to train.

    Attributes:
        learning_rate: at its height.
        weight_decay: decoupled (Loshchilov and Hutter 2019). Without it a pair network learns positions of the training
            split by heart where pieces are few.
        schedule: after a linear warm-up, "constant", or "cosine" down to zero at the end of the time or the positions.
        focus: slices are drawn by their weight in the sampler times (their mean loss of late) ** focus. Most slices are
            learned within minutes, and a tenth of the positions makes half of the errors.
        class_weights: weigh classes by (N / N_i) ** 0.5 as Wang 2023 does, else all alike.
        report_s: seconds between points of the learning curve.
        save_s: seconds between writings of the state.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    optimizer: Literal["adam", "radam"] = "adam"
    learning_rate: float = Field(default=6e-3, gt=0, le=1)
    weight_decay: float = Field(default=0.0, ge=0, le=1)
    batch_size: int = Field(default=4096, ge=2)
    warmup_steps: int = Field(default=200, ge=0)
    schedule: Literal["constant", "cosine"] = "cosine"
    focus: float = Field(default=0.0, ge=0, le=1)
    class_weights: bool = False
    report_s: float = Field(default=10.0, ge=0)
    save_s: float = Field(default=50.0, ge=0)


DEFAULT_SETTINGS = {
    "pair": TrainingSettings(focus=0.6, weight_decay=0.03),
    "wang": TrainingSettings(
        optimizer="radam", learning_rate=2e-4, batch_size=1024, warmup_steps=0, schedule="constant", class_weights=True
    ),
    "selfplay": TrainingSettings(learning_rate=1e-3, batch_size=1024),
}
"""What each kind of network trains best with; for "wang", as published."""


@dataclass(frozen=True)
class CurvePoint:
    """A point of the learning curve.

    Attributes:
        seconds, positions: trained so far, over all resumptions.
        loss: mean since the last point.
        accuracy: share of the validation batch judged right, or None without one.
        rate: positions per second since the last point.
    """

    seconds: float
    positions: int
    loss: float
    accuracy: float | None
    learning_rate: float
    rate: float


def accuracy_of(network: EndgameNetwork, batch: EndgameBatch) -> float:
    """Share of a batch that the network judges right."""
    return float((network.wdl_logits(batch.positions).argmax(1) == batch.classes).mean())


class EndgameTrainer:
    """One training run: ``run`` trains to its end, ``save`` and ``load`` carry it over to another process.

    Args:
        sampler: where every batch comes from; its state is saved too, so a run that is resumed sees what it would have
            seen.
        minutes, positions: the budget, one of them.
        validation: a fixed batch for the learning curve.
    """

    def __init__(
        self,
        network: EndgameNetwork,
        sampler: EndgameSampler,
        settings: TrainingSettings | None = None,
        minutes: float | None = None,
        positions: int | None = None,
        validation: EndgameBatch | None = None,
    ) -> None:
        if (minutes is None) == (positions is None):
            raise EndgameTrainingError("give the training either minutes or a number of positions")
        if (minutes or positions or 0) <= 0:
            raise EndgameTrainingError("a training needs more than zero minutes or positions")
        self.network, self.sampler, self.validation = network, sampler, validation
        self.settings = settings = settings or DEFAULT_SETTINGS[network.kind]
        self.minutes, self.positions = minutes, positions
        self.seconds, self.seen, self.steps = 0.0, 0, 0
        self.curve: list[CurvePoint] = []
        self._slice_losses = np.zeros((2, len(sampler.materials)))  # sums of losses and of positions, of late
        self._place = np.zeros(NUM_CODES, np.int64)
        self._place[[material.code for material in sampler.materials]] = np.arange(len(sampler.materials))
        self._class_weights = torch.ones(3)
        if settings.class_weights:
            counts = np.bincount(sampler.draw(_CLASS_SAMPLE).classes, minlength=3).clip(1)
            self._class_weights = torch.from_numpy((_CLASS_SAMPLE / counts) ** 0.5).float()
        self._learned = {name: p for name, p in network.named_parameters() if p.requires_grad}
        self._optimizer = _OPTIMIZERS[settings.optimizer](
            list(self._learned.values()), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    @property
    def progress(self) -> float:
        """Share of the budget that is used up, 0 to 1."""
        used = self.seconds / (60 * self.minutes) if self.minutes else self.seen / self.positions  # type: ignore[operator]
        return min(1.0, used)

    @property
    def learning_rate(self) -> float:
        """Of the next step."""
        rate = self.settings.learning_rate
        if self.settings.schedule == "cosine":
            rate *= 0.5 * (1 + math.cos(math.pi * self.progress))
        return rate * min(1.0, (self.steps + 1) / max(1, self.settings.warmup_steps))

    def step(self) -> float:
        """One step on a fresh batch; returns its loss.

        Raises:
            EndgameTrainingError: the loss is no number; the weights are as before.
        """
        batch = self.sampler.draw(self.settings.batch_size)
        for group in self._optimizer.param_groups:
            group["lr"] = self.learning_rate
        self._optimizer.zero_grad()
        classes = torch.from_numpy(batch.classes)
        losses = nn.functional.cross_entropy(
            self.network(batch.positions), classes, self._class_weights, reduction="none"
        )
        loss = losses.sum() / self._class_weights[classes].sum()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise EndgameTrainingError(f"the loss is {value} after {self.seen:,} positions: lower the learning rate")
        loss.backward()
        self._optimizer.step()
        self.seen += len(batch.values)
        self.steps += 1
        if self.settings.focus:
            self._refocus(batch, losses.detach().numpy())
        return value

    def _refocus(self, batch: EndgameBatch, losses: np.ndarray) -> None:
        """Keeps account of what each slice costs, and now and then draws the slices accordingly."""
        places, size = self._place[batch.codes], self._slice_losses.shape[1]
        self._slice_losses *= _FOCUS_DECAY
        self._slice_losses += np.stack([np.bincount(places, losses, size), np.bincount(places, minlength=size)])
        if self.steps % _FOCUS_STEPS == 0:
            cost, positions = self._slice_losses + _FOCUS_PRIOR[:, None]
            self.sampler.reweigh((cost / positions) ** self.settings.focus)

    def run(
        self,
        state_path: Path | str | None = None,
        report: Callable[[CurvePoint], object] = lambda point: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[CurvePoint]:
        """Trains until the budget is used up or ``stop()`` is true, and returns the learning curve.

        Args:
            state_path: where to save the state: at the beginning, every ``save_s`` seconds and at the end.
            report: called with every new point of the curve.

        Raises:
            KeyboardInterrupt: the user has asked for it; the step that was under way is finished and the state saved.
        """
        if state_path is not None:
            self.save(state_path)
        with _interrupt_noted() as interrupted:
            curve = self._run(state_path, report, lambda: interrupted() or stop())
        if interrupted():
            raise KeyboardInterrupt
        return curve

    def _run(
        self, state_path: Path | str | None, report: Callable[[CurvePoint], object], stop: Callable[[], bool]
    ) -> list[CurvePoint]:
        self.network.train()
        clock = time.monotonic() - self.seconds
        last_save, start = self.seconds, (self.seconds, self.seen)
        losses: list[float] = []
        done = self.progress >= 1
        while not done:
            losses.append(self.step())
            self.seconds = time.monotonic() - clock
            done = self.progress >= 1 or stop()
            if done or self.seconds - start[0] >= self.settings.report_s:
                self.curve.append(self._point(losses, *start))
                report(self.curve[-1])
                losses, start = [], (self.seconds, self.seen)
            if state_path is not None and (done or self.seconds - last_save >= self.settings.save_s):
                self.save(state_path)
                last_save = self.seconds
        self.network.eval()
        return self.curve

    def _point(self, losses: list[float], seconds: float, seen: int) -> CurvePoint:
        rate = (self.seen - seen) / max(1e-9, self.seconds - seconds)
        accuracy = None if self.validation is None else accuracy_of(self.network, self.validation)
        loss = sum(losses) / len(losses)
        return CurvePoint(self.seconds, self.seen, loss, accuracy, self.learning_rate, rate)

    def save(self, path: Path | str) -> None:
        """Writes weights, optimizer, samples' state and learning curve, whole or not at all.

        Raises:
            CheckpointError: it cannot be written; what was there before is still there.
        """
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
            "minutes": self.minutes,
            "positions": self.positions,
            "seconds": self.seconds,
            "seen": self.seen,
            "steps": self.steps,
            "sampler": str(self.sampler.state),
            "curve": [asdict(point) for point in self.curve],
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
                raise CheckpointError(f"{path}: the state of another training, its {name} differs")
        model = {name.removeprefix(_MODEL): t for name, t in tensors.items() if name.startswith(_MODEL)}
        try:
            check_tensors(model, self.network.state_dict())
        except NetworkError as error:
            raise CheckpointError(f"{path}: {error}") from error
        self.network.load_state_dict(model)
        for name, parameter in self._learned.items():
            self._optimizer.state[parameter] = _with_prefix(tensors, f"{_OPTIMIZER}{name}.")
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


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


@contextmanager
def _interrupt_noted() -> Iterator[Callable[[], bool]]:
    """Yields whether the user has interrupted the program (Ctrl-C), which is only noted: a step that is cut off in the
    middle would leave weights that fit nothing. A second time interrupts at once. In other threads nothing changes."""
    times: list[int] = []
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, frame: Any) -> None:
        times.append(number)
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(times)
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def _denormals_flushed() -> Iterator[None]:
    """Numbers next to zero count as zero in this thread: rarely trained weights would slow everything down."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def train_endgame(
    network: EndgameNetwork,
    sampler: EndgameSampler,
    settings: TrainingSettings | None = None,
    minutes: float | None = None,
    positions: int | None = None,
    validation: EndgameBatch | None = None,
    state_path: Path | str | None = None,
    report: Callable[[CurvePoint], object] = lambda point: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[CurvePoint]:
    """Trains a network within a budget, from ``state_path`` on if that exists (see ``EndgameTrainer``).

    Raises:
        KeyboardInterrupt: see ``EndgameTrainer.run``.
        EndgameTrainingError: an impossible budget, or a training that diverged.
        CheckpointError: the state belongs to another training, is damaged, or cannot be written.
    """
    trainer = EndgameTrainer(network, sampler, settings, minutes, positions, validation)
    if state_path is not None and Path(state_path).exists():
        trainer.load(state_path)
    with _denormals_flushed():
        return trainer.run(state_path, report, stop)
