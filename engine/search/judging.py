"""What an oracle's verdict does to the trees: proofs at leaves, and at the moves of a root inside the tables.

Outcomes are those of ``leaf_oracle.LeafOracle``: for the side to move. The arrays are those of ``kernels``.
"""

import numpy as np
from numba import njit

from ..bitboard import popcount, turned
from ..board import REPETITIONS_TO_DRAW, REVERSIBLE_PLIES_TO_DRAW
from .in_flight import take_back
from .kernels import back_up
from .tree import DRAW, LOSS, NO_DISTANCE, UNKNOWN, WIN, mark, prove, same_position, settle


@njit(cache=True)
def _repeated(nodes, paths, histories, g, lane, depth, num_history):
    """Whether a position since the last irreversible move before the path's end has occurred twice."""
    stretch = min(np.int64(nodes[paths[lane, depth]].reversible), depth + num_history) + 1
    words = np.empty((stretch, 3), np.uint32)
    for back in range(stretch):
        node = nodes[paths[lane, depth - back]] if back <= depth else histories[g, num_history - (back - depth)]
        words[back, 0], words[back, 1], words[back, 2] = node.own, node.opp, node.kings
    for i in range(stretch):
        for j in range(i + 4, stretch, 2):
            if words[i, 0] == words[j, 0] and words[i, 1] == words[j, 1] and words[i, 2] == words[j, 2]:
                return True
    return False


@njit(cache=True)
def _lasts(nodes, slots, paths, histories, g, lane, depth, plies):
    """Whether a win or loss that a table sees at the path's end comes before any draw by the rules."""
    reversible = np.int64(nodes[paths[lane, depth]].reversible)
    if reversible == 0 or plies == 0:
        return True
    if plies < 0 or reversible + plies > REVERSIBLE_PLIES_TO_DRAW:
        return False
    return not _repeated(nodes, paths, histories, g, lane, depth, slots[g].num_history)


@njit(cache=True)
def _drawn(nodes, slots, histories, g, index):
    """Whether a root move ends the game as a draw (it leaves the opponent a move)."""
    node = nodes[index]
    if node.reversible >= REVERSIBLE_PLIES_TO_DRAW:
        return True
    occurrences = 1
    for back in range(2, min(np.int64(node.reversible), np.int64(slots[g].num_history) + 1) + 1, 2):
        occurrences += same_position(node, histories[g, slots[g].num_history - (back - 1)])
    return occurrences >= REPETITIONS_TO_DRAW


@njit(cache=True)
def _proof_plies(plies):
    """Plies of a proof: the distance where it is known; an order that saturates, never mixed with ``NO_DISTANCE``."""
    return np.int64(NO_DISTANCE) if plies < 0 else min(np.int64(plies), np.int64(NO_DISTANCE - 1))


@njit(cache=True)
def rows_of_few(positions, most):
    """Rows, int64 [n], of the positions uint32 [N, 4] of at most so many pieces."""
    rows, found = np.empty(positions.shape[0], np.int64), 0
    for row in range(positions.shape[0]):
        if popcount(positions[row, 0] | positions[row, 1]) <= most:
            rows[found] = row
            found += 1
    return rows[:found]


@njit(cache=True)
def settle_leaves(nodes, slots, paths, depths, pledges, histories, waiting, outcomes, plies):
    """Proves and backs up the waiting leaves below their roots whose outcomes stand.

    Args:
        waiting: int32 [n], lanes.
        outcomes, plies: uint8 and int16 [n], for the side to move at the leaf.

    Returns:
        bool [n], which leaves are settled.
    """
    settled = np.zeros(waiting.shape[0], np.bool_)
    lanes = depths.shape[0] // slots.shape[0]
    for i in range(waiting.shape[0]):
        lane = np.int64(waiting[i])
        if depths[lane] > 0:
            settled[i] = _settle_leaf(nodes, slots, paths, depths, histories, lane, lanes, outcomes[i], plies[i])
        if settled[i]:
            if lanes > 1:
                take_back(nodes, paths, depths, pledges, lane)
            back_up(nodes, slots[lane // lanes], paths, lane, np.int64(depths[lane]), np.float32(0.0), np.float32(0.0))
    return settled


@njit(cache=True)
def _settle_leaf(nodes, slots, paths, depths, histories, lane, lanes, outcome, plies):
    """Whether a leaf's outcome stands; then it gives its children back, so that as a root it is searched anew."""
    g, depth = lane // lanes, np.int64(depths[lane])
    slot = slots[g]
    if outcome == UNKNOWN or (outcome != DRAW and not _lasts(nodes, slots, paths, histories, g, lane, depth, plies)):
        return False
    leaf = nodes[paths[lane, depth]]
    if leaf.num_children > 0:
        if leaf.first_child + np.int32(leaf.num_children) == slot.used:
            slot.used = leaf.first_child
        leaf.num_children = np.uint8(0)
    slot.waiting -= 1
    proof = DRAW if outcome == DRAW else (LOSS if outcome == WIN else WIN)
    prove(nodes, paths, lane, depth, proof, 0 if outcome == DRAW else _proof_plies(plies))
    return True


@njit(cache=True)
def read_moves(nodes, slots, g, positions):
    """Writes the positions after the root's moves into ``positions`` (uint32 [MAX_MOVES, 4]); returns their number."""
    root = nodes[slots[g].root]
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        positions[i, 0], positions[i, 1], positions[i, 2] = turned(child.opp), turned(child.own), turned(child.kings)
        positions[i, 3] = child.reversible
    return np.int64(root.num_children)


@njit(cache=True)
def has_open_win(nodes, slots, g, outcomes):
    """Whether the oracle sees a win in a move that is not proven."""
    root = nodes[slots[g].root]
    for i in range(np.int64(root.num_children)):
        if outcomes[i] == LOSS and nodes[root.first_child + i].proof == UNKNOWN:
            return True
    return False


@njit(cache=True)
def _length(plies):
    """Distance as a length to be compared: the unknown ones are the longest."""
    return np.int64(plies) if plies >= 0 else np.int64(1 << 20)


@njit(cache=True)
def _best_win(nodes, slots, paths, histories, g, lane, outcomes, plies):
    """Plies of the shortest win among the root's moves that lasts; else of the shortest of known length; else -1."""
    root = nodes[slots[g].root]
    lasting, hoped = np.int64(-1), np.int64(-1)
    for i in range(np.int64(root.num_children)):
        paths[lane, 1] = root.first_child + i
        if outcomes[i] != LOSS or (plies[i] != 0 and _drawn(nodes, slots, histories, g, paths[lane, 1])):
            continue
        length = _length(plies[i])
        if _lasts(nodes, slots, paths, histories, g, lane, 1, plies[i]):
            lasting = length if lasting < 0 else min(lasting, length)
        elif plies[i] >= 0:
            hoped = length if hoped < 0 else min(hoped, length)
    return (lasting, True) if lasting >= 0 else (hoped, False)


@njit(cache=True)
def settle_root(nodes, slots, paths, depths, pledges, histories, lane, outcomes, plies, offset):
    """Proves what the oracle knows of the moves of a root that waits for its evaluation.

    Of the winning moves only the shortest are marked, so that they are played. Where none surely comes before the
    80-ply rule or a third occurrence, the shortest is still the best try.

    Args:
        outcomes, plies: uint8 and int16 [moves], for the side to move after each move.
        offset: added to the plies of wins.

    Returns:
        Whether the game is decided at the root: nothing is left to evaluate. (A drawn root still gets the evaluator's
        priors, to choose among the moves that hold the draw.)
    """
    lanes = depths.shape[0] // slots.shape[0]
    g = lane // lanes
    slot = slots[g]
    root = nodes[slot.root]
    best, lasts = _best_win(nodes, slots, paths, histories, g, lane, outcomes, plies)
    for i in range(np.int64(root.num_children)):
        index = root.first_child + np.int32(i)
        paths[lane, 1] = index
        if outcomes[i] == DRAW:
            mark(nodes[index], DRAW, 0)
        elif outcomes[i] == WIN and nodes[index].proof == UNKNOWN:
            if _lasts(nodes, slots, paths, histories, g, lane, 1, plies[i]):
                mark(nodes[index], LOSS, _proof_plies(plies[i]))
        elif outcomes[i] == LOSS and best >= 0 and _length(plies[i]) == best:
            ended = plies[i] != 0 and _drawn(nodes, slots, histories, g, index)
            if not ended and (not lasts or _lasts(nodes, slots, paths, histories, g, lane, 1, plies[i])):
                mark(nodes[index], WIN, _proof_plies(plies[i]) + (offset if plies[i] >= 0 else 0))
    if not settle(nodes, slot.root) or root.proof == DRAW:
        return False
    slot.waiting -= 1
    if lanes > 1:
        take_back(nodes, paths, depths, pledges, lane)
    back_up(nodes, slot, paths, lane, 0, np.float32(0.0), np.float32(0.0))
    return True
