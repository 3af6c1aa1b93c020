"""The Ray pool: the same runs, with actors that may die."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from process_table import descendants, named
from programs import ROOT, crownhead_program, wait_until

pytest.importorskip("ray", reason="Ray is not installed")

LISTENING = "0A"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def ray_workers(parent: int) -> list[int]:
    """Process ids of the actors of the Ray instance that ``parent`` started."""
    return named(descendants(parent), "ray::_RayWorker")


def open_to_the_network(pids: set[int]) -> list[str]:
    """Local addresses except loopback on which these processes listen."""
    sockets = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            address = fields[1].split(":")[0]
            if fields[3] == LISTENING and fields[9] in sockets and address not in LOOPBACK:
                found.append(fields[1])
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads /proc")
def test_a_killed_actor_is_replaced_and_nothing_listens_outside(tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = ["loop.anchor_games=0", "loop.max_iterations=100000", "gate.max_games=2", "selfplay.actors=2"]
    options = [text for setting in settings for text in ("--set", setting)]
    command = crownhead_program("train", "--preset", "smoke", "--pool", "ray", "--run", run)
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=log, stderr=log)

    def plays() -> int:
        path = run / "log.jsonl"
        events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return sum(event["event"] == "play" for event in events)

    def wait(condition: Callable[[], object]) -> None:
        wait_until(condition, process, log=tmp_path / "log")

    try:
        wait(lambda: plays() >= 3)
        family = descendants(process.pid)
        assert open_to_the_network(family) == []
        token = Path.home() / ".ray" / "auth_token"
        assert not token.exists() or token.stat().st_mode & 0o077 == 0
        victims = ray_workers(process.pid)
        assert len(victims) == 2
        assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in victims} == {os.getpriority(os.PRIO_PROCESS, 0)}
        os.kill(victims[0], signal.SIGKILL)
        before = plays()
        wait(lambda: len(set(ray_workers(process.pid)) - set(victims)) == 1)
        wait(lambda: plays() >= before + 6)
        (raylet,) = named(family, "raylet/raylet")
        os.kill(raylet, signal.SIGKILL)
        wait(lambda: "Ray has ended on this machine" in (tmp_path / "log").read_text())
        before = plays()
        wait(lambda: plays() >= before + 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
    log = (tmp_path / "log").read_text()
    assert "died and is replaced" in log
    assert all(len(line) < 200 and "raylet)" not in line for line in log.splitlines()), log


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads /proc")
def test_nothing_outlives_a_learner_that_is_killed(tmp_path: Path) -> None:
    command = crownhead_program("train", "--preset", "smoke", "--pool", "ray", "--run", tmp_path / "run")
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: ray_workers(process.pid), process)
    family = descendants(process.pid) - {process.pid}
    process.kill()
    process.wait()
    wait_until(lambda: not named(family, ""), seconds=40)
