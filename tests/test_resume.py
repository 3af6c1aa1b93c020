"""What a run goes on with, and what is refused before anything is written. Nothing is trained here."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from learner.checkpoint import save_checkpoint
from learner.inference import BackendError
from learner.network import make_network
from learner.residual import ResidualConfig
from learner.trainer import Trainer
from selfplay import commands
from selfplay.actors.pool_match import MatchPlayed
from selfplay.actors.worker import Worker
from selfplay.commands import train_command
from selfplay.requests import TrainRequest
from selfplay.run.config import make_config
from selfplay.run.folder import Promotion, RunError, RunFolder, RunState
from selfplay.run.stages import config_at
from selfplay.training.judge import Judge
from selfplay.training.loop import Training


def a_run(folder: Path, settings: list[str], candidates: dict[str, int], **changes: Any) -> RunFolder:
    """A run with candidates of so many steps, and a learner of as many as the last one."""
    torch.manual_seed(1)
    config = make_config("smoke", settings, **changes)
    run, network = RunFolder.create(folder, config), make_network(config.network)
    for name, steps in candidates.items():
        save_checkpoint(run.checkpoint(name), network, {"steps": steps})
    trainer = Trainer(network, config.trainer)
    trainer.steps = max(candidates.values())
    trainer.save(run.trainer_path)
    return run


@pytest.fixture
def at_the_gate(tmp_path: Path) -> RunFolder:
    """Its second candidate plays its gate."""
    limits = ["loop.minutes=5", "loop.max_iterations=null"]
    run = a_run(tmp_path / "run", limits, {"000000": 0, "000001": 3000, "000002": 6000})
    run.write_state(RunState(iteration=1, minutes=4, minutes_limit=5.0))
    run.gate_path.write_text("{}")
    return run


def resumed(run: RunFolder, **options: Any) -> Any:
    return commands._resumed(run, TrainRequest(run=run.path, resume=True, **options))


def test_a_gate_in_play_is_finished_after_the_minutes(at_the_gate: RunFolder) -> None:
    """Ctrl-C in the last gate says that ``--resume`` goes on; the time is over then."""
    at_the_gate.write_state(RunState(iteration=1, minutes=5.05, minutes_limit=5.0))
    assert resumed(at_the_gate).loop.minutes == 5
    at_the_gate.gate_path.unlink()
    with pytest.raises(RunError, match=r"has used its 5\.00 minutes"):
        resumed(at_the_gate)


def test_a_match_with_an_anchor_outlives_a_kill(tmp_path: Path) -> None:
    """Its games are kept, and finished although the run has made all iterations."""
    settings = ["loop.max_iterations=1", "loop.anchor_games=4", "match_search.num_simulations=1"]
    run = a_run(tmp_path / "run", settings, {"000000": 0, "000001": 30})
    made = Promotion(checkpoint="000001", iteration=1, steps=30, minutes=1.0)
    run.write_state(RunState(iteration=1, best="000001", promotions=(made,)))
    with pytest.raises(RunError, match=r"has made all iterations"):
        resumed(run)
    config, asked = RunFolder.open(run.path)[1], list[Any]()
    pool: Any = SimpleNamespace(set_match=asked.append)
    judge = Judge(run, config, lambda *_: None)
    judge.proceed(pool, 5.0)
    (part,) = asked[-1].parts()
    played = Worker(config, 0, 1).play_match(part, *asked[-1].networks)
    assert played is not None
    judge.take_in(MatchPlayed(1, played.games[:2]))

    assert resumed(run).loop.max_iterations == 1
    judge = Judge(run, config, lambda *_: None)
    judge.proceed(pool, 5.0)
    assert asked[-1].over == {game.index for game in played.games[:2]}
    judge.take_in(MatchPlayed(1, played.games[2:]))
    judge.proceed(pool, 5.0)
    (result,) = judge.ratings.results
    assert (result.player_a, result.player_b, sum(result[2:])) == ("000001", "random", 4)
    with pytest.raises(RunError, match=r"has made all iterations"):
        resumed(run)


def test_settings_count_from_the_steps_of_the_learner(at_the_gate: RunFolder) -> None:
    """The candidate at the gate was made before them."""
    config = resumed(at_the_gate, settings=["search.num_simulations=99"])
    assert [stage.steps for stage in config.stages] == [6000]
    assert [config_at(config, steps).search.num_simulations for steps in (6000, 6001)] == [8, 99]


def test_a_copy_that_is_begun_later_is_kept_up(at_the_gate: RunFolder, tmp_path: Path) -> None:
    """Also by parts of the run that do not name it again."""
    url = (tmp_path / "copy").as_uri()
    assert resumed(at_the_gate, mirror=url).mirror == url
    assert resumed(at_the_gate).mirror == url
    assert RunFolder.open(at_the_gate.path)[1].mirror == url


def test_settings_before_the_first_step(tmp_path: Path) -> None:
    """A kill before the first save leaves no learner."""
    run = RunFolder.create(tmp_path / "run", make_config("smoke"))
    assert resumed(run, settings=["search.num_simulations=99"]).stages[0].steps == 0


@pytest.mark.parametrize(
    ("settings", "changes", "error", "reason"),
    [
        (["search.num_simulations=9"], {"mirror": "nosuch://bucket/run"}, RunError, "nosuch://bucket/run"),
        (['selfplay.backend="numba"'], {"teacher": {"digest": "x"}}, BackendError, "numba"),
        (
            ["search.num_simulations=9"],
            {"loop": {"deterministic": True, "minutes": None}},
            RunError,
            "loop.deterministic",
        ),
    ],
)
def test_what_is_refused_changes_nothing(
    tmp_path: Path, settings: list[str], changes: dict[str, Any], error: type[Exception], reason: str
) -> None:
    run = a_run(tmp_path / "run", [], {"000000": 0}, **changes)
    if "teacher" in changes:
        torch.manual_seed(2)
        save_checkpoint(run.teacher, make_network(ResidualConfig(blocks=1, channels=16, board="8x8")), {})
    before = {path.name: path.read_bytes() for path in (run.config_path, run.state_path)}
    with pytest.raises(error, match=reason):
        train_command(TrainRequest(run=run.path, resume=True, settings=settings, minutes=3), quiet=True)
    assert {path.name: path.read_bytes() for path in (run.config_path, run.state_path)} == before


def test_candidates_made_early_put_off_no_others() -> None:
    """At each end of its minutes a run makes one, however few steps there were since the last."""
    config = make_config("quick")
    every = config.loop.steps_per_iteration

    def due(iteration: int, judged: int, steps: int) -> bool:
        judge, state = SimpleNamespace(steps=judged), SimpleNamespace(iteration=iteration)
        run: Any = SimpleNamespace(config=config, trainer=SimpleNamespace(steps=steps), state=state, _judge=judge)
        return Training._is_due(run, 0)

    early = 10 * every // 3  # the tenth candidate, after ten resumes
    assert [due(10, early, early + more) for more in (every - 1, every)] == [False, True]
    assert [due(2, 2 * every + 5, steps) for steps in (3 * every - 1, 3 * every)] == [False, True]  # as at first


@pytest.mark.parametrize("name", ["trainer.safetensors", "student.safetensors", "elo.json", "shards/00000000.shard"])
def test_a_new_run_takes_nothing_over(tmp_path: Path, name: str) -> None:
    """A learner that was left would go on with its old weights, and wait for games for ever."""
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(RunError, match=r"of a run without its config\.json"):
        RunFolder.create(tmp_path / "run", make_config("smoke"))
    assert not (tmp_path / "run" / "config.json").exists()


def test_an_address_alone_joins_no_cluster() -> None:
    with pytest.raises(RunError, match="use --address"):
        commands._beginning(TrainRequest(preset="smoke", settings=["address=127.0.0.1:6379"]))


def test_a_stage_is_written(at_the_gate: RunFolder) -> None:
    resumed(at_the_gate, settings=["search.num_simulations=99"], minutes=3.0)
    (stage,) = json.loads(at_the_gate.config_path.read_text())["stages"]
    assert (stage["steps"], at_the_gate.read_state().minutes_limit) == (6000, 7.0)
