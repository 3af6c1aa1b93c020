"""Batched inference: one interface, ``NetworkEvaluator``, over PyTorch and own kernels.

``make_evaluator`` opens one of them by name or by a rule; ``export`` writes networks for other programs.
"""

from .backends import BackendName, check_backend, make_evaluator, uses_kernels
from .evaluator import BackendError, NetworkEvaluator

__all__ = ["BackendError", "BackendName", "NetworkEvaluator", "check_backend", "make_evaluator", "uses_kernels"]
