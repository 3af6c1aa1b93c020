"""Transpositions: nodes with the same position share their children.

With 1,000 simulations, a tree search reaches a third of its positions more than once; with 100,000, two thirds. With
``SearchConfig.transpositions``, a new node whose position has been evaluated elsewhere in the tree becomes the *twin*
of that node: both have the same children, with their priors, values and proofs (Czech et al. 2020, "Monte-Carlo Graph
Search for AlphaZero"; KataGo's graph search). Each twin has its own visits, which count how often its move was chosen:

    the mean value of a node is that of its position: the evaluation and all visits of the children, by any twin
    a node with fewer visits than its position needs no new leaf for its next visit: the mean is known already

Only positions right after a capture or a move of a man are shared. Draws by repetition and by 80 plies depend only on
the moves since then. So everything below such a position is the same for all twins, and no path leads back to it.

``table`` int32 [slots * size] is one hash table (open addressing) per slot of the nodes that were evaluated: index + 1
of a node, or 0 for a free entry. Its size is 0 if positions are not shared. The tables are small because they are
emptied at every move of the game. A position that finds no free entry near its hash is not shared.
"""

import numpy as np
from numba import njit

from ..outcomes import UNKNOWN
from .tree import mark, same_position

NO_NODE = -1
_NODES_PER_ENTRY = 8  # a position has about 8 moves, and only nodes with children are entered
_MOST_PROBES = 64


def table_size(nodes: int) -> int:
    """Entries of a slot's table for an arena of ``nodes`` nodes: a power of two."""
    return 1 << max(nodes // _NODES_PER_ENTRY, 2).bit_length()


@njit(cache=True, inline="always")
def _place(node, size):
    """The first entry to probe for a node's position (finaliser of MurmurHash3 over its words)."""
    mixed = np.uint64(node.own) | np.uint64(node.opp) << np.uint64(32)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= (mixed >> np.uint64(33)) ^ np.uint64(node.kings)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64((mixed ^ (mixed >> np.uint64(33))) & np.uint64(size - 1))


@njit(cache=True)
def _entry(nodes, table, slots, g, index):
    """Index in ``table`` of the entry for a node's position, which may be free; ``NO_NODE`` if there is no entry."""
    node, size = nodes[index], table.shape[0] // slots
    place = _place(node, size)
    for _ in range(_MOST_PROBES):
        entry = g * size + place
        if table[entry] == 0 or same_position(nodes[table[entry] - 1], node):
            return entry
        place = (place + 1) & (size - 1)
    return np.int64(NO_NODE)


@njit(cache=True)
def find_twin(nodes, table, slots, g, index):
    """A node of slot ``g`` in the table that has the same position as node ``index``; ``NO_NODE`` if there is none."""
    entry = _entry(nodes, table, slots, g, index)
    return np.int64(table[entry]) - 1 if entry != NO_NODE else np.int64(NO_NODE)


@njit(cache=True)
def enter(nodes, table, slots, g, index):
    """Enters a node into the table, if it may be shared and its position is not there yet."""
    node = nodes[index]
    if node.judged and node.reversible == 0 and node.num_children > 1:
        entry = _entry(nodes, table, slots, g, index)
        if entry != NO_NODE and table[entry] == 0:
            table[entry] = index + 1


@njit(cache=True)
def forget(table, slots, g):
    """Empties the table of slot ``g``."""
    size = table.shape[0] // slots
    for place in range(g * size, (g + 1) * size):
        table[place] = 0


@njit(cache=True)
def share(nodes, index, twin):
    """Gives a new node the children and the evaluation of its twin."""
    node, other = nodes[index], nodes[twin]
    node.first_child, node.num_children = other.first_child, other.num_children
    node.raw_value, node.raw_draw, node.judged = other.raw_value, other.raw_draw, other.judged
    node.shared, other.shared = np.uint8(1), np.uint8(1)
    node.sought = other.sought


@njit(cache=True, inline="always")
def position_visits(nodes, node):
    """Visits of a node's position by all its twins: the evaluation and the visits of the children."""
    visits = np.int64(node.judged)
    for child in range(node.first_child, node.first_child + np.int32(node.num_children)):
        visits += nodes[child].visits
    return visits


@njit(cache=True, inline="always")
def refresh(nodes, node):
    """Sets the sums of an unproven node to its visits times the mean of its position."""
    visits, value, draw = np.int64(node.judged), np.float32(0.0), np.float32(0.0)
    if node.judged:
        value, draw = node.raw_value, node.raw_draw
    for child in range(node.first_child, node.first_child + np.int32(node.num_children)):
        visits += nodes[child].visits
        value += nodes[child].value_sum
        draw += nodes[child].draw_sum
    share = np.float32(np.float32(node.visits) / np.float32(max(visits, 1)))
    node.value_sum = np.float32(-value * share)
    node.draw_sum = np.float32(draw * share)


@njit(cache=True)
def backup_shared(nodes, paths, lane, depth, value, draw):
    """``tree.backup`` for shared positions: recomputes the mean of every node on the path.

    Args:
        value, draw: evaluation of the path's last node for its side to move; only used if it is not proven and has no
            children.
    """
    for i in range(depth, -1, -1):
        node = nodes[paths[lane, i]]
        node.visits += 1
        if node.proof != UNKNOWN:
            mark(node, node.proof, node.proof_plies)
        elif i == depth and node.num_children == 0:  # the arena was full
            node.value_sum -= value
            node.draw_sum += draw
        else:
            refresh(nodes, node)
