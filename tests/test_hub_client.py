"""External engines as players: small programs that misbehave in many ways, and how the player reacts."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from programs import PATIENCE

from engine.board import Board, Move
from engine.hub.notation import format_pos
from engine.hub.process import LineProcess
from engine.players import (
    EngineError,
    HubPlayer,
    PlayerError,
    PlayerSpecError,
    RandomPlayer,
    WatchablePlayer,
    make_simple_player,
    parse_player,
)
from engine.players.hub import HubThinking
from engine.players.spec import HubSpec, NetworkSpec
from engine.players.watching import Purpose
from selfplay.games.openings import make_openings
from selfplay.matches.match import FORFEIT, play_match

ROOT = Path(__file__).parent.parent
FAKE = """
import os, signal, subprocess, sys, time

def say(*lines):
    for line in lines:
        print(line, flush=True)

def hub():
    say("id name=Fake", "wait")

def init():
    say("ready")

def go():
    say("done move=11-15")

def stop():
    pass

{changes}

for line in sys.stdin:
    command = line.split()[0]
    if "{log}":
        print(line, end="", file=open("{log}", "a"))
    if command == "quit":
        break
    {{"hub": hub, "init": init, "go": go, "stop": stop}}.get(command, lambda: None)()
"""
REAL = f"""
import os, random, sys
sys.path.insert(0, {str(ROOT)!r})
from engine.board import Move
from engine.hub.server import serve
from engine.players import RandomPlayer

class Faulty(RandomPlayer):
    def choose(self, boards):
        if boards[0].ply >= {{ply}}:
            {{fault}}
        return super().choose(boards)

serve(lambda _: Faulty(), sys.stdin, sys.stdout)
"""
Make = Callable[..., HubPlayer]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a player of an engine that behaves well except for ``changes``."""

    def player(changes: str = "", log: str = "", **arguments: object) -> HubPlayer:
        path = tmp_path / "fake.py"
        path.write_text(FAKE.format(changes=changes, log=log))
        patience = arguments.pop("patience", PATIENCE)
        arguments = {"start_patience": PATIENCE} | arguments
        made = HubPlayer(f"{sys.executable} {path}", **arguments)  # type: ignore[arg-type]
        made.patience = patience  # type: ignore[assignment]
        return made

    return player


def pid_of(player: HubPlayer) -> int | None:
    """Number of the engine's process, None while there is none."""
    return None if player._engine is None else player._engine._process.pid


def gone(pid: int | None) -> bool:
    """Whether the process no longer exists; a zombie still counts as existing."""
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


# What goes right


def test_it_plays_and_leaves(make: Make) -> None:
    threads = threading.active_count()
    with make() as player:
        assert pid_of(player) is None
        assert str(player.choose([Board()])[0]) == "11-15"
        pid = pid_of(player)
        assert not gone(pid)
        assert [str(move) for move in player.choose([Board(), Board()])] == ["11-15", "11-15"]
        assert pid_of(player) == pid
    assert gone(pid)
    assert pid_of(player) is None
    assert threading.active_count() == threads
    assert str(player.choose([Board()])[0]) == "11-15"  # starts again
    player.close()
    player.close()


def test_what_it_is_told(make: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    declare = 'def hub(): say(\'param name=variant value=normal type=enum values="normal english"\', "wait")\n'
    with make(declare, str(log), seconds=0.5) as player:
        played = Board()
        player.choose([played])
        for text in ("11-15", "22-18", "15x22", "25x18", "9-13", "29-25"):
            played.push_pdn(text)
        with pytest.raises(EngineError, match="illegal"):
            player.choose([played])
    assert log.read_text().splitlines()[:5] == [
        "hub",
        "set-param name=variant value=english",
        "init",
        "new-game",
        f"pos pos={format_pos(Board())}",
    ]
    moves = "11-15 22-18 15x22x18 25x18x22 9-13 29-25"
    assert log.read_text().splitlines()[5:10] == [
        "level move-time=0.5",
        "go think",
        f'pos pos={format_pos(Board())} moves="{moves}"',  # the same game goes on
        "level move-time=0.5",
        "go think",
    ]
    log.unlink()
    board = Board("B:W18,22,K31:B10,11,K2")
    with make("", str(log)) as player:
        assert str(player.choose([board])[0]) == "11-15"
    assert log.read_text().splitlines()[3:5] == [f"pos pos={format_pos(board)}", "level move-time=1.0"]


def test_a_forced_move_is_not_asked_for(make: Make) -> None:
    player = make()
    assert str(player.choose([Board("B:W18,32:B14,K1")])[0]) == "14x23"
    assert pid_of(player) is None
    with pytest.raises(PlayerError, match="the game is over"):
        player.choose([Board("B:WK32:B")])


def test_strange_lines_and_floods_of_errors_do_no_harm(make: Make) -> None:
    changes = """
def go():
    for _ in range(3000):
        sys.stderr.write("x" * 1000)
    say("", "Welcome to fake!", "=", "info depth=3", "pong", '"', "x" * 200_000, "done move=11-15")
"""
    with make(changes) as player:
        for _ in range(3):
            assert str(player.choose([Board()])[0]) == "11-15"


# What goes wrong


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            'sys.exit("no licence")',
            "it closed its output before it was ready; ended with exit code 1; it said: no licence",
        ),
        ("def hub(): os._exit(7)", "it closed its output before it was ready; ended with exit code 7"),
        (
            "def init(): raise RuntimeError('no\\nway')",
            "it closed its output before it was ready; ended with exit code 1; it said:",
        ),
        ('def init(): say("error message=\\"no network\\"", "ready")', "it cannot play; it said: no network"),
        ("def go(): os._exit(3)", "it closed its output in the middle of the game; ended with exit code 3"),
        ("def go(): os.kill(os.getpid(), 11)", "ended by signal 11"),
        ("def go(): os.close(1); time.sleep(60)", "it closed its output in the middle of the game"),
        ('def go(): say("done move=1-32")', "it played an illegal move: 1-32 is illegal in B:W21"),
        ('def go(): say("done move=hello")', "it played an illegal move: 'hello' is not a move"),
        ('def go(): say("error message=\\"out of memory\\"", "done")', "it named no move; it said: out of memory"),
        ('def go():\n  while True: say("blah blah")', "it sent 1000 lines, but not 'done'; it said: blah blah"),
        ('def hub():\n  while True: say("Loading...")', "it sent 1000 lines, but not 'wait'"),
        ('def go():\n  while True: os.write(1, b"\\xff\\x00" * 4096)', "it sent 1000 lines, but not 'done'"),
        ('def hub(): say("param name=variant values=russian", "wait")', "does not play English draughts, but russian"),
    ],
)
def test_misbehaviour_has_a_message(make: Make, changes: str, said: str) -> None:
    player = make(changes)
    with pytest.raises(EngineError) as caught:
        player.choose([Board()])
    text = str(caught.value)
    assert said in text
    assert text.startswith(f"engine '{os.path.basename(sys.executable)} fake.py': ")
    assert len(text.splitlines()) == 1
    assert pid_of(player) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("time.sleep(60)", "it was not ready within 0.3 s (it did not send 'wait')"),
        ("def init(): pass", "it was not ready within 0.3 s (it did not send 'ready')"),
        ("def go(): pass", "it did not move within 0.3 s"),
        ('def go():\n  while True: say("info depth=1")', "it did not move within 0.3 s"),
        ('def go(): say("error message=tired")', "it did not move within 0.3 s; it said: tired"),
        ("def go():\n  while True: pass", "it did not move within 0.3 s"),
    ],
)
def test_a_hanging_engine_is_ended(make: Make, changes: str, said: str) -> None:
    slow_start = "ready" in said
    player = make(changes, **{"start_patience" if slow_start else "patience": 0.3})
    if not slow_start:
        player.start()
    pid, begun = pid_of(player), time.monotonic()
    with pytest.raises(EngineError) as caught:
        player.choose([Board()])
    assert said in str(caught.value)
    assert time.monotonic() - begun < 30.0
    assert pid is None or gone(pid)


def test_one_is_killed_where_ctrl_c_interrupts_its_end(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    player = make("def go(): time.sleep(60)")
    player.begin(Board()).advance(0.0)
    pid = pid_of(player)

    def interrupted(_: LineProcess) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(LineProcess, "_gone", interrupted)
    with pytest.raises(KeyboardInterrupt):
        player.close()
    assert gone(pid)


def test_one_that_will_not_go_is_killed_with_all_it_has_started(make: Make) -> None:
    changes = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

def go():
    say("info nodes=%d" % child.pid, "done move=11-15")
    time.sleep(60)
"""
    player = make(changes)
    thinking = player.begin(Board())
    while thinking.advance(0.1):
        pass
    pid, child = pid_of(player), thinking.thought().count
    assert child > 0
    assert not gone(child)
    begun = time.monotonic()
    player.close()
    assert time.monotonic() - begun < 30.0
    assert gone(pid)
    assert soon(lambda: gone(child))


def test_after_a_crash_it_starts_anew(make: Make, tmp_path: Path) -> None:
    changes = f"""
def go():
    if os.path.exists("{tmp_path}/crashed"):
        say("done move=9-14")
    else:
        open("{tmp_path}/crashed", "w")
        os._exit(1)
"""
    with make(changes) as player:
        with pytest.raises(EngineError):
            player.choose([Board()])
        assert str(player.choose([Board()])[0]) == "9-14"


def test_one_that_leaves_between_two_games_loses_neither(make: Make) -> None:
    with make('def go():\n  say("done move=11-15")\n  sys.exit()') as player:
        board = Board()
        board.push_pdn("9-13")
        board.push_pdn("22-18")
        for _ in range(2):
            assert str(player.choose([board])[0]) == "11-15"
            assert player._engine is not None
            process = player._engine
            assert soon(lambda: not process.alive)  # noqa: B023
            board = Board()
        board.push_pdn("11-15")
        board.push_pdn("22-17")
        with pytest.raises(EngineError, match="it closed its output in the middle of the game; ended with exit code 0"):
            player.choose([board])  # but here it was its turn again


def test_one_that_does_not_start_is_given_up(make: Make, tmp_path: Path) -> None:
    player = make(f'print(1, file=open("{tmp_path}/starts", "a"))\nsys.exit("broken")')
    for _ in range(5):
        with pytest.raises(EngineError, match="broken"):
            player.choose([Board()])
    assert len((tmp_path / "starts").read_text().split()) == 3
    with pytest.raises(EngineError, match=r"broken \(given up after 3 attempts\)"):
        player.choose([Board()])


def test_what_cannot_be_run(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(EngineError, match="it cannot be started"):
        HubPlayer(str(script)).choose([Board()])


def test_without_anybody_left_it_ends(make: Make, tmp_path: Path) -> None:
    player = make()
    player.choose([Board()])
    pid = pid_of(player)
    del player
    gc.collect()
    assert soon(lambda: gone(pid))
    make()  # writes the program
    code = (
        f"from engine.players import *; from engine.board import Board\n"
        f"p = HubPlayer({sys.executable + ' ' + str(tmp_path / 'fake.py')!r}); p.choose([Board()])\n"
        "print(p._engine._process.pid)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert run.stderr == ""
    assert gone(int(run.stdout))


# Watched


def test_a_search_can_be_watched_and_stopped(make: Make) -> None:
    changes = """
def go():
    say('info depth=5 score=0.32 nodes=100 time=0.1 pv="11-15 22-18 15x22x18 99-1"')

def stop():
    say("info score=99.95", "done move=9-14 ponder=22-18")
"""
    with make(changes, seconds=5) as player:
        assert isinstance(player, WatchablePlayer)
        thinking = player.begin(Board())
        while thinking.advance(0.05) and thinking.thought().count == 0:
            pass
        thought = thinking.thought()
        assert (thought.depth, thought.count, thinking.unit) == (5, 100, "nodes")
        assert thought.value == pytest.approx(0.1, abs=0.001)
        assert [str(move) for move in thought.line] == ["11-15", "22-18", "15x22"]
        assert thought.best == thought.line[0]
        assert 0.0 < thinking.progress < 1.0
        assert str(thinking.choose()) == "9-14"
        assert not thinking.advance(1.0)
        assert [str(move) for move in thinking.thought().line] == ["9-14"]
        assert thinking.thought().value == 1.0
        assert thinking.progress == 1.0


def test_an_abandoned_search_is_stopped(make: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    changes = 'def go(): say("info nodes=1")\ndef stop(): say("done move=9-13")'
    with make(changes, str(log), patience=0.2) as player:
        thinking = player.begin(Board(), "analysis")
        deadline = time.monotonic() + 0.4  # patience is no limit
        while time.monotonic() < deadline:
            assert thinking.advance(0.05)
        assert soon(lambda: log.read_text().splitlines()[-2:] == ["level infinite", "go analyze"])
        del thinking
        assert soon(lambda: log.read_text().splitlines()[-1] == "stop")
        first = player.begin(Board(), "analysis")
        second = player.begin(Board(), "analysis")  # ends the first
        assert second.advance(0.05)
        assert str(second.choose()) == "9-13"
        del first
        third = player.begin(Board(), "analysis")
        assert third.advance(0.05)
        assert log.read_text().count("stop\n") == 3  # one for each


def test_a_search_of_a_closed_player(make: Make) -> None:
    player = make("def go(): pass")
    thinking = player.begin(Board())
    player.close()
    with pytest.raises(EngineError, match="it was closed"):
        thinking.advance(0.1)


def test_one_that_does_not_stop_is_ended(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.players.hub._STOP_PATIENCE", 0.2)
    changes = "def go(): pass"
    with make(changes) as player:
        thinking = player.begin(Board(), "analysis")
        thinking.advance(0.0)
        assert len(thinking.thought().line) == 1
        with pytest.raises(EngineError, match=r"did not move within 0.2 s of 'stop'"):
            thinking.choose()
        player.begin(Board(), "analysis")
        with pytest.raises(EngineError, match=r"did not stop within 0.2 s"):
            player.begin(Board())


# On the command line, and in matches


def test_its_text(make: Make) -> None:
    spec = parse_player(f"hub:{sys.executable} 'my engine.py' --hub")
    assert isinstance(spec, HubSpec)
    player = make_simple_player(spec, 0.25)
    assert isinstance(player, HubPlayer)
    assert player.name == f"hub:{sys.executable} 'my engine.py' --hub"
    assert player._argv == [sys.executable, "my engine.py", "--hub"]
    assert player.seconds == 0.25
    assert parse_player("hub") == NetworkSpec("hub")
    for text in ("hub:", "hub: ", "hub:'open"):
        with pytest.raises(PlayerSpecError, match="is no player"):
            parse_player(text)
    with pytest.raises(PlayerSpecError, match="is no player: there is no program"):
        make_simple_player(HubSpec("/no/such/program --x"))
    for seconds in (0, -1, float("nan"), float("inf")):
        with pytest.raises(PlayerError, match="not more than 0"):
            HubPlayer(sys.executable, seconds)


@pytest.mark.parametrize(
    ("fault", "ply", "said"),
    [
        ("os._exit(5)", 6, "it closed its output in the middle of the game; ended with exit code 5"),
        ("return [Move(1, 32)]", 6, "it named no move; it said: 1-32 is illegal"),
        ("import time; time.sleep(60)", 6, "it did not move within 0.5 s"),
    ],
)
def test_the_match_goes_on(tmp_path: Path, fault: str, ply: int, said: str) -> None:
    """Whatever fault the engine has, it loses this game with a message and can play the next one."""
    path = tmp_path / "faulty.py"
    path.write_text(REAL.format(fault=fault, ply=ply))

    class Engine(HubPlayer):
        """Is given little time only where it sleeps, however busy the machine is before."""

        def begin(self, board: Board, purpose: Purpose = "move") -> HubThinking:
            self.patience = 0.5 if "sleep" in fault and board.ply >= ply else PATIENCE
            return super().begin(board, purpose)

    with Engine(f"{sys.executable} {path}", seconds=0.1) as engine:
        result = play_match(engine, RandomPlayer(), make_openings("random:3", 1, 3), 2)
    assert result.tally.losses == 2
    assert [game.termination for game in result.played] == [FORFEIT] * 2
    assert len(result.errors) == 2
    for number, (game, error) in enumerate(zip(result.played, result.errors, strict=True), 1):
        assert error.startswith(f"game {number}: {engine.name} (")
        assert said in error
        assert len(game.moves) >= ply


def test_games_against_an_engine_are_played_one_by_one(make: Make) -> None:
    """Side by side they would share its memory and its time."""
    batches = []

    class Counting(RandomPlayer):
        def choose(self, boards: Sequence[Board]) -> list[Move]:
            batches.append(len(boards))
            return super().choose(boards)

    counting = Counting()
    play_match(counting, RandomPlayer(), make_openings("random:2", 2, 1), 4)
    assert max(batches) > 1
    batches.clear()
    with make('def go(): say("done")') as player:
        result = play_match(counting, player, make_openings("random:2", 2, 1), 4)
    assert set(batches) == {1}
    assert result.tally.wins == 4
