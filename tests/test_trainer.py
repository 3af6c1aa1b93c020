"""The training step: its effect on the weights, that it learns, and that resuming changes nothing."""

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from programs import ROOT
from pydantic import ValidationError
from test_loss import random_samples

from learner.batch import make_batch
from learner.checkpoint import CheckpointError, read_tensors, write_tensors
from learner.loss import training_loss
from learner.network import NETWORKS, make_network
from learner.network_base import planes_on
from learner.trainer import Trainer, TrainerConfig, TrainingError

TINY = NETWORKS["tiny"]
EXACT = {"precision": "float32", "warmup_steps": 3}


def make_trainer(seed=0, network=TINY, **settings):
    torch.manual_seed(seed)
    return Trainer(make_network(network), TrainerConfig(**{**EXACT, **settings}))


def batches(count, size=16):
    return [make_batch(*random_samples(size, seed)) for seed in range(count)]


def tensors_of(trainer):
    return {name: value.clone() for name, value in trainer.state_dict()["tensors"].items()}


def same_tensors(ours, theirs):
    return ours.keys() == theirs.keys() and all(torch.equal(value, theirs[name]) for name, value in ours.items())


@pytest.mark.parametrize("optimizer", ["adamw", "radam", "sgd"])
@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("steps_before", [0, 1, 7])
def test_resumes_exactly(tmp_path, optimizer, channels_last, steps_before):
    settings = {
        "optimizer": optimizer,
        "channels_last": channels_last,
        "schedule": "cosine",
        "schedule_steps": 12,
        "gradient_clip": 0.5,
    }
    data = batches(steps_before + 4)
    steady = make_trainer(**settings)
    for batch in data[:steps_before]:
        steady.step(batch)
    steady.save(tmp_path / "trainer.safetensors")
    resumed = make_trainer(seed=99, **settings)
    resumed.load(tmp_path / "trainer.safetensors")
    assert resumed.steps == steps_before
    for batch in data[steps_before:]:
        assert resumed.step(batch) == steady.step(batch)
    assert same_tensors(tensors_of(resumed), tensors_of(steady))


@pytest.mark.parametrize("optimizer", ["adamw", "radam", "sgd"])
def test_resumes_with_frozen_parameters(optimizer):
    """The optimizer keeps nothing of a parameter that has had no gradient, until it has one."""
    steady, resumed = make_trainer(optimizer=optimizer), make_trainer(seed=99, optimizer=optimizer)
    for trainer in (steady, resumed):
        trainer.network.stem.conv.weight.requires_grad_(False)
    first, second, third = batches(3)
    steady.step(first)
    resumed.load_state_dict(steady.state_dict())
    assert resumed.step(second) == steady.step(second)
    assert same_tensors(tensors_of(resumed), tensors_of(steady))
    for trainer in (steady, resumed):
        trainer.network.stem.conv.weight.requires_grad_(True)
    assert resumed.step(third) == steady.step(third)
    assert same_tensors(tensors_of(resumed), tensors_of(steady))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_resumes_sgd_of_any_momentum(momentum):
    steady = make_trainer(optimizer="sgd", momentum=momentum)
    resumed = make_trainer(seed=99, optimizer="sgd", momentum=momentum)
    first, second = batches(2)
    steady.step(first)
    resumed.load_state_dict(steady.state_dict())
    assert resumed.step(second) == steady.step(second)


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.9), (0.9, 0.0)])
def test_a_resumed_run_may_begin_or_end_to_have_momentum(before, after):
    source, resumed = make_trainer(optimizer="sgd", momentum=before), make_trainer(optimizer="sgd", momentum=after)
    first, second = batches(2)
    source.step(first)
    resumed.load_state_dict(source.state_dict())
    other = make_trainer(optimizer="sgd", momentum=after)
    other.load_state_dict(resumed.state_dict())  # even before the first step
    assert resumed.step(second) == other.step(second)
    other.load_state_dict(resumed.state_dict())


def test_loaded_state_is_a_copy():
    source, target = make_trainer(), make_trainer(seed=1)
    first, second = batches(2)
    source.step(first)
    target.load_state_dict(source.state_dict())
    before = tensors_of(target)
    source.step(second)
    assert same_tensors(tensors_of(target), before)


def test_resumes_with_other_settings():
    source = make_trainer(learning_rate=1e-3)
    source.step(batches(1)[0])
    target = make_trainer(learning_rate=5e-4, warmup_steps=0)
    target.load_state_dict(source.state_dict())
    assert target.step(batches(1)[0])["learning_rate"] == 5e-4


def test_learns_a_small_set_by_heart():
    positions, _, offsets, has_policy, _ = random_samples(32, seed=3)
    rng = np.random.default_rng(0)
    one_hot = np.zeros(offsets[-1], np.float32)
    for start, stop in pairwise(offsets):
        if stop > start:
            one_hot[rng.integers(start, stop)] = 1.0
    batch = make_batch(positions, one_hot, offsets, has_policy, np.eye(3)[rng.integers(3, size=32)])
    trainer = make_trainer(learning_rate=1e-2)
    first = trainer.step(batch)
    for _ in range(150):
        last = trainer.step(batch)
    assert last["loss"] < 0.1 * first["loss"]
    assert last["policy_top1"] == 1.0
    assert last["wdl_accuracy"] == 1.0
    # The average, with its own batch-norm statistics, has learnt the same.
    outputs = trainer.ema_network(planes_on(torch.device("cpu"), batch.positions))
    assert training_loss(*outputs, batch)[1]["wdl_accuracy"] > 0.9


def test_first_step_is_the_optimizers():
    """One step of plain gradient descent: the weights move by the learning rate times the gradient."""
    trainer = make_trainer(
        optimizer="sgd", momentum=0.0, learning_rate=0.1, warmup_steps=0, weight_decay=0.0, gradient_clip=None
    )
    batch = batches(1)[0]
    before = {name: value.detach().clone() for name, value in trainer.network.named_parameters()}
    metrics = trainer.step(batch)
    squares = 0.0
    for name, parameter in trainer.network.named_parameters():
        torch.testing.assert_close(parameter.detach(), before[name] - 0.1 * parameter.grad)
        squares += parameter.grad.square().sum().item()
    assert metrics["gradient_norm"] == pytest.approx(squares**0.5, rel=1e-5)


def test_gradient_is_clipped():
    settings = {"optimizer": "sgd", "momentum": 0.0, "learning_rate": 1.0, "warmup_steps": 0, "weight_decay": 0.0}
    trainer = make_trainer(gradient_clip=1e-3, **settings)
    before = {name: value.detach().clone() for name, value in trainer.network.named_parameters()}
    assert trainer.step(batches(1)[0])["gradient_norm"] > 1e-3
    moved = [(value.detach() - before[name]).square().sum() for name, value in trainer.network.named_parameters()]
    assert sum(moved).sqrt().item() == pytest.approx(1e-3, rel=1e-2)


@pytest.mark.parametrize("optimizer", ["adamw", "radam", "sgd"])
def test_only_weights_of_layers_decay(optimizer):
    trainer = make_trainer(optimizer=optimizer)
    decaying, kept = trainer.optimizer.param_groups
    names = {id(parameter): name for name, parameter in trainer.network.named_parameters()}
    assert decaying["weight_decay"] == trainer.config.weight_decay > 0 == kept["weight_decay"]
    for parameter in decaying["params"]:
        assert names[id(parameter)].endswith(("conv.weight", "logits.weight", "hidden.weight"))
    for parameter in kept["params"]:
        assert names[id(parameter)].endswith(("bias", "norm.weight"))
    assert len(decaying["params"]) + len(kept["params"]) == len(names)


def test_average_of_weights_and_statistics():
    trainer = make_trainer(ema_decay=0.75)
    expected = {name: value.clone() for name, value in trainer.network.state_dict().items()}
    for number, batch in enumerate(batches(40), start=1):
        trainer.step(batch)
        decay = min(0.75, number / (number + 9))
        for name, value in trainer.network.state_dict().items():
            mixed = decay * expected[name] + (1 - decay) * value
            expected[name] = mixed if value.is_floating_point() else value.clone()
    average = trainer.ema_network.state_dict()
    for name, value in expected.items():
        torch.testing.assert_close(average[name], value)
    assert not torch.equal(average["stem.norm.running_mean"], trainer.network.state_dict()["stem.norm.running_mean"])
    assert not trainer.ema_network.training


def test_warm_up_and_schedules():
    def rates(**settings):
        config = TrainerConfig(learning_rate=1.0, warmup_steps=4, **settings)
        return [config.learning_rate_at(step) for step in (0, 1, 3, 4, 8, 12, 100)]

    assert rates() == [0.25, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert rates(schedule="step", schedule_steps=8, step_factor=0.5) == [0.25, 0.5, 1.0, 1.0, 0.5, 0.5, 0.5**12]
    cosine = rates(schedule="cosine", schedule_steps=12, final_factor=0.2)
    assert cosine == pytest.approx([0.25, 0.5, 1.0, 1.0, 0.6, 0.2, 0.2])


def test_the_cosine_without_steps_follows_the_time_of_the_run():
    config = TrainerConfig(learning_rate=1.0, warmup_steps=4, schedule="cosine", final_factor=0.2)
    rates = [config.learning_rate_at(100, time_used) for time_used in (0.0, 0.5, 1.0, 1.1)]
    assert rates == pytest.approx([1.0, 0.6, 0.2, 0.2])
    assert config.learning_rate_at(1, 1.0) == 0.5  # the warm-up goes by steps


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0},
        {"optimizer": "lion"},
        {"schedule": "step"},
        {"betas": (0.9, 1.0)},
        {"momentun": 0.9},
        {"gradient_clip": -1},
    ],
)
def test_config_refuses(settings):
    with pytest.raises(ValidationError):
        TrainerConfig(**settings)


def test_bf16_learns_like_float32():
    data = batches(30)
    losses = {}
    for precision in ("float32", "bf16"):
        trainer = make_trainer(precision=precision, learning_rate=3e-3)
        losses[precision] = [trainer.step(batch)["loss"] for batch in data]
        assert all(value.dtype != torch.bfloat16 for value in trainer.network.state_dict().values())
    np.testing.assert_allclose(losses["bf16"], losses["float32"], rtol=0.02)
    assert losses["bf16"] != losses["float32"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_compiled_steps_are_the_same(tmp_path, monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *names, **options: tmp_path / "cache")
    plain, compiled = make_trainer(), make_trainer(compile=True)
    for batch in batches(5):
        ours, theirs = compiled.step(batch), plain.step(batch)
        assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-4)
    assert list((tmp_path / "cache" / "torch").rglob("*.so"))
    compiled.save(tmp_path / "trainer.safetensors")
    make_trainer().load(tmp_path / "trainer.safetensors")  # the names of the weights are the same, too


@pytest.mark.skipif(sys.platform != "linux", reason="sets the folder of caches as Linux does")
def test_compiled_code_is_kept_out_of_tmp(tmp_path):
    """In a process of its own: PyTorch sets its folder when the first optimizer of a process is made."""
    program = "from learner.trainer import *; from learner.network import *; import os;"
    program += "Trainer(make_network(NETWORKS['tiny']), TrainerConfig()); print(os.environ['TORCHINDUCTOR_CACHE_DIR'])"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("TORCHINDUCTOR_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == str(tmp_path / "crownhead/torch"), done.stderr
    environment["XDG_CACHE_HOME"] = "/proc/nowhere"  # as for a user without a home
    program = "from learner.trainer import _keep_compiled_code; import os; _keep_compiled_code();"
    program += "print(os.environ['TORCHINDUCTOR_CACHE_DIR'])"
    done = subprocess.run([sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert "crownhead-torch-" in done.stdout, done.stderr
    assert not Path(done.stdout.strip()).exists()


def test_a_loss_that_is_not_finite_stops_before_the_weights_change():
    trainer = make_trainer()
    first, second = batches(2)
    trainer.step(first)
    second.wdl[3, 0] = float("nan")
    before = {name: value.detach().clone() for name, value in trainer.network.named_parameters()}
    with pytest.raises(TrainingError, match="step 1: loss or gradient is not finite"):
        trainer.step(second)
    assert trainer.steps == 1
    assert all(torch.equal(value, before[name]) for name, value in trainer.network.named_parameters())


def test_refuses_the_state_of_another_network_or_optimizer(tmp_path):
    path = tmp_path / "trainer.safetensors"
    source = make_trainer()
    source.step(batches(1)[0])
    source.save(path)
    for other, match in (
        (make_trainer(network=TINY.model_copy(update={"channels": 24})), "another network"),
        (make_trainer(network=TINY.model_copy(update={"board": "8x8"})), "another network"),
        (make_trainer(optimizer="sgd"), "is of adamw, not of sgd"),
    ):
        before = tensors_of(other)
        with pytest.raises(TrainingError, match=match) as caught:
            other.load(path)
        assert str(path) in str(caught.value)
        assert same_tensors(tensors_of(other), before)
        assert other.steps == 0


@pytest.mark.parametrize(
    "lost", ["network.stem.conv.weight", "ema.stem.norm.running_var", "optimizer.stem.conv.weight.exp_avg"]
)
def test_refuses_an_incomplete_state_whole(lost):
    source, target = make_trainer(), make_trainer(seed=1)
    source.step(batches(1)[0])
    state = source.state_dict()
    del state["tensors"][lost]
    before = tensors_of(target)
    with pytest.raises(TrainingError, match=f"lack '{lost}'"):
        target.load_state_dict(state)
    assert same_tensors(tensors_of(target), before)


def test_a_state_that_would_not_load_is_not_written(tmp_path):
    path = tmp_path / "trainer.safetensors"
    trainer = make_trainer()
    trainer.save(path)
    before = path.read_bytes()
    trainer.network.stem.norm.running_var[0] = float("inf")
    with pytest.raises(TrainingError, match="running_var' holds numbers that are not finite"):
        trainer.save(path)
    assert path.read_bytes() == before


def test_damaged_and_foreign_files(tmp_path):
    path = tmp_path / "trainer.safetensors"
    trainer = make_trainer()
    with pytest.raises(CheckpointError, match="No such file"):
        trainer.load(path)
    trainer.save(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="cut off"):
        trainer.load(path)
    path.write_bytes(data[:-3] + b"\x01" + data[-2:])
    with pytest.raises(CheckpointError, match="damaged"):
        trainer.load(path)
    path.write_bytes(data)
    tensors, info = read_tensors(path)
    write_tensors(path, tensors, info | {"schema_version": 2})
    with pytest.raises(CheckpointError, match="version 2"):
        trainer.load(path)
    write_tensors(path, tensors, info | {"steps": -1})
    with pytest.raises(TrainingError, match="not a training state: steps"):
        trainer.load(path)


def test_a_loss_of_ones_own_takes_the_place_of_the_usual_one():
    """A loss equal to the usual one gives the same weights; one for draws alone makes all predictions draws."""
    plain, same = make_trainer(), make_trainer()
    own = Trainer(same.network, same.config, loss=lambda *arguments: training_loss(*arguments))
    for batch in batches(3):
        assert own.step(batch) == plain.step(batch)
    assert same_tensors(tensors_of(own), tensors_of(plain))

    def draws(policy_logits, wdl_logits, batch, policy_weight, wdl_weight):
        return -wdl_weight * wdl_logits.log_softmax(1)[:, 1].mean(), {"weight": torch.tensor(policy_weight)}

    trainer = Trainer(
        make_trainer().network, TrainerConfig(**EXACT, learning_rate=0.01, policy_weight=0.25), loss=draws
    )
    metrics = [trainer.step(batch) for batch in batches(2) * 20]
    assert metrics[0].keys() == {"loss", "weight", "gradient_norm", "learning_rate"}
    assert metrics[0]["weight"] == 0.25
    assert metrics[-1]["loss"] < 0.05 < metrics[0]["loss"]


def test_what_cannot_be_compiled_is_told_in_one_line():
    trainer = make_trainer()

    def fail(planes):
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found")

    trainer._forward = fail
    with pytest.raises(RuntimeError, match=r"^InvalidCxxCompiler"):
        trainer.step(batches(1)[0])
    trainer.config = trainer.config.model_copy(update={"compile": True})
    with pytest.raises(TrainingError, match=r"trainer\.compile: InvalidCxxCompiler: .* leave it out"):
        trainer.step(batches(1)[0])
