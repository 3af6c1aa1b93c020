"""Batched inference: one interface, ``NetworkEvaluator``, over PyTorch, kernels of our own, ONNX Runtime and OpenVINO.

Which of them is used is chosen by name or by measurement (``choice``); ``export`` writes networks for other programs.
"""

from .backends import BackendName, backend_name, open_backend
from .choice import Choice, choose_backend, make_evaluator
from .evaluator import BackendError, NetworkEvaluator
from .fidelity import Fidelity, compare
from .measuring import measure_rates
from .torch_evaluator import TorchEvaluator
from .wide_evaluator import WideEvaluator

__all__ = [
    "BackendError",
    "BackendName",
    "Choice",
    "Fidelity",
    "NetworkEvaluator",
    "TorchEvaluator",
    "WideEvaluator",
    "backend_name",
    "choose_backend",
    "compare",
    "make_evaluator",
    "measure_rates",
    "open_backend",
]
