"""Monte-Carlo tree search for many games in lockstep: configuration, tree, kernels and the class that drives them."""

from .config import SearchConfig
from .evaluator import Evaluator, UniformEvaluator
from .lockstep import Ending, LockstepSearch, SearchResult

__all__ = ["Ending", "Evaluator", "LockstepSearch", "SearchConfig", "SearchResult", "UniformEvaluator"]
