"""Leaves of one tree that wait for their evaluation at the same time.

If a tree has several lanes, a waiting leaf already counts as a visit of every node on its path, with the node's mean
value minus ``virtual_loss``, and its mean of draws. So the next descent tends to reach another leaf (0: as "watch the
unobserved" of Liu et al. 2020). This visit is removed before the real one is backed up.

``pledges`` holds the values and the draws that each waiting leaf has added to the nodes of its path.
"""

import numpy as np
from numba import njit

from ..outcomes import UNKNOWN
from .state import lanes_of
from .tree import mark

IN_FLIGHT = 255  # ``proof_plies`` of a waiting leaf


@njit(cache=True)
def pledge(nodes, paths, pledges, lane, depth, virtual_loss):
    """Counts a waiting leaf as a visit of its path, with each node's mean minus ``virtual_loss`` as its value."""
    value, draw = np.float32(0.0), np.float32(0.0)
    for i in range(depth + 1):
        node = nodes[paths[lane, i]]
        if node.visits == 0:  # as its parent, seen by the other side
            value = np.float32(-value)
        else:
            value = np.float32(node.value_sum / np.float32(node.visits))
            draw = np.float32(node.draw_sum / np.float32(node.visits))
        pledges[lane, i, 0], pledges[lane, i, 1] = value - virtual_loss, draw
        node.visits += 1
        node.value_sum += pledges[lane, i, 0]
        node.draw_sum += draw
    nodes[paths[lane, depth]].proof_plies = np.uint8(IN_FLIGHT)


@njit(cache=True)
def take_back(nodes, paths, depths, pledges, lane):
    """Removes the visit that ``pledge`` has added; nodes that have been proven meanwhile keep their exact value."""
    depth = depths[lane]
    for i in range(depth + 1):
        node = nodes[paths[lane, i]]
        node.visits -= 1
        if node.proof == UNKNOWN:
            node.value_sum -= pledges[lane, i, 0]
            node.draw_sum -= pledges[lane, i, 1]
        else:
            mark(node, node.proof, node.proof_plies)
    leaf = nodes[paths[lane, depth]]
    if leaf.proof == UNKNOWN:
        leaf.proof_plies = np.uint8(0)


@njit(cache=True)
def drop_leaves(state, n, ended):
    """Removes those of the first ``n`` waiting leaves whose game is ``ended`` (bool [G]), without a visit.

    The nodes of their children, but for those of a root, stay unused in the arena.

    Returns:
        Number of the other leaves, which are now the first that wait.
    """
    lanes, left = lanes_of(state), 0
    for i in range(n):
        lane = np.int64(state.waiting[i])
        slot = state.slots[lane // lanes]
        if not ended[lane // lanes]:
            state.waiting[left] = state.waiting[i]
            state.leaves[left] = state.leaves[i]
            left += 1
        elif slot.waiting > 0:
            slot.waiting -= 1
            if lanes > 1:
                take_back(state.nodes, state.paths, state.depths, state.pledges, lane)
            state.nodes[state.paths[lane, state.depths[lane]]].num_children = np.uint8(0)
            if state.depths[lane] == 0:
                slot.used = np.int32(slot.root + 1)
                if slot.known != UNKNOWN:  # its moves are marked no more, so that it must be looked up again
                    slot.known, slot.covered = UNKNOWN, slot.covered + 1
    return left
