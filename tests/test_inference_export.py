"""Exported files: they mean what they say, load elsewhere, and are judged honestly."""

import json
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from test_inference import CHAMPION, CONFIGS, broken, moderate
from test_inference_torch import assert_close, plainly
from test_loss import random_positions

from engine.board import Board
from engine.encoding import encode_planes, hop_table
from engine.fen import Color
from engine.files import StorageError
from learner.checkpoint import load_checkpoint, save_checkpoint
from learner.inference import BackendError, compare
from learner.inference.calibration import calibrate
from learner.inference.calibration import random_positions as calibration_positions
from learner.inference.export import (
    TORCHSCRIPT_NOTES,
    ExportedNetwork,
    check_export,
    export_onnx,
    export_torchscript,
)
from learner.inference.fidelity import MAX_POLICY_KL, MAX_WDL_ERROR
from learner.inference.onnx_graph import INTERFACE
from learner.network import NETWORKS
from selfplay.export import export_command, exported_match
from selfplay.requests import ExportRequest, RequestError

onnx = pytest.importorskip("onnx")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("config", CONFIGS)
def test_onnx_files_are_valid_and_give_the_networks_answers(tmp_path, config, quantised):
    network, path = moderate(CONFIGS[config]), tmp_path / "network.onnx"
    export_onnx(network, path, quantised)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in model.graph.input] == ["planes"]
    assert [value.name for value in model.graph.output] == ["policy_logits", "wdl_logits"]
    quantisers = {"QuantizeLinear", "DequantizeLinear"} & {node.op_type for node in model.graph.node}
    assert len(quantisers) == 2 * quantised
    positions = random_positions(150, seed=1)
    reference = ReferenceEvaluator(model)
    found = reference.run(["policy_logits", "wdl_logits"], {"planes": encode_planes(positions)})
    expected = plainly(network, positions)
    assert_close(found, expected, 0.3 if quantised else 1e-5)
    assert_close(ExportedNetwork(path, "onnx").evaluate(positions), found, 0.02 if quantised else 1e-5)
    if quantised:  # a layer that is left out or scaled otherwise shows
        for ours, theirs in zip(found, expected, strict=True):
            assert np.std(ours - theirs) < 0.1 * np.std(theirs)
            assert abs(np.mean(ours - theirs)) < 0.06 * np.std(theirs)


def test_int8_of_a_trained_network_keeps_well_within_the_bounds(tmp_path):
    network, path, positions = load_checkpoint(CHAMPION).network, tmp_path / "x.onnx", random_positions(1000, seed=2)
    export_onnx(network, path, quantised=True)
    fidelity = compare(positions, plainly(network, positions), ExportedNetwork(path, "onnx").evaluate(positions))
    assert 0 < fidelity.policy_kl < MAX_POLICY_KL / 3
    assert 0 < fidelity.wdl_error < MAX_WDL_ERROR / 2
    assert fidelity.value_error < 0.015
    assert fidelity.top1_agreement > 0.95


def test_calibration_takes_the_ranges_of_the_positions_given():
    network = moderate(NETWORKS["2x32"]).folded()
    few, many = random_positions(4, seed=8), random_positions(200, seed=8)
    narrow, wide = calibrate(network, few), calibrate(network, many)
    assert set(wide) == {"stem"} | {
        f"blocks.{i}.{layer}" for i in range(2) for layer in ("first", "second.conv", "second")
    }
    for name, (low, high) in narrow.items():
        assert wide[name][0] <= low <= high <= wide[name][1]
    assert wide["blocks.0.second.conv"][0] < 0 == wide["blocks.0.second"][0]
    assert any(narrow[name] != wide[name] for name in narrow)
    np.testing.assert_array_equal(calibration_positions(50, 3), calibration_positions(50, 3))
    assert len(np.unique(calibration_positions(50, 3), axis=0)) > 40


@pytest.mark.parametrize("config", CONFIGS)
def test_torchscript_files_give_the_networks_answers(tmp_path, config):
    network, path = moderate(CONFIGS[config]), tmp_path / "network.pt"
    export_torchscript(network, path, {"digest": "abc"})
    positions = random_positions(150, seed=2)
    exported = ExportedNetwork(path, "torchscript")
    for size in (1, 3, 150):
        assert_close(exported.evaluate(positions[:size]), plainly(network, positions[:size]), 1e-5)
    notes = {TORCHSCRIPT_NOTES: ""}
    with pytest.warns((DeprecationWarning, FutureWarning), match="torch.jit.load"):  # which depends on torch
        torch.jit.load(path, _extra_files=notes)
    assert json.loads(notes[TORCHSCRIPT_NOTES]) == {
        "network": network.config.model_dump(),
        "interface": INTERFACE,
        "digest": "abc",
    }


def test_writing_torchscript_warns_of_nothing(tmp_path, recwarn):
    export_torchscript(moderate(CONFIGS["tiny"]), tmp_path / "network.pt")
    assert not [warning for warning in recwarn if issubclass(warning.category, (DeprecationWarning, FutureWarning))]


def test_the_file_explains_itself(tmp_path):
    path = tmp_path / "network.onnx"
    export_onnx(moderate(CONFIGS["tiny"]), path, quantised=True, metadata={"digest": "abc"})
    model = onnx.load(path)
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert notes["digest"] == "abc"
    assert notes["precision"] == "int8"
    assert json.loads(notes["network"]) == CONFIGS["tiny"].model_dump()
    for value in [*model.graph.input, *model.graph.output]:
        assert value.doc_string == INTERFACE[value.name]
        assert value.doc_string in model.doc_string


def described_planes(board):
    """Planes as ``INTERFACE`` describes them, from the pieces on the board."""
    planes = np.zeros((6, 8, 4), np.float32)
    pieces = board.piece_map()
    for square in range(32):
        row, k = divmod(square, 4)
        color, is_king = pieces.get(square + 1 if board.turn is Color.BLACK else 32 - square, (None, False))
        if color is not None:
            planes[(0 if color is board.turn else 2) + is_king, row, k] = 1
        planes[4, row, k] = np.float32(board.reversible_plies / 80)
        planes[5, row, k] = row % 2
    return planes


def described_hops(board, move):
    """Policy indices of a move's hops as ``INTERFACE`` describes them, from the squares it visits."""
    squares = [number - 1 if board.turn is Color.BLACK else 32 - number for number in move.path]
    places = [(s // 4, 2 * (s % 4) + (1 - s // 4 % 2)) for s in squares]
    steps = [(np.sign(b[0] - a[0]), np.sign(b[1] - a[1])) for a, b in pairwise(places)]
    directions = [(1, 1), (1, -1), (-1, -1), (-1, 1)]
    return [32 * directions.index(step) + s for step, s in zip(steps, squares, strict=False)]


def test_the_description_is_what_the_network_gets_and_gives():
    rng = np.random.default_rng(0)
    board, jumps = Board(), 0
    while jumps < 10:
        if not board.legal_moves or board.outcome():
            board = Board()
        position = np.array([[*board.words(), board.reversible_plies]], np.uint32)
        np.testing.assert_array_equal(described_planes(board), encode_planes(position)[0])
        table, counts = hop_table(position)
        expected = [[hop for hop in hops.tolist() if hop < 128] for hops in table[0, : counts[0]]]
        assert [described_hops(board, move) for move in board.distinct_moves] == expected
        move = board.legal_moves[rng.integers(len(board.legal_moves))]
        jumps += len(move.path) > 2
        board.push(move)


def test_check_says_how_true_a_file_is(tmp_path):
    network, path = load_checkpoint(CHAMPION).network, tmp_path / "network.onnx"
    export_onnx(network, path)
    exact = check_export(path, "onnx", network, positions=300, endgames=200)
    assert exact["policy_kl"] < 1e-9
    assert exact["top1_agreement"] == 1
    assert exact["endgame_accuracy"] == exact["endgame_accuracy_network"] > 0.6
    export_onnx(network, path, quantised=True)
    rounded = check_export(path, "onnx", network, positions=300, endgames=200)
    assert 1e-6 < rounded["policy_kl"] < MAX_POLICY_KL
    assert rounded["endgame_accuracy"] == pytest.approx(exact["endgame_accuracy"], abs=0.03)
    other = moderate(network.config)
    wrong = check_export(path, "onnx", other, positions=300, endgames=200)
    assert wrong["policy_kl"] > MAX_POLICY_KL
    assert wrong["endgame_accuracy"] == rounded["endgame_accuracy"]
    assert wrong["endgame_accuracy_network"] < exact["endgame_accuracy_network"]


def test_the_match_is_between_the_file_and_its_network(tmp_path):
    """A file that is worse than its network loses."""
    network, path = load_checkpoint(CHAMPION).network, tmp_path / "worse.onnx"
    export_onnx(broken(load_checkpoint(CHAMPION).network), path, quantised=True)
    result = exported_match(path, "onnx", network, games=8, simulations=4)
    assert (result.player_a, result.player_b, result.games) == ("worse.onnx", "float32", 8)
    assert result.tally.elo_diff().score < 0.5


@pytest.fixture
def checkpoint(tmp_path):
    network = moderate(CONFIGS["tiny"])
    return save_checkpoint(tmp_path / "checkpoint", network).digest, tmp_path / "checkpoint", network


@pytest.mark.parametrize(("format", "int8"), [("onnx", False), ("onnx", True), ("torchscript", False)])
def test_export_command(tmp_path, checkpoint, format, int8, capsys):
    digest, folder, network = checkpoint
    out = tmp_path / "file"
    request = ExportRequest(str(folder), out, format, int8)
    figures = export_command(request, quiet=True)
    assert capsys.readouterr().out == ""
    assert set(figures) == {"path", "format", "precision", "digest", "bytes", "seconds"}
    assert (figures["digest"], figures["bytes"]) == (digest, out.stat().st_size)
    assert figures["precision"] == ("int8" if int8 else "float32")
    positions = random_positions(50, seed=3)
    fidelity = compare(positions, plainly(network, positions), ExportedNetwork(out, format).evaluate(positions))
    assert (fidelity.wdl_error > 1e-5) == int8
    export_command(request, quiet=False)
    assert f"{out.stat().st_size:,} bytes" in " ".join(capsys.readouterr().out.split())


def test_export_command_with_check(tmp_path, checkpoint, capsys):
    request = ExportRequest(str(checkpoint[1]), tmp_path / "file", "onnx", int8=True, check=True)
    figures = export_command(request, quiet=False, games=2)
    check = figures["check"]
    assert {"policy_kl", "top1_agreement", "wdl_error", "value_error", "endgame_accuracy", "match"} <= set(check)
    assert check["match"]["games"] == 2
    assert json.loads(json.dumps(figures)) == figures
    shown = capsys.readouterr().out
    assert f"{check['top1_agreement']:.2%}" in shown
    assert f"+{check['match']['wins']} ={check['match']['draws']}" in shown


def test_export_command_refuses(tmp_path, checkpoint, monkeypatch):
    folder = str(checkpoint[1])
    with pytest.raises(RequestError, match="choose one of onnx, torchscript"):
        ExportRequest(folder, tmp_path / "x", "tflite")
    with pytest.raises(RequestError, match="--int8 is for --format onnx"):
        ExportRequest(folder, tmp_path / "x", "torchscript", int8=True)
    with pytest.raises(StorageError, match="missing"):
        export_command(ExportRequest(folder, tmp_path / "missing" / "x"), quiet=True)
    (tmp_path / "kept").write_text("kept")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(BackendError, match=r"pip install 'crownhead\[export\]'"):
        export_command(ExportRequest(folder, tmp_path / "kept"), quiet=True)
    assert (tmp_path / "kept").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "kept"]
