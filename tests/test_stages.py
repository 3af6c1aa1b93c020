"""Runs that change settings when they are resumed."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from programs import crownhead_here
from training_runs import assert_refused, trained

from learner.checkpoint import read_info, save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay import commands
from selfplay.requests import TrainRequest
from selfplay.run.config import ConfigError, RunConfig, config_from, make_config
from selfplay.run.folder import RunError, RunFolder
from selfplay.run.stages import KEPT, config_at, next_stage, training_commands


def test_commands_of_a_run_without_stages() -> None:
    assert training_commands(make_config("laptop")) == ["crownhead train --preset laptop"]
    changed = make_config("quick", ["loop.anchors=[]", "selfplay.backend=torch"])
    assert training_commands(changed) == [
        "crownhead train --preset quick --set selfplay.backend=torch --set 'loop.anchors=[]'"
    ]
    assert training_commands(make_config("quick", mirror="s3://runs/one")) == ["crownhead train --preset quick"]
    own = config_from("mine", {"network": NETWORKS["2x32"].model_dump(), "loop": {"minutes": 5, "anchors": ["random"]}})
    (command,) = training_commands(own)
    assert command.startswith("crownhead train --preset quick --set network=2x32 --set ")
    settings = shlex.split(command)[5::2]
    assert make_config("quick", settings) == own.model_copy(update={"preset": "quick"})


def test_stages_can_be_undone_and_told() -> None:
    first = make_config("quick", ["search.c_puct=2"])
    second = next_stage(first, ["search.c_puct=3", "loop.anchors=[]"], 4, 400)
    third = next_stage(second, ["search.c_puct=1.5", "search.c_puct=2"], 6, 600)
    assert (second.search.c_puct, third.search.c_puct, third.loop.anchors) == (3.0, 2.0, ())
    assert [(stage.iteration, stage.steps) for stage in third.stages] == [(4, 400), (6, 600)]
    assert third.stages[0].changes["search.c_puct"] == (2.0, 3.0)
    assert RunConfig.model_validate_json(third.model_dump_json()) == third
    for config in (second, third):
        assert config_at(config, 0) == config_at(config, 400) == first
    assert config_at(third, 401) == config_at(third, 600) == second
    assert config_at(third, 601) == third
    assert training_commands(third) == [
        "crownhead train --preset quick --set search.c_puct=2.0",
        "crownhead train --resume --set search.c_puct=3.0 --set 'loop.anchors=[]'",
        "crownhead train --resume --set search.c_puct=2.0",
    ]


def test_what_changes_nothing_is_no_stage() -> None:
    config = make_config("quick")
    same = f"search.num_simulations={config.search.num_simulations}"
    assert next_stage(config, [same], 1, 1) is config


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("network=tiny", "its weights have that size"),
        ("network.units=64", "its weights have that size"),
        ("seed=5", "follow from it"),
        ("preset=laptop", "come from"),
        ("pool=ray", "--pool"),
        ("mirror=copy", "--mirror"),
        ("loop.minutes=5", "--minutes"),
        ("loop.reuse=1", "counted from its beginning"),
        ("trainer.batch_size=64", "counted from its beginning"),
        ("trainer.optimizer=sgd", "its state"),
        ("teacher.weight=1", "the run has no teacher"),
        ("stages=[]", "cannot change a run under way: they are what --set writes"),
        ("search.c_pict=1", "c_pict"),
        ("search.c_puct=-1", "c_puct"),
        ("selfplay.tree_samples.offshoots=0.5", "allows none"),
    ],
)
def test_what_a_run_keeps(setting: str, reason: str) -> None:
    begun = next_stage(make_config("quick"), ["search.c_puct=2"], 1, 100)
    with pytest.raises(ConfigError, match=reason):
        next_stage(begun, [setting], 2, 200)


@pytest.mark.parametrize("setting", ["student=null", "teacher=null", "student.trainer.optimizer=sgd"])
def test_a_run_keeps_its_student_and_teacher(setting: str) -> None:
    config = make_config("smoke", ["student.network=wide32"], teacher={"digest": "x"})
    for settings in ([setting], [setting, "search.c_puct=2"]):
        with pytest.raises(ConfigError, match="cannot change a run under way"):
            next_stage(config, settings, 1, 100)


def test_every_kept_setting_exists() -> None:
    others = {"teacher": {"digest": "x"}, "opponent": {"digest": "y"}}
    config = make_config("quick", ["student.network=wide32"], **others)
    fields = config.model_dump(mode="json")
    for key in KEPT:
        inner = fields
        for name in key.split("."):
            assert name in inner
            inner = inner[name]


def test_a_run_that_begins_with_a_network_has_its_size_without_a_setting() -> None:
    """``train`` refuses ``--init`` together with ``--set network``."""
    config = make_config("smoke", ["network=wide32"])
    assert training_commands(config) == ["crownhead train --preset smoke --set network=wide32"]
    begun = config.model_copy(update={"init": "x"})
    assert training_commands(begun) == ["crownhead train --preset smoke --init NET"]


def test_a_run_against_a_network_is_repeated_with_its_rule_of_the_gate() -> None:
    """``--against`` begins with another rule than the preset, whose own rule may have been chosen."""
    begun = {"opponent": {"digest": "y"}, "gate": {"rule": "always"}}
    command = "crownhead train --preset smoke --against NET"
    assert training_commands(make_config("smoke", **begun)) == [command]
    chosen = make_config("smoke", ["gate.rule=winrate"], **begun)
    assert training_commands(chosen) == [f"{command} --set gate.rule=winrate"]


@pytest.mark.parametrize("key", ["init", "teacher", "mirror"])
def test_what_a_run_begins_with_is_named_by_options(tmp_path: Path, key: str) -> None:
    """A copy named by ``--set`` could lie in its own run."""
    request = TrainRequest(preset="smoke", run=tmp_path / "run", settings=[f"{key}={tmp_path / 'run' / 'copy'}"])
    with pytest.raises(RunError, match=f"--set {key}: use --{key}"):
        commands._beginning(request)


def test_a_resumed_run_takes_on_settings(run_copy: Path) -> None:
    run = run_copy
    before = (run / "config.json").read_bytes()
    resume = ("--run", run, "--resume", "--set")
    assert_refused(crownhead_here("train", *resume, "search.num_simulations=6"), "all iterations (2)")
    assert_refused(
        crownhead_here("train", *resume, "network=4x48"), "cannot change a run under way: its weights have that size"
    )
    assert (run / "config.json").read_bytes() == before
    steps = RunFolder(run).steps_made()  # the learner goes on in the gate
    assert steps >= read_info(run / "checkpoints" / "000002").figures["steps"]
    trained(*resume, "loop.max_iterations=3", "--set", "search.num_simulations=6")
    trained(*resume, "loop.max_iterations=3", "--minutes", "5")  # has made them: ends at once
    folder, config = RunFolder.open(run)
    (stage,) = config.stages
    assert (config.search.num_simulations, stage.steps, stage.iteration) == (6, steps, 2)
    assert folder.read_state().iteration == 3
    logged = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    told = next(event for event in logged if event["event"] == "settings")
    assert told["changes"] == {"loop.max_iterations": [2, 3], "search.num_simulations": [8, 6]}


def test_what_cannot_be_changes_nothing(run_copy: Path) -> None:
    before = {name: (run_copy / name).read_bytes() for name in ("config.json", "state.json")}
    resume = ("train", "--run", run_copy, "--resume")
    if not torch.cuda.is_available():
        refused = crownhead_here(*resume, "--minutes", 1, "--set", "device=cuda")
        assert_refused(refused, "torch finds no CUDA device here")
    assert_refused(crownhead_here(*resume, "--pool", "rai"), "--pool 'rai': choose one of local, threads, ray")
    assert {name: (run_copy / name).read_bytes() for name in before} == before


def test_minutes_that_are_left_go_on_without_being_asked_for_again(run_copy: Path) -> None:
    """As after Ctrl-C in ``--resume --minutes``, which lets a run make more iterations than its preset has."""
    folder = RunFolder(run_copy)
    state = folder.read_state()
    folder.write_state(state.model_copy(update={"minutes_limit": state.minutes + 0.02}))
    trained("--run", run_copy, "--resume")
    used = folder.read_state()
    assert used.minutes > state.minutes
    folder.write_state(used.model_copy(update={"minutes_limit": used.minutes}))
    assert_refused(crownhead_here("train", "--run", run_copy, "--resume"), "minutes: give it more with --minutes")


def test_iterations_that_were_asked_for_with_minutes_stay_asked_for(run_copy: Path) -> None:
    def limit(*settings: str, minutes: float | None = None) -> int | None:
        request = TrainRequest(run=run_copy, resume=True, minutes=minutes, settings=list(settings))
        return commands._resumed(RunFolder(run_copy), request).loop.max_iterations

    assert limit(minutes=10) is None
    assert limit("loop.max_iterations=6", minutes=10) == 6
    assert limit() == limit("search.c_puct=2") == 6  # after Ctrl-C


@pytest.mark.parametrize(
    ("preset", "settings"),
    [("gpu", ["student=null"]), ("quick", ["student.network=wide32", "student.trainer.gradient_clip=null"])],
)
def test_commands_that_repeat_a_run_name_what_is_left_out(preset: str, settings: list[str]) -> None:
    config = make_config(preset, settings)
    (command,) = training_commands(config)
    words = shlex.split(command)
    assert words[:4] == ["crownhead", "train", "--preset", preset]
    assert make_config(preset, words[5::2]) == config


def test_an_interrupt_after_the_end_does_not_advise_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rates are measured once the run has ended: ``--resume`` alone would say that it has made all iterations."""

    def interrupted(*_: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr("selfplay.measures.bench.bare_network_rate", interrupted)
    best = tmp_path / "checkpoints" / "000001"
    save_checkpoint(best, make_network(NETWORKS["tiny"]), {"steps": 0})
    summary: Any = {"best": "000001", "actors": 1.0}
    with pytest.raises(KeyboardInterrupt, match="has ended and is saved; its best network is "):
        commands._rates(RunFolder(tmp_path), make_config("smoke"), summary)
    (tmp_path / "state.json").touch()
    ended = KeyboardInterrupt("the run has ended")

    def train(*_: object) -> None:
        raise ended

    monkeypatch.setattr("selfplay.commands._train", train)
    with pytest.raises(KeyboardInterrupt, match="the run has ended"):
        commands.train_command(TrainRequest(run=tmp_path), quiet=True)
