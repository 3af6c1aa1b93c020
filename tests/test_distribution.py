"""Faults of the distribution: what is lost, stalls or is told wrongly. Without Ray: its calls are replaced."""

import contextlib
import json
import logging
import multiprocessing
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from selfplay.actors import pool as pool_module
from selfplay.actors import ray_pool, ray_process
from selfplay.actors.actor import PlayStats
from selfplay.actors.pool import Pool, PoolError, Result
from selfplay.actors.pool_match import PoolMatch
from selfplay.actors.ray_pool import RayPool
from selfplay.actors.ray_process import RayProcess, _Answer, _answer, _Warnings
from selfplay.actors.weights import Weights
from selfplay.actors.worker import Played
from selfplay.machines import ray_tables
from selfplay.machines.cluster import ClusterError
from selfplay.run.config import make_config
from selfplay.run.folder import RunError, RunFolder, RunState
from selfplay.run.mirror import Mirror
from selfplay.run.status import read_status

CONFIG = make_config("smoke")
REMOTE = CONFIG.model_copy(update={"address": "10.0.0.1:6379"})
SHARD = Played(0, "far", b"x", PlayStats())


class RayError(Exception):
    pass


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, for modules of the pools."""
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    fake = SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep)
    for module in (pool_module, ray_pool, ray_process, ray_tables):
        monkeypatch.setattr(module, "time", fake)
    return clock


def begin_with(monkeypatch: pytest.MonkeyPatch, serve: Callable[[Any, int], object]) -> list[Any]:
    """Makes ``RayProcess`` begin with a pipe that ``serve`` is given; returns the ends of all that have begun."""
    ends: list[Any] = []

    def begin(self: RayProcess) -> None:
        self._connection, other = multiprocessing.Pipe()
        self._process = SimpleNamespace(kill=lambda: None, join=lambda seconds: None)  # type: ignore[assignment]
        self._ready = self._asked = False
        self._answer_by = ray_process.time.monotonic() + 180
        ends.append(other)
        serve(other, len(ends))

    monkeypatch.setattr(RayProcess, "_begin", begin)
    return ends


def test_weights_and_shards_on_the_way_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fills the pipe: the learner must not wait for the pool while that waits for the learner."""
    taken: list[PoolMatch] = []

    class Busy:
        size = in_flight = started = 1
        dashboard = None

        def __init__(self, *_: object) -> None: ...
        def set_weights(self, weights: Weights) -> None: ...
        def refill(self, in_flight: int) -> None: ...
        def set_match(self, match: PoolMatch) -> None:
            taken.append(match)

        def collect(self, timeout: float) -> list[Result]:
            time.sleep(0.1)  # so that the learner has gone on
            return [Played(0, "far", bytes(1_000_000), PlayStats())]

        def close(self) -> list[Result]:
            return []

    monkeypatch.setattr(ray_pool, "RayPool", Busy)

    def answer(other: Any) -> None:
        with contextlib.suppress(EOFError):  # the test is over
            _answer(other, CONFIG, 0, _Warnings())

    begin_with(monkeypatch, lambda other, _: threading.Thread(target=answer, args=(other,), daemon=True).start())
    pool, weights = RayProcess(CONFIG, 0), Weights(CONFIG.network, bytes(1_000_000), "d")
    pool.set_weights(weights)
    over, match = threading.Event(), PoolMatch(1, ("a", "b"), (weights, weights), None, 1, 2)

    def learn() -> None:
        pool.refill()
        pool.collect(0.0)
        time.sleep(0.3)  # a step and the save before a gate; the pool answers meanwhile
        pool.set_match(match)
        for _ in range(2):
            pool.refill()
            pool.collect(5.0)
        over.set()

    threading.Thread(target=learn, daemon=True).start()
    assert over.wait(10)
    assert match.number in [taken_.number for taken_ in taken if taken_ is not None]


@pytest.mark.parametrize("answers", [False, True])
def test_a_pool_that_hangs_is_started_again(
    monkeypatch: pytest.MonkeyPatch, now: list[float], answers: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """While it joins a cluster whose head accepts and never answers, or later."""

    def serve(other: Any, number: int) -> None:
        if number == 1 or answers:
            other.send(_Answer([], None, 2, 0, number))

    ends = begin_with(monkeypatch, serve)

    def receive(connection: Any, timeout: float) -> Any:
        if connection.poll(0):
            return connection.recv()
        now[0] += timeout
        return None

    monkeypatch.setattr(RayProcess, "_receive", staticmethod(receive))
    pool = RayProcess(REMOTE, 0)
    pool.set_weights(Weights(CONFIG.network, b"", "d"))
    if not answers:
        ends[0].close()
    began = len(ends)
    with caplog.at_level(logging.WARNING):
        while now[0] < 1000:
            pool.refill()
            pool.collect(10.0)
    assert len(ends) > began + 1
    assert "has not answered within 180 s" in caplog.text


def test_a_head_that_is_away_for_minutes(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> None:
    refused = ClusterError("no Ray cluster answers at 10.0.0.1:6379: Connection refused")

    def serve(other: Any, number: int) -> None:
        other.send(_Answer([], refused) if number > 1 else _Answer([]))

    ends = begin_with(monkeypatch, serve)
    pool = RayProcess(REMOTE, 0)
    ends[0].close()

    def wait() -> None:
        while True:
            pool.collect(0.2)

    with pytest.raises(PoolError, match=r"for the cluster at 10\.0\.0\.1:6379 .*--resume"):
        wait()
    assert now[0] > 300


class FakePool(Pool):
    dead = RayError

    def __init__(self, places: list[tuple[str, int]], answers: dict[Any, Any]) -> None:
        self.places, self.answers = places, answers
        super().__init__(CONFIG, 0)
        self.set_weights("w")  # type: ignore[arg-type]
        self.nodes = len({machine for machine, _ in places})

    def _places(self) -> Sequence[Hashable]:
        return self.places

    def _start(self, actor: Any, seed: int) -> Any:
        return actor

    def _ask(self, handle: Any, method: str, *arguments: Any) -> Any:
        return handle.place

    def _wait(self, requests: Sequence[Any], timeout: float) -> None: ...

    def _is_done(self, request: Any) -> bool:
        return request in self.answers

    def _result(self, request: Any) -> Any:
        if isinstance(self.answers[request], Exception):
            raise self.answers[request]
        return self.answers[request]

    def close(self) -> list[Result]:
        return self._take_kept()


def test_a_machine_that_fails_for_days(now: list[float]) -> None:
    pool = FakePool([("good", 0), ("bad", 0)], {("good", 0): SHARD, ("bad", 0): ValueError("another version")})
    pool._actors[1].failures = 2000
    pool.refill(1)
    assert pool.collect(0.0) == [SHARD]
    assert pool._actors[1].starts_at == now[0] + 60


def test_what_is_finished_is_not_thrown_away(now: list[float]) -> None:
    pool = FakePool([("a", 0), ("a", 1)], {("a", 0): SHARD, ("a", 1): ValueError("broken")})
    pool.refill(1)
    with pytest.raises(ValueError, match="broken"):
        pool.collect(0.0)
    assert pool.close() == [SHARD]
    pool = FakePool([("a", 0), ("b", 0)], {("b", 0): SHARD})
    pool.refill(1)
    pool.places = [("a", 0)]
    now[0] += 10
    pool.refill(1)
    assert pool.collect(0.0) == [SHARD]


@pytest.fixture
def cpus(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """CPUs of the nodes of a cluster where nothing starts, and whose head answers no questions."""
    nodes: dict[str, int] = {}

    def silent() -> None:
        raise RayError("the head does not answer")

    def asked(*_: object) -> Any:
        call = SimpleNamespace(remote=lambda *_: "never")
        return SimpleNamespace(here=call, call=call)

    worker = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=asked))
    ray = SimpleNamespace(
        exceptions=SimpleNamespace(RayError=RayError),
        remote=lambda **_: lambda _: worker,
        put=lambda data: data,
        wait=lambda requests, timeout: ray_pool.time.sleep(timeout),
        cluster_resources=silent,
    )
    cluster = SimpleNamespace(ray=ray, dashboard=None, cpus=lambda: nodes, is_done=lambda _: False, on_node=str)
    monkeypatch.setattr(ray_pool, "Cluster", lambda _: cluster)
    return nodes


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "1 of 1 actors have not started for a minute: the cluster has 1 CPUs"), (0, "nobody plays")],
)
def test_what_does_not_start_is_said(
    now: list[float], cpus: dict[str, int], number: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    cpus["node"] = number
    pool = RayPool(make_config("smoke", ["selfplay.actors=auto"]), 0)
    pool.set_weights("w")  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        while now[0] < 100:
            pool.refill()
            pool.collect(1.0)
    assert said in caplog.text


def test_a_node_that_cannot_start_its_process_ends_no_build(
    tmp_path: Path, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {"good": 1, "bad": 1}

    def actor(name: str) -> Any:
        return SimpleNamespace(
            here=SimpleNamespace(remote=lambda: (name, None, now[0])),
            build=SimpleNamespace(remote=lambda pair, *_: (name, pair, now[0])),
        )

    def wait(asked: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        now[0] += timeout
        return [answer for answer in asked if answer[0] == "bad" or now[0] - answer[2] > 600], []

    def result(answer: Any) -> bytes:
        if answer[0] == "bad":
            raise RayError("no space left on device")
        return b"table"

    made = SimpleNamespace(
        options=lambda scheduling_strategy, **_: SimpleNamespace(remote=lambda *_: actor(scheduling_strategy))
    )
    ray = SimpleNamespace(
        exceptions=SimpleNamespace(RayError=RayError), remote=lambda **_: lambda _: made, put=bytes, wait=wait
    )
    cluster = SimpleNamespace(ray=ray, cpus=lambda: nodes, is_done=lambda _: True, result=result, on_node=str)
    monkeypatch.setattr(ray_tables, "Cluster", lambda _: cluster)
    monkeypatch.setattr("selfplay.machines.cluster.time", ray_tables.time)
    steps = list(ray_tables.build_over_cluster(tmp_path / "tables", 3, "there"))
    assert steps[-1].done == steps[-1].total
    del nodes["good"]
    with pytest.raises(ClusterError, match="no node can start its process, the last: no space left"):
        list(ray_tables.build_over_cluster(tmp_path / "others", 3, "there"))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", CONFIG)


def test_a_copy_with_two_writers_stays_whole(run: RunFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Another machine goes on from the copy, and the first has not ended."""
    url = (tmp_path / "copy").as_uri()
    (run.shards / "00000000.shard").write_bytes(b"games")
    first = Mirror(url)
    first.push(run, wait=True)
    second = Mirror(url)
    second.pull(tmp_path / "second")
    other, _ = RunFolder.open(tmp_path / "second")
    for number in range(1, 4):
        for mirror, folder, name in ((first, run, b"first"), (second, other, b"second")):
            (folder.shards / f"0000000{number}.shard").write_bytes(b"%b %d" % (name, number))
            folder.write_state(RunState(minutes=number))
            mirror.push(folder, wait=True)
    run.write_state(RunState(minutes=9))
    first.push(run, wait=True)
    Mirror(url).pull(tmp_path / "third")
    assert "another process writes to" in caplog.text
    (tmp_path / "copy" / "objects" / Mirror(url)._stored["state.json"]).unlink()
    with pytest.raises(RunError, match="contents of state"):
        Mirror(url).pull(tmp_path / "fourth")


def test_a_copy_whose_place_is_away_is_updated_when_it_is_back(
    run: RunFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As a share that is not mounted for a while."""
    url = (tmp_path / "copy").as_uri()
    mirror = Mirror(url)
    mirror.push(run, wait=True)
    (tmp_path / "copy").rename(tmp_path / "away")
    run.write_state(RunState(minutes=1))
    mirror.push(run, wait=True)
    assert "is behind: run.json is gone" in caplog.text
    assert not (tmp_path / "copy").exists()
    (tmp_path / "away").rename(tmp_path / "copy")
    mirror.push(run, wait=True)
    Mirror(url).pull(tmp_path / "other")
    assert RunFolder(tmp_path / "other").read_state().minutes == 1
    assert "another process writes" not in caplog.text


def test_a_copy_is_made_while_the_window_moves_on(run: RunFolder, tmp_path: Path) -> None:
    """With ``keep_shards=false`` shards vanish while others are copied; what has been copied counts."""
    url, games = (tmp_path / "copy").as_uri(), iter(range(10_000))
    mirror, written = Mirror(url), [0]
    plain = mirror._files.pipe_file

    def play() -> None:
        number = next(games)
        (run.shards / f"{number:08d}.shard").write_bytes(b"games %d" % number)
        (run.shards / f"{number - 20:08d}.shard").unlink(missing_ok=True)

    def write(path: str, data: bytes) -> None:
        plain(path, data)
        written[0] += 1
        if written[0] % 2 == 0:
            play()

    for _ in range(20):
        play()
    mirror._files.pipe_file = write
    for _ in range(8):
        mirror.push(run, wait=True)
    assert not Mirror(url).is_empty


def play(at: float, actor: int, machine: str) -> dict[str, object]:
    counts = {"games": 10, "samples": 600, "evaluations": 10_000, "window": 1, "behind": 0}
    return {"time": at, "event": "play", "actor": actor, "machine": machine, **counts}


def test_a_machine_that_plays_no_more_is_not_the_fastest(run: RunFolder) -> None:
    begun = time.time() - 300
    events = [play(begun + n / 100, n, "lost") for n in range(16)]
    events += [play(begun + 9 * n, 20, "a") for n in range(32)]
    run.log_path.write_text("".join(json.dumps(event) + "\n" for event in events))
    here, lost = read_status(run, 300)["machines"]
    assert lost["games_per_second"] == pytest.approx(150 / 279, abs=0.1)
    assert here["games_per_second"] == pytest.approx(1.11, abs=0.01)


def test_gates_are_shown_however_many_actors_play(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = {"event": "gate", "checkpoint": "000001", "wins": 1, "draws": 0, "losses": 0, "decision": "promote"}
    events = [{"time": 1.0, "event": "start", "dashboard": "http://there"}, {"time": 2.0, **gate}]
    events += [play(3.0 + n, n, "a") for n in range(100)]
    run.log_path.write_text("".join(json.dumps(event) + "\n" for event in events))
    monkeypatch.setattr("selfplay.run.status._TAIL_BYTES", 4000)
    status = read_status(run, 60)
    assert (status["dashboard"], len(status["gates"])) == ("http://there", 1)


def test_a_campaign_with_doubled_or_lost_games_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    import fault_campaign

    accounts = {"acknowledged": 10, "on disk": 10, "doubled": 0, "set aside": 0}
    (tmp_path / "output").touch()

    class Fake:
        run = tmp_path / "run"

        def __init__(self, *_: object) -> None: ...
        def wait_for_all(self, since: float) -> float:
            return 0.0

        def close(self) -> list[int]:
            return []

        def stalls(self) -> list[float]:
            return []

        def accounts(self) -> dict[str, int]:
            return accounts

    monkeypatch.setattr(fault_campaign, "Campaign", Fake)
    monkeypatch.setattr("sys.argv", ["fault_campaign.py", "--faults", "0"])
    for change, code in (({}, 0), ({"doubled": 5}, 1), ({"on disk": 3}, 1), ({"set aside": 1}, 1)):
        accounts.update({"on disk": 10, "doubled": 0, "set aside": 0, **change})
        with pytest.raises(SystemExit) as ended:
            fault_campaign.main()
        assert int(ended.value.code or 0) == code
