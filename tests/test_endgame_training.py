"""Training of endgame networks: it learns, ends with its budget, and goes on exactly where it was, even killed."""

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from programs import wait_until
from solved_tables import solve_tables

from engine.tablebase.dense import DenseTables
from engine.tablebase.material import Material, materials
from learner.checkpoint import CheckpointError, read_tensors, write_tensors
from learner.endgame.data import TRAIN, VALIDATION, EndgameSampler
from learner.endgame.networks import (
    EndgameNetwork,
    PairConfig,
    PairNetwork,
    SelfPlayNetwork,
    WangConfig,
    WangNetwork,
)
from learner.endgame.timed_training import CurvePoint, EndgameTrainingError, TrainingSettings
from learner.endgame.training import (
    DEFAULT_SETTINGS,
    EndgameTrainer,
    accuracy_of,
)
from learner.network import NETWORKS

ROOT = Path(__file__).parent.parent
SLICES = [material for pieces in (2, 3) for material in materials(pieces)]
SMALL = PairConfig(width=16, experts=16, hidden=8, pieces=3)
SETTINGS = TrainingSettings(batch_size=512, warmup_steps=20, report_s=0)


def train_endgame(
    network: EndgameNetwork,
    sampler: EndgameSampler,
    settings: TrainingSettings | None = None,
    state_path: Path | None = None,
    report: Callable[[CurvePoint], object] = lambda point: None,
    stop: Callable[[], bool] = lambda: False,
    **budget: Any,
) -> list[CurvePoint]:
    return EndgameTrainer(network, sampler, settings, **budget).run(state_path, report, stop)


@pytest.fixture(scope="module")
def tables() -> DenseTables:
    return solve_tables(3)


def sampler_of(tables: DenseTables, slices: list[Material] = SLICES, seed: int = 1) -> EndgameSampler:
    return EndgameSampler(tables, slices, seed, TRAIN, quiet=True)


def network_of(kind: str) -> EndgameNetwork:
    torch.manual_seed(0)
    return {
        "pair": lambda: PairNetwork(SMALL),
        "wang": lambda: WangNetwork(WangConfig(blocks=1, channels=2, hidden=16)),
        "selfplay": lambda: SelfPlayNetwork(NETWORKS["tiny"]),
    }[kind]()


def test_the_pair_network_learns_what_it_was_not_shown(tables: DenseTables) -> None:
    network = network_of("pair")
    unseen = EndgameSampler(tables, SLICES, 2, VALIDATION, quiet=True).draw(4000)
    before = accuracy_of(network, unseen)
    points = train_endgame(network, sampler_of(tables), SETTINGS, positions=600_000, validation=unseen)
    assert before < 0.6
    assert points[-1].accuracy == accuracy_of(network, unseen) > 0.97
    assert points[-1].loss < 0.2 * points[0].loss
    assert not network.training


@pytest.mark.parametrize("kind", ["pair", "wang", "selfplay"])
def test_a_resumed_training_is_the_same_training(kind: str, tables: DenseTables, tmp_path: Path) -> None:
    settings = DEFAULT_SETTINGS[kind].model_copy(update={"batch_size": 64})
    whole = network_of(kind)
    train_endgame(whole, sampler_of(tables), settings, positions=64 * 110)
    state = tmp_path / "state.safetensors"
    first, second = network_of(kind), network_of(kind)
    steps = iter(range(1, 100))  # the second stretch begins between two changes of focus
    sampler = sampler_of(tables)
    train_endgame(first, sampler, settings, positions=64 * 110, state_path=state, stop=lambda: next(steps) == 60)
    with torch.no_grad():  # what is resumed comes from the state alone
        for parameter in second.parameters():
            parameter += 1
    points = train_endgame(second, sampler_of(tables, seed=99), settings, positions=64 * 110, state_path=state)
    assert [point.positions for point in points] == [64 * 60, 64 * 110]
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]), name


def test_an_interrupted_training_is_saved_and_is_the_same_training(tables: DenseTables, tmp_path: Path) -> None:
    whole, state = network_of("pair"), tmp_path / "state.safetensors"
    train_endgame(whole, sampler_of(tables), SETTINGS, positions=512 * 40)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run where it is ignored
    try:
        sampler, draws = sampler_of(tables), []
        draw = sampler.draw

        def interrupting(n: int) -> object:  # in the middle of a step
            draws.append(n)
            if len(draws) == 15:
                assert state.exists(), "saved at the beginning too"
                signal.raise_signal(signal.SIGINT)
            return draw(n)

        sampler.draw = interrupting  # type: ignore[method-assign, assignment]
        settings = SETTINGS.model_copy(update={"save_s": 1e6})
        with pytest.raises(KeyboardInterrupt):
            train_endgame(network_of("pair"), sampler, settings, positions=512 * 40, state_path=state)
        assert len(draws) == 15
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, usual)
    again = network_of("pair")
    points = train_endgame(again, sampler_of(tables, seed=9), SETTINGS, positions=512 * 40, state_path=state)
    assert points[-1].positions == 512 * 40
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name


def test_focus_draws_what_is_hard(tables: DenseTables) -> None:
    sampler = sampler_of(tables)
    before = np.diff(sampler.ends, prepend=0) / sampler.ends[-1]
    assert before == pytest.approx(sampler.weights, rel=1e-6)
    network = network_of("pair")
    settings = SETTINGS.model_copy(update={"focus": 0.6})
    train_endgame(network, sampler, settings, positions=512 * 400)
    after = np.diff(sampler.ends, prepend=0) / sampler.ends[-1]
    errors = []
    for material in SLICES:
        batch = EndgameSampler(tables, [material], 3, quiet=True).draw(4000)
        errors.append(1 - accuracy_of(network, batch))
    order = np.argsort(errors)
    assert errors[order[-1]] > errors[order[0]]
    assert (after / before)[order[-4:]].mean() > 2 * (after / before)[order[:4]].mean()
    assert (after > 0).all()


def test_a_finished_training_is_not_trained_on(tables: DenseTables, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    train_endgame(network_of("pair"), sampler_of(tables), SETTINGS, positions=1024, state_path=state)
    again = network_of("pair")
    trainer = EndgameTrainer(again, sampler_of(tables), SETTINGS, positions=1024)
    trainer.load(state)
    assert len(trainer.train(save=partial(trainer.save, state))) == 2
    assert trainer.seen == 1024


def test_time_is_a_budget_too(tables: DenseTables) -> None:
    network = network_of("pair")
    accuracy_of(network, sampler_of(tables).draw(10))  # compiled or loaded before the clock starts
    trainer = EndgameTrainer(network, sampler_of(tables), SETTINGS, minutes=0.02)
    trainer.step()
    began = time.monotonic()
    trainer.train()
    assert 1.2 <= trainer.seconds <= time.monotonic() - began < 30
    assert trainer.learning_rate == 0


def test_learning_rate_rises_and_falls_to_zero(tables: DenseTables) -> None:
    trainer = EndgameTrainer(network_of("pair"), sampler_of(tables), SETTINGS, positions=512 * 100)
    rates = []
    for _ in range(100):
        rates.append(trainer.learning_rate)
        trainer.step()
    height = SETTINGS.learning_rate
    expected = [height * min(1, (i + 1) / 20) * 0.5 * (1 + math.cos(math.pi * i / 100)) for i in range(100)]
    assert rates == pytest.approx(expected)
    assert trainer.learning_rate == pytest.approx(0)


def test_rare_classes_weigh_more_as_published(tables: DenseTables, tmp_path: Path) -> None:
    trainer = EndgameTrainer(network_of("wang"), sampler_of(tables), positions=10_000)
    trainer.step()
    trainer.save(tmp_path / "state")
    weights = read_tensors(tmp_path / "state")[0]["class_weights"].numpy()
    shares = np.bincount(sampler_of(tables, seed=5).draw(200_000).classes) / 200_000
    assert weights == pytest.approx((1 / shares) ** 0.5, rel=0.03)


def test_a_frozen_body_stays_as_it_was(tables: DenseTables) -> None:
    torch.manual_seed(0)
    network = SelfPlayNetwork(NETWORKS["tiny"], freeze_body=True)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    train_endgame(network, sampler_of(tables), positions=1024 * 5)
    changed = {name for name, tensor in network.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed
    assert all(name.startswith("network.wdl_head.") for name in changed)


def test_an_unfrozen_body_learns_but_the_policy_stays(tables: DenseTables) -> None:
    network = network_of("selfplay")
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    train_endgame(network, sampler_of(tables), positions=1024 * 5)
    changed = {name for name, tensor in network.state_dict().items() if not torch.equal(tensor, before[name])}
    assert {"network.stem.conv.weight", "network.wdl_head.logits.weight"} <= changed
    assert not any(name.startswith("network.policy_head.") for name in changed)


def test_states_of_other_trainings_are_refused(tables: DenseTables, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    train_endgame(network_of("pair"), sampler_of(tables), SETTINGS, positions=1024, state_path=state)

    def resume(network: EndgameNetwork, sampler: EndgameSampler, settings: TrainingSettings) -> None:
        train_endgame(network, sampler, settings, positions=2048, state_path=state)

    slower = SETTINGS.model_copy(update={"learning_rate": 1e-4})
    with pytest.raises(CheckpointError, match="not the same settings"):
        resume(network_of("pair"), sampler_of(tables), slower)
    with pytest.raises(CheckpointError, match="not the same samples"):
        resume(network_of("pair"), sampler_of(tables, materials(2)), SETTINGS)
    with pytest.raises(CheckpointError, match="not the same kind"):
        resume(network_of("wang"), sampler_of(tables), SETTINGS)
    data = bytearray(state.read_bytes())
    data[-100] ^= 1
    state.write_bytes(data)
    with pytest.raises(CheckpointError, match="damaged"):
        resume(network_of("pair"), sampler_of(tables), SETTINGS)
    write_tensors(state, {"x": torch.zeros(1)}, {"schema_version": 1})
    with pytest.raises(CheckpointError, match="another training"):
        resume(network_of("pair"), sampler_of(tables), SETTINGS)


def test_budgets_must_make_sense(tables: DenseTables) -> None:
    for budget in ({}, {"minutes": 1.0, "positions": 5}):
        with pytest.raises(EndgameTrainingError, match="either minutes or"):
            train_endgame(network_of("pair"), sampler_of(tables), **budget)
    for budget in ({"minutes": 0.0}, {"positions": -5}):
        with pytest.raises(EndgameTrainingError, match="more than zero"):
            train_endgame(network_of("pair"), sampler_of(tables), **budget)


def test_a_diverging_training_says_so(tables: DenseTables) -> None:
    network = network_of("pair")
    with torch.no_grad():
        network.out_bias[0] = float("nan")
    with pytest.raises(EndgameTrainingError, match="loss is nan"):
        train_endgame(network, sampler_of(tables), SETTINGS, positions=1024)


KILLED = """
import sys
sys.path[:0] = [{root!r}, {tests!r}]
from test_endgame_training import *
settings = SETTINGS.model_copy(update={{"save_s": 0.2}})
train_endgame(network_of("pair"), sampler_of(solve_tables(3)), settings, minutes=5, state_path={state!r})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_training_loses_only_what_came_after_its_last_state(tables: DenseTables, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    code = KILLED.format(root=str(ROOT), tests=str(ROOT / "tests"), state=str(state))
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) as process:
        wait_until(state.exists, process)
        first = state.stat().st_ino  # of the state at the beginning; each one after it is a new file
        wait_until(lambda: state.stat().st_ino != first, process)
        time.sleep(0.5)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    trainer = EndgameTrainer(network_of("pair"), sampler_of(tables), SETTINGS, positions=10**9)
    trainer.load(state)
    seen = trainer.seen
    assert seen > 0
    assert math.isfinite(trainer.step())
    assert trainer.seen == seen + SETTINGS.batch_size
