"""Leaves of one tree that wait for their evaluation at the same time.

If a tree has several lanes, a waiting leaf already counts as a visit of every node on its path, with a value of the
node's mean minus ``virtual_loss``. So the next descent tends to reach another leaf (0: as "watch the unobserved" of Liu
et al. 2020). This visit is removed before the real one is backed up.

``pledges`` holds the values that each waiting leaf has added to the nodes of its path.
"""

import numpy as np
from numba import njit

from ..outcomes import UNKNOWN
from .tree import mark

IN_FLIGHT = 255  # ``proof_plies`` of a waiting leaf


@njit(cache=True)
def pledge(nodes, paths, pledges, lane, depth, virtual_loss):
    """Counts a waiting leaf as a visit of its path, with each node's mean minus ``virtual_loss`` as its value."""
    value = np.float32(0.0)
    for i in range(depth + 1):
        node = nodes[paths[lane, i]]
        # A node without visits gets its parent's value, with the sign changed.
        value = np.float32(-value) if node.visits == 0 else np.float32(node.value_sum / np.float32(node.visits))
        pledges[lane, i] = value - virtual_loss
        node.visits += 1
        node.value_sum += pledges[lane, i]
    nodes[paths[lane, depth]].proof_plies = np.uint8(IN_FLIGHT)


@njit(cache=True)
def take_back(nodes, paths, depths, pledges, lane):
    """Removes the visit that ``pledge`` has added; nodes that have been proven meanwhile keep their exact value."""
    depth = depths[lane]
    for i in range(depth + 1):
        node = nodes[paths[lane, i]]
        node.visits -= 1
        if node.proof == UNKNOWN:
            node.value_sum -= pledges[lane, i]
        else:
            mark(node, node.proof, node.proof_plies)
    leaf = nodes[paths[lane, depth]]
    if leaf.proof == UNKNOWN:
        leaf.proof_plies = np.uint8(0)


@njit(cache=True)
def drop_leaves(state, n):
    """Removes the first ``n`` waiting leaves without a visit. The nodes of their children, but for those of a
    root, stay unused in the arena."""
    lanes = state.depths.shape[0] // state.slots.shape[0]
    for i in range(n):
        lane = np.int64(state.waiting[i])
        slot = state.slots[lane // lanes]
        if slot.waiting > 0:
            slot.waiting -= 1
            if lanes > 1:
                take_back(state.nodes, state.paths, state.depths, state.pledges, lane)
            state.nodes[state.paths[lane, state.depths[lane]]].num_children = np.uint8(0)
            if state.depths[lane] == 0:
                slot.used = np.int32(slot.root + 1)
                if slot.known != UNKNOWN:  # its moves are marked no more, so that it must be looked up again
                    slot.known, slot.covered = UNKNOWN, slot.covered + 1
