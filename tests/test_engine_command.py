"""``crownhead engine`` as another program meets it: a real process that speaks the Hub protocol."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from engine.board import Board
from engine.players import HubPlayer

FRONT_DOOR = Path(__file__).parent.parent / "crownhead.py"


def command(*arguments: str) -> str:
    return shlex.join([sys.executable, str(FRONT_DOOR), "engine", *arguments])


@pytest.mark.parametrize("player", ["random", "alphabeta:3", "champion", "champion@off"])
def test_it_plays(player: str) -> None:
    board = Board()
    with HubPlayer(command(player, "--simulations", "20"), seconds=0.05, start_patience=200) as engine:
        for _ in range(4):
            (move,) = engine.choose([board])
            board.push(move)
    assert board.ply == 4


def test_what_it_says_of_itself_comes_at_once() -> None:
    done = subprocess.run(
        shlex.split(command("champion", "--simulations", "33")), input="hub\nquit\n", capture_output=True, text=True
    )
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("id name=Crownhead version=")
    assert "param name=simulations value=33 type=int min=1 max=200000" in lines
    assert "param name=threads value=1 type=int min=1 max=64" in lines
    assert "param name=contempt value=true type=bool" in lines
    assert any(line.startswith("param name=backend value=auto type=enum values=") for line in lines)
    assert lines[-1] == "wait"
    assert done.stderr == ""


def test_an_unknown_player_is_told_at_once() -> None:
    done = subprocess.run(shlex.split(command("nobody")), input="hub\n", capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "crownhead: 'nobody' is no player: there is no such folder\n"
