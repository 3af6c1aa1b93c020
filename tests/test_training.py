"""Whole runs: every stage, kills, resumption, full disks, damaged files."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from programs import crownhead_here, wait_until
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor
from training_runs import FAST, assert_refused, crownhead, events, start, trained

from engine.sealed import sealed, unsealed
from learner.checkpoint import load_checkpoint, read_info, save_checkpoint
from learner.network import NETWORKS, Network, make_network
from selfplay.games.shards import ShardInfo, read_shard_info
from selfplay.machines.cluster import ClusterError
from selfplay.rating.ratings import Ratings
from selfplay.run.config import make_config
from selfplay.run.folder import Promotion, RunError, RunFolder, RunState
from selfplay.training.judge import Judge
from selfplay.training.loop import samples_to_draw


def test_smoke_exercises_every_stage(tmp_path: Path) -> None:
    run = tmp_path / "run"
    figures = trained("--preset", "smoke", "--run", run)
    assert {"run", "iterations", "games", "samples", "promotions", "minutes"} <= set(figures)
    assert 0 < figures["actors_busy"] <= 1
    assert 0 < figures["learner_busy"] < 1
    played = sum(event["seconds"] for event in events(run, "play"))
    (begun,), (ended,) = events(run, "start"), events(run, "end")
    seconds = float(ended["time"]) - float(begun["time"])
    counted_from, first_games = float(ended["time"]) - figures["minutes"] * 60, float(events(run, "play")[0]["time"])
    assert counted_from == pytest.approx(first_games, abs=1), "the time until the first games does not count"
    assert 0 < figures["actors"] <= 1
    assert figures["actors_busy"] * figures["actors"] * seconds == pytest.approx(played, rel=0.05)
    worked = sum(event["processor_seconds"] for event in events(run, "play"))
    assert 0 < worked / seconds < figures["cores_used"] <= (os.cpu_count() or 1)
    evaluations = sum(event["evaluations"] for event in events(run, "play"))
    assert figures["actor_evaluations_per_second"] * worked == pytest.approx(evaluations, rel=0.01)
    assert figures["evaluations_per_second"] * seconds == pytest.approx(evaluations, rel=0.05)
    assert figures["games_per_second"] * seconds == pytest.approx(figures["games"], rel=0.05)
    assert figures["samples_per_second"] * seconds == pytest.approx(figures["samples"], rel=0.05)
    ratio = figures["evaluations_per_second"] / figures["network_evaluations_per_second"]
    assert 0 < figures["selfplay_to_network_ratio"] == pytest.approx(ratio, abs=0.001)
    assert figures["iterations"] == 2
    assert figures["promotions"] >= 1
    shards = [read_shard_info(path) for path in (run / "shards").glob("*.shard")]
    assert sum(shard.games for shard in shards) >= figures["games"] > 0
    folder, config = RunFolder.open(run)
    assert config == make_config("smoke")
    best = load_checkpoint(folder.best_checkpoint)
    assert best.info.parent is not None
    assert best.info.figures["steps"] > 0
    assert {event["anchor"] for event in events(run, "anchor")} == {"random"}
    assert len(events(run, "gate")) == 2
    table = {line.player: line.rating for line in Ratings(folder.elo_path).table()}
    assert set(Ratings(folder.elo_path).endgames) == {event["checkpoint"] for event in events(run, "exam")} != set()
    assert table["random"] == 0
    assert "000000" in table
    curves = EventAccumulator(str(run / "tensorboard")).Reload()
    examined = [point.step for point in curves.Scalars("exam/endgame_accuracy")]
    assert examined == [promotion.steps for promotion in folder.read_state().promotions], "not the learner's by then"
    assert_refused(crownhead_here("train", "--preset", "smoke", "--run", run), "--resume")
    assert_refused(crownhead_here("train", "--run", run, "--resume"), "--minutes")
    other = crownhead_here("train", "--preset", "quick", "--run", run, "--resume", "--minutes", 1)
    assert_refused(other, "has begun with --preset smoke, not quick")
    assert_refused(crownhead_here("train", "--run", tmp_path / "none", "--resume"), "no run")


def test_training_begins_with_as_many_samples_as_it_waits_for(tmp_path: Path) -> None:
    settings = ["loop.max_iterations=1", "loop.steps_per_iteration=1"]
    settings += ["loop.samples_before_training=1500", "selfplay.positions_per_shard=100", "gate.max_games=2"]
    given = [text for setting in settings for text in ("--set", setting)]
    run = tmp_path / "run"
    figures = trained("--preset", "smoke", *given, "--run", run)
    assert figures["iterations"] == 1
    assert figures["samples"] >= 1500
    candidate = read_info(run / "checkpoints/000001").figures
    assert candidate["steps"] == 1
    assert candidate["samples"] >= 1500
    assert figures["steps"] > 1, "the learner goes on while the actors play the gate"


def test_a_resumed_run_meets_the_anchors_that_it_has_not_met(run_copy: Path) -> None:
    best = RunFolder(run_copy).read_state().best
    assert best != "000000"
    assert not events(run_copy, "anchor")
    more = ["--set", "loop.anchor_games=2", "--minutes", "1", "--set", "loop.max_iterations=4"]
    figures = trained("--run", run_copy, "--resume", *more)
    assert events(run_copy, "anchor")[0]["checkpoint"] == best
    assert figures["iterations"] > 3, "the time that a match takes is not that since the machine was started"


@pytest.mark.slow
def test_killed_in_a_gate_it_goes_on_with_the_same_candidate(tmp_path: Path) -> None:
    run = tmp_path / "run"
    gate = ["--set", "gate.max_games=48", "--set", "loop.anchor_games=0", "--set", "loop.max_iterations=1"]
    gate += ["--set", "match_search.num_simulations=12", "--set", "gate.rule=sprt", "--set", "gate.elo1=1"]
    process = start("train", "--run", run, "--preset", "smoke", *gate)
    try:
        wait_until(lambda: games_kept(run), process)
    finally:
        process.kill()
        process.wait()
    kept, candidate = games_kept(run), read_info(run / "checkpoints/000001").digest
    again = start("train", "--run", run, "--resume")
    assert set(kept) < set(wait_until(lambda: (games := games_kept(run))[len(kept) :] and games, again))
    assert read_info(run / "checkpoints/000001").digest == candidate
    assert again.wait(60) == 0
    (judged,) = events(run, "gate")
    assert judged["games"] == 48
    assert judged["steps"] == read_info(run / "checkpoints/000001").figures["steps"]
    assert not (run / "gate.json").exists()


def games_kept(run: Path) -> list[str]:
    path = run / "gate.json"
    return unsealed(path.read_bytes())["games"] if path.exists() else []


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX resource limits")
def test_full_disk_is_told_and_nothing_is_lost(run_copy: Path) -> None:
    import resource

    run = run_copy
    before = RunFolder(run).read_state()

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    state = unsealed((run / "config.json").read_bytes())
    state["loop"].update(max_iterations=1000, minutes=1000)
    (run / "config.json").write_bytes(sealed(state))
    no_bytecode = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # Python would leave modules that are cut off
    refused = crownhead("train", "--run", run, "--resume", check=False, preexec_fn=small_files, env=no_bytecode)
    assert refused.returncode == 2
    assert "File too large" in refused.stderr.strip().splitlines()[-1]
    assert str(run) in refused.stderr.strip().splitlines()[-1]
    after = RunFolder(run).read_state()
    assert after.iteration >= before.iteration
    assert not list(run.rglob("*.tmp"))
    state["loop"]["max_iterations"] = after.iteration + 1
    (run / "config.json").write_bytes(sealed(state))
    figures = trained("--run", run, "--resume")
    assert figures["iterations"] == after.iteration + 1


def test_damaged_files_are_named(run_copy: Path) -> None:
    run = run_copy
    shard = sorted((run / "shards").glob("*.shard"))[0]
    shard.write_bytes(shard.read_bytes()[:-20])
    trained("--run", run, "--resume", "--minutes", "0.01")
    assert shard.with_name(shard.name + ".damaged").exists(), "a damaged shard is set aside and the run goes on"
    weights = RunFolder(run).best_checkpoint / "weights.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[: len(data) // 2])
    assert_refused(crownhead_here("train", "--run", run, "--resume", "--minutes", 1), "weights.safetensors")
    assert_refused(crownhead_here("match", run, "random", "--games", 2), "weights.safetensors")
    weights.write_bytes(data)
    trainer = run / "trainer.safetensors"
    sound = trainer.read_bytes()
    trainer.write_bytes(sound[:-7])
    refused = crownhead_here("train", "--run", run, "--resume", "--minutes", 1)
    assert_refused(refused, trainer.name, f"--init {weights.parent}")
    trainer.write_bytes(sound)
    (weights.parent / "checkpoint.json").rename(run / "away")
    assert_refused(crownhead_here("match", weights.parent, "random"), "incomplete checkpoint without checkpoint.json")
    (run / "away").rename(weights.parent / "checkpoint.json")
    state = run / "state.json"
    state.write_text(state.read_text().replace('"iteration": 2', '"iteration": 3'))
    assert_refused(crownhead_here("train", "--run", run, "--resume", "--minutes", 1), "state.json")
    (run / "config.json").write_text("{")
    assert_refused(crownhead_here("train", "--run", run, "--resume", "--minutes", 1), "config.json")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_the_device_no_run_is_begun(tmp_path: Path) -> None:
    refused = crownhead_here("train", "--preset", "smoke", "--run", tmp_path / "run", "--set", "device=cuda")
    assert_refused(refused, "no CUDA device here")
    assert not (tmp_path / "run").exists()


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert_refused(crownhead_here("train", "--preset", "smoke", "--run", file / "run"), str(file))


def test_old_candidates_are_removed_but_nothing_else(tmp_path: Path) -> None:
    config = make_config("smoke", ["loop.keep_checkpoints=2"])
    run, network = RunFolder.create(tmp_path / "run", config), make_network(NETWORKS["tiny"])
    for steps in range(5):
        save_checkpoint(run.checkpoint(f"{steps:06d}"), network, {"steps": steps})
    shutil.copytree(run.checkpoint("000001"), run.checkpoint("000001-mine"))
    Judge(run, config, lambda *_: None)._drop_old_candidates()
    assert {path.name for path in run.checkpoints.iterdir()} == {"000000", "000001-mine", "000003", "000004"}


def test_games_of_the_teacher_never_get_too_old(tmp_path: Path) -> None:
    """Where the run began with the same network, they counted as those of the first network."""
    names = ["000000", "000001", "000002"]
    for seed, name in enumerate(names):
        torch.manual_seed(seed)
        save_checkpoint(tmp_path / "run" / "checkpoints" / name, make_network(NETWORKS["tiny"]), {"steps": seed})
    digests = [read_info(tmp_path / "run" / "checkpoints" / name).digest for name in names]
    run = RunFolder(tmp_path / "run")
    promotions = tuple(Promotion(checkpoint=name, iteration=1, steps=1, minutes=1.0) for name in names[1:])
    run.write_state(RunState(iteration=2, best=names[-1], promotions=promotions))
    behind = []
    for teacher in (None, {"digest": digests[0]}):
        judge = Judge(run, make_config("smoke", [], teacher=teacher), lambda *_: None)
        behind.append([judge.behind(ShardInfo(run.path, 1, 1, 1, (digest,), 1)) for digest in digests])
    assert behind == [[2, 1, 0], [0, 1, 0]]


def test_samples_to_draw_follow_from_what_is_on_disk() -> None:
    config = make_config("smoke", ["loop.reuse=2", "trainer.batch_size=64"])
    assert samples_to_draw(config, total_samples=1000, steps=0) == 2000
    assert samples_to_draw(config, total_samples=1000, steps=30) == 2000 - 30 * 64


def test_create_and_open_refuse_what_does_not_fit(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", make_config("smoke"))
    with pytest.raises(RunError, match="--resume"):
        RunFolder.create(tmp_path / "run", make_config("smoke"))
    with pytest.raises(RunError, match="no run"):
        RunFolder.open(tmp_path / "other")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("seed=99999999999999999999999", "seed"),
        ("init=xyz", "--set init: use --init"),
        ("preset=gpu", "--set preset: use --preset"),
        ('teacher={"digest":"x"}', "--set teacher: use --teacher"),
        ("teacher.plays=0.5", "--set teacher: use --teacher"),
        ("stages=[]", "--set stages: the run writes that itself"),
        ("selfplay.tree_samples.offshoots=0.5", "of which selfplay.tree_samples.most allows none"),
        ("selfplay.tree_samples.most=9", "least_visits is 32, and a search has 8 simulations"),
        ('loop.anchors=["hub:program"]', "is not random, rollout:N or alphabeta:DEPTH"),
        ("selfplay.backend=student", "for players whose folder has a student"),
        ('network={"family":"residual","blocks":1,"channels":16,"board":"8x8"}', "not 3x3 over 8x8 with relu"),
    ],
)
def test_a_run_that_cannot_be_leaves_no_folder(tmp_path: Path, setting: str, words: str) -> None:
    begin = ("train", "--preset", "smoke", "--run", tmp_path / "run", "--mirror", (tmp_path / "copy").as_uri())
    kernels = ("--backend", "numba") if "8x8" in setting else ()
    assert_refused(crownhead_here(*begin, "--set", setting, *kernels), words)
    assert list(tmp_path.iterdir()) == []


def test_a_teacher_that_the_backend_does_not_compute_leaves_no_folder(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"].model_copy(update={"board": "8x8"})))
    begin = ("train", "--preset", "smoke", "--run", tmp_path / "run", "--teacher", tmp_path / "net")
    assert_refused(crownhead_here(*begin, "--backend", "numba"), "not 3x3 over 8x8 with relu")
    assert not (tmp_path / "run").exists()


def test_a_cluster_that_cannot_be_joined_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the run nor its copy: both would refuse the same command again."""

    def refused(*_: object) -> None:
        raise ClusterError("the cluster cannot be joined")

    begin = ("train", "--preset", "smoke", "--run", tmp_path / "run", "--mirror", (tmp_path / "copy").as_uri())
    with monkeypatch.context() as patch:
        patch.setattr("selfplay.training.loop.make_pool", refused)
        for _ in range(2):
            assert_refused(crownhead_here(*begin), "the cluster cannot be joined")
    assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes").touch()
    with monkeypatch.context() as patch:
        patch.setattr("selfplay.training.loop.make_pool", refused)
        assert_refused(crownhead_here(*begin), "the cluster cannot be joined")
    assert (tmp_path / "run" / "notes").exists(), "the folder was there before"


def test_a_run_may_begin_with_a_network(tmp_path: Path) -> None:
    torch.manual_seed(7)
    network = make_network(NETWORKS["tiny"])
    digest = save_checkpoint(tmp_path / "net", network).digest
    run, begin = tmp_path / "run", ["--preset", "smoke", "--init", tmp_path / "net"]
    trained(*begin, "--run", run, "--set", "loop.max_iterations=1", *FAST)
    first = load_checkpoint(run / "checkpoints" / "000000")
    assert (first.info.digest, first.info.parent) == (digest, digest)
    assert json.loads((run / "config.json").read_text())["init"] == digest
    started = load_checkpoint(run / "checkpoints" / "000001")
    assert started.info.digest != digest
    drift = sum((a - b).abs().mean() for a, b in pairs_of(started.network, network))
    other = sum((a - b).abs().mean() for a, b in pairs_of(started.network, make_network(NETWORKS["tiny"])))
    assert drift < other / 3  # ten steps do not lead far
    refused = crownhead_here("train", *begin, "--run", tmp_path / "x", "--set", "network=4x48")
    assert_refused(refused, "leave --set network or --init out")
    assert_refused(crownhead_here("train", "--run", run, "--resume", "--init", "x"), "--init cannot be given")
    assert_refused(crownhead_here("train", "--init", tmp_path, "--run", tmp_path / "x"), "is no player")
    nobody = "127.0.0.1:1"  # a port on which nothing listens
    refused = crownhead_here("train", "--run", tmp_path / "x", "--address", nobody)
    assert_refused(refused, f"no Ray cluster answers at {nobody}")
    assert not (tmp_path / "x").exists()
    shutil.rmtree(run / "checkpoints" / "000000")
    state = json.loads((run / "state.json").read_text())
    (run / "state.json").write_text(json.dumps({**state, "best": "000001"}))
    refused = crownhead_here("train", "--run", run, "--resume", "--minutes", "1")
    assert_refused(refused, "000000 is missing", "begin a new run with --init")


def pairs_of(network: Network, other: Network) -> Iterator[tuple[Tensor, Tensor]]:
    """Weights of the two that belong to each other."""
    yield from zip(network.parameters(), other.parameters(), strict=True)


def test_a_deterministic_run_is_the_same_again(tmp_path: Path) -> None:
    options = ["--preset", "smoke", "--set", "loop.deterministic=true", "--set", "network=wide32", *FAST]
    options += ["--set", "selfplay.positions_per_shard=100"]
    runs = [tmp_path / name for name in ("once", "again", "other")]
    crownhead("train", "--run", runs[0], *options, "--set", "seed=1")
    trained("--run", runs[1], *options, "--set", "seed=1")
    trained("--run", runs[2], *options, "--set", "seed=2", "--set", "loop.max_iterations=1")
    shards = [[path.read_bytes() for path in sorted((run / "shards").glob("*.shard"))] for run in runs]
    networks = [[read_info(path).digest for path in sorted((run / "checkpoints").glob("0*"))] for run in runs]
    assert len(shards[0]) > 3
    assert (shards[0], networks[0]) == (shards[1], networks[1])
    assert len(networks[0]) == 3
    assert len(shards[2]) > 1
    assert not {*shards[0], *networks[0]} & {*shards[2], *networks[2]}
    refused = crownhead_here("train", "--run", tmp_path / "run", *options, "--set", "selfplay.actors=2")
    assert_refused(refused, "loop.deterministic needs")
