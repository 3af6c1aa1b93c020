"""The pool of processes: actors that die are replaced, and none outlives its trainer. With a wide network."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from process_table import descendants, local_players, named
from programs import ROOT, crownhead_program, wait_until
from training_runs import FAST, events, trained

from selfplay.run_folder import RunFolder
from selfplay.shards import read_shard_info

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="reads the table of processes")]
SETTINGS = [*FAST, "--set", "network=wide32", "--set", "selfplay.actors=2", "--set", "loop.max_iterations=null"]
ENDLESS = [*SETTINGS, "--set", "loop.minutes=1000", "--set", "loop.save_seconds=1"]


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes()}


class Run:
    """A running training."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder / "run", folder / "log"
        self.start("--preset", "smoke", "--pool", "local", *ENDLESS)

    def start(self, *arguments: str) -> None:
        with open(self.log, "a") as log:
            command = crownhead_program("train", "--run", self.folder, *arguments)
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def plays(self) -> int:
        return len(events(self.folder, "play"))

    def wait_until(self, condition: Callable[[], object], seconds: float = 180, running: bool = True) -> None:
        wait_until(condition, self.process if running else None, seconds, self.log)

    def games_on_disk(self) -> int:
        return sum(read_shard_info(path).games for path in (self.folder / "shards").glob("*.shard"))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    started = Run(tmp_path)
    started.wait_until(lambda: started.plays() >= 3)
    yield started
    started.process.kill()
    started.process.wait()


def test_a_killed_actor_is_replaced_and_ctrl_c_ends_all(run: Run) -> None:
    victims = local_players(run.process.pid)
    assert len(victims) == 2
    learner = os.getpriority(os.PRIO_PROCESS, run.process.pid)
    assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in victims} == {min(learner + 10, 19)}
    os.kill(min(victims), signal.SIGKILL)
    before = run.plays()
    run.wait_until(lambda: len(local_players(run.process.pid) - victims) == 1)
    run.wait_until(lambda: run.plays() >= before + 4)
    assert "died and is replaced" in run.log.read_text()
    actors = local_players(run.process.pid)
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(60) == 130
    run.wait_until(lambda: not alive(actors), 10, running=False)
    assert RunFolder(run.folder).read_state().minutes > 0


def test_without_the_server_actors_are_replaced(run: Run) -> None:
    victims = local_players(run.process.pid)
    (server,) = set(named(descendants(run.process.pid), "forkserver")) - victims
    os.kill(server, signal.SIGKILL)
    run.wait_until(lambda: not alive(victims) and len(local_players(run.process.pid)) == 2)
    before = run.plays()
    run.wait_until(lambda: run.plays() >= before + 4)


def test_killed_again_and_again_nothing_is_lost(run: Run) -> None:
    """The numbers of games on disk and of steps never fall; actors end with their trainer."""
    games = steps = 0
    for kill in range(4):
        starts = len(events(run.folder, "start"))
        time.sleep(0.3 * kill)
        actors = local_players(run.process.pid)
        run.process.kill()
        run.process.wait()
        assert run.games_on_disk() >= games
        games = run.games_on_disk()
        run.wait_until(lambda actors=actors: not alive(actors), 10, running=False)
        run.start("--resume")
        run.wait_until(lambda starts=starts: len(events(run.folder, "start")) > starts)
        resumed = events(run.folder, "start")[-1]["steps"]
        assert resumed >= steps
        steps = resumed
        plays = run.plays()
        run.wait_until(lambda plays=plays: run.plays() > plays)
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(60) == 130
    assert trained("--run", run.folder, "--resume", "--minutes", "0.05")["games"] >= games > 0
