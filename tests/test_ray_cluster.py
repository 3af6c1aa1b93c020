"""Training over the nodes of a Ray cluster that come and go."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import ROOT, crownhead_program

pytest.importorskip("ray", reason="Ray is not installed")

pytestmark = pytest.mark.slow
NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
SETTINGS = [
    "selfplay.actors=auto", "loop.max_iterations=100000", "loop.anchor_games=0", "gate.max_games=2", "network=wide32",
    "replay.keep_shards=false",
]  # fmt: skip


@pytest.fixture
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    # Without a token only a cluster on loopback is joined.
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "node_ip_address": "127.0.0.1"})
    yield cluster
    cluster.shutdown()


def test_nodes_join_play_and_are_lost(cluster: Any, tmp_path: Path) -> None:
    """A node that joins plays; one that is killed costs what it was playing, and another takes its place."""
    run, log_path = tmp_path / "run", tmp_path / "log"
    options = [text for setting in SETTINGS for text in ("--set", setting)]
    command = crownhead_program("train", "--preset", "smoke", "--run", run, "--address", cluster.address, *options)
    with open(log_path, "w") as log:
        trainer = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

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
            before = shards_of_others()
            node = cluster.add_node(node_ip_address="127.0.0.1", **NODE)
            wait_until(lambda before=before: shards_of_others() >= before + 2)
            told = log_path.read_text().count("has gone with its machine")
            cluster.remove_node(node, allow_graceful=False)
            wait_until(lambda told=told: log_path.read_text().count("has gone with its machine") > told)
        trainer.send_signal(signal.SIGINT)
        assert trainer.wait(60) == 130
    finally:
        trainer.kill()
        trainer.wait()
    assert "Traceback" not in log_path.read_text()


def test_a_cluster_open_to_the_network_is_joined_with_a_token_only(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        if cluster.address.startswith("127."):
            pytest.skip("this machine has no other address than loopback")
        command = crownhead_program(
            "train", "--preset", "smoke", "--run", tmp_path / "run", "--address", cluster.address
        )
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    finally:
        cluster.shutdown()
    assert done.returncode == 2
    assert "RAY_AUTH_MODE=token" in done.stderr.strip().splitlines()[-1]
