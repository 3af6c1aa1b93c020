"""An evaluator without a network: equal priors and even chances, to measure the search alone."""

import numpy as np
from numba import njit

from ..tablebase.probing import Tables
from .state import SearchState, Settings
from .step_loop import StepCounts, search_steps


@njit(cache=True, nogil=True)
def _judge_uniform(state, network, n):
    for i in range(n):
        for outcome in range(3):
            state.wdl[i, outcome] = 0.0
    return False


@njit(cache=True, nogil=True)
def search_uniform(state, settings, tables, steps):
    """``search_steps`` with equal priors and even chances everywhere."""
    return search_steps(state, settings, tables, _judge_uniform, None, steps)


class UniformEvaluator:
    """Gives every move the same prior and every position even chances; free, so it measures the search alone."""

    def evaluate(self, positions: np.ndarray) -> tuple[None, np.ndarray]:
        """No policy, and zero WDL logits for every position."""
        return None, np.zeros((len(positions), 3), np.float32)

    def search(self, state: SearchState, settings: Settings, tables: Tables, steps: int) -> StepCounts:
        """See ``CompiledEvaluator.search``."""
        return StepCounts(*search_uniform(state, settings, tables, steps))
