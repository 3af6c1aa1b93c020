"""Every example runs as it stands, prints what it found, and is short."""

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from engine.pdn import read_games
from engine.search import SearchConfig, UniformEvaluator
from selfplay.actors.actor import Actor
from selfplay.games.shards import write_shard
from selfplay.run.config import SelfPlayConfig

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
MOST_LINES = 80
RUNS = {
    "own_evaluator.py": (["--simulations", "50"], "principal line:"),
    "own_loss.py": (["--steps", "3"], "own: "),
    "own_match.py": (["--games", "2"], "score:"),
    "own_network.py": (["--steps", "3"], "first move:"),
}


def run(name: str, *arguments: object) -> str:
    """What an example prints; it runs in this process, which saves the seconds for starting a program."""
    printed = io.StringIO()
    words = [name, *map(str, arguments)]
    with contextlib.redirect_stdout(printed), patch.object(sys, "argv", words):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return printed.getvalue()


def code_of(notebook: Path) -> list[str]:
    """The code cells of a notebook."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_every_example_is_run_and_short() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == RUNS.keys()
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES, path.name
    for path in EXAMPLES.glob("*.ipynb"):
        assert sum(len(code.splitlines()) for code in code_of(path)) <= MOST_LINES, path.name


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str) -> None:
    arguments, expected = RUNS[name]
    assert expected in run(name, *arguments)


@pytest.mark.parametrize(("name", "option"), [("own_match", "games"), ("own_loss", "steps"), ("own_network", "steps")])
def test_nothing_to_do_is_refused(
    name: str, option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, f"--{option}", "0"])
    with pytest.raises(SystemExit):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert f"error: --{option} must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("own_evaluator", "fen", "x"),
        ("own_evaluator", "fen", "W:W12:B3,8"),
        ("own_evaluator", "simulations", "-3"),
        ("own_evaluator", "simulations", "9999999"),
        ("own_evaluator", "king", "nan"),
        ("own_match", "seed", "-1"),
        ("own_match", "pdn", "nowhere/games.pdn"),
    ],
)
def test_bad_input_is_refused(name: str, option: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name, f"--{option}", value])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert ended.value.code == 2


def test_the_match_keeps_its_games(tmp_path: Path) -> None:
    run("own_match.py", "--games", "4", "--pdn", tmp_path / "games.pdn")
    games = read_games((tmp_path / "games.pdn").read_text("utf-8"))
    assert [(game.headers["Black"], game.headers["White"]) for game in games] == [
        ("greedy", "hoarder"),
        ("hoarder", "greedy"),
    ] * 2


def test_the_network_learns_from_shards_at_hand(tmp_path: Path) -> None:
    evaluator = UniformEvaluator()
    games, _ = Actor(SelfPlayConfig(games_in_lockstep=2), SearchConfig(num_simulations=2), evaluator, seed=1).play(20)
    info = write_shard(tmp_path / "00000000.shard", games)
    assert f"{info.samples} samples; first move:" in run("own_network.py", tmp_path, "--steps", "2")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebook_runs(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored: dict[str, Any] = json.loads(notebook.read_text("utf-8"))
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    assert all({"id", "metadata", "source"} <= cell.keys() for cell in stored["cells"])
    assert all(cell["outputs"] == [] for cell in stored["cells"] if cell["cell_type"] == "code")  # nothing out of date
    names: dict[str, Any] = {"__name__": "notebook"}
    for code in code_of(notebook):
        exec(compile(code, notebook.name, "exec"), names)
    printed = capsys.readouterr().out
    assert "two kings to move: 14880 positions" in printed
    assert names["tables"].max_pieces >= 3
