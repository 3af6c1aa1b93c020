"""Wide networks in files for other programs."""

from pathlib import Path

import numpy as np
import pytest
import torch
from test_wide import KINGS, random_wide

from engine.encoding import encode_planes
from learner.inference import BackendError, TorchEvaluator
from learner.inference.calibration import random_positions
from learner.inference.export import ExportedNetwork, ExportFormat, export_onnx, export_torchscript

POSITIONS = np.concatenate([KINGS, random_positions(60)])


@pytest.mark.parametrize("format", ["onnx", "torchscript"])
def test_files_say_what_the_network_says(format: ExportFormat, tmp_path: Path) -> None:
    if format == "onnx":
        pytest.importorskip("onnx")
    network, path = random_wide(), tmp_path / "wide"
    (export_onnx if format == "onnx" else export_torchscript)(network, path)
    found = ExportedNetwork(path, format).evaluate(POSITIONS)
    for ours, theirs in zip(TorchEvaluator(network, precision="float32").evaluate(POSITIONS), found, strict=True):
        np.testing.assert_allclose(theirs, ours, atol=1e-4)


def test_int8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="residual"):
        export_onnx(random_wide(), tmp_path / "wide.onnx", quantised=True)
    assert not list(tmp_path.iterdir())


def test_a_graph_of_fixed_steps_says_the_same() -> None:
    """What CUDA graphs and traces compute: every phase, of which each position's is taken."""
    network = random_wide()
    planes = torch.from_numpy(encode_planes(POSITIONS))
    x = planes.flatten(1)[:, :129]
    for ours, theirs in zip(network(planes), network._by_every_phase(x, network._phases_of(x)), strict=True):
        torch.testing.assert_close(theirs, ours)
