"""Training over the nodes of a Ray cluster that come and go."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from programs import ROOT, crownhead_program
from test_ray import descendants

pytest.importorskip("ray", reason="Ray is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="reads the table of processes")]
SETTINGS = [
    "selfplay.actors=auto", "loop.max_iterations=100000", "loop.anchor_games=0", "gate.max_games=2", "network=wide32",
    "replay.keep_shards=false",
]  # fmt: skip


def own_address() -> str:
    """This machine's, as others see it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address


class Cluster:
    """Nodes of one CPU on this machine, started as people start them."""

    def __init__(self, folder: Path, token: str | None) -> None:
        self._environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
        if token is not None:
            self._environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
        self._nodes: list[subprocess.Popen[bytes]] = []
        self._log = open(folder / "nodes", "wb")  # noqa: SIM115 - open as long as there are nodes
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        self.add(
            "--head", "--port", port, "--include-dashboard", "false", "--temp-dir", tempfile.mkdtemp("", "ch", "/tmp")
        )
        self.address = f"{own_address()}:{port}"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.2)
        raise AssertionError((folder / "nodes").read_text())

    def add(self, *options: object) -> int:
        """Starts a node; returns its number."""
        program = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus", "1", "--block"]
        command = [*program, "--object-store-memory", str(100 * 2**20), *map(str, options)]
        node = subprocess.Popen(command, env=self._environment, stdout=self._log, stderr=self._log)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def kill(self, number: int) -> None:
        for pid in descendants(self._nodes[number].pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._nodes[number].wait()

    def train(self, run: Path, log: IO[str]) -> subprocess.Popen[bytes]:
        options = [text for setting in SETTINGS for text in ("--set", setting)]
        command = crownhead_program("train", "--preset", "smoke", "--run", run, "--address", self.address, *options)
        return subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=log, stderr=log)

    def close(self) -> None:
        for number, node in enumerate(self._nodes):
            if node.poll() is None:
                self.kill(number)
        self._log.close()


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    if own_address().startswith("127."):
        pytest.skip("this machine has no other address than loopback")
    started = Cluster(tmp_path, request.param)
    yield started
    started.close()


@pytest.mark.parametrize("cluster", ["f00d" * 16], indirect=True)
def test_nodes_join_play_and_are_lost(cluster: Cluster, tmp_path: Path) -> None:
    """A node that joins plays; one that is killed costs what it was playing, and another takes its place."""
    run, log_path = tmp_path / "run", tmp_path / "log"
    with open(log_path, "w") as log:
        trainer = cluster.train(run, log)

    def shards_of_others() -> int:
        """Shards from other actors than the first node's."""
        path = run / "log.jsonl"
        events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return sum(event["event"] == "play" and event["actor"] != 0 for event in events)

    def wait_until(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 180
        while not condition():
            assert trainer.poll() is None, log_path.read_text()
            assert time.monotonic() < deadline, log_path.read_text()
            time.sleep(0.1)

    try:
        wait_until(lambda: (run / "log.jsonl").exists())
        for _ in range(2):
            before, told = shards_of_others(), log_path.read_text().count("has gone with its machine")
            node = cluster.add("--address", cluster.address)
            wait_until(lambda before=before: shards_of_others() >= before + 2)
            cluster.kill(node)
            wait_until(lambda told=told: log_path.read_text().count("has gone with its machine") > told)
        trainer.send_signal(signal.SIGINT)
        assert trainer.wait(60) == 130
    finally:
        trainer.kill()
        trainer.wait()
    assert "Traceback" not in log_path.read_text()


@pytest.mark.parametrize("cluster", [None], indirect=True)
def test_a_cluster_open_to_the_network_is_joined_with_a_token_only(cluster: Cluster, tmp_path: Path) -> None:
    with open(tmp_path / "log", "w") as log:
        assert cluster.train(tmp_path / "run", log).wait(120) == 2
    assert "RAY_AUTH_MODE=token" in (tmp_path / "log").read_text().strip().splitlines()[-1]
