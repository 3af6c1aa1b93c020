"""Networks as files for other programs: ONNX, in float32 or int8, and TorchScript; and how true such a file is.

Inputs and outputs of both are those of ``onnx_graph.INTERFACE``, which is part of every file: in an ONNX file as
documentation of the model and of each input and output, in TorchScript as the extra file ``crownhead.json``.
TorchScript gives the tuple (policy_logits, wdl_logits).
"""

import io
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from engine.encoding import NUM_PLANES, encode_planes
from engine.files import atomic_write
from engine.tablebase.dense import load_tables
from engine.tablebase.material import materials_between
from engine.tablebase.probe import SHIPPED

from ..endgame.data import TEST, EndgameBatch, EndgameSampler
from ..endgame.member import softmax
from ..endgame.resolve import resolve
from ..network import COLUMNS, ROWS, Network
from ..residual import ResidualNetwork
from .calibration import CALIBRATION_POSITIONS, calibrate, random_positions
from .evaluator import BackendError
from .fidelity import Answers, compare
from .onnx_graph import INPUT, INTERFACE, POLICY, WDL, import_onnx, onnx_model
from .torch_evaluator import TorchEvaluator

ExportFormat = Literal["onnx", "torchscript"]
TORCHSCRIPT_NOTES = "crownhead.json"
_TRACED_BATCH = 3  # any but 1: a size of 1 would be taken for one that never changes
_LARGEST_BATCH = 128
_ENDGAME_PIECES = 4  # of the tables that come with the package
_CHECK_SEED = 20_261  # not that of the calibration


def export_onnx(
    network: Network,
    path: str | os.PathLike[str],
    quantised: bool = False,
    calibration: np.ndarray | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes a network as an ONNX file (opset 19), whole or not at all.

    Args:
        quantised: the trunk in int8 (``onnx_graph``).
        calibration: positions uint32 [N, 4] for that; by default from random games.
        metadata: entries of the file's metadata, beside the network's configuration.

    Raises:
        BackendError: onnx is not installed, or int8 is wanted of a wide network.
        StorageError: the file cannot be written.
    """
    folded = network.folded().cpu().float()
    ranges = None
    if quantised:
        if not isinstance(folded, ResidualNetwork):
            raise BackendError("int8 is for the convolutions of residual networks; export a wide one in float32")
        positions = random_positions(CALIBRATION_POSITIONS) if calibration is None else calibration
        ranges = calibrate(folded, positions)
    precision = "int8" if quantised else "float32"
    atomic_write(path, onnx_model(folded, ranges, {"precision": precision, **(metadata or {})}))


def export_torchscript(
    network: Network, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes a network as a TorchScript file in float32, whole or not at all; ``torch.jit.load`` reads it.

    Args:
        metadata: entries of ``crownhead.json`` in the file, beside the network's configuration and the interface.

    Raises:
        StorageError: the file cannot be written.
    """
    folded = network.folded().cpu().float()
    notes = {"network": network.config.model_dump(), "interface": INTERFACE, **(metadata or {})}
    buffer = io.BytesIO()
    with warnings.catch_warnings(), torch.inference_mode():
        # TorchScript is what C++ programs read without Python; torch keeps it, and advises new code against it.
        warnings.filterwarnings("ignore", ".*torch.jit")
        traced = torch.jit.trace(folded, torch.zeros(_TRACED_BATCH, NUM_PLANES, ROWS, COLUMNS))
        torch.jit.save(traced, buffer, _extra_files={TORCHSCRIPT_NOTES: json.dumps(notes)})
    atomic_write(path, buffer.getvalue())


def open_reference(model: bytes) -> Any:
    """An ONNX file in the reference implementation of ONNX, which is plain numpy; only convolutions are by torch.

    Those take nearly all the time, and torch needs a quarter of it.

    Raises:
        BackendError: onnx is not installed.
    """
    import_onnx()
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class Conv(OpRun):
        """The operator of this name, with the attributes that ``onnx_graph`` writes."""

        def _run(
            self, x: np.ndarray, weight: np.ndarray, bias: np.ndarray, pads: list[int] | None = None, **_others: object
        ) -> tuple[np.ndarray]:
            top, left, bottom, right = pads or (0, 0, 0, 0)
            padded = nn.functional.pad(torch.from_numpy(x), (left, right, top, bottom))
            with torch.inference_mode():
                return (nn.functional.conv2d(padded, torch.tensor(weight), torch.tensor(bias)).numpy(),)

    return ReferenceEvaluator(model, new_ops=[Conv])


class ExportedNetwork:
    """An exported file as an ``engine.search.Evaluator``, run by the reference implementation of ONNX or by torch.

    Raises:
        BackendError: onnx is not installed.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], format: ExportFormat) -> None:
        with open(path, "rb") as file:
            data = file.read()
        if format == "onnx":
            reference = open_reference(data)
            self._run = lambda planes: reference.run([POLICY, WDL], {INPUT: planes})
            return
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*torch.jit")
            module = torch.jit.load(io.BytesIO(data))

        def run(planes: np.ndarray) -> list[np.ndarray]:
            with torch.inference_mode():
                return [output.numpy() for output in module(torch.from_numpy(planes))]

        self._run = run

    def evaluate(self, positions: np.ndarray) -> Answers:
        """Policy logits float32 [N, 128] and win/draw/loss logits [N, 3] of positions uint32 [N, 4]."""
        parts = [
            self._run(encode_planes(np.ascontiguousarray(positions[start : start + _LARGEST_BATCH])))
            for start in range(0, max(len(positions), 1), _LARGEST_BATCH)
        ]
        policy_logits, wdl_logits = (np.concatenate(column) for column in zip(*parts, strict=True))
        return policy_logits, wdl_logits


def check_export(
    path: str | os.PathLike[str],
    format: ExportFormat,
    network: Network,
    positions: int = 2000,
    endgames: int = 2000,
) -> dict[str, Any]:
    """How true an exported file is to its network in float32.

    Args:
        positions: of random games, to compare the answers on.
        endgames: of 2 to 4 pieces with known values, from the test split, to be judged with a capture search.

    Returns:
        The fields of ``Fidelity``, ``positions``, ``endgames``, ``endgame_accuracy`` (share of right answers) of the
        file and ``endgame_accuracy_network`` of the network.

    Raises:
        BackendError: onnx is not installed.
        OSError: the file cannot be read.
    """
    exported, exact = ExportedNetwork(path, format), TorchEvaluator(network, precision="float32")
    asked = random_positions(positions, _CHECK_SEED)
    fidelity = compare(asked, exact.evaluate(asked), exported.evaluate(asked))
    tables = load_tables(SHIPPED, _ENDGAME_PIECES, threads=1)
    questions = EndgameSampler(tables, materials_between(2, _ENDGAME_PIECES), _CHECK_SEED, TEST).draw(endgames)
    return {
        "positions": positions,
        **asdict(fidelity),
        "endgames": endgames,
        "endgame_accuracy": _endgame_accuracy(exported, questions),
        "endgame_accuracy_network": _endgame_accuracy(exact, questions),
    }


def _endgame_accuracy(evaluator: ExportedNetwork | TorchEvaluator, questions: EndgameBatch) -> float:
    """Share of right answers, by the win/draw/loss head with a capture search."""
    found = resolve(questions.positions, lambda positions: softmax(evaluator.evaluate(positions)[1]))
    return float(np.mean(found.values == questions.values))
