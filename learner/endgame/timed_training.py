"""A training within a time or a number of positions: the schedule, the steps, the learning curve, and Ctrl-C."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from engine.interrupts import interrupt_noted

_OPTIMIZERS: dict[str, Any] = {
    "adam": partial(torch.optim.AdamW, fused=True),
    "radam": partial(torch.optim.RAdam, decoupled_weight_decay=True),
}
_TRIALS = 3  # steps with each number; the slowest of them does not count
_HOPELESS = 2.0  # times a step with one thread: all threads are not tried further
_AGAIN_S = 60.0


class TorchTeam:
    """Makes the steps of a training with one torch thread or with all, whichever is faster; use it in a ``with``.

    On idle cores all are faster. But where one of them has to wait for a core, all do: on a busy machine a step then
    takes several times as long as with one, up to twenty times. So both are tried, and again every minute; a step that
    tries is a step like any other. Where torch has one thread to begin with, there is nothing to try.
    """

    def __init__(self) -> None:
        self._all = torch.get_num_threads()
        self._untried: list[int] = []
        self._seconds: dict[int, list[float]] = {}
        self._again = 0.0

    def __enter__(self) -> "TorchTeam":
        return self

    def __exit__(self, *error: object) -> None:
        torch.set_num_threads(self._all)

    def make(self, step: Callable[[], float]) -> float:
        if self._all == 1:
            return step()
        began = time.monotonic()
        if not self._untried and began >= self._again:
            self._untried, self._seconds = [self._all] * _TRIALS + [1] * _TRIALS, {1: [], self._all: []}
        if not self._untried:
            return step()
        threads = self._untried.pop()
        torch.set_num_threads(threads)
        value = step()
        self._judge(threads, time.monotonic() - began)
        return value

    def _judge(self, threads: int, took: float) -> None:
        """Notes a step that was tried; after the last one the faster number is taken."""
        self._seconds[threads].append(took)
        one, all_ = self._seconds[1], self._seconds[self._all]
        hopeless = bool(all_) and all_[-1] > _HOPELESS * min(one)
        if hopeless or not self._untried:
            faster = not hopeless and sum(sorted(all_)[:-1]) < sum(sorted(one)[:-1])
            torch.set_num_threads(self._all if faster else 1)
            self._untried, self._again = [], time.monotonic() + _AGAIN_S


class EndgameTrainingError(ValueError):
    """Training that cannot begin or go on."""


class TrainingSettings(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
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

    @property
    def summary(self) -> str:
        """What reports say of them."""
        return f"{self.optimizer}, rate {self.learning_rate:g} ({self.schedule}), batch {self.batch_size}"


class CurvePoint(NamedTuple):
    """A point of the learning curve.

    Attributes:
        seconds, positions: trained so far, over all resumptions; processor time of the thread that trains.
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


class TimedTrainer(ABC):
    """A training of any network; what it learns from is a subclass's.

    Args:
        minutes, positions: the budget, one of them. Minutes are processor time of the thread that trains: as long as by
            the clock on idle cores, but a busy machine learns as much in them.
    """

    def __init__(
        self, network: nn.Module, settings: TrainingSettings, minutes: float | None, positions: int | None
    ) -> None:
        if (minutes is None) == (positions is None):
            raise EndgameTrainingError("give the training either minutes or a number of positions")
        if (minutes or positions or 0) <= 0:
            raise EndgameTrainingError("a training needs more than zero minutes or positions")
        self._module, self.settings = network, settings
        self.minutes, self.positions = minutes, positions
        self.seconds, self.seen, self.steps = 0.0, 0, 0
        self.curve: list[CurvePoint] = []
        self._learned = {name: p for name, p in network.named_parameters() if p.requires_grad}
        self._optimizer = _OPTIMIZERS[settings.optimizer](
            list(self._learned.values()), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    @abstractmethod
    def _loss(self) -> tuple[Tensor, int]:
        """The loss of a fresh batch, and its number of positions."""

    def _accuracy(self) -> float | None:
        """Accuracy for a point of the curve."""
        return None

    @property
    def progress(self) -> float:
        """Share of the budget that is used up, 0 to 1."""
        used = self.seconds / (60 * self.minutes) if self.minutes else self.seen / self.positions  # type: ignore[operator]
        return min(1.0, used)

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next step."""
        rate = self.settings.learning_rate
        if self.settings.schedule == "cosine":
            rate *= 0.5 * (1 + math.cos(math.pi * self.progress))
        return rate * min(1.0, (self.steps + 1) / max(1, self.settings.warmup_steps))

    def step(self) -> float:
        """One step on a fresh batch; returns its loss. Raises ``EndgameTrainingError`` if that is no number."""
        for group in self._optimizer.param_groups:
            group["lr"] = self.learning_rate
        self._optimizer.zero_grad()
        loss, size = self._loss()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise EndgameTrainingError(f"the loss is {value} after {self.seen:,} positions: lower the learning rate")
        loss.backward()
        self._optimizer.step()
        self.seen += size
        self.steps += 1
        return value

    def train(
        self,
        report: Callable[[CurvePoint], object] = lambda point: None,
        stop: Callable[[], bool] = lambda: False,
        save: Callable[[], object] = lambda: None,
    ) -> list[CurvePoint]:
        """Trains until the budget is used up or ``stop()`` is true, and returns the learning curve.

        Args:
            report: called with every new point of the curve.
            save: saves the state: called at the beginning, every ``save_s`` seconds and at the end.

        Raises:
            KeyboardInterrupt: the user has asked for it; the step that was under way is finished and the state saved.
        """
        save()
        torch.set_flush_denormal(True)  # rarely trained weights next to zero would slow everything down
        try:
            with interrupt_noted() as interrupted, TorchTeam() as team:
                self._module.train()
                for point in self._points(team, lambda: interrupted() or stop(), save):
                    report(point)
                self._module.eval()
        finally:
            torch.set_flush_denormal(False)
        if interrupted():
            raise KeyboardInterrupt
        return self.curve

    def _points(self, team: TorchTeam, stop: Callable[[], bool], save: Callable[[], object]) -> Iterator[CurvePoint]:
        """Makes the steps; yields each new point of the curve."""
        clock = time.thread_time() - self.seconds
        last_save, start = self.seconds, (self.seconds, self.seen)
        losses: list[float] = []
        done = self.progress >= 1
        while not done:
            losses.append(team.make(self.step))
            self.seconds = time.thread_time() - clock
            done = self.progress >= 1 or stop()
            if done or self.seconds - start[0] >= self.settings.report_s:
                self.curve.append(self._point(losses, *start))
                yield self.curve[-1]
                losses, start = [], (self.seconds, self.seen)
            if done or self.seconds - last_save >= self.settings.save_s:
                save()
                last_save = self.seconds

    def _point(self, losses: list[float], seconds: float, seen: int) -> CurvePoint:
        rate = (self.seen - seen) / max(1e-9, self.seconds - seconds)
        loss = sum(losses) / len(losses)
        return CurvePoint(self.seconds, self.seen, loss, self._accuracy(), self.learning_rate, rate)
