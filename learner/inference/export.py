"""Networks as ONNX files for other programs; and how close such a file's answers are.

Inputs and outputs are those of ``INTERFACE``, which is part of every file as documentation of the model and of each
input and output.
"""

import contextlib
import io
import logging
import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from engine.encoding import NUM_PLANES, encode_planes
from engine.errors import one_line
from engine.files import atomic_write
from engine.game import ENGLISH, GAME

from ..network_base import COLUMNS, ROWS, Network
from .calibration import random_positions
from .evaluator import BackendError
from .fidelity import Answers, Fidelity, compare
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
_CHECK_SEED = 20_261  # not that of the calibration


def export_onnx(network: Network, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a network as an ONNX file in float32 (opset 20), whole or not at all.

    Args:
        metadata: entries of the file's metadata, beside the network's configuration.

    Raises:
        BackendError: onnx or onnxscript is not installed, or the network plays another game than English draughts.
        StorageError: the file cannot be written.
    """
    if GAME != ENGLISH:
        raise BackendError(f"networks of {GAME} draughts cannot be exported: ONNX files describe English moves")
    model = _onnx_model(network.folded().cpu().float())
    model.doc_string = "English draughts. " + " ".join(f"{name}: {text}." for name, text in INTERFACE.items())
    for value in (*model.graph.input, *model.graph.output):
        value.doc_string = INTERFACE[value.name]
    for key, text in {"network": network.config.model_dump_json(), **(metadata or {})}.items():
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
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):  # there torch prints what it cannot do
        warnings.simplefilter("ignore", FutureWarning)
        try:
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
        except Exception as error:  # of a network of one's own, whose code may do anything
            why = one_line(error.__cause__ or error)
            raise BackendError(f"torch cannot export {type(folded).__name__}: {why}") from error
    assert program is not None
    return program.model_proto


def check_model(path: str | os.PathLike[str]) -> None:
    """Raises ``ValueError`` if a file is no ONNX model, what ``evaluate_export`` does where it cannot be read."""
    try:
        import onnx
    except ImportError as error:
        raise BackendError(f"ONNX files need onnx (pip install 'crownhead[export]'): {error}") from error
    with open(path, "rb") as file:
        data = file.read()
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:  # of a package that onnx uses
        raise ValueError(f"{path} is no ONNX model: {one_line(error)}") from error
    if not model.graph.output:  # texts may be models of fields that nobody knows
        raise ValueError(f"{path} is no ONNX model: it has no outputs")


def evaluate_export(path: str | os.PathLike[str], positions: np.ndarray) -> Answers:
    """What an exported file answers to positions uint32 [N, 4], by the reference implementation of ONNX (plain numpy).

    Returns:
        Policy logits float32 [N, 128] and win/draw/loss logits [N, 3].

    Raises:
        BackendError: onnx is not installed.
        OSError: the file cannot be read.
    """
    try:
        from onnx.reference import ReferenceEvaluator
    except ImportError as error:
        raise BackendError(f"ONNX files need onnx (pip install 'crownhead[export]'): {error}") from error
    with open(path, "rb") as file:
        reference = ReferenceEvaluator(file.read())
    answers: Any = reference.run([POLICY, WDL], {INPUT: encode_planes(positions)})
    return answers[0], answers[1]


def check_export(path: str | os.PathLike[str], network: Network, positions: int = 500) -> Fidelity:
    """How close an exported file's answers are to its network's in float32; raises what ``evaluate_export`` does.

    Args:
        positions: of random games, to compare the answers on.
    """
    asked = random_positions(positions, _CHECK_SEED)
    exact = TorchEvaluator(network, precision="float32").evaluate(asked)
    return compare(asked, exact, evaluate_export(path, asked))
