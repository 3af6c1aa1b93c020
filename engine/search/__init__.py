"""Monte-Carlo tree search for many games in lockstep: configuration, tree, kernels and the class that drives them."""

from .config import BOARD_SEARCH, MOST_IN_FLIGHT, SearchConfig
from .evaluator import Evaluator, LeafOracle
from .lockstep import Ending, LockstepSearch, SearchResult
from .step_loop import CompiledEvaluator
from .uniform import UniformEvaluator

__all__ = [
    "BOARD_SEARCH",
    "MOST_IN_FLIGHT",
    "CompiledEvaluator",
    "Ending",
    "Evaluator",
    "LeafOracle",
    "LockstepSearch",
    "SearchConfig",
    "SearchResult",
    "UniformEvaluator",
]
