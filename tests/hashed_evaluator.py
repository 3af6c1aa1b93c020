"""A compiled evaluator for tests of the step loop: pseudo-random answers without a network."""

import numpy as np
from numba import njit

from engine.encoding import NUM_POLICY
from engine.search.state import SearchState, Settings
from engine.search.step_loop import StepCounts, search_steps
from engine.tablebase.probing import Tables


@njit(cache=True)
def _mixed(state):
    state = (state ^ (state >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return (state ^ (state >> np.uint64(29))) * np.uint64(0xD1B54A32D192ED03)


@njit(cache=True)
def _forward(positions, network, policy, wdl):
    """Writes logits in [-2, 2) that depend only on the position; ``network`` is a seed."""
    for i in range(positions.shape[0]):
        state = np.uint64(network)
        for word in range(4):
            state = _mixed(state + np.uint64(positions[i, word]) + np.uint64(word + 1))
        for j in range(NUM_POLICY + 3):
            state = _mixed(state + np.uint64(j + 1))
            logit = np.float32(state >> np.uint64(40)) / np.float32(1 << 22) - np.float32(2)
            if j < NUM_POLICY:
                policy[i, j] = logit
            else:
                wdl[i, j - NUM_POLICY] = logit


@njit(cache=True)
def _judge(state, network, n):
    _forward(state.leaves[:n], network, state.policy, state.wdl)
    return True


@njit(cache=True, nogil=True)
def _search(state, settings, tables, seed, steps):
    return search_steps(state, settings, tables, _judge, seed, steps)


class HashedEvaluator:
    """A ``CompiledEvaluator`` with pseudo-random answers.

    Attributes:
        compiled_calls: number of calls of ``search``.
    """

    def __init__(self, seed: int = 1) -> None:
        self._seed = seed
        self.compiled_calls = 0

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        policy, wdl = np.empty((len(positions), NUM_POLICY), np.float32), np.empty((len(positions), 3), np.float32)
        _forward(positions, self._seed, policy, wdl)
        return policy, wdl

    def search(self, state: SearchState, settings: Settings, tables: Tables, steps: int) -> StepCounts:
        self.compiled_calls += 1
        return StepCounts(*_search(state, settings, tables, self._seed, steps))
