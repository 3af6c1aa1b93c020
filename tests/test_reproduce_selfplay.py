"""Reproductions of self-play experiments: tables made by hand, tiny runs, resumption, Ctrl-C, bad input."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from programs import crownhead_here, wait_until
from test_interrupts import ROOT, interrupt

import crownhead
from papers import maddocks, popic
from papers.command_line import MaddocksRequest
from papers.experiment import Experiment
from papers.maddocks import maddocks_command
from papers.popic import popic_command
from papers.runs import Version, read_run, train_run
from papers.settings import POPIC
from selfplay.matches.pool import MatchPool
from selfplay.matches.record import MatchGame
from selfplay.matches.tasks import Task
from selfplay.rating.elo import Tally
from selfplay.run.config import config_from
from selfplay.run.folder import RunError, RunFolder, RunState

TINY = (
    "network=tiny",
    "search.num_simulations=4",
    "match_search.num_simulations=4",
    "selfplay.games_in_lockstep=8",
    "selfplay.positions_per_shard=100",
    "selfplay.max_plies=60",
    "selfplay.backend=torch",
    "trainer.batch_size=64",
    "loop.samples_before_training=64",
    "loop.steps_per_iteration=10",
    "loop.anchor_games=0",
    "loop.exam_positions=0",
    "gate.rule=winrate",
    "gate.score_threshold=0",  # any candidate passes
    "gate.max_games=2",
)
TWO_ITERATIONS = (*TINY, "loop.games_per_iteration=4", "loop.max_iterations=2")
AGENT = MaddocksRequest(4, 2, 4, 2.5, 0.0, 2.0, 2, minutes=60, games=3)
BY_HAND = {
    "v0": Tally(pairs=[0, 0, 0, 1, 1], wins=3, draws=1),
    "v1": Tally(pairs=[0, 1, 1, 0, 0], draws=1, wins=1, losses=2),
}


@pytest.fixture(scope="module", autouse=True)
def _one_process() -> Iterator[None]:
    """Plays the games for tables in this process: starting others would take longer than the games."""
    with pytest.MonkeyPatch.context() as patched:
        for paper in (maddocks, popic):
            patched.setattr(paper, "open_pool", lambda *_: MatchPool(1))
        yield


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("popic") / "report"
    return out, popic_command(None, 60, 4, 1, out, quiet=True, settings=TWO_ITERATIONS)


def by_hand(tmp_path: Path, name: str = "popic", **changes: Any) -> popic._Found:
    """A run of an hour with three versions, of which the last has played four games with each of the others."""
    system = popic._System(name, popic.SYSTEMS[name](settings=["loop.minutes=60"]), tmp_path, 4)
    versions = [Version(f"v{number}", tmp_path, 20.0 * number) for number in range(3)]
    fields: dict[str, Any] = {"state": RunState(minutes=60.0), "versions": versions, "tallies": BY_HAND, "games": 120}
    return popic._Found(system, **{**fields, **changes})


def measured(experiment: Experiment) -> dict[str, dict[str, float]]:
    return {row.name: dict(row.measured) for row in experiment.rows if row.measured}


def test_the_published_table() -> None:
    assert [sum(row) for row in popic.PUBLISHED.values()] == [50] * 10
    assert popic.PUBLISHED["v0"] == (32, 13, 5)
    assert list(popic.PUBLISHED) == [f"v{number}" for number in range(10)]


def test_a_table_worked_out_by_hand(tmp_path: Path) -> None:
    found = by_hand(tmp_path)
    table = found.experiment()
    assert measured(table) == {
        "v0": {"wins": 3, "draws": 1, "losses": 0, "score": 3.5 / 4},
        "v1": {"wins": 1, "draws": 1, "losses": 2, "score": 1.5 / 4},
    }
    assert dict(table.rows[0].published) == {"wins": 32, "draws": 13, "losses": 5, "score": 38.5 / 50}
    assert [row.name for row in table.rows] == list(popic.PUBLISHED)
    theirs, ours = table.tables
    assert [row[:3] for row in theirs.rows] == [["W", 32, 27], ["D", 13, 18], ["L", 5, 5]]
    assert (ours.header, ours.rows) == (["opponent", "v0", "v1"], [["W", 3, 1], ["D", 1, 1], ["L", 0, 2]])
    assert not [note for note in table.notes if "Not finished" in note]
    # 3.5 of 4 is 400 log10(7) Elo; 38.5 of 50 is 400 log10(77 / 23).
    assert "end 3–1–0 (87.5 %, Elo +338 ±" in found.verdict()
    assert "more, but within the error, than the published 32–13–5 (77.0 %, Elo +210)" in found.verdict()
    clear = by_hand(tmp_path, tallies={"v0": Tally(pairs=[0, 0, 0, 10, 190], wins=390, draws=10)})
    assert "), more than the published" in clear.verdict()
    summary = popic._first_and_last([found, by_hand(tmp_path, "own")])
    assert [row.name for row in summary.rows] == [
        f"{settings}, v2 v v0 (published: v9 v v0)" for settings in ("published settings", "this project's settings")
    ]
    for row in summary.rows:
        assert dict(row.published) == {**table.rows[0].published, "versions": 9, "hours": 336}
        assert dict(row.measured) == {**table.rows[0].measured, "versions": 2, "games": 120, "hours": 1}


def test_a_miss_is_told_with_its_reason(tmp_path: Path) -> None:
    even = by_hand(tmp_path, tallies={"v0": Tally(pairs=[0, 0, 2, 0, 0], draws=4)})
    assert "no more than the published" in even.verdict()
    assert "60 minutes, where the paper had about two weeks" in even.verdict()


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    half = by_hand(tmp_path, state=RunState(minutes=15.0), tallies={"v0": BY_HAND["v0"]})
    assert [note for note in half.experiment().notes if "Not finished" in note] == [
        "Not finished: 15.0 of 60 minutes of training are done; the same command goes on.",
        "Not finished: 4 of 8 games are played; the same command goes on.",
    ]
    late = by_hand(tmp_path, state=RunState(minutes=75.0)).experiment().notes
    assert "The last gate's games took the training from 60 minutes to 75.0." in late
    begun = by_hand(tmp_path, versions=half.versions[:1], tallies={})
    assert "No version has passed the gate yet" in begun.experiment().notes[0]
    assert "no game of a promoted version" in begun.verdict()


def test_both_trainings_and_their_tables(done: tuple[Path, dict[str, Any]]) -> None:
    out, figures = done
    assert list(figures) == ["first", "popic", "own"]
    assert json.loads((out / "report.json").read_text())["experiments"] == figures
    for name in ("popic", "own"):
        state, versions = read_run(out / name)
        assert state.iteration == 2
        rows = {row["name"]: row["measured"] for row in figures[name]["rows"] if row["measured"]["wins"] is not None}
        assert list(rows) == [version.name for version in versions[:-1]] != []
        assert {row["wins"] + row["draws"] + row["losses"] for row in rows.values()} == {4}
        assert (out / f"{name}-versions.png").is_file()
        for settings in json.loads((out / f"{name}-games.json").read_text())["players"].values():
            assert "policy_temperature=1 shot_prior=0 draw_value=0" in settings  # as in the gate
    assert "won, published" in (out / "report.md").read_text()


def test_the_same_command_again_changes_nothing(done: tuple[Path, dict[str, Any]]) -> None:
    out, figures = done
    before = {path: path.read_bytes() for path in [*out.glob("*-games.json"), *out.glob("*/state.json")]}
    assert popic_command(None, 60, 4, 1, out, quiet=True, settings=TWO_ITERATIONS) == figures
    assert before == {path: path.read_bytes() for path in before}
    more = popic_command(None, 60, 6, 1, out, quiet=True, settings=TWO_ITERATIONS)  # plays two more games each
    row = more["popic"]["rows"][0]["measured"]
    assert row["wins"] + row["draws"] + row["losses"] == 6


def test_an_iteration_is_so_many_games_and_what_there_is_to_learn_from_them(done: tuple[Path, dict[str, Any]]) -> None:
    folder, config = RunFolder.open(done[0] / "popic")
    for iteration in (1, 2):
        info = json.loads((folder.checkpoint(f"{iteration:06d}") / "checkpoint.json").read_text())["figures"]
        assert 4 * iteration <= info["games"]
        left = config.loop.reuse * info["samples"] - info["steps"] * config.trainer.batch_size
        assert 0 <= left < config.trainer.batch_size


def test_other_settings_are_another_run(done: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"popic holds a run with seed 1, not 2: choose another --out"):
        popic_command("popic", 60, 4, 2, done[0], quiet=True, settings=TWO_ITERATIONS)
    only_own = tmp_path / "report"
    shutil.copytree(done[0] / "own", only_own / "own")
    with pytest.raises(RunError, match=r"own holds a run with seed 1, not 2"):
        popic_command(None, 60, 4, 2, only_own, quiet=True, settings=TWO_ITERATIONS)
    assert [path.name for path in only_own.iterdir()] == ["own"]  # the other one has not been trained for nothing
    config = config_from("popic", POPIC, [*TWO_ITERATIONS, "search.c_puct=2"])
    with pytest.raises(RunError, match=r"search.c_puct 1.5, not 2.0"):
        train_run(done[0] / "popic", config, quiet=True)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    endless = (*TINY, "loop.games_per_iteration=4", "loop.save_seconds=0.2")
    program = (
        "from pathlib import Path; from papers.popic import popic_command as run; "
        f"run('popic', 60, 2, 1, Path({str(tmp_path)!r}), True, {endless!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    try:
        wait_until(lambda: len(read_promotions(tmp_path / "popic")) >= 2, process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed, before = read_run(tmp_path / "popic")
    one_more = (*endless, f"loop.max_iterations={killed.iteration + 1}")
    popic_command("popic", 60, 2, 1, tmp_path, quiet=True, settings=one_more)
    state = read_run(tmp_path / "popic")[0]
    assert state.iteration == killed.iteration + 1
    minutes = state.minutes + 0.02
    figures = popic_command("popic", minutes, 2, 1, tmp_path, quiet=True, settings=endless)
    state, versions = read_run(tmp_path / "popic")
    assert state.minutes >= minutes
    assert versions[: len(before)] == before
    rows = [row for row in figures["popic"]["rows"] if row["measured"]["wins"] is not None]
    assert [row["name"] for row in rows] == [version.name for version in versions[:-1]]


def read_promotions(run: Path) -> list[Version]:
    try:
        return read_run(run)[1][1:]
    except RunError:  # looked at in the middle of its creation
        return []


def test_interrupted_games_are_kept_and_reported(
    done: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    played: list[object] = []

    def game(self: object, over: object) -> None:
        played.append(over)
        if len(played) == 3:
            raise KeyboardInterrupt

    shutil.copytree(done[0] / "popic", out / "popic")
    with monkeypatch.context() as patched:
        patched.setattr("selfplay.progress.LadderProgress.game", game)
        with pytest.raises(KeyboardInterrupt, match="the same command goes on"):
            popic_command("popic", 60, 4, 1, out, quiet=True, settings=TWO_ITERATIONS)
    partial = json.loads((out / "report.json").read_text())["experiments"]["popic"]
    total = 4 * len(read_promotions(out / "popic"))
    assert f"Not finished: 3 of {total} games are played; the same command goes on." in partial["notes"]
    figures = popic_command("popic", 60, 4, 1, out, quiet=True, settings=TWO_ITERATIONS)
    assert not [note for note in figures["popic"]["notes"] if "Not finished" in note]


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_an_interrupted_training_leaves_a_report(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("reproduce", "popic", "--minutes", 60, "--out", out)
    said = interrupt((out / "popic" / "checkpoints" / "000000").exists, *arguments)
    assert said.startswith(f"crownhead: interrupted: runs and games are saved in {out}, and {out / 'report.html'}")
    notes = json.loads((out / "report.json").read_text())["experiments"]["popic"]["notes"]
    assert notes[0].startswith("Not finished: 0.")
    assert notes[0].endswith("of 30 minutes of training are done; the same command goes on.")
    assert "32" in (out / "report.md").read_text()


def test_an_agent_against_roll_outs(tmp_path: Path) -> None:
    figures = maddocks_command(replace(AGENT, out=tmp_path), quiet=True, settings=TINY)
    assert list(figures) == ["match"]
    rows = figures["match"]["rows"]
    assert rows[0]["name"] == "random weights (v0) v rollout:4"
    for row in rows:
        counts = [row["measured"][key] for key in ("wins", "draws", "losses")]
        assert sum(counts) == 3
        assert row["measured"]["score"] == pytest.approx((counts[0] + counts[1] / 2) / 3)
    config = RunFolder.open(tmp_path / "run")[1]
    assert (config.loop.games_per_iteration, config.gate.max_games, config.loop.reuse) == (4, 2, 2)
    assert (config.search.num_simulations, config.search.c_puct, config.match_search.c_puct) == (4, 2.5, 2.5)
    assert (config.gate.rule, config.gate.score_threshold, config.loop.max_iterations) == ("winrate", 0, 2)
    before = (tmp_path / "run" / "state.json").read_bytes()
    assert maddocks_command(replace(AGENT, out=tmp_path), True, TINY)["match"] == figures["match"]
    assert (tmp_path / "run" / "state.json").read_bytes() == before
    assert (tmp_path / "match.png").is_file()
    report = (tmp_path / "report.json").read_bytes()
    with pytest.raises(RunError, match=r"search.num_simulations 4, not 8"):
        maddocks_command(replace(AGENT, searches=8, out=tmp_path), quiet=True, settings=TINY)
    assert (tmp_path / "report.json").read_bytes() == report


def test_an_interrupted_match_leaves_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command goes on with the games that are missing, also with more of them."""
    played, play = [], MatchPool.play

    def interrupted(pool: MatchPool, tasks: Sequence[Task]) -> Iterator[tuple[Task, MatchGame]]:
        for task, game in play(pool, tasks):
            played.append((task.pairing.player_a, game.index))
            yield task, game
            if len(played) == 1:
                raise KeyboardInterrupt

    def notes() -> list[str]:
        return json.loads((tmp_path / "report.json").read_text())["experiments"]["match"]["notes"]

    monkeypatch.setattr(MatchPool, "play", interrupted)
    with pytest.raises(KeyboardInterrupt, match="run and games are saved"):
        maddocks_command(replace(AGENT, games=2, out=tmp_path), quiet=True, settings=TINY)
    wanted = 2 * min(2, 1 + len(read_promotions(tmp_path / "run")))
    assert f"Not finished: 1 of {wanted} games are played; the same command goes on." in notes()
    maddocks_command(replace(AGENT, games=2, out=tmp_path), quiet=True, settings=TINY)
    assert not any("Not finished" in note for note in notes())
    assert len(played) == len(set(played)) == wanted


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("popic", "--experiment", "chess"), "choose popic, own"),
        (("popic", "--games", "1"), "--games"),
        (("popic", "--minutes", "inf"), "inf is not finite"),
        (("popic", "--out", __file__), "is a file"),
        (("maddocks", "--exploration", "0"), "--exploration"),
        (("maddocks", "--threshold", "2"), "--threshold"),
        (("maddocks", "--epochs", "-1"), "--epochs"),
        (("maddocks", "--epochs", "1e9"), "--epochs"),
        (("maddocks", "--seed", str(1 << 64)), "--seed"),
        (("larson", __file__, "--seed", str(1 << 64)), "--seed"),
        (("maddocks", "--searches", "10000000"), "--searches"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = crownhead_here("reproduce", *arguments, folder=tmp_path)
    assert done.returncode == crownhead.EXIT_BAD_INPUT
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
