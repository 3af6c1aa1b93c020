"""Batched inference: one interface, ``NetworkEvaluator``, over PyTorch and kernels of our own.

``make_evaluator`` opens one of them by name or by a rule; ``export`` writes networks for other programs.
"""

from .backends import BackendName, backend_name, make_evaluator
from .evaluator import BackendError, NetworkEvaluator
from .fidelity import Fidelity, compare
from .torch_evaluator import TorchEvaluator
from .wide_evaluator import WideEvaluator

__all__ = [
    "BackendError",
    "BackendName",
    "Fidelity",
    "NetworkEvaluator",
    "TorchEvaluator",
    "WideEvaluator",
    "backend_name",
    "compare",
    "make_evaluator",
]
