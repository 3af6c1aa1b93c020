"""``crownhead engine`` as another program meets it: a real process that speaks the Hub protocol."""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from programs import ROOT, crownhead_here, wait_until

from engine.board import Board
from engine.players import HubPlayer, Player
from engine.players.spec import OPTIONS
from selfplay.engine_command import engine_command
from selfplay.requests import EngineRequest

FRONT_DOOR = Path(__file__).parent.parent / "crownhead.py"


def command(*arguments: str) -> str:
    return shlex.join([sys.executable, str(FRONT_DOOR), "engine", *arguments])


@pytest.mark.parametrize("player", ["random", "alphabeta:3", "champion"])
def test_it_plays(player: str) -> None:
    board = Board()
    options = ("--simulations", "20") if player.startswith("champion") else ()
    with HubPlayer(command(player, *options), seconds=0.05, start_patience=200) as engine:
        for _ in range(4):
            (move,) = engine.choose([board])
            board.push(move)
    assert board.ply == 4


def test_what_it_says_of_itself_comes_at_once() -> None:
    done = subprocess.run(
        shlex.split(command("champion", "--simulations", "33")),
        input="hub\nquit\n",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("id name=Crownhead version=")
    assert "param name=simulations value=33 type=int min=0 max=200000" in lines
    assert not any("name=threads" in line for line in lines)
    assert "param name=contempt value=true type=bool" in lines
    assert any(line.startswith("param name=backend value=auto type=enum values=") for line in lines)
    assert lines[-1] == "wait"
    assert done.stderr == ""


def declared(player: str) -> list[str]:
    """The names of the parameters that it offers."""
    done = subprocess.run(shlex.split(command(player)), input="hub\nquit\n", capture_output=True, text=True)
    return re.findall("^param name=(\\S+)", done.stdout, re.MULTILINE)


def test_only_what_changes_something_can_be_set() -> None:
    assert declared("alphabeta:champion") == ["variant", "positions", "simulations", "oracle"]
    names = declared("champion")
    assert names == ["variant", "positions", "simulations", "oracle", "contempt", "backend"]
    page = (ROOT / "docs/howto/play.md").read_text()
    assert [name for name in names[1:] if f"`{name}`" not in page] == []


def test_it_does_not_play_the_same_game_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Player] = []
    monkeypatch.setattr("selfplay.engine_command.serve", lambda make, *_, **__: made.append(make({})))
    for _ in range(8):
        engine_command(EngineRequest("random"))
    moves = {str(player.choose([Board()])[0]) for player in made}
    assert len(moves) > 1  # but for one time in a million


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_without_an_input_it_says_so() -> None:
    done = subprocess.run(["sh", "-c", f"{command('random')} <&-"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == "crownhead: standard input is closed: the other program writes its commands there"


@pytest.mark.parametrize(("player", "nodes"), [("champion@0", 0), ("champion@off", 20)])
def test_a_network_without_search_or_without_oracle(player: str, nodes: int) -> None:
    done = crownhead_here("engine", player, "--simulations", 20, given="init\ngo think\n")
    assert done.returncode == 0
    assert f" nodes={nodes} " in done.stdout
    assert "done move=" in done.stdout


def test_alpha_beta_with_a_network_keeps_to_its_nodes() -> None:
    """Without a level from the other program it once searched for ever."""
    arguments = shlex.split(command("alphabeta:champion@3000"))
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        engine.stdin.write("init\ngo think\n")
        engine.stdin.flush()
        done = next(line for line in engine.stdout if line.startswith("done"))
        engine.stdin.close()
    assert "move=" in done
    assert engine.returncode == 0


NO_FOLDER = (
    "networks are the folder of a checkpoint or a run, or champion; players without are random, rollout:SIMULATIONS, "
    "alphabeta:DEPTH, level:NAME, tablebase, rules and hub:COMMAND"
)
NO_OPTIONS = "it has no options after @, and there is no network to load"


@pytest.mark.parametrize(
    ("player", "why"),
    [
        ("nobody", f"'nobody' is no player: {NO_FOLDER}"),
        ("nobody@800", f"'nobody' is no player: {NO_FOLDER}"),
        ("champion@threads:2", f"'champion@threads:2': 'threads:2' is no option of champion: {OPTIONS}"),
        ("random@800", f"'random' is a player without a network: {NO_OPTIONS}"),
        (".", "'.' is no player: there is no checkpoint and no run in it"),
        ("", "the argument behind engine is empty"),
        ("champion@9999999999", "number of simulations is 9999999999, not in 0 to 200000"),
        ("champion@draw_value=7", "champion@draw_value=7: Input should be less than or equal to 1"),
        (
            "champion@temperature=2",
            "champion@temperature=2: noise and temperature count only at the graphical board and in training: "
            "leave it out",
        ),
    ],
)
def test_a_wrong_player_is_told_at_once(player: str, why: str) -> None:
    done = subprocess.run(shlex.split(command(player)), input="hub\n", capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"crownhead: {why}\n"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nobody_searches_for_a_program_that_has_gone() -> None:
    """The engine's client is killed, which closes the pipes, while the engine thinks about a move for an hour."""
    code = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1, text=True)\n"
    code += "p.stdin.write('init\\nlevel move-time=3600\\ngo think\\n'); p.stdin.flush()\n"
    code += "while not p.stdout.readline().startswith('info'): pass\nprint(p.pid, flush=True); p.wait()"
    client = subprocess.Popen(
        [sys.executable, "-c", code, *shlex.split(command("alphabeta:40"))], stdout=subprocess.PIPE, text=True
    )
    engine = int(client.stdout.readline())
    client.kill()
    client.communicate()
    wait_until(lambda: not _runs(engine), seconds=60)


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    return False
