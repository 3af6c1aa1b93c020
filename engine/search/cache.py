"""Remembers what the evaluator said: about every third position of a search has been met on another way before."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numba import njit

from ..encoding import NUM_POLICY
from ..tablebase.probing import Tables
from .evaluator import Evaluator
from .state import SearchState, Settings
from .step_loop import StepCounts

_WAYS = 4  # places where a position may lie; the one used longest ago is overwritten
DEFAULT_ENTRIES = 1 << 16
ENTRY_BYTES = 16 + 8 + 4 * (NUM_POLICY + 3)


class Memory(NamedTuple):
    """Answers of an evaluator.

    Attributes:
        keys: uint32 [entries, 4], positions.
        ages: int64 [entries], the batch that asked for it last; 0: the place is free.
        answers: float32 [entries, NUM_POLICY + 3], policy and win/draw/loss logits.
        clock: int64 [1], number of the last batch.
    """

    keys: np.ndarray
    ages: np.ndarray
    answers: np.ndarray
    clock: np.ndarray


def new_memory(entries: int) -> Memory:
    """Room for a number of positions, a power of two."""
    keys, answers = np.zeros((entries, 4), np.uint32), np.zeros((entries, NUM_POLICY + 3), np.float32)
    return Memory(keys, np.zeros(entries, np.int64), answers, np.zeros(1, np.int64))


@njit(cache=True)
def _bucket(positions, i, mask):
    """First of the places of position ``i`` (the finaliser of MurmurHash3 over its words)."""
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for word in range(4):
        mixed ^= np.uint64(positions[i, word])
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64((mixed ^ (mixed >> np.uint64(33))) & np.uint64(mask)) * _WAYS


@njit(cache=True, inline="always")
def _same(keys, place, positions, i):
    own, opp = keys[place, 0] == positions[i, 0], keys[place, 1] == positions[i, 1]
    return own and opp and keys[place, 2] == positions[i, 2] and keys[place, 3] == positions[i, 3]


@njit(cache=True, nogil=True)
def look_up(memory, positions, n, policy, wdl, unknown):
    """Copies the answers to the first ``n`` positions that are known; lists the others in ``unknown``; how many."""
    keys, ages, answers = memory.keys, memory.ages, memory.answers
    memory.clock[0] += 1
    missing, mask = 0, keys.shape[0] // _WAYS - 1
    for i in range(n):
        first, found = _bucket(positions, i, mask), -1
        for place in range(first, first + _WAYS):
            if ages[place] > 0 and _same(keys, place, positions, i):
                found = place
        if found < 0:
            unknown[missing] = i
            missing += 1
            continue
        ages[found] = memory.clock[0]
        for j in range(NUM_POLICY):
            policy[i, j] = answers[found, j]
        for j in range(3):
            wdl[i, j] = answers[found, NUM_POLICY + j]
    return missing


@njit(cache=True, nogil=True)
def store(memory, positions, unknown, missing, new_policy, new_wdl, policy, wdl):
    """Files the answers to the unknown positions, and copies them to their rows of ``policy`` and ``wdl``."""
    keys, ages, answers = memory.keys, memory.ages, memory.answers
    mask = keys.shape[0] // _WAYS - 1
    for row in range(missing):
        i = unknown[row]
        first = _bucket(positions, i, mask)
        oldest = first
        for place in range(first, first + _WAYS):
            if ages[place] < ages[oldest]:
                oldest = place
        ages[oldest] = memory.clock[0]
        for word in range(4):
            keys[oldest, word] = positions[i, word]
        for j in range(NUM_POLICY):
            policy[i, j] = answers[oldest, j] = new_policy[row, j]
        for j in range(3):
            wdl[i, j] = answers[oldest, NUM_POLICY + j] = new_wdl[row, j]


@njit(inline="always")
def judge_remembered(state, memory, forward, network, n):
    """Judges the first ``n`` waiting leaves by what is remembered, the others by a network.

    Args:
        forward: compiled function ``forward(positions, network, policy_logits, wdl_logits)``, for any number.

    Returns:
        Number of leaves that were remembered.
    """
    unknown, asked = np.empty(n, np.int64), np.empty((n, 4), np.uint32)
    missing = look_up(memory, state.leaves, n, state.policy, state.wdl, unknown)
    for row in range(missing):
        for word in range(4):
            asked[row, word] = state.leaves[unknown[row], word]
    if missing > 0:
        policy, wdl = np.empty((missing, NUM_POLICY), np.float32), np.empty((missing, 3), np.float32)
        forward(asked[:missing], network, policy, wdl)
        store(memory, state.leaves, unknown, missing, policy, wdl, state.policy, state.wdl)
    return n - missing


@runtime_checkable
class RememberingEvaluator(Evaluator, Protocol):
    """A ``CompiledEvaluator`` that can also use a memory."""

    def search_remembering(
        self, state: SearchState, settings: Settings, tables: Tables, memory: Memory, steps: int
    ) -> StepCounts:
        """See ``CompiledEvaluator.search``; what is remembered is not judged."""
        ...


class CachedEvaluator:
    """An evaluator that asks another one only for positions it does not remember. For one thread.

    Args:
        evaluator: must give a policy.
        entries: how many positions it remembers, rounded up to a power of two; each takes ``ENTRY_BYTES``.

    Attributes:
        asked, hits: positions so far, and how many of them were remembered.
    """

    def __new__(cls, evaluator: Evaluator, entries: int = DEFAULT_ENTRIES) -> "CachedEvaluator":
        """One that makes whole steps in compiled code where the evaluator does."""
        compiled = isinstance(evaluator, RememberingEvaluator)
        return super().__new__(CompiledCachedEvaluator if compiled else CachedEvaluator)

    def __init__(self, evaluator: Evaluator, entries: int = DEFAULT_ENTRIES) -> None:
        if entries < _WAYS:
            raise ValueError(f"a cache of {entries} positions is too small: {_WAYS} at least")
        self.evaluator = evaluator
        self._memory = new_memory(1 << (entries - 1).bit_length())
        self.asked = self.hits = 0

    @property
    def memory_bytes(self) -> int:
        """Size of the cache."""
        return sum(array.nbytes for array in self._memory)

    def clear(self) -> None:
        """Forgets everything; needed when the evaluator's weights have changed."""
        self._memory.ages[:] = 0

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``Evaluator.evaluate``.

        Raises:
            ValueError: the evaluator gives no policy.
        """
        n = len(positions)
        policy, wdl = np.empty((n, NUM_POLICY), np.float32), np.empty((n, 3), np.float32)
        unknown = np.empty(n, np.int64)
        missing = int(look_up(self._memory, positions, n, policy, wdl, unknown))
        self.asked += n
        self.hits += n - missing
        if missing:
            new_policy, new_wdl = self.evaluator.evaluate(positions[unknown[:missing]])
            if new_policy is None:
                raise ValueError("an evaluator without a policy has nothing worth remembering")
            store(self._memory, positions, unknown, missing, new_policy, new_wdl, policy, wdl)
        return policy, wdl


class CompiledCachedEvaluator(CachedEvaluator):
    """A cache before a ``RememberingEvaluator``."""

    evaluator: RememberingEvaluator

    def search(self, state: SearchState, settings: Settings, tables: Tables, steps: int) -> StepCounts:
        """See ``CompiledEvaluator.search``."""
        counts = self.evaluator.search_remembering(state, settings, tables, self._memory, steps)
        self.asked += counts.judged
        self.hits += counts.remembered
        return counts
