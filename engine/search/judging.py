"""Enters values of the tables into the trees: proofs of leaves, and of the moves of a root that the tables cover.

Outcomes are those of ``evaluator.LeafOracle``, for the side to move.
"""

import numpy as np
from numba import njit

from ..bitboard import popcount, turned
from ..draw_rules import REPETITIONS_TO_DRAW, REVERSIBLE_PLIES_TO_DRAW
from ..outcomes import DRAW, LOSS, UNKNOWN, WIN
from .in_flight import take_back
from .kernels import back_up
from .state import lanes_of
from .tree import NO_DISTANCE, earlier_in_game, mark, prove, settle


@njit(cache=True)
def _repeated(state, g, lane, depth):
    """Whether a position has occurred twice between the last irreversible move and the path's end."""
    nodes, paths, num_history = state.nodes, state.paths, np.int64(state.slots[g].num_history)
    stretch = min(np.int64(nodes[paths[lane, depth]].reversible), depth + num_history) + 1
    words = np.empty((stretch, 3), np.uint32)
    for back in range(stretch):
        node = nodes[paths[lane, depth - back]] if back <= depth else state.histories[g, num_history - (back - depth)]
        words[back, 0], words[back, 1], words[back, 2] = node.own, node.opp, node.kings
    for i in range(stretch):
        for j in range(i + 4, stretch, 2):
            if words[i, 0] == words[j, 0] and words[i, 1] == words[j, 1] and words[i, 2] == words[j, 2]:
                return True
    return False


@njit(cache=True)
def _in_time(state, lane, depth, plies):
    """Whether a win or loss by the tables at the path's end is certain to come before 80 plies are made.

    ``plies``: distance to the end of the game, below 0 if unknown.
    """
    reversible = np.int64(state.nodes[state.paths[lane, depth]].reversible)
    return reversible == 0 or plies == 0 or (plies > 0 and reversible + plies <= REVERSIBLE_PLIES_TO_DRAW)


@njit(cache=True)
def _lasts(state, g, lane, depth, plies):
    """Whether it is certain to come before a draw by the rules, that by repetition included."""
    if not _in_time(state, lane, depth, plies):
        return False
    return state.nodes[state.paths[lane, depth]].reversible == 0 or plies == 0 or not _repeated(state, g, lane, depth)


@njit(cache=True)
def _drawn(state, g, index):
    """Whether the root move to node ``index`` ends the game in a draw, provided the opponent has a legal move."""
    node, num_history = state.nodes[index], np.int64(state.slots[g].num_history)
    if node.reversible >= REVERSIBLE_PLIES_TO_DRAW:
        return True
    return earlier_in_game(node, state.histories, g, 1, num_history) + 1 >= REPETITIONS_TO_DRAW


@njit(cache=True)
def _proof_plies(plies):
    """``proof_plies`` for a distance: at most ``NO_DISTANCE - 1``; ``NO_DISTANCE`` if it is unknown (below 0)."""
    return np.int64(NO_DISTANCE) if plies < 0 else min(np.int64(plies), np.int64(NO_DISTANCE - 1))


@njit(cache=True)
def is_covered(state, i):
    """Whether waiting leaf ``i`` is looked up in tables: it has at most as many pieces as its slot allows."""
    slot = state.slots[state.waiting[i] // lanes_of(state)]
    return popcount(state.leaves[i, 0] | state.leaves[i, 1]) <= slot.covered


@njit(cache=True)
def covered_rows(state, first, n):
    """Those of the waiting leaves ``first`` to ``n - 1`` that are looked up in tables, int64 [m]."""
    rows, found = np.empty(n - first, np.int64), 0
    for row in range(first, n):
        if is_covered(state, row):
            rows[found] = row
            found += 1
    return rows[:found]


@njit(cache=True)
def settle_leaves(state, first, n):
    """Proves and backs up the waiting leaves, except roots, whose outcome in ``state.outcomes`` is certain.

    Args:
        first, n: the leaves are ``state.waiting[first:n]``.

    Returns:
        Number of leaves that still wait, including the ``first`` ones; they are moved to the front.
    """
    lanes, kept = lanes_of(state), first
    for i in range(first, n):
        lane = np.int64(state.waiting[i])
        if state.depths[lane] > 0 and _settle_leaf(state, lane // lanes, lane):
            if lanes > 1:
                take_back(state.nodes, state.paths, state.depths, state.pledges, lane)
            back_up(state, lane, np.int64(state.depths[lane]), np.float32(0.0), np.float32(0.0))
            continue
        keep_leaf(state, i, kept)
        kept += 1
    return kept


@njit(cache=True)
def keep_leaf(state, i, place):
    """Moves waiting leaf ``i`` to the earlier index ``place``."""
    state.waiting[place] = state.waiting[i]
    for word in range(4):
        state.leaves[place, word] = state.leaves[i, word]


@njit(cache=True)
def _settle_leaf(state, g, lane):
    """Proves a leaf and returns True if its outcome is certain. Its children are removed, so that it can be searched if
    it becomes the root."""
    slot, depth, outcome = state.slots[g], np.int64(state.depths[lane]), state.outcomes[lane]
    if outcome == UNKNOWN or (outcome != DRAW and not _lasts(state, g, lane, depth, state.plies[lane])):
        return False
    leaf = state.nodes[state.paths[lane, depth]]
    if leaf.num_children > 0:
        if leaf.first_child + np.int32(leaf.num_children) == slot.used:
            slot.used = leaf.first_child
        leaf.num_children = np.uint8(0)
    slot.waiting -= 1
    proof = LOSS - outcome
    plies = np.int64(0) if outcome == DRAW else _proof_plies(state.plies[lane])
    prove(state.nodes, state.paths, lane, depth, proof, plies)
    return True


@njit(cache=True)
def read_moves(state, g, positions):
    """Writes the positions after the root's moves, seen by their side to move, into ``positions`` (uint32
    [MAX_MOVES, 4]); returns their number."""
    root = state.nodes[state.slots[g].root]
    for i in range(np.int64(root.num_children)):
        child = state.nodes[root.first_child + i]
        positions[i, 0], positions[i, 1], positions[i, 2] = turned(child.opp), turned(child.own), turned(child.kings)
        positions[i, 3] = child.reversible
    return np.int64(root.num_children)


@njit(cache=True)
def has_open_win(state, g, outcomes):
    """Whether a root move wins by the tables but is not marked as proven."""
    root = state.nodes[state.slots[g].root]
    for i in range(np.int64(root.num_children)):
        if outcomes[i] == LOSS and state.nodes[root.first_child + i].proof == UNKNOWN:
            return True
    return False


@njit(cache=True)
def mark_losing_moves(state, g, outcomes):
    """Marks the root moves that lose by the tables, also those whose loss the 80-ply rule might prevent: where a win or
    a draw is known they need no search. Moves that end the game in a draw are not marked. Then settles the root."""
    root = state.nodes[state.slots[g].root]
    for i in range(np.int64(root.num_children)):
        child = state.nodes[root.first_child + i]
        if outcomes[i] == WIN and child.proof == UNKNOWN and not _drawn(state, g, root.first_child + np.int32(i)):
            mark(child, LOSS, NO_DISTANCE)
    settle(state.nodes, state.slots[g].root)


@njit(cache=True)
def _length(plies):
    """Distance for comparisons: an unknown one is longer than all others."""
    return np.int64(plies) if plies >= 0 else np.int64(1 << 20)


@njit(cache=True)
def _best_win(state, g, lane, outcomes, plies):
    """(plies, certain) of the shortest win among the root's moves that is certain (``_lasts``); if there is none, of
    the shortest that only a repetition can prevent; else (-1, False)."""
    root = state.nodes[state.slots[g].root]
    lasting, hoped = np.int64(-1), np.int64(-1)
    for i in range(np.int64(root.num_children)):
        index = root.first_child + np.int32(i)
        state.paths[lane, 1] = index
        if outcomes[i] != LOSS or (plies[i] != 0 and _drawn(state, g, index)):
            continue
        length = _length(plies[i])
        if _lasts(state, g, lane, np.int64(1), plies[i]):
            lasting = length if lasting < 0 else min(lasting, length)
        elif _in_time(state, lane, np.int64(1), plies[i]):
            hoped = length if hoped < 0 else min(hoped, length)
    return (lasting, True) if lasting >= 0 else (hoped, False)


@njit(cache=True)
def settle_root(state, lane, outcomes, plies, offset):
    """Marks the moves of a root that waits for its evaluation as proven, by the tables.

    Of the winning moves only the shortest are marked, so that they are played, and none that may come too late for the
    80-ply rule. If a repetition could prevent each of them, the shortest ones are marked all the same.

    Args:
        outcomes, plies: uint8 and int16 [moves], for the side to move after each move.
        offset: added to the plies of wins.

    Returns:
        Whether the root is a proven win or loss, so that no evaluation is needed. (A drawn root still gets the
        evaluator's priors.)
    """
    nodes, lanes = state.nodes, lanes_of(state)
    g = lane // lanes
    slot = state.slots[g]
    root = nodes[slot.root]
    best, lasts = _best_win(state, g, lane, outcomes, plies)
    depth = np.int64(1)
    for i in range(np.int64(root.num_children)):
        index = root.first_child + np.int32(i)
        state.paths[lane, 1] = index
        if outcomes[i] == DRAW:
            mark(nodes[index], DRAW, 0)
        elif outcomes[i] == WIN and nodes[index].proof == UNKNOWN:
            if _lasts(state, g, lane, depth, plies[i]):
                mark(nodes[index], LOSS, _proof_plies(plies[i]))
        elif outcomes[i] == LOSS and best >= 0 and _length(plies[i]) == best:
            ended = plies[i] != 0 and _drawn(state, g, index)
            sound = _lasts(state, g, lane, depth, plies[i]) if lasts else _in_time(state, lane, depth, plies[i])
            if sound and not ended:
                mark(nodes[index], WIN, _proof_plies(plies[i]) + (offset if plies[i] >= 0 else 0))
    if not settle(nodes, slot.root) or root.proof == DRAW:
        return False
    slot.waiting -= 1
    if lanes > 1:
        take_back(nodes, state.paths, state.depths, state.pledges, lane)
    back_up(state, lane, np.int64(0), np.float32(0.0), np.float32(0.0))
    return True
