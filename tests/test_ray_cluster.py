"""Training on a Ray cluster whose nodes join and leave."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
import torch
from process_table import descendants, named
from programs import ROOT, crownhead_here, crownhead_program, wait_until
from tablebase_disk import contents, shipped

from engine.pdn import read_games
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network

pytest.importorskip("ray", reason="Ray is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="reads the table of processes")]
TOKEN = "f00d" * 16
SETTINGS = [
    "selfplay.actors=auto", "loop.max_iterations=100000", "loop.anchor_games=0", "gate.max_games=2", "network=wide32",
    "replay.keep_shards=false",
]  # fmt: skip


def own_address() -> str:
    """This machine's address as seen by other machines."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address


class Cluster:
    """A cluster of nodes with one CPU each on this machine, started by the usual commands."""

    def __init__(self, folder: Path, token: str | None) -> None:
        self._environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
        self._environment["RAY_worker_niceness"] = "0"  # or actors would hardly start beside others
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
        wait_until(lambda: self._answers(port), self._nodes[0], log=folder / "nodes")

    @staticmethod
    def _answers(port: int) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    def add(self, *options: object) -> int:
        """Starts a node; returns its number."""
        program = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus", "1", "--block"]
        command = [*program, "--object-store-memory", str(100 * 2**20), *map(str, options)]
        node = subprocess.Popen(command, env=self._environment, stdout=self._log, stderr=self._log)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def processes(self, number: int) -> set[int]:
        """The processes of a node."""
        return descendants(self._nodes[number].pid)

    def all_processes(self) -> set[int]:
        return {pid for number, node in enumerate(self._nodes) if node.poll() is None for pid in self.processes(number)}

    def drain(self, number: int) -> None:
        """Tells the cluster that a node will be removed soon, as with spot machines."""
        (raylet,) = named(self.processes(number), "raylet/raylet")
        arguments = Path(f"/proc/{raylet}/cmdline").read_text().split("\0")
        (node,) = [text.partition("=")[2] for text in arguments if text.startswith("--node_id=")]
        why = ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "test"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "drain-node", "--node-id", node, *why]
        deadline = ["--address", self.address, "--deadline-remaining-seconds", "10"]
        subprocess.run([*command, *deadline], env=self._environment, stdout=self._log, stderr=self._log, check=False)

    def kill(self, number: int) -> None:
        for pid in self.processes(number):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._nodes[number].wait()

    def crownhead(
        self, log: IO[str], *arguments: object, folder: Path = ROOT, **environment: str
    ) -> subprocess.Popen[bytes]:
        """Starts a command of this checkout on the cluster, in a folder."""
        command = crownhead_program(*arguments, "--address", self.address)
        environment = {**self._environment, "PYTHONPATH": str(ROOT), **environment}
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    def train(self, run: Path, log: IO[str], **environment: str) -> subprocess.Popen[bytes]:
        options = [text for setting in SETTINGS for text in ("--set", setting)]
        return self.crownhead(log, "train", "--preset", "smoke", "--run", run, *options, **environment)

    def close(self) -> None:
        for number, node in enumerate(self._nodes):
            if node.poll() is None:
                self.kill(number)
        self._log.close()


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of one node, to which tests add others; with a token, or None."""
    if own_address().startswith("127."):
        pytest.skip("this machine has no other address than loopback")
    started = Cluster(tmp_path_factory.mktemp("cluster"), request.param)
    yield started
    started.close()


@pytest.mark.parametrize("cluster", [TOKEN], indirect=True)
def test_nodes_join_play_and_are_lost(cluster: Cluster, tmp_path: Path) -> None:
    """A node that joins plays. When a node is killed, only its games in play are lost, and another node replaces it."""
    run, log_path = tmp_path / "run", tmp_path / "log"
    with open(log_path, "w") as log:
        trainer = cluster.train(run, log)

    def shards_of_others() -> int:
        """Number of shards from actors of nodes other than the first."""
        path = run / "log.jsonl"
        events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return sum(event["event"] == "play" and event["actor"] != 0 for event in events)

    def wait(condition: Callable[[], object]) -> None:
        wait_until(condition, trainer, log=log_path)

    try:
        wait(lambda: (run / "log.jsonl").exists())
        for _ in range(2):
            before, told = shards_of_others(), log_path.read_text().count("has gone with its machine")
            node = cluster.add("--address", cluster.address)
            wait(lambda before=before: shards_of_others() >= before + 2)
            cluster.kill(node)
            wait(lambda told=told: log_path.read_text().count("has gone with its machine") > told)
        trainer.send_signal(signal.SIGINT)
        assert trainer.wait(60) == 130
    finally:
        trainer.kill()
        trainer.wait()
    assert "Traceback" not in log_path.read_text()


@pytest.mark.parametrize("cluster", [TOKEN], indirect=True)
def test_tables_are_built_on_nodes_that_are_lost(cluster: Cluster, tmp_path: Path) -> None:
    """The files have the same bytes as those that were built on one machine, which come with the package."""
    cluster.add("--address", cluster.address)
    lost = cluster.add("--address", cluster.address)
    build, log_path = ("tablebase", "build", "--pieces", 4), tmp_path / "log"
    with open(log_path, "w") as log:
        building = cluster.crownhead(log, *build, "--dir", tmp_path / "away")
        try:
            wait_until(lambda: len(list((tmp_path / "away").glob("*"))) >= 6, building, log=log_path)
            cluster.kill(lost)
            assert building.wait(240) == 0, log_path.read_text()
        finally:
            building.kill()
            building.wait()
    assert contents(tmp_path / "away") == shipped(4)


def games_of(text: str) -> list[tuple[str, ...]]:
    """Round, players, result and moves of each game, in the order of the rounds."""
    tags = "Round", "Black", "White", "Result"
    games = [(game.headers, " ".join(str(node.move) for node in game.moves)) for game in read_games(text)]
    return sorted((*(headers[tag] for tag in tags), moves) for headers, moves in games)


@pytest.mark.parametrize("cluster", [TOKEN], indirect=True)
def test_matches_are_played_on_nodes_that_are_lost(cluster: Cluster, tmp_path: Path) -> None:
    """The network is in a folder that only this process can find. The games are those of a match on one machine.

    Games that a node lost are exceptions: they are played again, with the random numbers of another first game.
    """
    torch.manual_seed(1)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["wide32"]), {})
    match = ("match", "net@200", "rollout:60", "--games", 64, "--openings", "random:4", "--jobs", 2)
    done = crownhead_here(*match, "--pdn", "here.pdn", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    node = cluster.add("--address", cluster.address)
    log_path, away = tmp_path / "log", tmp_path / "away.pdn"
    with open(log_path, "w") as log:
        playing = cluster.crownhead(log, *match, "--pdn", away, folder=tmp_path)
    try:
        wait_until(lambda: away.exists() and away.read_text().count("[Event ") >= 8, playing, log=log_path)
        before = games_of(away.read_text().rpartition("[Event ")[0])
        cluster.kill(node)
        assert playing.wait(300) == 0, log_path.read_text()
    finally:
        playing.kill()
        playing.wait()
    here, there = games_of((tmp_path / "here.pdn").read_text()), games_of(away.read_text())
    assert [game[0] for game in there] == [game[0] for game in here]
    assert set(before) <= set(here) & set(there)


@pytest.mark.parametrize("cluster", [None], indirect=True)
def test_a_cluster_open_to_the_network_is_joined_with_a_token_only(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by who has a token, which such a cluster ignores. A process of its own joins it, with this environment."""
    for name, mode in ("without", "disabled"), ("with", "token"):
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
        monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
        begin = "train", "--preset", "smoke", "--run", tmp_path / name, "--address", cluster.address
        done = crownhead_here(*begin, *(text for setting in SETTINGS for text in ("--set", setting)))
        assert done.returncode == 2
        assert "start it with RAY_AUTH_MODE=token" in done.stderr.strip().splitlines()[-1]


def refused(words: tuple[object, ...]) -> str:
    """The one line with which a command refuses what it was given."""
    command = crownhead_program(*words)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("cluster", [TOKEN], indirect=True)
def test_who_has_not_the_token_is_told_so(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    match = ("match", "random", "random", "--games", 2, "--address", cluster.address)
    monkeypatch.setenv("HOME", str(tmp_path))  # where no token lies
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert "wants a token: copy ~/.ray/auth_token from the head node, and export RAY_AUTH_MODE=token" in refused(match)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    assert "refuses the token of this command, or there is none" in refused(match)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "beef" * 16)
    assert "refuses the token of this command, or there is none" in refused(match)


@pytest.mark.parametrize("cluster", [TOKEN], indirect=True)
def test_a_match_that_a_scheduler_ends_says_how_it_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    log_path, games = tmp_path / "log", tmp_path / "games.pdn"
    with open(log_path, "w") as log:
        playing = cluster.crownhead(log, "match", "rollout:60", "random", "--games", 4000, "--pdn", games)
    try:
        wait_until(lambda: games.exists() and games.read_text().count("[Event ") >= 2, playing, log=log_path)
        playing.send_signal(signal.SIGTERM)
        assert playing.wait(60) == 130
    finally:
        playing.kill()
        playing.wait()
    assert "the same command with --resume goes on" in log_path.read_text().splitlines()[-1]
