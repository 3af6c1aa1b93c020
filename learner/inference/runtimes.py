"""Inference by ONNX Runtime and by OpenVINO, in float32, bf16 or int8; both packages are optional."""

import logging
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from engine.encoding import encode_planes

from ..network import Network
from .calibration import CALIBRATION_POSITIONS, calibrate, random_positions
from .evaluator import CPU_BUCKETS, BackendError, NetworkEvaluator
from .fidelity import Fidelity, compare
from .onnx_graph import INPUT, POLICY, WDL, import_onnx, onnx_model

RuntimePrecision = Literal["float32", "bf16", "int8"]
_LOG = logging.getLogger(__name__)
_EXTRA = "pip install 'crownhead[inference]'"


class OnnxEvaluator(NetworkEvaluator):
    """Evaluates with the network's ONNX graph in a runtime.

    Int8 is judged at every ``update``: its answers to the calibration positions are compared with the network's.

    Args:
        network, batch_buckets: as for ``NetworkEvaluator``.
        precision: of the runtime; bf16 in OpenVINO alone.
        bounded: where int8 strays further from the network than ``fidelity`` allows, evaluate in float32 until the next
            update; a warning is logged.
        calibration: positions uint32 [N, 4]; by default ``random_positions``.
        threads: of one evaluation.

    Attributes:
        precision: the one in use; with ``bounded`` it may be float32 where int8 was asked for.
        fidelity: of int8 with the present weights, on the calibration positions; None if int8 was not asked for.

    Raises:
        BackendError: the runtime or onnx is not installed.
    """

    _runtime: ClassVar[str]

    def __init__(
        self,
        network: Network,
        precision: RuntimePrecision = "float32",
        bounded: bool = False,
        calibration: np.ndarray | None = None,
        threads: int = 1,
        batch_buckets: Sequence[int] = CPU_BUCKETS,
    ) -> None:
        import_onnx()
        self._threads = threads
        self._asked: RuntimePrecision = precision
        self._bounded = bounded
        self._calibration = random_positions(CALIBRATION_POSITIONS) if calibration is None else calibration
        self.precision: RuntimePrecision = precision
        self.fidelity: Fidelity | None = None
        super().__init__(network, batch_buckets)

    @property
    def backend(self) -> str:
        """See ``NetworkEvaluator.backend``."""
        return self._runtime if self.precision == "float32" else f"{self._runtime}-{self.precision}"

    def _load(self, folded: Network) -> None:
        self.precision = self._asked
        if self._asked != "int8":
            self._load_model(onnx_model(folded))
            return
        found = calibrate(folded, self._calibration)
        self._load_model(onnx_model(folded, found.ranges))
        self.fidelity = compare(
            self._calibration, (found.policy_logits, found.wdl_logits), self._answers(self._calibration)
        )
        if self._bounded and not self.fidelity.acceptable:
            _LOG.warning("int8 strays too far from this network (%s): float32 is used instead", self.fidelity)
            self.precision = "float32"
            self._load_model(onnx_model(folded))

    def _answers(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        largest = int(self._buckets[-1])
        parts = [
            tuple(array.copy() for array in self._evaluate_part(positions[start : start + largest]))
            for start in range(0, len(positions), largest)
        ]
        policy_logits, wdl_logits = (np.concatenate(column) for column in zip(*parts, strict=True))
        return policy_logits, wdl_logits

    @abstractmethod
    def _load_model(self, model: bytes) -> None:
        """Evaluates with this ONNX file from now on, in ``self.precision``."""


class OnnxRuntimeEvaluator(OnnxEvaluator):
    """Evaluates with ONNX Runtime. It has no use for buckets: any batch size is as good as another."""

    _runtime = "onnxruntime"

    def __init__(
        self,
        network: Network,
        precision: Literal["float32", "int8"] = "float32",
        bounded: bool = False,
        calibration: np.ndarray | None = None,
        threads: int = 1,
    ) -> None:
        super().__init__(network, precision, bounded, calibration, threads, range(1, CPU_BUCKETS[-1] + 1))

    def _load_model(self, model: bytes) -> None:
        self._session = open_session(model, self._threads)

    def _evaluate_part(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        policy_logits, wdl_logits = self._session.run([POLICY, WDL], {INPUT: encode_planes(positions)})
        return policy_logits, wdl_logits


class OpenVinoEvaluator(OnnxEvaluator):
    """Evaluates with OpenVINO's CPU plugin."""

    _runtime = "openvino"

    def _load_model(self, model: bytes) -> None:
        openvino = _import_openvino()
        options = {
            "INFERENCE_NUM_THREADS": self._threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if self.precision == "bf16" else "f32",
            # Else every process pins its thread to the first core.
            "ENABLE_CPU_PINNING": False,
        }
        core = _openvino_core()
        compiled = core.compile_model(core.read_model(model), "CPU", options)
        self._make_tensor = openvino.Tensor
        self._request = compiled.create_infer_request()

    def _evaluate_part(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n, size = len(positions), self._bucket(len(positions))
        if n < size:
            positions = np.concatenate([positions, np.zeros((size - n, 4), np.uint32)])
        planes = encode_planes(positions)
        self._request.set_tensor(INPUT, self._make_tensor(planes, shared_memory=True))
        self._request.infer()
        return self._request.get_tensor(POLICY).data[:n], self._request.get_tensor(WDL).data[:n]


def open_session(model: bytes, threads: int = 1) -> Any:
    """An ONNX Runtime session of an ONNX file, on the CPU; with one thread that is the calling one.

    Raises:
        BackendError: ONNX Runtime is not installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise BackendError(f"backend onnxruntime needs ONNX Runtime ({_EXTRA}): {error}") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _import_openvino() -> Any:
    try:
        import openvino
    except ImportError as error:
        raise BackendError(f"backend openvino needs OpenVINO ({_EXTRA}): {error}") from error
    return openvino


@cache
def _openvino_core() -> Any:
    """One for the process: making it loads the plugins."""
    return _import_openvino().Core()
