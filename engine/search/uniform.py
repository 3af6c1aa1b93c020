"""An evaluator without a network: equal priors, and equal win, draw and loss. It measures the search alone."""

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
    """``search_steps`` with the evaluation of ``UniformEvaluator``."""
    return search_steps(state, settings, tables, _judge_uniform, None, steps)


class UniformEvaluator:
    """Gives all moves equal priors and all positions equal win, draw and loss, at no cost."""

    def evaluate(self, positions: np.ndarray) -> tuple[None, np.ndarray]:
        """Returns no policy, and win/draw/loss logits of 0 for every position."""
        return None, np.zeros((len(positions), 3), np.float32)

    def search(self, state: SearchState, settings: Settings, tables: Tables, steps: int) -> StepCounts:
        """See ``CompiledEvaluator.search``."""
        return StepCounts(*search_uniform(state, settings, tables, steps))
