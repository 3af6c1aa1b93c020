"""Batched inference: one interface, ``NetworkEvaluator``, over PyTorch and kernels of our own.

``make_evaluator`` opens one of them by name or by a rule; ``export`` writes networks for other programs.
"""

from .backends import BackendName, backend_name, make_evaluator
from .evaluator import BackendError, NetworkEvaluator
from .fidelity import Fidelity, compare
from .student_evaluator import StudentEvaluator
from .torch_evaluator import TorchEvaluator

__all__ = [
    "BackendError",
    "BackendName",
    "Fidelity",
    "NetworkEvaluator",
    "StudentEvaluator",
    "TorchEvaluator",
    "backend_name",
    "compare",
    "make_evaluator",
]
