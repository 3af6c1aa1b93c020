"""Remembers what the evaluator said: about every third position of a search has been met on another way before."""

import numpy as np
from numba import njit

from ..encoding import NUM_POLICY
from .batches import BackupArguments, BatchCounts, Memory, RememberingSearcher, SelectArguments
from .evaluator import Evaluator

_WAYS = 4  # places where a position may lie; the one used longest ago is overwritten
_LATEST = np.iinfo(np.int32).max
DEFAULT_ENTRIES = 1 << 16
ENTRY_BYTES = 16 + 4 + 4 * (NUM_POLICY + 3)


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
def look_up(keys, ages, answers, now, positions, policy, wdl, unknown):
    """Copies the answers that are known; writes the numbers of the other positions into ``unknown``; how many."""
    missing = 0
    mask = keys.shape[0] // _WAYS - 1
    for i in range(positions.shape[0]):
        first, found = _bucket(positions, i, mask), -1
        for place in range(first, first + _WAYS):
            if ages[place] > 0 and _same(keys, place, positions, i):
                found = place
        if found < 0:
            unknown[missing] = i
            missing += 1
            continue
        ages[found] = now
        for j in range(NUM_POLICY):
            policy[i, j] = answers[found, j]
        for j in range(3):
            wdl[i, j] = answers[found, NUM_POLICY + j]
    return missing


@njit(cache=True, nogil=True)
def store(keys, ages, answers, now, positions, unknown, missing, new_policy, new_wdl, policy, wdl):
    """Files the answers to the unknown positions, and copies them to their rows of ``policy`` and ``wdl``."""
    mask = keys.shape[0] // _WAYS - 1
    for row in range(missing):
        i = unknown[row]
        first = _bucket(positions, i, mask)
        oldest = first
        for place in range(first, first + _WAYS):
            if ages[place] < ages[oldest]:
                oldest = place
        ages[oldest] = now
        for word in range(4):
            keys[oldest, word] = positions[i, word]
        for j in range(NUM_POLICY):
            policy[i, j] = answers[oldest, j] = new_policy[row, j]
        for j in range(3):
            wdl[i, j] = answers[oldest, NUM_POLICY + j] = new_wdl[row, j]


class CachedEvaluator:
    """An evaluator that asks another one only for positions it does not remember. For one thread.

    Args:
        evaluator: must give a policy.
        entries: how many positions it remembers, rounded up to a power of two; each takes ``ENTRY_BYTES``.

    Attributes:
        searches: whether the evaluator makes batches of a search, so that ``search`` does.
        asked, hits: positions so far, and how many of them were remembered.
    """

    def __init__(self, evaluator: Evaluator, entries: int = DEFAULT_ENTRIES) -> None:
        if entries < _WAYS:
            raise ValueError(f"a cache of {entries} positions is too small: {_WAYS} at least")
        size = 1 << (entries - 1).bit_length()
        self.evaluator = evaluator
        self._keys = np.zeros((size, 4), np.uint32)
        self._ages = np.zeros(size, np.int32)
        self._answers = np.zeros((size, NUM_POLICY + 3), np.float32)
        self._now = 0
        self.searches = isinstance(evaluator, RememberingSearcher)
        self.asked = self.hits = 0

    @property
    def memory_bytes(self) -> int:
        """Size of the cache."""
        return self._keys.nbytes + self._ages.nbytes + self._answers.nbytes

    def clear(self) -> None:
        """Forgets everything; needed when the evaluator's weights have changed."""
        self._ages[:] = 0
        self._now = 0

    def _memory(self, batches: int) -> Memory:
        """For so many batches more."""
        if self._now > _LATEST - batches:
            self.clear()
        first = self._now + 1
        self._now += batches
        return Memory(self._keys, self._ages, self._answers, first)

    def search(self, select: SelectArguments, backup: BackupArguments, few: int, batches: int) -> BatchCounts:
        """See ``BatchSearcher.search``; what is remembered is not asked for."""
        assert isinstance(self.evaluator, RememberingSearcher)
        counts = self.evaluator.search_remembering(select, backup, self._memory(batches), few, batches)
        self.asked += counts.judged
        self.hits += counts.judged - counts.missing
        return counts

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``Evaluator.evaluate``.

        Raises:
            ValueError: the evaluator gives no policy.
        """
        n = len(positions)
        policy, wdl = np.empty((n, NUM_POLICY), np.float32), np.empty((n, 3), np.float32)
        unknown = np.empty(n, np.int64)
        table = self._memory(1)
        missing = int(look_up(*table, positions, policy, wdl, unknown))
        self.asked += n
        self.hits += n - missing
        if missing:
            new_policy, new_wdl = self.evaluator.evaluate(positions[unknown[:missing]])
            if new_policy is None:
                raise ValueError("an evaluator without a policy has nothing worth remembering")
            store(*table, positions, unknown, missing, new_policy, new_wdl, policy, wdl)
        return policy, wdl
