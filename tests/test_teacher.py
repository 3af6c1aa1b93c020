"""A teacher's answers in the targets, and whole runs that learn from a teacher."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from programs import crownhead_here
from search_reference import HashEvaluator
from test_inference import moderate
from training_runs import FAST, SHORT, assert_refused, events, trained

from engine.encoding import hop_table
from engine.players.spec import NetworkSpec
from learner.batch import TrainingBatch, make_batch
from learner.checkpoint import load_checkpoint, save_checkpoint
from learner.inference.calibration import random_positions
from learner.network import NETWORKS
from learner.student import load_student
from learner.teacher import Teacher
from selfplay.games.shards import read_shard_info
from selfplay.run.folder import RunFolder

POSITIONS = random_positions(30)


def batch_of(positions: np.ndarray = POSITIONS) -> TrainingBatch:
    """Random targets; every third position has no policy."""
    rng = np.random.default_rng(1)
    _, counts = hop_table(positions)
    has_policy = np.arange(len(positions)) % 3 > 0
    rows = [rng.dirichlet(np.ones(n)) if has else np.zeros(0) for n, has in zip(counts, has_policy, strict=True)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    wdl = rng.dirichlet(np.ones(3), len(positions))
    return make_batch(positions, np.concatenate(rows), offsets, has_policy, wdl)


def taught(positions: np.ndarray, index: int) -> tuple[np.ndarray, np.ndarray]:
    """Move probabilities and win/draw/loss of one position, by hand."""
    policy, wdl = HashEvaluator().evaluate(positions[index : index + 1])
    hops, counts = hop_table(positions[index : index + 1])
    logits = np.array([sum(policy[0, hop] for hop in hops[0, move] if hop < 128) for move in range(counts[0])])
    moves, outcome = np.exp(logits - logits.max()), np.exp(wdl[0])
    return moves / moves.sum(), outcome / outcome.sum()


@pytest.mark.parametrize(("policy_weight", "value_weight"), [(0.25, 0.5), (1.0, 1.0), (0.0, 0.0)])
def test_targets_are_mixed(policy_weight: float, value_weight: float) -> None:
    batch = batch_of()
    mixed = Teacher(HashEvaluator(), policy_weight, value_weight).mixed(batch)
    assert torch.equal(mixed.positions, batch.positions)
    assert torch.equal(mixed.hops, batch.hops)
    for index in range(len(POSITIONS)):
        moves, outcome = taught(POSITIONS, index)
        own, found = batch.policy[index].numpy(), mixed.policy[index].numpy()[: len(moves)]
        expected = (1 - policy_weight) * own[: len(moves)] + policy_weight * moves
        if index % 3 == 0:
            expected = moves if policy_weight > 0 else own[: len(moves)]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        value = (1 - value_weight) * batch.wdl[index].numpy() + value_weight * outcome
        np.testing.assert_allclose(mixed.wdl[index], value, atol=1e-5)


def test_who_has_no_policy_cannot_teach() -> None:
    class Silent:
        def evaluate(self, positions: np.ndarray) -> tuple[None, np.ndarray]:
            return None, np.zeros((len(positions), 3), np.float32)

    with pytest.raises(ValueError, match="without a policy"):
        Teacher(Silent(), 0.5, 0.5).mixed(batch_of())


@pytest.mark.slow
def test_one_family_learns_from_the_other_and_goes_on(tmp_path: Path) -> None:
    """A residual network teaches a wide one, and some games are searched with it; the run resumes."""
    save_checkpoint(tmp_path / "teacher", moderate(NETWORKS["tiny"]))
    digest = load_checkpoint(tmp_path / "teacher").info.digest
    run = tmp_path / "run"
    settings = [*SHORT, "--set", "network=wide32", "--set", "teacher.plays=0.5"]
    settings += ["--set", "selfplay.tree_samples.most=5", "--set", "selfplay.tree_samples.least_visits=2"]
    first = trained("--preset", "smoke", "--run", run, "--teacher", tmp_path / "teacher", *settings)
    assert first["iterations"] == 1
    config = json.loads((run / "config.json").read_text())
    assert config["teacher"]["digest"] == digest
    assert load_checkpoint(run / "teacher").info.digest == digest
    networks = [name for path in sorted((run / "shards").glob("*.shard")) for name in read_shard_info(path).networks]
    assert digest in networks
    assert len(set(networks)) > 1
    more = ["--set", "loop.max_iterations=2", "--set", "teacher.value_weight=0.1"]
    again = trained("--run", run, "--resume", *more)
    assert again["iterations"] == 2
    assert_refused(crownhead_here("train", "--run", run, "--resume", "--teacher", tmp_path), "--teacher")
    assert_refused(crownhead_here("train", "--run", tmp_path / "x", "--set", "teacher.plays=0.5"), "--teacher")


@pytest.mark.slow
def test_a_residual_run_makes_a_student_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, at_the_board = tmp_path / "run", list[NetworkSpec]()
    rate = [{"evaluations": 1.0}]
    monkeypatch.setattr("selfplay.measures.board_rates.board_rates", lambda spec, _: at_the_board.append(spec) or rate)
    settings = [*FAST, "--set", "student.network=wide32", "--set", "selfplay.backend=auto"]
    figures = trained("--preset", "smoke", "--run", run, *settings)
    folder, config = RunFolder.open(run)
    assert config.student is not None
    student = load_student(folder.best_checkpoint)
    assert student is not None
    assert student.network.config == NETWORKS["wide32"]
    assert student.info.figures["steps"] == load_checkpoint(folder.best_checkpoint).info.figures["steps"]
    assert at_the_board[0].backend not in ("auto", "student"), "then its student would play, which is faster"
    steps = trained("--run", run, "--resume", "--set", "loop.max_iterations=3")["steps"]
    assert steps > figures["steps"]
    assert len(events(run, "gate")) == 3
    later = load_student(folder.checkpoint("000003"))
    assert later is not None
    assert later.info.digest != student.info.digest
