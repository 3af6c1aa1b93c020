"""The pool of processes, without Ray: actors that die are replaced, none outlives its trainer. With a wide network."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from process_table import descendants, local_players, named
from programs import PATIENCE, ROOT, crownhead_here, crownhead_program, wait_until
from training_runs import FAST, STEPS_PER_ITERATION, assert_refused, events, trained

from selfplay.actors.process_pool import ProcessPool
from selfplay.games.shards import read_shard_info
from selfplay.run.folder import RunFolder, RunState

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="reads the table of processes")]
SETTINGS = [*FAST, "--set", "network=wide32", "--set", "selfplay.actors=2", "--set", "loop.max_iterations=null"]
SETTINGS += ["--set", "selfplay.nice=2"]  # no more: beside other tests actors would hardly run
ENDLESS = [*SETTINGS, "--set", "loop.minutes=1000", "--set", "loop.save_seconds=1"]


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes()}


class Run:
    """A running training."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder / "run", folder / "log"
        blocked = folder / "blocked" / "ray"
        blocked.mkdir(parents=True)
        (blocked / "__init__.py").write_text("raise ModuleNotFoundError('no ray here', name='ray')")
        self.environment = {**os.environ, "PYTHONPATH": str(blocked.parent)}
        self.start("--preset", "smoke", "--pool", "local", *ENDLESS)

    def start(self, *arguments: str) -> None:
        with open(self.log, "a") as log:
            command = crownhead_program("train", "--run", self.folder, *arguments)
            self.process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)

    def plays(self) -> int:
        return len(events(self.folder, "play"))

    def wait_until(self, condition: Callable[[], object], seconds: float = PATIENCE, running: bool = True) -> None:
        wait_until(condition, self.process if running else None, seconds, self.log)

    def state(self) -> RunState:
        return RunFolder(self.folder).read_state()

    def games_on_disk(self) -> int:
        return sum(read_shard_info(path).games for path in (self.folder / "shards").glob("*.shard"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run that goes on from test to test: a start takes longer than a test."""
    started = Run(tmp_path_factory.mktemp("pool"))
    try:
        started.wait_until(lambda: started.plays() >= 3)
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def test_a_killed_actor_is_replaced(run: Run) -> None:
    victims = local_players(run.process.pid)
    assert len(victims) == 2
    learner = os.getpriority(os.PRIO_PROCESS, run.process.pid)
    assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in victims} == {min(learner + 2, 19)}
    os.kill(min(victims), signal.SIGKILL)
    before = run.plays()
    run.wait_until(lambda: len(local_players(run.process.pid) - victims) == 1)
    run.wait_until(lambda: run.plays() >= before + 4)
    assert "died and is replaced" in run.log.read_text()


def test_without_the_server_actors_are_replaced(run: Run) -> None:
    victims = local_players(run.process.pid)
    (server,) = set(named(descendants(run.process.pid), "forkserver")) - victims
    os.kill(server, signal.SIGKILL)
    run.wait_until(lambda: not alive(victims) and len(local_players(run.process.pid)) == 2)
    before = run.plays()
    run.wait_until(lambda: run.plays() >= before + 4)


@pytest.mark.parametrize("error", [EOFError("unexpected EOF"), ConnectionRefusedError(111, "refused")])
def test_an_actor_that_cannot_be_started_has_died(error: Exception) -> None:
    """As where the server that starts processes is killed at that moment."""

    class Unstartable:
        def submit(self, *_: object) -> None:
            raise error

    with pytest.raises(ProcessPool.dead, match="could not be started"):
        ProcessPool._ask(None, Unstartable(), "play")  # type: ignore[arg-type]


def test_killed_anywhere_nothing_is_lost(run: Run) -> None:
    """The numbers of games on disk, of steps and of iterations never fall; actors end with their trainer."""
    games = steps = iteration = 0
    for kill in range(2):
        starts, gates = (len(events(run.folder, name)) for name in ("start", "gate"))
        run.wait_until(lambda gates=gates: len(events(run.folder, "gate")) > gates)
        time.sleep(0.5 * kill)  # anywhere in the next iteration
        actors = local_players(run.process.pid)
        run.process.kill()
        run.process.wait()
        state = run.state()
        assert state.iteration >= iteration
        assert run.games_on_disk() >= games
        iteration, games, plays = state.iteration, run.games_on_disk(), run.plays()
        run.wait_until(lambda actors=actors: not alive(actors), 60, running=False)
        (run.folder / "checkpoints" / f".99999{kill}.old").mkdir()  # as a kill while a candidate is removed leaves it
        run.start("--resume")
        run.wait_until(lambda starts=starts: len(events(run.folder, "start")) > starts)
        resumed = events(run.folder, "start")[-1]["steps"]
        assert resumed >= max(steps, iteration * STEPS_PER_ITERATION), "the learner goes on where it was"
        steps = resumed
        run.wait_until(lambda plays=plays: run.plays() > plays)
    assert not list((run.folder / "shards").glob("*.damaged"))
    assert [path.name for path in (run.folder / "checkpoints").glob(".*.old")] in ([], [".999991.old"])


def test_without_ray_its_pool_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(run.environment["PYTHONPATH"])  # the process that would start Ray inherits it
    begin = ("train", "--preset", "smoke", *FAST, "--run", run.folder.with_name("remote"))
    assert_refused(crownhead_here(*begin, "--pool", "ray"), "--pool local")


def test_a_second_trainer_is_kept_out(run: Run) -> None:
    assert_refused(crownhead_here("train", "--run", run.folder, "--resume"), "in use")


def test_ctrl_c_ends_all_and_the_run_goes_on(run: Run) -> None:
    actors, games, iteration = local_players(run.process.pid), run.games_on_disk(), run.state().iteration
    assert actors
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(60) == 130
    run.wait_until(lambda: not alive(actors), 60, running=False)
    saved = run.state()
    assert saved.minutes > 0
    assert saved.iteration >= iteration >= 1
    figures = trained("--run", run.folder, "--resume", "--minutes", "0.05")
    assert figures["games"] >= games > 0
    assert figures["iterations"] >= saved.iteration
    assert figures["steps"] >= events(run.folder, "start")[-2]["steps"]
