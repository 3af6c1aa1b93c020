"""Games in several processes: same results for any number, processes that die, and errors in one line."""

import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from player_of import player_of
from process_table import descendants, local_players
from programs import crownhead_program, wait_until

from engine.board import Board
from engine.players import parse_player
from engine.players.search_player import SearchPlayer
from engine.players.time_control import TimeControl
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay.games.openings import MatchError, Opening, make_openings
from selfplay.machines.cluster import Cluster, ClusterError, ProcessFolder, _connect, check_address
from selfplay.matches import ray_match
from selfplay.matches.commands import open_pool
from selfplay.matches.match import play_match
from selfplay.matches.players import Players
from selfplay.matches.pool import MatchPool
from selfplay.matches.record import FORFEIT, MatchGame, MoveNote
from selfplay.matches.tasks import LOCKSTEP, Pairing, Task, make_tasks
from selfplay.run.config import make_config
from selfplay.run.folder import RunFolder

ROOT = Path(__file__).parents[1]
needs_signals = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
ENGINE = """
import os, random, signal, sys
sys.path.insert(0, {root!r})
from engine.board import Board
from engine.hub.messages import parse_message
from engine.hub.notation import format_move, parse_move, parse_pos

count = 0
for line in sys.stdin:
    command, args = parse_message(line)
    if command == "hub":
        print("wait", flush=True)
    elif command == "init":
        print("ready", flush=True)
    elif command == "pos":
        board = parse_pos(args["pos"])
        for text in args.get("moves", "").split():
            board.push(parse_move(board, text))
    elif command == "go":
        count += 1
        {fault}
        print("done move=" + format_move(board.legal_moves[0]), flush=True)
    elif command == "quit":
        break
"""


def pair(player_a: str, player_b: str, *rest: Any, **more: Any) -> Pairing:
    return Pairing(parse_player(player_a), parse_player(player_b), *rest, **more)


def starts(games: int, plies: int = 4) -> list[tuple[int, Opening]]:
    openings = make_openings(f"random:{plies}", (games + 1) // 2, 5)
    return [(index, openings[index // 2]) for index in range(games)]


def play(pairing: Pairing, games: int, jobs: int, plies: int = 4) -> dict[int, MatchGame]:
    with MatchPool(jobs) as pool:
        played = list(pool.play(make_tasks(pairing, starts(games, plies), jobs)))
    assert all(task.pairing == pairing for task, _ in played)
    assert len(played) == games
    return {game.index: game for _, game in played}


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("network") / "tiny"
    save_checkpoint(folder, make_network(NETWORKS["tiny"]), {"steps": 0})
    return str(folder)


# What goes through the pipes


def test_tasks_and_games_survive_the_way() -> None:
    pairing = pair("random", "rollout:5", TimeControl("fischer", 2.5, 0.25), 7, 3, "numba", True)
    taken = Board("B:W6,7,14,15,30:BK2,1")
    taken.push(taken.legal_moves[0])  # a capture that goes round
    task = Task(pairing, (*starts(3), (8, Opening("set up", taken))))
    copy = pickle.loads(pickle.dumps(task))
    assert copy.pairing == pairing
    for (index, opening), (other_index, other) in zip(task.starts, copy.starts, strict=True):
        assert (index, opening.name) == (other_index, other.name)
        assert (opening.board.fen(), opening.board.move_stack) == (other.board.fen(), other.board.move_stack)
        assert opening.board.history() == other.board.history()
    for game in play(pair("random", "alphabeta:2"), 2, 1).values():
        copy = pickle.loads(pickle.dumps(game))
        assert copy == game
        assert [move.path for move in copy.moves] == [move.path for move in game.moves]


def test_games_are_shared_out() -> None:
    alone = make_tasks(pair("random", "random"), starts(5), 2)
    assert [[index for index, _ in task.starts] for task in alone] == [[0], [1], [2], [3], [4]]
    together = pair("a", "b")
    assert together.lockstep
    assert [len(task.starts) for task in make_tasks(together, starts(200, 6), 1)] == [LOCKSTEP, 200 - LOCKSTEP]
    assert [len(task.starts) for task in make_tasks(together, starts(70, 6), 2)] == [32, 32, 6]
    assert make_tasks(together, [], 2) == []


# Results


def test_the_number_of_processes_changes_nothing() -> None:
    """Not even if players use random numbers, since each game has its own."""
    pairing = pair("rollout:20", "random", seed=4)
    alone = play(pairing, 5, 1)
    assert play(pairing, 5, 2) == alone
    assert play(pair("rollout:20", "random", seed=5), 5, 1) != alone
    assert alone[0].moves[4:] != alone[1].moves[4:]


def test_networks_play_the_same_games_in_processes(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They answer from the board alone, so it does not matter which games go on side by side.

    This backend answers alike in all batches.
    """
    monkeypatch.setattr("selfplay.matches.tasks._TASK_GAMES", 2)
    text = f"{network}@off"
    pairing = pair(text, text, simulations=4, backend="numba")
    assert [len(task.starts) for task in make_tasks(pairing, starts(5, 20), 2)] == [2, 2, 1]
    shared, alone = play(pairing, 5, 2, 20), play(pairing, 5, 1, 20)
    assert [game.moves for _, game in sorted(shared.items())] == [game.moves for _, game in sorted(alone.items())]
    openings = [opening for _, opening in starts(6, 20)[::2]]
    players = [player_of(text, simulations=4, backend="numba", batch=2) for _ in range(2)]
    result = play_match(*players, openings, 5)
    assert [game.moves for game in result.played] == [game.moves for _, game in sorted(alone.items())]
    values = [note.value for game in shared.values() for note in game.notes if note.value is not None]
    assert values
    assert all(-1 <= value <= 1 for value in values)


def test_a_match_with_a_run_plays_on_with_the_network_of_its_beginning(tmp_path: Path, network: str) -> None:
    """Also where a process makes the player later, as in a ladder, or where it has died."""
    run = RunFolder.create(tmp_path / "run", make_config("smoke"))
    other = make_network(NETWORKS["tiny"])
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn_like(parameter))
    shutil.copytree(network, run.checkpoint("000000"))
    save_checkpoint(run.checkpoint("000001"), other, {"steps": 1})

    def tasks(folder: Path) -> list[Task]:
        texts = (f"{folder}@{number}@off" for number in (2, 3))
        return [task for text in texts for task in make_tasks(pair(text, "random"), starts(2), 1)]

    moves = {}
    for place in (run.path, run.checkpoint("000000"), run.checkpoint("000001")):
        run.write_state(run.read_state().model_copy(update={"best": "000000"}))
        with MatchPool(1) as pool:
            games = []
            for _, game in pool.play(tasks(place)):
                games.append(game)
                run.write_state(run.read_state().model_copy(update={"best": "000001"}))
        moves[place] = [game.moves for game in games]
    assert moves[run.path] == moves[run.checkpoint("000000")] != moves[run.checkpoint("000001")]


def test_a_network_has_the_name_of_the_match_wherever_it_lies(network: str) -> None:
    """Games of a cluster, where networks lie in temporary folders, were of other players when a match was resumed."""
    players = Players()
    players.folders = {"net": network}
    (task,) = make_tasks(pair("net@2", "random"), starts(2), 1)
    assert [(game.black, game.white) for game in sorted(players.play(task), key=lambda game: game.index)] == [
        ("net@2", "random"),
        ("random", "net@2"),
    ]


@pytest.mark.parametrize("how", ["", "@ponder"])
def test_a_player_is_prepared_before_its_clock_runs(how: str, network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing is compiled yet, so that making a player does not do it: later moves took seconds."""
    prepared = []
    monkeypatch.setattr("selfplay.players.search_is_compiled", lambda: False)
    monkeypatch.setattr(SearchPlayer, "prepare", lambda player: prepared.append(player.name))
    players = Players()
    task, _ = make_tasks(pair(f"{network}{how}", "random", TimeControl("move", 0.01)), starts(2), 1)
    next(players.play(task))
    players.close()
    assert len(prepared) == 1


def test_timed_games_know_time_and_value() -> None:
    (game,) = play(pair("alphabeta:30", "random", TimeControl("fischer", 5.0, 0.05)), 1, 2, 20).values()
    notes = game.notes[20:]
    assert game.notes[:20] == (MoveNote(),) * 20
    assert all(note.clock_s is not None for note in notes)
    assert any(note.value is not None for note in notes)
    assert sum(note.elapsed_s or 0.0 for note in notes) > 0


# What goes wrong


@needs_signals
def test_games_of_a_process_that_dies_are_played_again() -> None:
    pairing, games, deaths = pair("rollout:60", "random", seed=1), {}, 0
    with MatchPool(2) as pool:
        for _, game in pool.play(make_tasks(pairing, starts(8), 2)):
            assert game.index not in games
            games[game.index] = game
            if len(games) in (1, 4):
                victim = next(worker for worker in pool._workers if worker.task)
                os.kill(victim.process.pid or 0, signal.SIGKILL)
                deaths += 1
    assert deaths == 2
    assert games == play(pairing, 8, 1)


def engine(tmp_path: Path, fault: str) -> str:
    path = tmp_path / "engine.py"
    path.write_text(ENGINE.format(root=str(ROOT), fault=fault))
    return f"hub:{sys.executable} {path}"


@needs_signals
def test_a_game_that_kills_twice_ends_the_match(tmp_path: Path) -> None:
    text = engine(tmp_path, "os.kill(os.getppid(), signal.SIGKILL)")
    with MatchPool(2) as pool, pytest.raises(MatchError, match=r"2 processes have died with game 1 of .*exit code -9"):
        list(pool.play(make_tasks(pair(text, "random"), starts(1), 2)))


@needs_signals
def test_a_game_that_kills_once_is_played_again(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    fault = f"os.path.exists({str(mark)!r}) or (open({str(mark)!r}, 'w'), os.kill(os.getppid(), signal.SIGKILL))"
    (game,) = play(pair(engine(tmp_path, fault), "random"), 1, 2).values()
    assert mark.exists()
    assert game.termination != FORFEIT, game.error


@needs_signals
def test_engines_end_with_their_process(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    text = engine(tmp_path, f"open({str(log)!r}, 'a').write(str(os.getpid()) + chr(10))")
    play(pair(text, "random", TimeControl("move", 0.05)), 2, 2)
    pids = {int(line) for line in log.read_text().split()}
    assert pids
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


@needs_signals
def test_engines_that_will_not_go_end_with_an_interrupted_match(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    note = f"open({str(log)!r}, 'a').write(str(os.getpid()) + chr(10))"
    text = engine(tmp_path, f"signal.signal(signal.SIGTERM, signal.SIG_IGN); {note}; signal.pause()")
    command = crownhead_program("match", text, "random", "--games", "4", "--jobs", "2")
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: log.exists() and len(log.read_text().split()) == 2, process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=100)
    finally:
        process.kill()
    assert said == "crownhead: interrupted\n"
    assert not any(Path(f"/proc/{pid}").exists() for pid in log.read_text().split())


def test_what_a_player_lacks_is_said(tmp_path: Path) -> None:
    for jobs in (1, 2):
        with MatchPool(jobs) as pool, pytest.raises(ValueError, match=r"nowhere.* is no player"):
            list(pool.play(make_tasks(pair(str(tmp_path / "nowhere"), "random"), starts(1), jobs)))


@needs_signals
def test_ctrl_c_reaches_no_process_that_is_starting() -> None:
    """Not even the first one, with which Python starts a helper process."""
    code = """
        import multiprocessing, signal
        from engine.players.spec import RandomSpec
        from selfplay.matches.pool import MatchPool
        from selfplay.matches.tasks import Pairing, make_tasks
        from selfplay.games.openings import make_openings
        if __name__ == "__main__":
            opening = make_openings("random:2", 1, 1)[0]
            with MatchPool(2) as pool:
                next(pool.play(make_tasks(Pairing(RandomSpec(), RandomSpec()), [(i, opening) for i in range(4)], 2)))
                for child in multiprocessing.active_children():  # they began with the signals that are still blocked
                    for line in open(f"/proc/{child.pid}/status"):
                        if line.startswith("SigBlk:"):
                            print(int(line.split()[1], 16) >> signal.SIGINT - 1 & 1)
    """
    if not Path("/proc/self/status").exists():
        pytest.skip("needs the state of a process in /proc")
    shown = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert shown.stdout.split() == ["1", "1"]


@needs_signals
def test_a_process_that_is_told_to_end_tells_of_no_game_any_more() -> None:
    """Compiling may swallow the exception that ends it; its player then fails, which would be a lost game."""
    code = textwrap.dedent(
        """
        import logging, multiprocessing, os, signal
        from selfplay.matches import workers as match_workers

        class Swallows:
            def __del__(self):
                os.kill(os.getpid(), signal.SIGTERM)

        def messages(players, task):
            yield "begun"
            Swallows()
            logging.warning("a player has lost")
            yield "a lost game"

        match_workers.messages = messages
        here, there = multiprocessing.Pipe()
        here.send("a task")
        match_workers._work(there)
        there.close()
        print(here.recv())
        try:
            here.recv()
        except EOFError:
            print("nothing more")
        """
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ["begun", "nothing more"]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forks of a server on Linux only")
def test_forks_import_what_the_program_imports_and_leave_the_path(tmp_path: Path) -> None:
    """Even where packages of the same names lie in the current folder."""
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("raise RuntimeError('a foreign package')")
    code = f"""
        import sys
        sys.path[0] = {str(ROOT)!r}
        from selfplay.machines.processes import player_context
        def told(queue):
            import os, selfplay.actors.worker
            queue.put((selfplay.actors.worker.__file__, os.environ.get("PYTHONPATH"), os.environ.get("PYTHONSAFEPATH")))
        if __name__ == "__main__":
            context = player_context()
            queue = context.Queue()
            context.Process(target=told, args=(queue,)).start()
            print(*queue.get(timeout=60), sep="|")
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    for before in ("", "/somewhere"):
        shown = subprocess.run(
            [sys.executable, str(script)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": before},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert shown.returncode == 0, shown.stderr
        worker, path, safe = shown.stdout.strip().split("|")
        assert Path(worker) == ROOT / "selfplay" / "actors" / "worker.py"
        assert (path, safe) == (before or "None", "None")


@needs_signals
def test_processes_leave_with_the_one_that_started_them() -> None:
    code = """
        import os, signal
        from engine.players.spec import RandomSpec, RolloutSpec
        from selfplay.matches.pool import MatchPool
        from selfplay.matches.tasks import Pairing, make_tasks
        from selfplay.games.openings import make_openings
        if __name__ == "__main__":
            with MatchPool(2) as pool:
                opening = make_openings("random:2", 1, 1)[0]
                pairing = Pairing(RolloutSpec(20000), RandomSpec())
                for _ in pool.play(make_tasks(pairing, [(i, opening) for i in range(9)], 2)):
                    pass
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, start_new_session=True)
    try:
        wait_until(lambda: len(local_players(process.pid)) == 2)
        time.sleep(1.0)
        pids = descendants(process.pid) - {process.pid}
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), seconds=60)


# Over a cluster, without one


class NoPackage:
    """Stands in for Ray where no node can import the package; counts the actors asked for."""

    def __init__(self) -> None:
        self.asked, self.exceptions = 0, SimpleNamespace(RayError=LookupError)

    def remote(self, **_: object) -> Callable[[type], object]:
        return lambda _: SimpleNamespace(remote=self._actor)

    def _actor(self) -> object:
        self.asked += 1
        return SimpleNamespace(here=SimpleNamespace(remote=lambda: 0))

    def get(self, _: object) -> None:
        raise LookupError("No module named selfplay")

    def kill(self, _: object) -> None: ...


def test_processes_that_never_start_end_the_match(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = NoPackage()
    cluster = SimpleNamespace(ray=ray, cpus=lambda: {"node": 1}, is_done=lambda _: True)
    monkeypatch.setattr(ray_match, "Cluster", lambda _: cluster)
    starter = ray_match.RayStarter("head:6379")
    worker = starter.start_worker()
    for _ in range(4):
        assert not worker.is_ready()
    with pytest.raises(ClusterError, match="could not be started 5 times: No module named selfplay"):
        worker.is_ready()
    assert ray.asked == 5


@pytest.mark.parametrize(("nodes", "each", "places"), [((4, 3, 0), 2, 3), ((1, 1), 1, 2), ((), 1, 1)])
def test_a_pondering_player_has_a_cpu_of_its_own(
    nodes: tuple[int, ...], each: int, places: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a cluster, too, where a node has two; else a warning says that it takes the other's."""
    given = []
    ray = NoPackage()
    monkeypatch.setattr(ray, "remote", lambda num_cpus, max_restarts: given.append(num_cpus) or (lambda _: None))
    cluster = SimpleNamespace(ray=ray, cpus=lambda: dict(enumerate(nodes)))
    monkeypatch.setattr(ray_match, "Cluster", lambda _: cluster)
    pairing = Pairing(parse_player("net@ponder"), parse_player("random"), TimeControl(), 1, 0)
    pool = open_pool(None, "head:6379", pairing, 8)
    assert given == [each]
    assert pool._starter.capacity() == places
    assert bool(caplog.messages) == (each == 1)


class NotStartedError(LookupError):
    """What Ray says of an actor that a machine could not start."""

    actor_init_failed = True

    def __str__(self) -> str:
        return "The actor died, ray::_RayPlayers (pid=7, ip=10.0.0.7, a=b)\n  ^^^\nModuleNotFoundError: No module\n"


def test_a_machine_that_starts_no_process_does_not_end_the_match_of_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ray, now = NoPackage(), [0.0]
    monkeypatch.setattr(ray, "get", lambda _: (_ for _ in ()).throw(NotStartedError))
    cluster = SimpleNamespace(ray=ray, cpus=lambda: {"good": 1, "bad": 1}, is_done=lambda _: True)
    monkeypatch.setattr(ray_match, "Cluster", lambda _: cluster)
    monkeypatch.setattr(ray_match, "time", SimpleNamespace(monotonic=lambda: now[0]))
    starter = ray_match.RayStarter("head:6379")
    other, worker = starter.start_worker(), starter.start_worker()
    for now[0] in range(59):
        assert not worker.is_ready()
    assert ray.asked == 1 + 5
    (warning,) = caplog.messages
    assert "10.0.0.7: ModuleNotFoundError: No module; it needs this package, in the same version" in warning
    monkeypatch.setattr(ray, "get", lambda _: "good")
    now[0] = 120.0
    assert worker.is_ready()
    worker.stop()
    other.stop()


def test_the_cluster_of_an_earlier_match_is_left_first() -> None:
    did: list[str] = []

    def init(**_: object) -> None:
        did.append("init")
        raise RuntimeError("no cluster here")

    ray = SimpleNamespace(
        is_initialized=lambda: True,
        shutdown=lambda: did.append("shutdown"),
        init=init,
        exceptions=NoPackage().exceptions,
    )
    with pytest.raises(ClusterError, match="no cluster here"):
        _connect(ray, "head:6379")
    assert did == ["shutdown", "init"]


def test_what_is_no_head_of_a_cluster_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the cluster's dashboard; Ray would try for a quarter of an hour."""
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setattr("selfplay.machines.cluster._STATUS_S", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"{address} does not answer as a Ray cluster: write HOST:PORT"):
            Cluster(address)


def test_a_host_needs_its_port() -> None:
    with pytest.raises(ClusterError, match=r"at localhost: .* write HOST:PORT of its head node"):
        check_address("localhost")
    check_address("auto")


def test_folders_of_processes_that_are_gone_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("crownhead-match-gone", "crownhead-tables-gone"):
        (tmp_path / name / "0").mkdir(parents=True)
        (tmp_path / name / "lock").touch()
    first = ProcessFolder("match")
    (first.path / "0").mkdir()
    second = ProcessFolder("match")
    assert set(tmp_path.iterdir()) == {first.path, second.path, tmp_path / "crownhead-tables-gone"}
    assert (first.path / "0").is_dir(), "its process lives"
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    ProcessFolder("tables")
    assert (tmp_path / "crownhead-tables-gone").is_dir(), "it is somebody else's"
