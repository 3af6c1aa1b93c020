"""Exported files: their described interface is right, other programs load them, and the check measures real errors."""

import json
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from test_inference import CHAMPION, CONFIGS, moderate
from test_inference_torch import assert_close, plainly
from test_loss import random_positions
from test_wide import KINGS

from engine.board import Board
from engine.encoding import encode_planes, hop_table
from engine.fen import Color
from engine.files import StorageError
from learner.checkpoint import load_checkpoint, save_checkpoint
from learner.inference import BackendError
from learner.inference.export import INTERFACE, check_export, evaluate_export, export_onnx
from learner.inference.fidelity import MAX_POLICY_KL
from learner.network import NETWORKS, ResidualNetwork
from selfplay.export import export_command
from selfplay.requests import ExportRequest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator


EXPORTED = {**CONFIGS, "wide32": NETWORKS["wide32"]}


@pytest.mark.parametrize("config", EXPORTED)
def test_onnx_files_are_valid_and_give_the_networks_answers(tmp_path, config, recwarn, capfd):
    network, path = moderate(EXPORTED[config]), tmp_path / "network.onnx"
    export_onnx(network, path)
    assert not [warning for warning in recwarn if issubclass(warning.category, (DeprecationWarning, FutureWarning))]
    assert capfd.readouterr() == ("", "")
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in model.graph.input] == ["planes"]
    assert [value.name for value in model.graph.output] == ["policy_logits", "wdl_logits"]
    positions = np.concatenate([KINGS, random_positions(150, seed=1)])
    reference = ReferenceEvaluator(model)
    found = reference.run(["policy_logits", "wdl_logits"], {"planes": encode_planes(positions)})
    assert_close(found, plainly(network, positions), 1e-5)
    for size in (1, 3, len(positions)):
        ours = evaluate_export(path, positions[:size])
        assert_close(ours, [part[:size] for part in found], 1e-5)


def test_a_graph_of_fixed_steps_says_the_same():
    """CUDA graphs and exports compute every phase of the game and select that of each position."""
    network, positions = moderate(NETWORKS["wide32"]), np.concatenate([KINGS, random_positions(60, seed=5)])
    planes = torch.from_numpy(encode_planes(positions))
    x = planes.flatten(1)[:, :129]
    every_phase = network._by_every_phase(x, network.neighbours(x[:, :128]), network._phases_of(x))
    for ours, theirs in zip(network(planes), every_phase, strict=True):
        torch.testing.assert_close(theirs, ours)


def test_the_file_explains_itself(tmp_path):
    path = tmp_path / "network.onnx"
    export_onnx(moderate(CONFIGS["tiny"]), path, {"digest": "abc"})
    model = onnx.load(path)
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert notes["digest"] == "abc"
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
    exact = check_export(path, network, positions=100)
    assert exact.policy_kl < 1e-9
    assert exact.top1_agreement == 1
    assert exact.value_error < 1e-5
    assert check_export(path, moderate(network.config), positions=100).policy_kl > MAX_POLICY_KL


@pytest.fixture
def checkpoint(tmp_path):
    network = moderate(CONFIGS["tiny"])
    return save_checkpoint(tmp_path / "checkpoint", network).digest, tmp_path / "checkpoint", network


def test_export_command(tmp_path, checkpoint, capsys):
    digest, folder, network = checkpoint
    out = tmp_path / "file"
    figures = export_command(ExportRequest(str(folder), out), quiet=True)
    assert capsys.readouterr().out == ""
    assert set(figures) == {"path", "digest", "bytes", "seconds"}
    assert (figures["digest"], figures["bytes"]) == (digest, out.stat().st_size)
    positions = random_positions(50, seed=3)
    assert_close(evaluate_export(out, positions), plainly(network, positions), 1e-5)


def test_export_command_with_check(tmp_path, checkpoint, capsys):
    figures = export_command(ExportRequest(str(checkpoint[1]), tmp_path / "file", check=True), quiet=False)
    check = figures["check"]
    assert set(check) == {"policy_kl", "top1_agreement", "wdl_error", "value_error"}
    assert json.loads(json.dumps(figures)) == figures
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{check['top1_agreement']:.2%}" in printed
    assert f"{(tmp_path / 'file').stat().st_size:,} bytes" in printed


class BranchNetwork(ResidualNetwork):
    """What it computes depends on what it sees, which no graph can say."""

    def forward(self, planes):
        return super().forward(planes if float(planes.sum()) > 1 else -planes)


def test_what_cannot_be_a_graph_is_told_in_a_line(tmp_path, capfd):
    with pytest.raises(BackendError, match="torch cannot export BranchNetwork: ") as caught:
        export_onnx(BranchNetwork(NETWORKS["tiny"]).eval(), tmp_path / "file")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_export_command_refuses(tmp_path, checkpoint, monkeypatch):
    folder = str(checkpoint[1])
    with pytest.raises(StorageError, match="missing"):
        export_command(ExportRequest(folder, tmp_path / "missing" / "x"), quiet=True)
    for other in (b"my notes\n", b"hello", b'{"a": 1}', (checkpoint[1] / "weights.safetensors").read_bytes()):
        (tmp_path / "kept").write_bytes(other)
        with pytest.raises(StorageError, match="kept exists already and holds no ONNX model: choose another name"):
            export_command(ExportRequest(folder, tmp_path / "kept"), quiet=True)
        assert (tmp_path / "kept").read_bytes() == other
    with pytest.raises(StorageError, match="it is a folder"):
        export_command(ExportRequest(folder, checkpoint[1]), quiet=True)
    (tmp_path / "kept").unlink()
    for _ in range(2):  # a model may be replaced
        export_command(ExportRequest(folder, tmp_path / "kept"), quiet=True)
    model = (tmp_path / "kept").read_bytes()
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(BackendError, match=r"pip install 'crownhead\[export\]'"):
        export_command(ExportRequest(folder, tmp_path / "kept"), quiet=True)
    assert (tmp_path / "kept").read_bytes() == model
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "kept"]
