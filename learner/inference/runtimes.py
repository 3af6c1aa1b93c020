"""Inference by ONNX Runtime and by OpenVINO, in float32, bf16 or int8; both packages are optional."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from engine.encoding import encode_planes

from ..network import Network
from .calibration import Calibration
from .evaluator import CPU_BUCKETS, BackendError
from .judged import JudgedEvaluator
from .onnx_graph import INPUT, POLICY, WDL, import_onnx, onnx_model

RuntimePrecision = Literal["float32", "bf16", "int8"]
_EXTRA = "pip install 'crownhead[inference]'"


class OnnxEvaluator(JudgedEvaluator):
    """Evaluates with the network's ONNX graph in a runtime.

    Args:
        network, bounded, calibration, batch_buckets: as for ``JudgedEvaluator``.
        precision: of the runtime; bf16 in OpenVINO alone.
        threads: of one evaluation.

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
        super().__init__(network, precision, bounded, calibration, batch_buckets)

    @property
    def backend(self) -> str:
        """See ``NetworkEvaluator.backend``."""
        return self._runtime if self.precision == "float32" else f"{self._runtime}-{self.precision}"

    def _load_exact(self, folded: Network) -> None:
        self._load_model(onnx_model(folded))

    def _load_rounded(self, folded: Network, found: Calibration) -> None:
        self._load_model(onnx_model(folded, found.ranges))

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
