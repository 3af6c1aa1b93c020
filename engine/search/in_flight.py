"""Leaves of one tree that wait for their evaluation at the same time.

Where a tree has several lanes, a waiting leaf counts as a visit of every node of its path already, with a value that is
``virtual_loss`` below the node's own mean, so that the next leaf is another one (0: like "watch the unobserved" of Liu
et al. 2020). The visit is taken back before the true one is backed up.

``pledges`` holds what a leaf has added to the values of its path's nodes.
"""

import numpy as np
from numba import njit

from ..outcomes import UNKNOWN
from .tree import mark

IN_FLIGHT = 255  # ``proof_plies`` of a leaf that waits


@njit(cache=True)
def pledge(nodes, paths, pledges, lane, depth, virtual_loss):
    """Counts a leaf that waits as a visit of its path, with values ``virtual_loss`` below each node's mean."""
    value = np.float32(0.0)
    for i in range(depth + 1):
        node = nodes[paths[lane, i]]
        # A node without visits is worth what the node above it is, seen from the other side.
        value = np.float32(-value) if node.visits == 0 else np.float32(node.value_sum / np.float32(node.visits))
        pledges[lane, i] = value - virtual_loss
        node.visits += 1
        node.value_sum += pledges[lane, i]
    nodes[paths[lane, depth]].proof_plies = np.uint8(IN_FLIGHT)


@njit(cache=True)
def take_back(nodes, paths, depths, pledges, lane):
    """Takes the visit back that a waiting leaf counts as; what has been proven meanwhile keeps its exact value."""
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
    """Forgets the first ``n`` waiting leaves, as if nobody had come to them; their children's room stays lost."""
    lanes = state.depths.shape[0] // state.slots.shape[0]
    for i in range(n):
        lane = np.int64(state.waiting[i])
        slot = state.slots[lane // lanes]
        if slot.waiting > 0:
            slot.waiting -= 1
            if lanes > 1:
                take_back(state.nodes, state.paths, state.depths, state.pledges, lane)
            state.nodes[state.paths[lane, state.depths[lane]]].num_children = np.uint8(0)
