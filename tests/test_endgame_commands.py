"""The oracle's commands: what they return, what they leave on disk, and what they refuse."""

import io
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import torch
from programs import ROOT, crownhead_program

from engine.board import Board
from engine.claims import FileInUseError, claimed
from engine.files import StorageError
from engine.sealed import sealed, unsealed
from engine.tablebase.dense import load_tables
from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import materials_between
from learner.checkpoint import CheckpointError, read_tensors, save_checkpoint, write_tensors
from learner.endgame import commands, validate_command
from learner.endgame.codec_commands import encode_command
from learner.endgame.commands import (
    CURVES,
    MOST_POINTS,
    STATE_FILE,
    Beginning,
    Lessons,
    OracleCommandError,
    curves_in,
    oracle_calibrate_command,
    oracle_train_command,
)
from learner.endgame.data import EndgameSampler
from learner.endgame.networks import (
    PairConfig,
    PairNetwork,
    WangConfig,
    WangNetwork,
    load_endgame_network,
    save_endgame_network,
)
from learner.endgame.oracle import ORACLE_FILE, OracleError, open_oracle, read_oracle_card, save_oracle, shipped_folder
from learner.endgame.probe_command import probe_command
from learner.endgame.tree_search import TreeRound, TreeSettings, TreeWeights
from learner.endgame.validate_command import oracle_validate_command
from learner.network import NETWORKS, make_network
from learner.report import ReportError, evenly_spaced

FENS = ["W:WK1:BK28", "B:W21,22,K23,32:B9,K30", "W:W32,31,30,29,28,27,26:BK1", "W:WK18:B14"]
OUTCOMES = ("win", "draw", "loss")
MEMBER_KEYS = {
    "pieces", "temperature", "threshold", "rounds", "evaluations", "search_temperature", "changed_temperature", "beyond"
}  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "CALIBRATION_POSITIONS", 1000)
    monkeypatch.setattr(commands, "QUICK_POSITIONS", 300)
    monkeypatch.setattr(validate_command, "QUICK_POSITIONS", 300)


def train(out: Path, minutes: float = 0.08, **changes: Any) -> dict[str, Any]:
    beginning = Beginning(**{name: changes.pop(name) for name in Beginning._fields if name in changes})
    lessons = Lessons(**({"pieces": 3, "minutes": minutes, "folder": SHIPPED} | changes))
    return oracle_train_command(beginning, lessons, out, quiet=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("oracle") / "trained"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands, "CALIBRATION_POSITIONS", 1000)
        return out, train(out)


def test_training_leaves_an_oracle(trained: tuple[Path, dict[str, Any]]) -> None:
    out, figures = trained
    assert json.loads(json.dumps(figures)) == figures
    assert figures["oracle"] == str(out / "oracle")
    assert (figures["kind"], figures["parameters"]) == ("pair", 521_187)
    assert figures["seconds"] >= 1.8
    assert figures["accuracy"] > 0.8
    oracle = open_oracle(out / "oracle")
    assert [set(member) for member in figures["members"]] == [MEMBER_KEYS]
    assert figures["members"][0]["threshold"] == oracle.members[0].threshold
    assert oracle.members[0].pieces == (2, 3)
    curve = read_oracle_card(out / "oracle").figures[CURVES]["2-3"]
    assert curve[-1]["validation_accuracy"] == figures["accuracy"]
    position = np.array([[*Board(FENS[0]).words(), 0]], np.uint32)
    full = load_endgame_network(out / "network").wdl_logits(position)
    assert np.allclose(full, oracle.members[0].network.wdl_logits(position), atol=0.1)


def test_training_goes_on_where_it_was(tmp_path: Path) -> None:
    first = train(tmp_path, 0.01)
    assert train(tmp_path, 0.01)["positions"] == first["positions"]
    with claimed(tmp_path), pytest.raises(FileInUseError, match="in use by another process"):
        train(tmp_path, 0.02)
    assert train(tmp_path, 0.02)["positions"] > first["positions"]
    with pytest.raises(CheckpointError, match="another training"):
        train(tmp_path, 0.03, pieces=4)


def test_training_does_not_go_on_with_another_seed_or_network(
    tmp_path: Path, trained: tuple[Path, dict[str, Any]]
) -> None:
    train(tmp_path / "new", 0.003)
    further = {"net": trained[0], "seed": 2}
    train(tmp_path / "further", 0.003, **further)
    train(tmp_path / "further", 0.003, **further)
    for out, changes, differs in (
        ("new", {"seed": 2}, "seed"),
        ("new", {"net": trained[0]}, "network"),
        ("further", further | {"net": tmp_path / "new" / "network"}, "network"),
        ("further", {"seed": 2}, "network"),
        ("further", further | {"seed": 1}, "seed"),
    ):
        with pytest.raises(
            CheckpointError, match=rf"another training \(not the same {differs}.*\): choose another folder"
        ):
            train(tmp_path / out, 0.003, **changes)


def test_a_training_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    first = train(tmp_path, 0.003)
    tensors, info = read_tensors(tmp_path / STATE_FILE)
    del info["beginning"]
    write_tensors(tmp_path / STATE_FILE, tensors, info)
    assert train(tmp_path, 0.003)["positions"] == first["positions"]


def test_a_training_that_cannot_go_on_is_refused_before_the_tables_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path / "one", 0.003)
    (tmp_path / "taken" / "oracle").mkdir(parents=True)
    (tmp_path / "taken" / "oracle" / "letter").touch()
    monkeypatch.setattr(commands, "open_values", lambda *_, **__: pytest.fail("it began"))
    with pytest.raises(CheckpointError, match="not the same seed"):
        train(tmp_path / "one", 0.003, seed=2)
    for changes, differs in (
        ({"pieces": 2}, "numbers of pieces"),
        ({"width": 8}, "config"),
        ({"kind": "wang"}, "kind"),
    ):
        with pytest.raises(CheckpointError, match=f"not the same {differs}"):
            train(tmp_path / "one", 0.003, **changes)
    with pytest.raises(ValueError, match="oracle"):
        train(tmp_path / "taken", 0.003)
    with pytest.raises(OracleCommandError, match="the games have no position of 2 to 3 pieces"):
        train(tmp_path / "new", 0.003, games=np.array([[*Board().words(), 0]], np.uint32))


def test_oracles_that_cannot_be_made_are_refused_before_the_tables_are_read(
    tmp_path: Path, trained: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "open_values", lambda *_, **__: pytest.fail("it began"))
    monkeypatch.setattr(validate_command, "open_values", lambda *_, **__: pytest.fail("it began"))
    network = trained[0] / "network"
    with pytest.raises(OracleError, match="pieces"):
        oracle_calibrate_command([network, network], SHIPPED, tmp_path / "o", 4.0, 100, 1, True)
    with pytest.raises(OracleError, match="a budget of 1,000,000,000 evaluations"):
        oracle_calibrate_command([network], SHIPPED, tmp_path / "o", 1e9, 100, 1, True)
    with pytest.raises(OracleCommandError, match=r"--trees: .*network has no tree search"):
        oracle_validate_command(network, 3, 10, 1, SHIPPED, quiet=True, trees=True)
    (tmp_path / "report.html").write_text("of somebody else")
    with pytest.raises(ReportError, match=r"holds a report\.html of something else"):
        oracle_validate_command(trained[0], 3, 10, 1, SHIPPED, quiet=True, out=tmp_path)


def test_training_on_a_network_that_is_there(tmp_path: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    further = train(tmp_path / "further", 0.003, net=trained[0])
    assert further["accuracy"] > 0.8
    torch.manual_seed(3)
    network = make_network(NETWORKS["tiny"])
    save_checkpoint(tmp_path / "selfplay", network)
    tuned = train(tmp_path / "tuned", 0.003, net=tmp_path / "selfplay", freeze_body=True)
    assert tuned["kind"] == "selfplay"
    after = load_endgame_network(tmp_path / "tuned" / "network").state_dict()
    before = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    changed = {name.split(".")[1] for name, tensor in before.items() if not torch.equal(tensor, after[name])}
    assert changed == {"wdl_head"}


def test_a_network_for_more_pieces_is_widened_too(tmp_path: Path) -> None:
    network = PairNetwork(PairConfig(width=8, experts=8, hidden=4, pieces=7))
    save_endgame_network(tmp_path / "seven", network, (2, 7))
    train(tmp_path / "wider", 0.003, net=tmp_path / "seven", width=16)
    config = load_endgame_network(tmp_path / "wider" / "network").config
    assert config == PairConfig(width=16, experts=16, hidden=8, pieces=7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pieces": 9}, "2 to 8"),
        ({"kind": "selfplay"}, "--net"),
        ({"freeze_body": True}, "--net"),
        ({"kind": "wild"}, "--kind wild: choose pair or wang"),
        ({"minutes": 0.0}, "more than zero"),
        ({"fewest": 4}, "--fewest 4: 2 to --pieces 3"),
        ({"kind": "wang", "width": 8}, "--width"),
        ({"width": 7}, "--width 7: an even number"),
        ({"kind": "pair", "net": Path("somewhere")}, "not both"),
        ({"net": Path("nowhere")}, "nowhere"),
    ],
)
def test_training_refuses(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        train(tmp_path / "out", **changes)
    assert "\n" not in str(caught.value)


def test_a_body_is_frozen_only_where_there_is_one(tmp_path: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match="no self-play network"):
        train(tmp_path, net=trained[0], freeze_body=True)


def test_probe_gives_every_field(trained: tuple[Path, dict[str, Any]]) -> None:
    found = list(probe_command(FENS, trained[0], SHIPPED, quiet=True))
    assert json.loads(json.dumps(found)) == found
    assert [answer["fen"] for answer in found] == [Board(fen).fen() for fen in FENS]
    for answer in found:
        assert set(answer) == {"fen", "exact", "distance", "wdl", "verdict", "confidence", "source"}
        assert sum(answer["wdl"]) == pytest.approx(1)
        assert answer["verdict"] == OUTCOMES[int(np.argmax(answer["wdl"]))]
        assert answer["confidence"] == max(answer["wdl"])
    assert (found[0]["exact"], found[0]["distance"]) == ("draw", None)
    assert (found[1]["exact"], found[1]["distance"]) == (None, None)  # six pieces
    assert found[2]["exact"] is None
    assert (found[3]["exact"], found[3]["distance"], found[3]["source"]) == ("win", 1, "capture search")


def test_probe_says_what_its_confidence_is_worth(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, trained: tuple[Path, dict[str, Any]]
) -> None:
    members = open_oracle().members
    edge, rule = members[-1].edge, members[-1].beyond
    assert rule is not None
    save_oracle(tmp_path / "without", [replace(member, beyond=None) for member in members])
    for net, most, told in (
        (None, rule.most ** (24 - edge), f"{rule.most:.1%} at most on {edge + 1}"),
        (tmp_path / "without", 0.9, "beyond, the oracle guesses, and states 90% at most"),
    ):
        found = list(probe_command([FENS[0], Board().fen()], net, SHIPPED, quiet=False))
        assert [", never tested on 24 pieces" in answer["source"] for answer in found] == [False, True]
        assert found[1]["confidence"] <= max(most, 1 / 3) + 1e-6
        printed = " ".join(capsys.readouterr().out.split())
        assert f"Confidence: tested on positions of up to {edge} pieces; beyond" in printed
        assert told in printed
    list(probe_command(FENS[:1], trained[0], SHIPPED, quiet=False))
    assert "Confidence" not in capsys.readouterr().out
    torch.manual_seed(2)
    save_checkpoint(tmp_path / "selfplay", make_network(NETWORKS["tiny"]))
    list(probe_command(FENS[:1], tmp_path / "selfplay", SHIPPED, quiet=False))
    assert "never calibrated" in capsys.readouterr().out


@pytest.mark.parametrize("fens", [[], ["-"], [FENS[3], "-"]])
def test_probe_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, trained: tuple[Path, dict[str, Any]], fens: list[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{FENS[0]}\n\n  {FENS[1]}  \n"))
    found = list(probe_command(fens, trained[0], SHIPPED, quiet=True))
    expected = [fen for fen in fens if fen != "-"] + FENS[:2]
    assert [answer["fen"] for answer in found] == [Board(fen).fen() for fen in expected]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"W:W99:B1", "outside squares"),
        (b"W:W\xff\x00:B1", r"FEN 'W:W.*xff.*x00"),
        (b"\xff\xfeW\x00:\x00", "FEN"),
        (b"B:W:B", "an empty board"),
    ],
)
def test_what_is_wrong_on_standard_input_is_named_and_the_rest_is_answered(
    monkeypatch: pytest.MonkeyPatch, trained: tuple[Path, dict[str, Any]], line: bytes, message: str
) -> None:
    data = b"\xef\xbb\xbfW:WK1:BK28\n\r\n# kings\n" + line + b"\r\n ; more\nB:WK1:BK28"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="latin-1"))
    answers = probe_command(["-"], trained[0], SHIPPED, quiet=True)
    found = [next(answers) for _ in range(3)]
    with pytest.raises(ValueError, match="1 of 3 lines of standard input are no positions"):
        next(answers)
    assert [answer.get("fen") for answer in found] == ["W:WK1:BK28", None, "B:WK1:BK28"]
    assert found[1]["line"] == 4
    assert re.search(message, found[1]["error"])
    assert found[1]["error"].isprintable()


def test_answers_come_while_positions_are_still_written(trained: tuple[Path, dict[str, Any]]) -> None:
    program = crownhead_program("probe", "--json", "--net", trained[0], "--dir", SHIPPED)
    with subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for fen in FENS[:2]:
            process.stdin.write(fen + "\n")
            process.stdin.flush()
            assert read_element(process.stdout)["fen"] == Board(fen).fen()
        process.stdin.close()
        assert process.stdout.read() == "]\n"


def read_element(stream: IO[str]) -> dict[str, Any]:
    """Reads the next element of a JSON array that is still being written."""
    text = ""
    while not text.endswith("}"):
        text += stream.read(1)
    element: dict[str, Any] = json.loads(text[text.index("{") :])
    return element


def test_probe_prints_a_table(capsys: pytest.CaptureFixture[str], trained: tuple[Path, dict[str, Any]]) -> None:
    list(probe_command(FENS[:1], trained[0], SHIPPED, quiet=False))
    printed = capsys.readouterr().out
    assert "draw" in printed
    assert "network" in printed or "search" in printed


def test_probe_refuses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    for fens, net, message in (
        ([], trained[0], "no position"),
        (["W:W1"], trained[0], "W:W1"),
        (FENS, tmp_path, "holds no"),
        (FENS, tmp_path / "none", "none"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            list(probe_command(fens, net, SHIPPED, quiet=True))
        assert "\n" not in str(caught.value)


def test_validation_counts_what_the_oracle_says(trained: tuple[Path, dict[str, Any]]) -> None:
    figures = oracle_validate_command(trained[0], 3, 20_000, 7, SHIPPED, quiet=True)
    assert json.loads(json.dumps(figures)) == figures
    assert {"by_outcome", "by_flag", "by_pieces", "by_slice", "ece", "ece_network", "threshold"} <= figures.keys()
    assert figures["positions"] == 20_000
    assert figures["parameters"] == 521_187
    assert 0.5 < figures["accuracy"] < figures["accuracy_search"] <= figures["accuracy_oracle"] <= 1
    assert 0 <= figures["ece"] < 0.1
    assert figures["threshold"] == open_oracle(trained[0] / "oracle").members[0].threshold
    assert list(figures["by_pieces"]) in (["2", "3"], [2, 3])
    assert figures["evaluations"] > 0.5
    again = oracle_validate_command(trained[0], 3, 20_000, 7, SHIPPED, quiet=True)
    assert {**again, "seconds": 0} == {**figures, "seconds": 0}
    other = oracle_validate_command(trained[0], 3, 20_000, 8, SHIPPED, quiet=True)
    assert other["by_slice"] != figures["by_slice"]


def games() -> np.ndarray:
    """Positions as from games: some of them twice, some with captures, some with one side without pieces."""
    materials = materials_between(2, 4)
    positions = EndgameSampler(load_tables(SHIPPED, 4, 1), materials, 5).draw(600).positions
    over = np.array([[1, 0, 0, 3]], np.uint32)
    return np.concatenate([positions, positions[:50], over])


def test_positions_of_games_are_measured_beside_uniform_ones(
    trained: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = oracle_validate_command(trained[0], 3, 500, 7, SHIPPED, quiet=True)
    positions = games()
    figures = oracle_validate_command(trained[0], 3, 500, 7, SHIPPED, False, tmp_path / "report", positions)
    assert json.loads(json.dumps(figures)) == figures
    of_games = figures["games"]
    assert {name: figures[name] for name in plain if name != "seconds"} == {
        name: value for name, value in plain.items() if name != "seconds"
    }
    few = np.bitwise_count(positions[:, 0] | positions[:, 1]) <= 3
    expected = np.unique(positions[few & (positions[:, 1] > 0), :3], axis=0)
    assert (
        of_games["positions"]
        == len(expected)
        == sum(of_games["confusion"]["oracle"][i][j] for i in range(3) for j in range(3))
    )
    assert set(of_games["by_pieces"]) <= {"2", "3"}
    assert 0.8 < of_games["accuracy_oracle"] <= 1
    assert "positions of games" in capsys.readouterr().out
    assert "right on positions of games, 3 pieces" in (tmp_path / "report" / "report.html").read_text()
    with pytest.raises(OracleCommandError, match="no position of 2 to 3"):
        oracle_validate_command(trained[0], 3, 500, 7, SHIPPED, True, games=positions[~few])


def test_training_around_games(tmp_path: Path) -> None:
    out = tmp_path / "around"
    figures = train(out, 0.01, games=games(), pieces=4, fewest=4, width=8)
    oracle = open_oracle(out / "oracle")
    assert oracle.members[0].network.config == PairConfig(width=8, experts=8, hidden=4)
    assert oracle.members[0].pieces == (4, 4)
    assert figures["positions"] > 0
    with pytest.raises(CheckpointError, match="not the same samples"):
        train(out, 0.02, pieces=4, fewest=4, width=8)
    wider = train(tmp_path / "wider", 0.003, net=out / "network", width=12)
    assert wider["parameters"] > figures["parameters"]


def test_larger_tables_are_asked_for_in_one_line(trained: tuple[Path, dict[str, Any]]) -> None:
    with pytest.raises(OracleCommandError, match="lacks tables of up to 7 pieces; build them with") as caught:
        oracle_validate_command(trained[0], 7, 10, 1, SHIPPED, quiet=True)
    assert "\n" not in str(caught.value)


def test_validation_of_networks_that_come_alone(tmp_path: Path) -> None:
    torch.manual_seed(2)
    save_checkpoint(tmp_path / "selfplay", make_network(NETWORKS["tiny"]))
    save_endgame_network(tmp_path / "wang", WangNetwork(WangConfig(blocks=1, channels=2, hidden=8)), (2, 4))
    for name, pieces in (("selfplay", [2, 24]), ("wang", [2, 4])):
        figures = oracle_validate_command(tmp_path / name, 3, 500, 1, SHIPPED, quiet=True)
        assert figures["positions"] == 500
        assert figures["members"][0]["pieces"] == pieces
        assert figures["members"][0]["temperature"] != 1.0
        assert figures["evaluations"] < 6
    oracle_calibrate_command([tmp_path / "selfplay"], SHIPPED, tmp_path / "own", 3.0, 200, 1, quiet=True)
    (member,) = open_oracle(tmp_path / "own").members  # as far as the tables reach
    assert (member.pieces, member.calibrated) == ((2, 24), 5)


def test_a_curve_on_a_card_keeps_its_ends() -> None:
    curve = [{"positions": n, "loss": 1 / (n + 1)} for n in range(1000)]
    few = evenly_spaced(curve, MOST_POINTS)
    assert len(few) == MOST_POINTS
    assert (few[0], few[-1]) == (curve[0], curve[-1])
    assert [point["positions"] for point in few] == sorted({point["positions"] for point in few})
    assert evenly_spaced(curve[:MOST_POINTS], MOST_POINTS) == curve[:MOST_POINTS]


def test_a_folder_of_tables_that_is_not_there_is_named(tmp_path: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    with pytest.raises(StorageError, match="cannot read the folder"):
        oracle_validate_command(trained[0], 3, 10, 1, tmp_path / "none", quiet=True)
    with pytest.raises(StorageError, match="cannot read the folder"):
        encode_command(tmp_path / "none", 2, tmp_path / "coded", None, 1.0, 1, quiet=True)


@pytest.mark.parametrize(("pieces", "positions", "message"), [(9, 10, "2 to 8"), (3, 0, "at least 1")])
def test_validation_refuses(trained: tuple[Path, dict[str, Any]], pieces: int, positions: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        oracle_validate_command(trained[0], pieces, positions, 1, SHIPPED, quiet=True)


def test_report_is_written(
    tmp_path: Path, trained: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    figures = oracle_validate_command(trained[0], 3, 2000, 7, SHIPPED, quiet=False, out=tmp_path / "report")
    assert Path(figures["report"]).is_file()
    data = json.loads((tmp_path / "report" / "report.json").read_text())
    assert data["accuracy_oracle"] == figures["accuracy_oracle"]
    assert list(data["learning_curves"]) == ["2-3"]
    assert data["facts"]["seed"] == 7
    assert "threatened capture" in capsys.readouterr().out


def test_what_cannot_be_written_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: tuple[Path, dict[str, Any]]
) -> None:
    def begun(*arguments: Any, **more: Any) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(commands, "load_tables", begun)
    (tmp_path / "file").write_text("in the way")
    place = tmp_path / "file" / "report"
    for work in (
        lambda: oracle_validate_command(trained[0], 3, 100, 7, SHIPPED, quiet=True, out=place),
        lambda: oracle_calibrate_command([trained[0]], SHIPPED, place, 3.0, 100, 1, quiet=True),
        lambda: oracle_calibrate_command([trained[0]], SHIPPED, tmp_path, 3.0, 100, 1, quiet=True),
        lambda: train(place),
    ):
        with pytest.raises((OSError, ValueError), match=str(tmp_path)) as caught:
            work()
        assert "\n" not in str(caught.value)


def test_two_networks_make_an_oracle(tmp_path: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    train(tmp_path / "larger", 0.005, pieces=4)
    nets = [tmp_path / "larger" / "network", trained[0] / "network"]
    figures = oracle_calibrate_command(nets, SHIPPED, tmp_path / "both", 3.0, 500, 1, quiet=False)
    assert figures["parameters"] == 2 * 521_187
    assert [member["pieces"] for member in figures["members"]] == [[2, 3], [2, 4]]
    curves = read_oracle_card(tmp_path / "both").figures[CURVES]
    assert {name: len(curve) for name, curve in curves.items()}.keys() == {"2-3", "2-4"}
    assert curves == curves_in(tmp_path / "both")
    assert curves_in(shipped_folder()) == {}
    card = tmp_path / "both" / ORACLE_FILE
    whole, fields = card.read_bytes(), unsealed(card.read_bytes())
    fields["figures"][CURVES] = [1, 2]
    card.write_bytes(sealed(fields))
    with pytest.raises(CheckpointError, match="the learning curves are damaged"):
        curves_in(tmp_path / "both")
    card.write_bytes(whole)
    assert [member.pieces for member in open_oracle(tmp_path / "both").members] == [(2, 3), (2, 4)]
    first = open_oracle(tmp_path / "both").members[0]
    weights = TreeWeights(pieces=3, rounds=(TreeRound(simulations=9, own=1, tree=1, draw=0),))
    save_oracle(tmp_path / "one", [first], {}, TreeSettings(weights=(weights,)))
    again = [tmp_path / "one", tmp_path / "larger" / "network"]
    oracle_calibrate_command(again, SHIPPED, tmp_path / "kept", 2.0, 400, 5, quiet=True, keep=True)
    kept, added = open_oracle(tmp_path / "kept").members
    assert kept.settings == first.settings
    assert (kept.calibrated, added.calibrated) == (3, 4)
    assert added.beyond is not None
    trees = read_oracle_card(tmp_path / "kept").trees
    assert trees is not None
    assert trees.weights == (weights,)
    oracle_calibrate_command(again, SHIPPED, tmp_path / "anew", 2.0, 400, 5, quiet=True)
    assert open_oracle(tmp_path / "anew").members[0].settings != first.settings
    assert read_oracle_card(tmp_path / "anew").trees is None
    with pytest.raises(ValueError, match="no network"):
        oracle_calibrate_command([], SHIPPED, tmp_path / "none", 3.0, 500, 1, quiet=True)
    with pytest.raises(ValueError, match="holds 2 networks"):
        train(tmp_path / "more", net=tmp_path / "both")
