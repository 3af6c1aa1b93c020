"""The command line as users and scripts meet it: JSON keys, exit codes, one-line errors."""

import json
import os
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
from programs import ROOT, crownhead_here, crownhead_program

import crownhead as front_door
from engine.pdn import read_games
from engine.search import SearchConfig
from engine.version import ABSENT, installed_version
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay.run.config import PRESETS, ConfigError, make_config, parse_config

SHOT = "B:W18,K32:B14,K5"  # 14x23 is forced
FREE = "W:WK32,31,22:BK1,12,3"


def figures(*arguments: object) -> dict[str, object]:
    done = crownhead_here(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("network") / "tiny"
    save_checkpoint(folder, make_network(NETWORKS["tiny"]), {"steps": 0})
    return folder


def test_perft() -> None:
    report = figures("perft", 6, "--divide")
    assert set(report) == {"depth", "nodes", "seconds", "nodes_per_second", "divide"}
    assert (report["depth"], report["nodes"]) == (6, 36768)
    assert sum(report["divide"].values()) == 36768
    assert set(report["divide"]) == {"9-13", "9-14", "10-14", "10-15", "11-15", "11-16", "12-16"}
    circle = "B:W6,7,14,15:BK2"
    assert figures("perft", 1, "--fen", circle)["nodes"] == 2
    assert figures("perft", 1, "--fen", circle, "--distinct")["nodes"] == 1
    assert set(figures("perft", 1, "--fen", circle, "--divide")["divide"]) == {"2x9x18x11x2", "2x11x18x9x2"}
    assert figures("perft", 0)["nodes"] == 1


def test_match(tmp_path: Path, checkpoint: Path) -> None:
    pdn = tmp_path / "games.pdn"
    report = figures("match", checkpoint, "random", "--games", 5, "--simulations", 4, "--pdn", pdn)
    keys = {"player_a", "player_b", "games", "wins", "draws", "losses", "score", "elo", "elo_error", "errors"}
    assert set(report) == keys
    assert report["games"] == 5 == report["wins"] + report["draws"] + report["losses"]
    assert report["score"] == (report["wins"] + report["draws"] / 2) / 5
    games = list(read_games(pdn.read_text()))
    assert len(games) == 5
    assert {game.headers["Black"] for game in games} == {str(checkpoint), "random"}
    done = crownhead_here("match", checkpoint, "nobody", "--pdn", pdn)
    assert done.returncode == 2
    assert len(list(read_games(pdn.read_text()))) == 5, "a match that is not played leaves the file alone"
    again = figures("match", checkpoint, "random", "--games", 5, "--simulations", 4)
    assert again == report, "the same seed plays the same match"


def test_timed_match(checkpoint: Path) -> None:
    report = figures("match", checkpoint, "alphabeta:20", "--games", 1, "--seconds", 0.01, "--openings", "random:30")
    assert report["games"] == 1


def test_export(checkpoint: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="export to ONNX needs the extra export")
    out = tmp_path / "network.onnx"
    report = figures("export", checkpoint, "--out", out, "--check")
    assert set(report) == {"path", "digest", "bytes", "seconds", "check"}
    assert report["bytes"] == out.stat().st_size
    assert report["check"]["policy_kl"] < 1e-6
    done = crownhead_here("export", checkpoint, "--out", tmp_path / "missing" / "network.onnx")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_analyse(checkpoint: Path) -> None:
    report = figures("analyse", FREE, "--net", checkpoint, "--simulations", 50)
    assert {"fen", "best", "wdl", "moves"} <= set(report)
    assert report["fen"] == "W:W22,31,K32:B3,12,K1"
    assert sum(report["wdl"]) == pytest.approx(1, abs=1e-3)
    assert {"move", "visits", "prior", "value"} <= set(report["moves"][0])
    assert sum(move["prior"] for move in report["moves"]) == pytest.approx(1, abs=1e-3)
    assert report["best"] in [move["move"] for move in report["moves"]]
    assert report["moves"][0]["move"] == report["best"]
    assert report["pv"][0] in [move["move"] for move in report["moves"]]
    forced = figures("analyse", SHOT, "--net", checkpoint, "--simulations", 20)
    assert [move["move"] for move in forced["moves"]] == ["14x23"]
    readable = crownhead_here("analyse", FREE, "--net", checkpoint, "--simulations", 20)
    assert report["best"] in readable.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["perft", "six"], "depth"),
        (["perft", "0", "--divide"], "--divide counts after each move"),
        (["tablebase", "encode", "out", "--net", "net", "--seed", "2"], "--minutes and --seed are for training"),
        (["tablebase", "encode", "out", "--net", "net", "--minutes", "12"], "--minutes and --seed are for training"),
        (["puzzles", "make", "out", "--games", "games.pdn", "--seed", "1"], "--seed is for self-play"),
        (["rules", "--seed", "2"], "--seed is for --learn and --out"),
        (["perft", "3", "--fen", "B:W40:B1"], "40"),
        (["perft", "3", "--fen", "nonsense"], "nonsense"),
        (["perft", "3", "--fen", ""], "is empty: give one"),
        (["perft", "3", "--fen", ":"], "colons"),
        (["train", "--init", " "], "is empty: give one"),
        (["train", "--teacher", ""], "is empty: give one"),
        (["train", "--backend", ""], "is empty: give one"),
        (["train", "--address", ""], "is empty: give one"),
        (["match", "random", "random", "--address", ""], "is empty: give one"),
        (["tablebase", "build", "--address", ""], "the value of --address is empty"),
        (["tablebase", "build", "--dir", ""], "the value of --dir is empty"),
        (["tablebase", "build", "--dir="], "the value of --dir is empty"),
        (["play", "--opponent", ""], "is empty: give one"),
        (["play", "--text", "--side", ""], "is empty: give one"),
        (["train", "--set", "loop.reuse=1e400"], "reuse"),
        (["train", "--minutes", "nan"], "--minutes"),
        (["oracle", "train", "--out", "new", "--minutes", "inf"], "inf is not finite"),
        (["train", "--set", "network=0x0"], "5x64"),
        (["nothing"], "nothing"),
        (["perft", "1", "--import", "own.py"], "before the command"),
        (["match", "random", "nobody"], "nobody"),
        (["match", "random", "rollout:"], "rollout"),
        (["match", "random", "alphabeta:x"], "alphabeta"),
        (["match", "random", "random", "--openings", "swiss"], "swiss"),
        (["match", "random", "random", "--games", "0"], "games"),
        (["match", "random", "random", "--simulations", "4", "--seconds", "1"], "not both"),
        (["match", "random", "random", "--pdn", "/nowhere/at/all.pdn"], "/nowhere/at/all.pdn"),
        (["analyse", FREE, "--net", "missing"], "missing"),
        (["analyse", FREE, "--net", "level:club"], "no search tree"),
        (["bench", "--board", "alphabeta:champion"], "no search tree"),
        (["analyse", FREE, "--net", "champion@20", "--simulations", "9"], "leave --simulations out"),
        (["bench", "--backend", "torhc"], "torhc"),
        (["bench", "--net", "4x48", "--board", "champion"], "leave --net out"),
        (["engine", "level:club", "--simulations", "9"], "leave --simulations out"),
        (["engine", "champion@ponder"], "leave @ponder out"),
        (["engine", "alphabeta:champion", "--backend", "torch"], "leave --backend out"),
        (["rules", "--dir", "tables"], "--dir is for --learn"),
        (["rules", "--rules", "9"], "--rules is for --learn"),
        (["probe", FREE, "--dir", "."], "holds no tables: name another folder, or build some with"),
        (["match", "alphabeta:champion@0", "random"], "at least 1 is needed"),
        (["ladder", "level:club", "--doublings", "3"], "simulations of its own"),
        (["ladder", "champion@800", "--doublings", "3"], "simulations of its own"),
        (["ladder", "champion", "--simulations", "200", "--doublings", "12"], "819200, not in 0 to 200000"),
        (["play", "--text", "--menu"], "leave --menu"),
        (["play", "--simulations", "8", "--seconds", "1"], "not both"),
        (["train", "--pool", "threads", "--address", "127.0.0.1:1"], "leave --pool threads out"),
        (["train", "--minutes", "1", "--set", "loop.minutes=3"], "--minutes and --set loop.minutes are the same"),
        (["train", "--pool", "local", "--set", "pool=threads"], "--pool and --set pool are the same setting"),
        (["tablebase", "encode", "file", "--seed", str(1 << 64)], "--seed"),
        (["reproduce", "maddocks", "--searches", "300000"], "--searches"),
        (["train", "--preset", "smoke", "--run", "/nowhere/run", "--set", "device=gpu"], "choose cpu, cuda or auto"),
        (["status", "nowhere", "--prometheus", "9100", "--json"], "leave --watch and --prometheus out"),
        (["train", "--preset", "huge"], "huge"),
        (["train", "--set", "search.c_pukt=1"], "c_pukt"),
        (["train", "--set", "search.c_puct=-1"], "c_puct"),
        (["train", "--set", "seed"], "key=value"),
        (["bench", "--net", "1x1"], "1x1"),
        (["train", "--set", os.fsdecode(b"device=\xff")], "not UTF-8"),
        (["train", "--set", "network=" + "x" * 5000], "wide512"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[str], words: str) -> None:
    done = crownhead_here(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert words in lines[0]
    assert len(lines[0]) <= 320


@pytest.mark.parametrize("group", ["tablebase", "oracle", "puzzles"])
def test_a_group_without_a_command_says_what_is_missing(group: str) -> None:
    done = crownhead_here(group)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["crownhead: name one of its commands (see --help)"]


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def starve(*_: object, **__: object) -> None:
        np.zeros(1 << 56)  # bytes: half a million terabytes

    monkeypatch.setattr(front_door, "app", starve)
    with pytest.raises(SystemExit) as ended:
        front_door.main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("crownhead: out of memory: Unable to allocate")


def test_too_little_memory_of_a_gpu_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def starve(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 9 GiB")

    monkeypatch.setattr(front_door, "app", starve)
    with pytest.raises(SystemExit) as ended:
        front_door.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "crownhead: out of memory: CUDA out of memory. Tried to allocate 9 GiB\n"


def test_analyse_says_when_the_game_is_over(checkpoint: Path) -> None:
    done = crownhead_here("analyse", "B:W32:B", "--net", checkpoint)
    assert done.returncode == 2
    assert "no legal move" in done.stderr


def test_help_needs_no_torch() -> None:
    code = "import sys, crownhead\nsys.argv = ['crownhead', '--help']\ntry:\n    crownhead.main()\nfinally:\n    "
    code += "print(sorted({'torch', 'numba', 'ray'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip().endswith("[]")
    assert "train" in done.stdout


def test_version() -> None:
    assert crownhead_here("--version").stdout == f"crownhead {version('crownhead')}\n"
    assert installed_version("no-such-package") == ABSENT


def test_a_number_out_of_range_is_said_by_its_settings_name() -> None:
    with pytest.raises(ConfigError, match=r"^configuration: selfplay\.actors: Input should be greater"):
        make_config("smoke", ["selfplay.actors=0"])


@pytest.mark.parametrize("anchor", ["tablebase", "rules", "hub:program", "level:club"])
def test_anchors_of_a_run_play_by_themselves(anchor: str) -> None:
    config = make_config("smoke", ['loop.anchors=["random","rollout:20","alphabeta:3"]'])
    assert config.loop.anchors
    fields = config.model_dump(mode="json") | {"loop": config.loop.model_dump() | {"anchors": ["random", "rules"]}}
    assert parse_config(fields).loop.anchors == ("random", "rules"), "as an earlier run may have them"
    with pytest.raises(ConfigError, match=f"'{anchor}' is not random, rollout:N or alphabeta:DEPTH"):
        make_config("smoke", [f'loop.anchors=["{anchor}"]'])


def test_presets_and_settings() -> None:
    for preset in PRESETS:
        assert make_config(preset).preset == preset
    config = make_config("quick", ["network=2x32", "search.num_simulations=7", "loop.anchors=[]"])
    assert config.network == NETWORKS["2x32"]
    assert config.search.num_simulations == 7
    assert config.loop.anchors == ()
    with pytest.raises(ConfigError, match=r"search\.c_pict: there is no such setting"):
        make_config("quick", ["search.c_pict=1"])
    with pytest.raises(ConfigError, match="never ends"):
        make_config("quick", ["loop.minutes=null"])
    with pytest.raises(ConfigError, match="cosine needs"):
        make_config("quick", ["loop.minutes=null", "loop.max_iterations=2"])
    assert SearchConfig(num_simulations=3) != SearchConfig()


def test_a_sign_that_the_terminal_has_not_costs_no_result() -> None:
    command = crownhead_program("match", "random", "random", "--games", 2, "--jobs", 1, "--openings", "random:3")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Elo" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="Windows has no standard output without a terminal")
def test_a_closed_standard_output_is_told() -> None:
    """The first file that was opened would get in its place what libraries write to standard output."""
    command = shlex.join(crownhead_program("perft", 1)) + " >&-"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    told = "crownhead: standard output is closed: send it to a file, or to /dev/null\n"
    assert (done.returncode, done.stderr) == (2, told)
