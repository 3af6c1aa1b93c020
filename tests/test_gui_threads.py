"""The window closes while something is at work: everything is stored, engines end, and the process is soon gone."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from programs import wait_until

pytest.importorskip("pygame", reason="the window needs pygame")

from engine.board import Board
from engine.hub.process import LineProcess
from engine.pdn import read_game
from engine.players import HubPlayer
from gui.game.opponents import Opponents, OpponentSpec
from gui.game.thinker import Thinker
from gui.threads import wait_for_threads

ROOT = Path(__file__).parent.parent
CLOSING = """
import sys, threading, time
from pathlib import Path

import pygame

from engine.fen import Color
from gui.app import run
from gui.game.opponents import Opponents
from gui.game.plan import GamePlan

folder, begun = Path(sys.argv[1]), threading.Event()

def make(spec):
    print("making", flush=True)
    begun.set()
    time.sleep(100)

def close():
    begun.wait()
    while not list(folder.glob("games/*.pdn")):
        time.sleep(0.02)
    print("closing", flush=True)
    pygame.event.post(pygame.event.Event(pygame.QUIT))

threading.Thread(target=close, daemon=True).start()
run(Opponents(make), folder=folder, plan=GamePlan(frozenset({Color.BLACK}), opening=("11-15",)))
print("not reached", flush=True)
"""


def test_the_process_is_gone_though_a_player_is_being_made(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CLOSING, str(tmp_path)],
        env=os.environ | {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    assert any(line == "closing\n" for line in lines), process.stderr
    begin = time.monotonic()
    rest, errors = process.communicate(timeout=60)
    assert time.monotonic() - begin < 50  # three seconds, and some for a busy machine
    assert (process.returncode, rest, errors) == (0, "", "")
    (game,) = tmp_path.glob("games/*.pdn")
    assert len(read_game(game.read_text()).moves) == 1
    assert (tmp_path / "preferences.json").exists()


def test_who_is_at_rest_is_not_waited_for() -> None:
    begin = time.monotonic()
    assert wait_for_threads(20)
    held = threading.Event()
    worker = threading.Thread(target=held.wait, name="player", daemon=True)
    worker.start()
    assert not wait_for_threads(0.05)
    held.set()
    assert wait_for_threads(20)
    assert time.monotonic() - begin < 20


ENGINE = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    word = line.split()[0]
    if word == "hub":
        print("id name=Stubborn", flush=True)
        print("wait", flush=True)
    elif word == "init":
        print("ready", flush=True)
"""


def test_engines_that_do_not_quit_are_ended_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(ENGINE.replace("for line", "while True:\n  for line").replace("\n    ", "\n      "))
    players = {seconds: HubPlayer(f"{sys.executable} {script}", 60) for seconds in (1.0, 2.0, 3.0)}
    thinker = Thinker(Opponents(external=lambda spec: players[spec.seconds]))
    pids = []
    for seconds, player in players.items():
        spec = OpponentSpec(kind="external", command="stubborn", seconds=seconds)
        thinker.request(Board(), spec)
        wait_until(lambda: thinker.snapshot is not None and thinker.snapshot.player == "Stubborn", seconds=60)
        assert player.title == "Stubborn"
        assert player._engine is not None
        pids.append(player._engine._process.pid)
    begun, ended = list[float](), list[float]()
    close = LineProcess.close

    def noted(process: LineProcess, farewell: str | None = None) -> None:
        begun.append(time.monotonic())
        close(process, farewell)
        ended.append(time.monotonic())

    monkeypatch.setattr(LineProcess, "close", noted)
    thinker.close()
    assert len(begun) == len(ended) >= 3
    assert sorted(begun)[2] < min(ended)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
