"""Networks as ONNX files for other programs; and how true such a file is.

Inputs and outputs are those of ``INTERFACE``, which is part of every file as documentation of the model and of each
input and output.
"""

import json
import logging
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

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
from .calibration import random_positions
from .evaluator import BackendError
from .fidelity import Answers, compare
from .torch_evaluator import TorchEvaluator

INPUT, POLICY, WDL = "planes", "policy_logits", "wdl_logits"
INTERFACE = {
    INPUT: (
        "float32 [batch, 6, 8, 4], seen by the side to move: own men, own kings, opponent's men, opponent's kings (1 "
        "or 0), plies since the last capture or man's move / 80, one on odd rows. Square s = 4 * row + k is PDN square "
        "s + 1 with Black and 32 - s with White to move; rows count from the side's own home row, 0 to 7; the square's "
        "column is 2 * k + 1 on even and 2 * k on odd rows"
    ),
    POLICY: (
        "float32 [batch, 128]: 32 * d + s is one hop, a step or a single jump, from square s in direction d, which "
        "adds to (row, column) for d = 0: (+1, +1), 1: (+1, -1), 2: (-1, -1), 3: (-1, +1), twice that for a jump. A "
        "move's logit is the sum over its hops; softmax over the legal moves gives their probabilities"
    ),
    WDL: "float32 [batch, 3]: softmax gives the probabilities of win, draw and loss for the side to move",
}
_OPSET = 20
_TRACED_BATCH = 3  # any but 1: a size of 1 would be taken for one that never changes
_LARGEST_BATCH = 128
_ENDGAME_PIECES = 4  # of the tables that come with the package
_CHECK_SEED = 20_261  # not that of the calibration


def export_onnx(network: Network, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a network as an ONNX file in float32 (opset 20), whole or not at all.

    Args:
        metadata: entries of the file's metadata, beside the network's configuration.

    Raises:
        BackendError: onnx or onnxscript is not installed.
        StorageError: the file cannot be written.
    """
    model = _onnx_model(network.folded().cpu().float())
    model.doc_string = "English draughts. " + " ".join(f"{name}: {text}." for name, text in INTERFACE.items())
    for value in (*model.graph.input, *model.graph.output):
        value.doc_string = INTERFACE[value.name]
    for key, text in {"network": json.dumps(network.config.model_dump()), **(metadata or {})}.items():
        model.metadata_props.add(key=key, value=text)
    atomic_write(path, model.SerializeToString())


def _onnx_model(folded: Network) -> Any:
    """The graph that torch makes of a network, as a ``ModelProto``."""
    try:
        import onnxscript  # noqa: F401 - torch needs it and would name another package
    except ImportError as error:
        raise BackendError(f"export needs onnx and onnxscript (pip install 'crownhead[export]'): {error}") from error
    planes = torch.zeros(_TRACED_BATCH, NUM_PLANES, ROWS, COLUMNS)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of packages that nothing here needs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        program = torch.onnx.export(
            folded,
            (planes,),
            dynamo=True,
            verbose=False,
            opset_version=_OPSET,
            input_names=[INPUT],
            output_names=[POLICY, WDL],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
        )
    assert program is not None
    return program.model_proto


def open_reference(model: bytes) -> Any:
    """An ONNX file in the reference implementation of ONNX, which is plain numpy; only convolutions are by torch.

    Those take nearly all the time, and torch needs a quarter of it.

    Raises:
        BackendError: onnx is not installed.
    """
    try:
        from onnx.reference import ReferenceEvaluator
        from onnx.reference.op_run import OpRun
    except ImportError as error:
        raise BackendError(f"ONNX files need onnx (pip install 'crownhead[export]'): {error}") from error

    class Conv(OpRun):
        """The operator of this name, with the attributes that exported networks have."""

        def _run(
            self,
            x: np.ndarray,
            weight: np.ndarray,
            bias: np.ndarray | None = None,
            pads: list[int] | None = None,
            **_others: object,
        ) -> tuple[np.ndarray]:
            top, left, bottom, right = pads or (0, 0, 0, 0)
            padded = nn.functional.pad(torch.from_numpy(x), (left, right, top, bottom))
            with torch.inference_mode():
                shift = None if bias is None else torch.tensor(bias)  # there is none where it would be zero
                return (nn.functional.conv2d(padded, torch.tensor(weight), shift).numpy(),)

    return ReferenceEvaluator(model, new_ops=[Conv])


class ExportedNetwork:
    """An exported file as an ``engine.search.Evaluator``, run by the reference implementation of ONNX.

    Raises:
        BackendError: onnx is not installed.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        with open(path, "rb") as file:
            self._reference = open_reference(file.read())

    def evaluate(self, positions: np.ndarray) -> Answers:
        """Policy logits float32 [N, 128] and win/draw/loss logits [N, 3] of positions uint32 [N, 4]."""
        parts = [
            self._reference.run([POLICY, WDL], {INPUT: encode_planes(positions[start : start + _LARGEST_BATCH])})
            for start in range(0, max(len(positions), 1), _LARGEST_BATCH)
        ]
        policy_logits, wdl_logits = (np.concatenate(column) for column in zip(*parts, strict=True))
        return policy_logits, wdl_logits


def check_export(
    path: str | os.PathLike[str], network: Network, positions: int = 2000, endgames: int = 2000
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
    exported, exact = ExportedNetwork(path), TorchEvaluator(network, precision="float32")
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
