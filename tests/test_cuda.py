"""What only a CUDA device can show; skipped where there is none."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from test_inference_torch import assert_close, plainly, random_positions, trained_like
from test_shared_evaluator import server_of
from test_trainer import batches
from training_runs import FAST, crownhead, events, last_json

from learner.inference.torch_evaluator import TorchEvaluator
from learner.network import NETWORKS, make_network
from learner.trainer import Trainer, TrainerConfig
from selfplay.actors.shared_evaluator import SharedEvaluator

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
NETWORK = NETWORKS["2x32"]


def trainer_on(device: str, **settings: object) -> Trainer:
    torch.manual_seed(0)
    return Trainer(make_network(NETWORK), TrainerConfig(warmup_steps=3, **settings), device)


@pytest.mark.parametrize("size", ["2x32", "wide32"])
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 2e-3), ("auto", 0.05)])  # cuDNN may use TF32
def test_answers_and_updates(size: str, precision: str, tolerance: float) -> None:
    """Graphs of two buckets, replayed with other positions and other weights."""
    first, second = (trained_like(NETWORKS[size], seed=seed) for seed in range(2))
    positions = random_positions(70, seed=11)
    evaluator = TorchEvaluator(first, "cuda", precision, batch_buckets=(8, 64))
    for network in (first, second):
        evaluator.update(network)
        for number in (5, 64, 70):
            assert_close(evaluator.evaluate(positions[:number]), plainly(network, positions[:number]), tolerance)


def test_it_learns_as_on_the_cpu() -> None:
    data = batches(30)
    losses = {}
    for device, precision in (("cpu", "float32"), ("cuda", "float32"), ("cuda", "auto")):
        trainer = trainer_on(device, precision=precision)
        losses[device, precision] = [trainer.step(batch)["loss"] for batch in data]
    for found in losses.values():
        np.testing.assert_allclose(found, losses["cpu", "float32"], rtol=0.02)


@pytest.mark.slow
def test_compiled_steps_are_the_same() -> None:
    plain, compiled = (trainer_on("cuda", compile=compiled) for compiled in (False, True))
    for batch in batches(5):
        assert compiled.step(batch)["loss"] == pytest.approx(plain.step(batch)["loss"], rel=0.02)


@pytest.mark.parametrize("optimizer", ["adamw", "radam", "sgd"])
def test_what_was_saved_goes_on_here_and_on_the_cpu(tmp_path: Path, optimizer: str) -> None:
    data, trainer = batches(8), trainer_on("cuda", optimizer=optimizer)
    for batch in data[:4]:
        trainer.step(batch)
    trainer.save(tmp_path / "trainer.safetensors")
    others = [trainer_on(device, optimizer=optimizer) for device in ("cuda", "cpu")]
    for other in others:
        other.load(tmp_path / "trainer.safetensors")
    for batch in data[4:]:
        loss = trainer.step(batch)["loss"]
        assert [other.step(batch)["loss"] for other in others] == pytest.approx([loss, loss], rel=0.02)


@pytest.mark.slow
def test_a_shared_evaluator_answers_as_an_own_one(short: Path) -> None:
    network, positions = trained_like(NETWORK, seed=1), random_positions(5000, seed=12)
    clients = [SharedEvaluator(network, device="cuda:0", folder=short) for _ in range(2)]
    for client in clients:
        assert client.backend == "torch"
        assert_close(client.evaluate(positions), plainly(network, positions), 0.05)
    os.kill(server_of(short), signal.SIGKILL)
    assert_close(clients[0].evaluate(positions), plainly(network, positions), 0.05)
    os.kill(server_of(short), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("evaluator", ["own", "shared"])
def test_a_run(tmp_path: Path, short: Path, evaluator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(short))
    run = tmp_path / "run"
    settings = [
        f"selfplay.evaluator={evaluator}",
        "student.network=wide32",
        "selfplay.actors=2",
        "trainer.precision=bf16",
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    begun = last_json(crownhead("train", "--preset", "smoke", "--run", run, "--json", *FAST, *options))
    assert begun["iterations"] == 2
    more = last_json(crownhead("train", "--run", run, "--resume", "--json", "--set", "loop.max_iterations=3"))
    assert more["iterations"] == 3
    assert np.isfinite([event["loss"] for event in events(run, "learn")]).all()
    played = last_json(crownhead("match", run, "random", "--games", "2", "--json"))
    assert played["games"] == 2
