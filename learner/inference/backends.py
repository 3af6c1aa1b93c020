"""The inference backends by their names."""

from collections.abc import Callable
from functools import partial
from typing import Any

from engine.players.spec import BackendName, one_of

from ..network import Network
from .evaluator import BackendError, NetworkEvaluator
from .judged import ROUNDED, JudgedEvaluator
from .numba_evaluator import NumbaEvaluator
from .runtimes import OnnxRuntimeEvaluator, OpenVinoEvaluator
from .torch_evaluator import TorchEvaluator

ROUNDED_ENDINGS = tuple(f"-{precision}" for precision in ROUNDED)

RUNTIMES: dict[str, Callable[..., JudgedEvaluator]] = {
    "onnxruntime": OnnxRuntimeEvaluator,
    "onnxruntime-int8": partial(OnnxRuntimeEvaluator, precision="int8"),
    "openvino": OpenVinoEvaluator,
    "openvino-bf16": partial(OpenVinoEvaluator, precision="bf16"),
    "openvino-int8": partial(OpenVinoEvaluator, precision="int8"),
}
KERNELS: dict[str, Callable[..., JudgedEvaluator]] = {
    "numba": NumbaEvaluator,
    "numba-int16": partial(NumbaEvaluator, precision="int16"),
}


def backend_name(text: str) -> BackendName:
    """The backend of that name.

    Raises:
        BackendError: there is none.
    """
    name: BackendName = one_of(text, BackendName, "backend", BackendError)
    return name


def open_backend(
    network: Network, name: str, device: str = "cpu", threads: int = 1, bounded: bool = False
) -> NetworkEvaluator:
    """An evaluator by the name of its backend, which is not ``auto``.

    Args:
        device: of torch; the others compute on the CPU.
        threads: of one evaluation; those of torch are set by the caller.
        bounded: of integers, see ``JudgedEvaluator``.

    Raises:
        BackendError: it is not installed, or cannot compute this network.
    """
    if name == "student":
        raise BackendError("backend student is for players whose folder has a student beside the network")
    if name in RUNTIMES:
        return RUNTIMES[name](network, bounded=bounded, threads=threads)
    if name in KERNELS:
        return KERNELS[name](network, bounded=bounded, threads=threads)
    options: dict[str, Any] = {"precision": "float32"} if name == "torch-float32" else {}
    return TorchEvaluator(network, device, **options)
