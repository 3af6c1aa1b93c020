"""One evaluator for several processes: it answers as an evaluator of each process would, even if processes die."""

import contextlib
import gc
import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from programs import wait_until
from training_runs import SHORT, crownhead, last_json, trained

from engine.encoding import NUM_POLICY
from learner.inference import BackendError, make_evaluator
from learner.network import NETWORKS, Network, make_network
from learner.own_modules import MODULES_VARIABLE
from selfplay.actors import shared_evaluator
from selfplay.actors.shared_evaluator import SharedEvaluator, serve, shares_evaluator
from selfplay.actors.worker import actors_here
from selfplay.machines.threads import choose_device, gpu_busy, spread_over_gpus
from selfplay.run.config import make_config

pytestmark = pytest.mark.skipif(not hasattr(socket, "send_fds"), reason="needs Unix sockets")
PROGRAM = shared_evaluator._program()


def network(size: str, seed: int) -> Network:
    torch.manual_seed(seed)
    return make_network(NETWORKS[size]).eval()


def positions(number: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    squares = rng.integers(0, 2**32, (number, 2), dtype=np.uint32)
    own, opponent = squares[:, 0] & ~squares[:, 1], squares[:, 1]
    nothing = np.zeros(number, np.uint32)
    return np.stack([own, opponent, nothing, nothing], 1).astype(np.uint32)


def server_of(folder: Path) -> int:
    """The process that evaluates."""
    (pid,) = servers_of(folder)
    return pid


def servers_of(folder: Path) -> list[int]:
    table = subprocess.run(["ps", "-ewwo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [int(row.split()[0]) for row in table.splitlines() if f"{folder}/" in row and "serve" in row]


@pytest.fixture
def served(short: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a thread of this process evaluates with torch."""
    monkeypatch.setattr(shared_evaluator, "_IDLE_S", 20.0)
    address = short / f"cpu-torch-float32-0-{PROGRAM}"
    threading.Thread(target=serve, args=(str(address), "torch-float32", "cpu"), daemon=True).start()
    wait_until(address.exists)
    return short


def test_clients_of_several_networks_get_their_own_answers(served: Path) -> None:
    first, second = network("tiny", 1), network("wide32", 2)
    clients = [SharedEvaluator(net, "torch-float32", folder=served) for net in (first, second, first)]
    batches = [positions(number, seed) for seed, number in enumerate((5, 64, 5000))]
    answers: list[list[np.ndarray]] = [[], [], []]

    def ask(number: int) -> None:
        for _ in range(3):
            answers[number] = list(clients[number].evaluate(batches[number]))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for net, batch, (policy, wdl) in zip((first, second, first), batches, answers, strict=True):
        expected = make_evaluator(net, "torch-float32").evaluate(batch)
        np.testing.assert_allclose(policy, expected[0], atol=1e-4)
        np.testing.assert_allclose(wdl, expected[1], atol=1e-4)
        assert policy.shape == (len(batch), NUM_POLICY)
    assert clients[0].backend == "torch-float32"


def test_networks_with_the_same_weights_may_compute_something_else(served: Path) -> None:
    """As those of two runs with one seed."""
    torch.manual_seed(1)
    other = make_network(NETWORKS["tiny"].model_copy(update={"board": "8x8"})).eval()
    batch = positions(9)
    for net in (network("tiny", 1), other):
        policy, _ = SharedEvaluator(net, "torch-float32", folder=served).evaluate(batch)
        np.testing.assert_allclose(policy, make_evaluator(net, "torch-float32").evaluate(batch)[0], atol=1e-4)


def test_another_source_is_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a network of one's own computes changes with its source."""
    programs = set()
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "mine.py").write_text(f"SCALE = {number // 2}\n")
        monkeypatch.setenv(MODULES_VARIABLE, "mine")
        monkeypatch.setattr("sys.path", [str(tmp_path / str(number)), *sys.path])
        importlib.invalidate_caches()
        programs.add(shared_evaluator._program())
    assert len(programs) == 2


def test_other_weights_from_now_on(served: Path) -> None:
    first, second = network("tiny", 1), network("tiny", 2)
    client, other = (SharedEvaluator(first, "torch-float32", folder=served) for _ in range(2))
    client.update(second)
    batch = positions(9)
    for asked, net in ((client, second), (other, first)):
        np.testing.assert_allclose(
            asked.evaluate(batch)[0], make_evaluator(net, "torch-float32").evaluate(batch)[0], atol=1e-4
        )


def test_it_ends_when_nobody_is_there(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = SharedEvaluator(network("tiny", 1), "torch-float32", folder=served)
    client.evaluate(positions(1))
    assert client._connection is not None
    monkeypatch.setattr(shared_evaluator, "_IDLE_S", 2.0)
    client._connection.close()
    wait_until(lambda: not (served / f"cpu-torch-float32-0-{PROGRAM}").exists())


@pytest.mark.parametrize(
    ("choice", "size", "backend", "device", "shared"),
    [
        ("auto", "tiny", "auto", "cpu", False),
        ("auto", "tiny", "auto", "cuda:0", True),
        ("auto", "tiny", "numba", "cuda:0", False),
        ("auto", "wide32", "auto", "cuda:0", False),
        ("auto", "wide32", "torch", "cuda:1", True),
        ("own", "tiny", "auto", "cuda:0", False),
        ("shared", "wide32", "auto", "cpu", True),
    ],
)
def test_what_a_gpu_computes_is_shared(choice: str, size: str, backend: str, device: str, shared: bool) -> None:
    assert shares_evaluator(choice, NETWORKS[size], backend, device) == shared


@pytest.mark.parametrize(
    ("device", "size", "actors", "expected"),
    [("cpu", "2x32", "auto", 16), ("cuda", "2x32", "auto", 24), ("cuda", "wide32", "auto", 16), ("cuda", "2x32", 3, 3)],
)
def test_more_actors_than_cores_where_they_wait_for_a_gpu(
    monkeypatch: pytest.MonkeyPatch, device: str, size: str, actors: int | str, expected: int
) -> None:
    monkeypatch.setattr("selfplay.actors.worker.num_cores", lambda: 16)
    monkeypatch.setattr("selfplay.actors.worker.choose_device", lambda name: device)
    assert actors_here(make_config("quick", [f"network={size}", f"selfplay.actors={actors}"])) == expected


def test_actors_are_divided_between_gpus_and_their_evaluators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    places = [spread_over_gpus("cuda", number) for number in range(5)]
    assert places == [("cuda:0", 0), ("cuda:1", 0), ("cuda:0", 1), ("cuda:1", 1), ("cuda:0", 2)]
    assert spread_over_gpus("cpu", 3) == ("cpu", 0)
    assert spread_over_gpus("cuda:1", 2) == ("cuda:1", 2)


def test_gpus_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert choose_device("cuda:0") == "cuda:0"
    with pytest.raises(ValueError, match="device cuda:1: torch finds 1 CUDA devices here"):
        choose_device("cuda:1")


def test_how_busy_a_gpu_is_where_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.utilization", lambda device: 93)
    assert gpu_busy("cuda:0") == 93
    assert gpu_busy("cpu") is None

    def missing(device: str) -> int:
        raise ModuleNotFoundError("pynvml")

    monkeypatch.setattr("torch.cuda.utilization", missing)
    assert gpu_busy("cuda:0") is None


def test_one_that_is_dying_and_accepts_is_left_for_the_next(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_evaluator, "_start", lambda *_: None)
    address = short / f"cpu-torch-float32-0-{PROGRAM}"
    dying = socket.socket(socket.AF_UNIX)
    dying.bind(str(address))
    dying.listen()

    def die_and_start_again() -> None:
        for _ in range(2):
            dying.accept()[0].close()
        dying.close()
        serve(str(address), "torch-float32", "cpu")

    threading.Thread(target=die_and_start_again, daemon=True).start()
    net, batch = network("tiny", 1), positions(9)
    client = SharedEvaluator(net, "torch-float32", folder=short)
    np.testing.assert_allclose(
        client.evaluate(batch)[0], make_evaluator(net, "torch-float32").evaluate(batch)[0], atol=1e-4
    )


def test_one_that_dies_again_and_again_is_said(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_evaluator, "_PAUSE_S", 0.0)
    monkeypatch.setattr(shared_evaluator, "_start", lambda *_: None)
    with socket.socket(socket.AF_UNIX) as dying:
        dying.bind(str(short / f"cpu-auto-0-{PROGRAM}"))
        dying.listen()

        def die() -> None:
            with contextlib.suppress(OSError):  # the test is over
                while True:
                    dying.accept()[0].close()

        threading.Thread(target=die, daemon=True).start()
        with pytest.raises(BackendError, match=rf"has died 5 times in a row: see .*cpu-auto-0-{PROGRAM}\.log"):
            SharedEvaluator(network("tiny", 1), folder=short)


@pytest.mark.slow
def test_it_is_started_and_started_again(short: Path) -> None:
    net, batch = network("wide32", 1), positions(100)
    expected = make_evaluator(net).evaluate(batch)
    clients = [SharedEvaluator(net, folder=short) for _ in range(2)]
    for client in clients:
        np.testing.assert_array_equal(client.evaluate(batch)[0], expected[0])
    first = server_of(short)
    os.kill(first, signal.SIGKILL)
    for client in clients:
        np.testing.assert_array_equal(client.evaluate(batch)[1], expected[1])
    second = server_of(short)
    assert second != first
    os.kill(second, signal.SIGKILL)


def test_the_socket_of_a_long_folder_lies_in_a_private_one(tmp_path: Path) -> None:
    address = shared_evaluator._address("cpu-auto-0", tmp_path / ("x" * 100))
    assert len(str(address)) < 100
    assert address.parent.stat().st_mode & 0o077 == 0
    address.parent.rmdir()


def test_one_that_cannot_be_started_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_evaluator, "_START_S", 0.5)
    monkeypatch.setattr(shared_evaluator, "_start", lambda *_: None)
    with pytest.raises(BackendError, match="has not started"):
        SharedEvaluator(network("tiny", 1), folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["local", "threads"])
def test_a_run_with_a_shared_evaluator(tmp_path: Path, short: Path, pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(short))
    options = ["--pool", pool, "--set", "selfplay.evaluator=shared", "--set", "selfplay.actors=2", *SHORT]
    begin = ("--preset", "smoke", "--run", tmp_path / "run", *options)
    # The server of forks that an earlier test has started in this process would have another folder for caches.
    figures = last_json(crownhead("train", *begin, "--json")) if pool == "local" else trained(*begin)
    assert figures["iterations"] == 1
    folder = short / "crownhead" / "evaluators"
    assert list(folder.glob("*.log")), "a server was started"
    for server in servers_of(folder):  # it may have ended
        os.kill(server, signal.SIGKILL)


def test_one_that_is_dropped_leaves_nothing_open(served: Path) -> None:
    def opened() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0

    SharedEvaluator(network("tiny", 1), "torch-float32", folder=served)
    before = opened()
    for _ in range(5):
        SharedEvaluator(network("tiny", 1), "torch-float32", folder=served)
    wait_until(lambda: opened() <= before, seconds=20)


def test_a_client_that_is_killed_before_it_sends_its_memory_ends_nothing(served: Path) -> None:
    net, batch = network("tiny", 1), positions(9)
    client = SharedEvaluator(net, "torch-float32", folder=served)
    connection = client._connection
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as killed:
            killed.connect(str(served / f"cpu-torch-float32-0-{PROGRAM}"))
    np.testing.assert_allclose(
        client.evaluate(batch)[0], make_evaluator(net, "torch-float32").evaluate(batch)[0], atol=1e-4
    )
    assert client._connection is connection is not None  # the same process still answers


@pytest.mark.parametrize("sent", [b"", b"h", b"n", b"n\2\0\0\0{"])
def test_a_client_that_is_stopped_holds_up_the_others_for_a_moment(
    served: Path, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_evaluator, "_HELD_UP_S", 0.2)
    (address,) = served.glob("cpu-*")
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.connect(str(address))
        if sent:
            socket.send_fds(stopped, [b"h"], [shared_evaluator._new_memory()])
        stopped.sendall(sent.removeprefix(b"h"))
        net = network("tiny", 1)
        answers = SharedEvaluator(net, "torch-float32", folder=served).evaluate(positions(3))
    expected = make_evaluator(net, "torch-float32").evaluate(positions(3))
    np.testing.assert_allclose(answers[0], expected[0], atol=1e-4)


def test_other_games_and_other_code_have_servers_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {PROGRAM}
    monkeypatch.setenv("CROWNHEAD_IMPORT", "mine.py")
    programs.add(shared_evaluator._program())
    monkeypatch.setattr(shared_evaluator, "GAME", "another")
    programs.add(shared_evaluator._program())
    elsewhere = shutil.copy(shared_evaluator.__file__, tmp_path)
    monkeypatch.setattr(shared_evaluator, "__file__", str(elsewhere))
    programs.add(shared_evaluator._program())
    assert len(programs) == 4
