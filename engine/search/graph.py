"""Positions that are reached on several ways share what was found below them.

A search by visits meets a third of its positions more than once at 1,000 simulations, and two thirds at 100,000. Where
``SearchConfig.transpositions`` says so, a node whose position has been judged elsewhere in the tree becomes its *twin*:
both have the same children, and with them priors, values and proofs (Czech et al. 2020, "Monte-Carlo Graph Search for
AlphaZero"; KataGo's graph search). A node still has visits and a mean of its own, because visits tell how often *that
move* was chosen:

    the mean is that of the position: its evaluation and all visits of its children, also those by way of a twin
    a node with fewer visits than its position needs no evaluation for the next one: the mean is known already

Only positions right after a capture or a man's move are shared. Draws by repetition and the 80-ply rule look back no
further than to such a move, so that what comes behind it is the same on every way, and no way leads back to it.

``table`` int32 [slots * size]: for every slot a hash table (open addressing) of the nodes that were judged, each as its
index + 1, 0 where there is none; of size 0 where positions are not shared. It is small, because it is emptied at every
move, and a position for which there is no room near its place is not shared.
"""

import numpy as np
from numba import njit

from ..outcomes import UNKNOWN
from .tree import mark, same_position

NO_NODE = -1
_NODES_PER_ENTRY = 8  # the moves of a position, about; of their nodes only its own is entered
_MOST_PROBES = 64


def table_size(nodes: int) -> int:
    """Entries of a slot's table for an arena of ``nodes`` nodes: a power of two."""
    return 1 << max(nodes // _NODES_PER_ENTRY, 2).bit_length()


@njit(cache=True, inline="always")
def _place(node, size):
    """Where to begin to look for a node's position (the finaliser of MurmurHash3 over its words)."""
    mixed = np.uint64(node.own) | np.uint64(node.opp) << np.uint64(32)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= (mixed >> np.uint64(33)) ^ np.uint64(node.kings)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64((mixed ^ (mixed >> np.uint64(33))) & np.uint64(size - 1))


@njit(cache=True)
def _entry(nodes, table, slots, g, index):
    """Where the node's position stands in the table, or would stand; ``NO_NODE`` if there is no room for it."""
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
    """A node of the slot that has been judged and has the same position; ``NO_NODE`` if there is none."""
    entry = _entry(nodes, table, slots, g, index)
    return np.int64(table[entry]) - 1 if entry != NO_NODE else np.int64(NO_NODE)


@njit(cache=True)
def enter(nodes, table, slots, g, index):
    """Enters a node into the table, if it may be shared and its position is not there."""
    node = nodes[index]
    if node.judged and node.reversible == 0 and node.num_children > 1:
        entry = _entry(nodes, table, slots, g, index)
        if entry != NO_NODE and table[entry] == 0:
            table[entry] = index + 1


@njit(cache=True)
def forget(table, slots, g):
    """Empties the slot's table."""
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
    """Visits of a node's position, on whatever way."""
    visits = np.int64(node.judged)
    for child in range(node.first_child, node.first_child + np.int32(node.num_children)):
        visits += nodes[child].visits
    return visits


@njit(cache=True, inline="always")
def refresh(nodes, node):
    """Sets an open node's sums by its visits and the mean of its position."""
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
    """``tree.backup`` where positions are shared: every mean on the path is made anew.

    Args:
        value, draw: the evaluation of the path's end for its side to move; unused if that is proven or has children.
    """
    for i in range(depth, -1, -1):
        node = nodes[paths[lane, i]]
        node.visits += 1
        if node.proof != UNKNOWN:
            mark(node, node.proof, node.proof_plies)
        elif i == depth and node.num_children == 0:  # there was no room for them
            node.value_sum -= value
            node.draw_sum += draw
        else:
            refresh(nodes, node)
