"""What an installation without extras can do, and which extras a command brings."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from programs import ROOT, wait_until
from training_runs import SHORT

import bootstrap

REPORT = ("matplotlib", "scipy", "tensorboard")
MATCH = """
import engine
from engine.board import Board
from engine.players.simple import make_simple_player
from engine.players.spec import parse_player

players = [make_simple_player(parse_player(text)) for text in ("random", "alphabeta:2")]
for player in players:
    player.seed(1)
board = Board()
while board.outcome() is None:
    board.push(players[board.ply % 2].choose([board])[0])
print(board.outcome().winner)
"""


def without(modules: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    """Runs code where these modules are not installed."""
    hidden = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] in {modules!r}: raise ModuleNotFoundError(name, name=name)\n"
        "import importlib.util as util\n"
        "found = util.find_spec\n"
        f"util.find_spec = lambda name, *rest: None if name in {modules!r} else found(name, *rest)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    command = [sys.executable, "-c", hidden + code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def crownhead_without(modules: tuple[str, ...], *arguments: object) -> subprocess.CompletedProcess[str]:
    words = ["crownhead", *map(str, arguments)]
    return without(modules, f"sys.argv = {words!r}\nimport crownhead\ncrownhead.main()")


def test_the_engine_plays_without_torch() -> None:
    done = without(("torch", "ray", "pygame", *REPORT), MATCH)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "White\n"


def test_the_documents_need_no_reports() -> None:
    """They are made from the types of all results; ``bootstrap.py docs`` installs the extra ``docs`` alone."""
    code = "import importlib, pathlib, re\ntext = pathlib.Path('docs/hooks/json_keys.toml').read_text()\n"
    code += "for name in re.findall('\"([a-z_.]+):', text): importlib.import_module(name)\nprint(name)"
    done = without(REPORT, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_training_without_reports(tmp_path: Path) -> None:
    done = crownhead_without(REPORT, "train", "--preset", "smoke", "--run", tmp_path / "run", "--json", *SHORT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["iterations"] == 1
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_reports_say_what_they_need(tmp_path: Path) -> None:
    """Every command in one process, which imports torch once."""
    code = "import crownhead, sys\nfor words in WORDS:\n    sys.argv = ['crownhead', *words]\n"
    code += "    try: crownhead.main()\n    except SystemExit as end: print(end.code)\n"
    commands = [
        ("reproduce", "wang", "--minutes", "1", "--out", str(tmp_path / "out")),
        ("oracle", "train", "--minutes", "1", "--out", str(tmp_path / "out")),
        ("oracle", "calibrate", "champion", "--out", str(tmp_path / "out")),
        ("oracle", "validate", "--net", "champion"),
    ]
    done = without(REPORT, code.replace("WORDS", repr(commands)))
    assert done.stdout.split() == ["2"] * len(commands), done.stderr
    needs = "this needs matplotlib, scipy, tensorboard: pip install 'crownhead[report]'"
    assert done.stderr == f"crownhead: {needs}\n" * len(commands)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "extras"),
    [
        ("pytest -m fast", "dev"),
        ("crownhead train", ""),
        ("crownhead play --text", ""),
        ("crownhead train --pool ray", "ray"),
        ("crownhead train --set pool=ray", "ray"),
        ("crownhead train --pool=ray", "ray"),
        ("crownhead match a b --address=host:1", "ray"),
        ("crownhead reproduce abdalla --syzygy d", "papers,report"),
        ("crownhead ladder runs/quick", "report"),
        ("crownhead card champion", "report"),
        ("crownhead export champion", "export"),
        ("crownhead status runs/quick --prometheus 9000", "prometheus"),
        ("tensorboard --logdir runs", "report"),
        ("ray start --head", "ray"),
    ],
)
def test_bootstrap_brings_what_a_command_needs(line: str, extras: str) -> None:
    command, *arguments = line.split()
    assert bootstrap.extras_of(command, arguments) == extras


@pytest.mark.skipif(os.name == "nt", reason="its programs are of a shell of Unix")
def test_programs_of_the_environment_are_found_as_if_it_were_active(tmp_path: Path) -> None:
    """``hub:crownhead engine`` is one."""
    for name, text in (("program", "exec other"), ("other", "exit 7")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    code = "import bootstrap as b, pathlib, sys; b.install = print; b.SCRIPTS = pathlib.Path(sys.argv.pop(1)); b.main()"
    assert subprocess.run([sys.executable, "-c", code, tmp_path, "program"], cwd=ROOT).returncode == 7


@pytest.mark.parametrize("command", ["activate", ".", "nothing", "activate/x"])
def test_what_is_no_command_is_told_in_one_line(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "activate").touch()
    monkeypatch.setattr(bootstrap, "install", lambda extra: None)
    monkeypatch.setattr(bootstrap, "SCRIPTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", command])
    assert bootstrap.main() == 2
    assert capsys.readouterr().err.startswith(f"{command!r} is not a command: ")


def test_bootstrap_says_in_one_line_what_it_cannot_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "venv").touch()
    monkeypatch.setattr(bootstrap, "ENVIRONMENT", tmp_path / "venv")
    monkeypatch.setattr(bootstrap, "PIP", tmp_path / "venv" / "pip")
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "crownhead"])
    assert bootstrap.main() == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("Setting up failed: ")


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C as terminals of Unix send it")
def test_ctrl_c_through_bootstrap_leaves_the_program_time_to_save(tmp_path: Path) -> None:
    program, wait = tmp_path / "program", "while true; do sleep 0.1; done"
    program.write_text(f"#!/bin/sh\ncd {tmp_path}; trap 'sleep 1; touch saved; exit 3' INT; touch begun; {wait}\n")
    program.chmod(0o755)
    code = "import bootstrap as b, pathlib, sys; b.install = print; b.SCRIPTS = pathlib.Path(sys.argv.pop(1)); b.main()"
    process = subprocess.Popen([sys.executable, "-c", code, tmp_path, "program"], cwd=ROOT, start_new_session=True)
    wait_until((tmp_path / "begun").exists, process)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 3
    assert (tmp_path / "saved").exists()


def test_an_environment_made_in_part_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "ENVIRONMENT", tmp_path)
    for name in ("PYTHON", "PIP"):
        monkeypatch.setattr(bootstrap, name, tmp_path / "bin" / name.lower())
    made, ran = list[Path](), list[list[str]]()
    monkeypatch.setattr(bootstrap.venv, "create", lambda folder, **options: made.append(folder))
    monkeypatch.setattr(bootstrap.subprocess, "run", lambda command, **options: ran.append(command))
    bootstrap.PYTHON.parent.mkdir()
    bootstrap.PYTHON.touch()  # made before pip
    bootstrap.install("")
    assert made == [tmp_path]
    assert "install" in ran[-1]
    bootstrap.PIP.touch()
    (tmp_path / "installed-core").unlink()
    bootstrap.install("")
    assert made == [tmp_path]
