"""The training step: optimizer, learning-rate schedule, moving average, and a state that resumes exactly."""

import atexit
import copy
import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import platformdirs
import torch
from pydantic import BaseModel, Field, ValidationError, model_validator
from torch import Tensor, nn

from engine.errors import one_line

from .batch import TrainingBatch
from .checkpoint import check_version, read_tensors, with_prefix, write_tensors
from .loss import Loss, training_loss
from .network import Network, NetworkConfig, setting_name
from .network_base import NetworkError, Precision, check_tensors, planes_on

STATE_SCHEMA_VERSION: Literal[1] = 1


class TrainingError(ValueError):
    """Training that cannot go on, or a training state that does not fit."""


class TrainerConfig(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Settings of a ``Trainer``.

    Attributes:
        learning_rate: the largest one, at the top of the schedule.
        schedule: after the warm-up, "constant"; "cosine" down to ``final_factor`` at ``schedule_steps``, or at the end
            of the run's time if these are 0; or "step", times ``step_factor`` every ``schedule_steps``.
        warmup_steps: steps over which the learning rate rises linearly.
        weight_decay: decoupled from the gradient except for sgd; not on biases and norms.
        momentum: of sgd (Nesterov).
        betas: of adamw and radam.
        gradient_clip: largest norm of the gradient, or None.
        ema_decay: of the moving average of weights and batch-norm statistics; it averages less over the first steps.
        wdl_search_weight: weight of the search's win/draw/loss in the target, 0 to 1 (``loss.mix_wdl``); the rest is
            the game's result. Whoever makes the batches uses it.
        precision: of the forward pass, "auto" is bf16 where the device multiplies it in hardware; weights and their
            averages stay float32.
        compile: use ``torch.compile``.
        channels_last: whether to keep activations channels last; None is what was measured to be faster.
    """

    optimizer: Literal["adamw", "radam", "sgd"] = "adamw"
    learning_rate: float = Field(default=1e-3, gt=0, le=10)
    schedule: Literal["constant", "cosine", "step"] = "constant"
    warmup_steps: int = Field(default=100, ge=0)
    schedule_steps: int = Field(default=0, ge=0)
    final_factor: float = Field(default=0.01, ge=0, le=1)
    step_factor: float = Field(default=0.1, gt=0, le=1)
    weight_decay: float = Field(default=1e-2, ge=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    betas: tuple[float, float] = (0.9, 0.999)
    batch_size: int = Field(default=256, ge=2)
    gradient_clip: float | None = Field(default=1.0, gt=0)
    ema_decay: float = Field(default=0.999, ge=0, lt=1)
    wdl_search_weight: float = Field(default=0.0, ge=0, le=1)
    policy_weight: float = Field(default=1.0, ge=0)
    wdl_weight: float = Field(default=1.0, ge=0)
    precision: Precision = "auto"
    compile: bool = False
    channels_last: bool | None = None

    @model_validator(mode="after")
    def _check(self) -> "TrainerConfig":
        if self.schedule == "step" and self.schedule_steps == 0:
            raise ValueError(f"schedule {self.schedule!r} needs schedule_steps")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas {self.betas} are not between 0 and 1")
        return self

    def learning_rate_at(self, step: int, time_used: float = 0.0) -> float:
        """Learning rate of the step number ``step``, counted from 0, after this part (0 to 1) of the run's time."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        if self.schedule == "cosine":
            length = max(1, self.schedule_steps - self.warmup_steps)
            part = (step - self.warmup_steps) / length if self.schedule_steps else time_used
            left = 0.5 * (1 + math.cos(math.pi * min(1.0, part)))
            return self.learning_rate * (self.final_factor + (1 - self.final_factor) * left)
        if self.schedule == "step":
            return self.learning_rate * self.step_factor ** (step // self.schedule_steps)
        return self.learning_rate


class StateInfo(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What a training state says about itself beside its tensors."""

    schema_version: Literal[1] = STATE_SCHEMA_VERSION
    network: NetworkConfig
    config: TrainerConfig
    steps: int = Field(ge=0)


def _keep_compiled_code() -> None:
    """Keeps compiled code in the user's cache: PyTorch's default is a folder in /tmp whose name others can foresee.

    To be called before the first optimizer is made: PyTorch then sets the variable to its default.
    """
    if "TORCHINDUCTOR_CACHE_DIR" in os.environ:
        return
    cache = platformdirs.user_cache_path("crownhead", appauthor=False) / "torch"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError:  # a user without a home, as in containers
        cache = Path(tempfile.mkdtemp(prefix="crownhead-torch-"))
        atexit.register(shutil.rmtree, cache, ignore_errors=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)


def make_optimizer(network: nn.Module, config: TrainerConfig) -> torch.optim.Optimizer:
    """The optimizer of ``config``; weights of convolutions and linear layers decay, biases and norms do not."""
    parameters = list(network.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    lr = config.learning_rate
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr, momentum=config.momentum, nesterov=config.momentum > 0)
    if config.optimizer == "radam":
        return torch.optim.RAdam(groups, lr, betas=config.betas, decoupled_weight_decay=True)
    return torch.optim.AdamW(groups, lr, betas=config.betas, fused=True)


def _optimizer_keys(config: TrainerConfig, steps: int) -> list[str]:
    """Names of what the optimizer keeps of each parameter after ``steps`` steps."""
    if steps == 0 or (config.optimizer == "sgd" and config.momentum == 0):
        return []
    return ["momentum_buffer"] if config.optimizer == "sgd" else ["step", "exp_avg", "exp_avg_sq"]


class Trainer:
    """Trains a network on batches and keeps a moving average of it. The caller sets torch's threads.

    Args:
        network: moved to ``device`` and trained in place.
        device: where to train.
        loss: what to make smaller; a state that resumes does not know of it.

    Attributes:
        network: being trained.
        ema_network: moving average of its weights and batch-norm statistics, in evaluation mode: the one to play with.
        steps: steps made so far.
    """

    def __init__(
        self,
        network: Network,
        config: TrainerConfig,
        device: torch.device | str = "cpu",
        loss: Loss = training_loss,
    ) -> None:
        _keep_compiled_code()
        self.config = config
        self._loss = loss
        self.device = torch.device(device)
        self._dtype = network.dtype(self.device, config.precision)
        self._layout = network.layout(self.device, self._dtype)
        if config.channels_last is not None:
            self._layout = torch.channels_last if config.channels_last else torch.contiguous_format
        self.network = network.to(self.device).train()
        self.network.lay_out(self._layout)
        self.ema_network = copy.deepcopy(self.network).eval().requires_grad_(False)
        self.optimizer = make_optimizer(self.network, config)
        self.steps = 0
        self._forward = torch.compile(self.network) if config.compile else self.network

    def step(self, batch: TrainingBatch, time_used: float = 0.0) -> dict[str, float]:
        """One optimizer step.

        Args:
            time_used: part of the run's time that is over, 0 to 1, for the learning rate.

        Returns:
            The loss and its figures, and ``gradient_norm`` (before clipping) and ``learning_rate``.

        Raises:
            TrainingError: the loss or its gradient is not finite (only batch-norm statistics have been changed), or the
                network cannot be compiled.
        """
        planes = planes_on(self.device, batch.positions).contiguous(memory_format=self._layout)
        batch = batch.to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._dtype == torch.bfloat16):
            policy_logits, wdl_logits = self._outputs(planes)
        loss, figures = self._loss(
            policy_logits.float(), wdl_logits.float(), batch, self.config.policy_weight, self.config.wdl_weight
        )
        figures = {**figures, "loss": loss.detach()}
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        limit = self.config.gradient_clip or math.inf
        figures["gradient_norm"] = nn.utils.clip_grad_norm_(self.network.parameters(), limit)
        metrics = dict(zip(figures, torch.stack(list(figures.values())).tolist(), strict=True))
        if not math.isfinite(metrics["loss"]) or not math.isfinite(metrics["gradient_norm"]):
            raise TrainingError(f"step {self.steps}: loss or gradient is not finite; lower the learning rate")
        metrics["learning_rate"] = self.config.learning_rate_at(self.steps, time_used)
        for group in self.optimizer.param_groups:
            group["lr"] = metrics["learning_rate"]
        self.optimizer.step()
        self.steps += 1
        self._update_average()
        return metrics

    def _outputs(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        try:
            outputs: tuple[Tensor, Tensor] = self._forward(planes)
        except RuntimeError as error:
            if not self.config.compile or isinstance(error, torch.OutOfMemoryError):
                raise
            raise TrainingError(f"trainer.compile: {one_line(error)}: leave it out, or install a compiler") from error
        return outputs

    @torch.no_grad()
    def _update_average(self) -> None:
        decay = min(self.config.ema_decay, self.steps / (self.steps + 9))
        current, averages = self.network.state_dict(), self.ema_network.state_dict()
        names = {average.data_ptr(): name for name, average in averages.items()}  # one each: a shared layer has several
        for name in names.values():
            average = averages[name]
            if average.is_floating_point():
                average.lerp_(current[name], 1.0 - decay)
            else:
                average.copy_(current[name])

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps depend on: ``tensors`` by name (references, not copies) and ``info`` for JSON."""
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"ema.{name}": value for name, value in self.ema_network.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{name}.{key}"] = value
        info = StateInfo(network=self.network.config, config=self.config, steps=self.steps)
        return {"tensors": tensors, "info": info.model_dump(mode="json")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from ``state``. Settings may differ from the saved ones, but not the network nor the optimizer.

        Raises:
            TrainingError: the state belongs to another network, optimizer or version; nothing has been changed then.
        """
        tensors = state["tensors"]
        try:
            info = StateInfo.model_validate(state["info"])
        except ValidationError as error:
            first = error.errors()[0]
            raise TrainingError(f"not a training state: {setting_name(first['loc'])}: {first['msg']}") from error
        if info.network != self.network.config:
            raise TrainingError(f"the training state is of another network ({info.network})")
        if info.config.optimizer != self.config.optimizer:
            raise TrainingError(f"the training state is of {info.config.optimizer}, not of {self.config.optimizer}")
        try:
            check_tensors(tensors, self._expected_tensors(info, tensors))
        except NetworkError as error:
            raise TrainingError(f"the training state does not fit: {error}") from error
        self.network.load_state_dict(with_prefix(tensors, "network."))
        self.ema_network.load_state_dict(with_prefix(tensors, "ema."))
        self.optimizer.state.clear()
        counts_on = self.device if self.config.optimizer == "adamw" else "cpu"  # the fused AdamW counts there
        for name, parameter in self.network.named_parameters():
            for key in _optimizer_keys(self.config, info.steps):
                if (saved := tensors.get(f"optimizer.{name}.{key}")) is None:  # no gradient or no momentum so far
                    continue
                # Laid out like the optimizer's own, else sums would round differently than without a stop.
                kept = torch.zeros((), device=counts_on) if key == "step" else torch.zeros_like(parameter)
                self.optimizer.state[parameter][key] = kept.copy_(saved)
        self.steps = info.steps

    def _expected_tensors(self, info: StateInfo, found: Mapping[str, Any]) -> dict[str, Tensor]:
        """Tensors of the names and shapes that a state has.

        Parameters without a gradient (frozen or unused ones) have no tensors of the optimizer in ``found``.
        """
        expected = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        expected |= {f"ema.{name}": value for name, value in self.ema_network.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            keys = _optimizer_keys(info.config, info.steps)
            if any(f"optimizer.{name}.{key}" in found for key in keys):
                for key in keys:
                    expected[f"optimizer.{name}.{key}"] = torch.zeros(()) if key == "step" else parameter
        return expected

    def save(self, path: Path | str) -> None:
        """Writes ``state_dict`` to one file, whole or not at all.

        Raises:
            CheckpointError: the file cannot be written.
            TrainingError: numbers are not finite, as batch-norm statistics may be after a step that failed.
        """
        state = self.state_dict()
        try:  # ``load`` would refuse it, and what was there before would be lost
            check_tensors(state["tensors"], state["tensors"])
        except NetworkError as error:
            raise TrainingError(f"{path}: {error}") from error
        write_tensors(path, state["tensors"], state["info"])

    def load(self, path: Path | str) -> None:
        """Continues from a file written by ``save``; afterwards every step is the one that would have followed.

        Raises:
            CheckpointError: the file is missing, cut off, changed or of another version.
            TrainingError: it belongs to another network or optimizer. Nothing has been changed then.
        """
        tensors, info = read_tensors(path)
        check_version(Path(path), info, STATE_SCHEMA_VERSION)
        try:
            self.load_state_dict({"tensors": tensors, "info": info})
        except TrainingError as error:
            raise TrainingError(f"{path}: {error}") from error
