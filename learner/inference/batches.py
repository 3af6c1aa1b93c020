"""Whole batches of a search in compiled code, see ``engine.search.batches``."""

import numpy as np
from numba import njit

from engine.bitboard import NUM_SQUARES, popcount
from engine.encoding import NUM_POLICY
from engine.search.cache import look_up, store
from engine.search.kernels import backup_leaves, select_leaves

from .lanes import WIDTH
from .winograd import forward


@njit(nogil=True, cache=True)
def search_batches(select, backup, leaves, memory, weights, buffers, few, batches):
    """What ``LockstepSearch.step`` does with a ``CachedEvaluator``, so many times.

    Args:
        select, backup: ``SelectArguments`` and ``BackupArguments`` as plain tuples: Numba takes no others apart.
        leaves: of ``select``.
        memory, few, batches: see ``engine.search.batches``.
        weights, buffers: see ``winograd.forward``.

    Returns:
        The numbers of ``BatchCounts``.
    """
    lanes = leaves.shape[0]
    policy, wdl = np.empty((lanes, NUM_POLICY), np.float32), np.empty((lanes, 3), np.float32)
    new_policy, new_wdl = np.empty((lanes, NUM_POLICY), np.float32), np.empty((lanes, 3), np.float32)
    unknown, asked = np.empty(lanes, np.int64), np.empty((lanes, 4), np.uint32)
    room = buffers.planes.size // (NUM_SQUARES * WIDTH)
    judged, missed = 0, 0
    for batch in range(batches):
        n = select_leaves(*(*select, np.int64(0)))  # the type by which it is called elsewhere, too
        if n == 0 or has_few(leaves, n, few):
            return judged, missed, n
        table = memory.keys, memory.ages, memory.answers, memory.now + batch
        missing = look_up(*table, leaves[:n], policy, wdl, unknown)
        for row in range(missing):
            for word in range(asked.shape[1]):
                asked[row, word] = leaves[unknown[row], word]
        for first in range(0, missing, room):
            part = slice(first, min(first + room, missing))
            forward(asked[part], weights, buffers, new_policy[part], new_wdl[part])
        store(*table, leaves[:n], unknown, missing, new_policy, new_wdl, policy, wdl)
        backup_leaves(*(*backup, n, policy, wdl))
        judged += n
        missed += missing
    return judged, missed, 0


@njit(nogil=True, cache=True)
def has_few(leaves, n, few):
    """Whether one of the first ``n`` positions has at most ``few`` pieces."""
    fewest = few + 1
    for i in range(n):
        fewest = min(fewest, np.int64(popcount(leaves[i, 0] | leaves[i, 1])))
    return fewest <= few
