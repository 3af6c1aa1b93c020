"""One Numba call per half-step of the lockstep: every game descends to its next leaf; all leaves are backed up.

State of one slot (game) beside its tree:

    histories [g, MAX_HISTORY]   positions since the last irreversible move, before the root, stored like nodes
    paths [g, MAX_DEPTH]         nodes from the root to the leaf that waits for its evaluation
    codes [g, MAX_MOVES]         move codes of that leaf's children
    noises, gumbels [g, MAX_MOVES]   random numbers of the root's moves
"""

import numpy as np
from numba import njit

from ..bitboard import borrowed, exp32, turned
from ..encoding import move_logit
from .gumbel import select_gumbel
from .tree import (
    DRAW,
    UNKNOWN,
    WIN,
    add_children,
    backup,
    legal_at,
    prove,
    same_position,
    select_puct,
)

MAX_DEPTH = 512
MAX_HISTORY = 96
REVERSIBLE_LIMIT = 80
REPETITION_LIMIT = 3
_FIRST_REPETITION = 4  # plies from a position back to itself, at the least

SLOT = np.dtype(
    [
        ("root", np.int32),  # first of the game's nodes
        ("used", np.int32),  # end of those in use
        ("limit", np.int32),  # end of those it owns
        ("target", np.int32),  # simulations wanted at the root
        ("depth", np.int32),  # of the waiting leaf
        ("num_history", np.int32),  # positions in the history
        ("num_legal", np.int32),  # moves at the root
        ("schedule", np.int32),  # row of the table of considered visits; -1: PUCT root
        ("raw_value", np.float32),  # the network's value of the root for the side to move
        ("noise", np.float32),  # share of noise in the root prior
        ("tainted", np.uint8),  # the tree holds draws by repetition that another root may not see
        ("active", np.uint8),  # the search has not reached its target
        ("waiting", np.uint8),  # a leaf waits for its evaluation
        ("ending", np.uint8),
    ],
    align=True,
)


@njit(cache=True)
def _repeats(nodes, paths, histories, g, depth, num_history):
    """(occurrences earlier in the tree's path, occurrences in the game before the root) of the path's last position."""
    node = nodes[paths[g, depth]]
    in_tree, in_game = 0, 0
    for back in range(2, np.int64(node.reversible) + 1, 2):
        if back <= depth:
            in_tree += same_position(node, nodes[paths[g, depth - back]])
        elif back - depth <= num_history:
            in_game += same_position(node, histories[g, num_history - (back - depth)])
        else:
            break
    return in_tree, in_game


@njit(cache=True)
def _draw(nodes, slots, paths, histories, g, depth):
    """DRAW if the rules end the game at the path's last node, which is not the root and has a legal move."""
    if nodes[paths[g, depth]].reversible >= REVERSIBLE_LIMIT:
        return DRAW
    in_tree, in_game = _repeats(nodes, paths, histories, g, depth, slots[g].num_history)
    if in_tree > 0:
        # Whoever could do better the second time could have done so the first time: both lie in this tree.
        slots[g].tainted = 1
        return DRAW
    return DRAW if in_game + 1 >= REPETITION_LIMIT else UNKNOWN


@njit(cache=True, inline="always")
def _descend(
    nodes,
    slots,
    paths,
    histories,
    gumbels,
    schedule,
    g,
    c_visit,
    c_scale,
    rescale,
    c_puct,
    fpu_reduction,
    moves,
    scores,
):
    """One simulation of game ``g`` down to its end.

    Returns:
        Number of moves of a leaf that waits for its evaluation (0, and no children, where the tree has no room for
        them); -1 if the simulation ended in a proven node and is backed up already.
    """
    slot = slots[g]
    depth, index = 0, slot.root
    paths[g, 0] = index
    while True:
        node = nodes[index]
        if node.num_children == 0:
            count = legal_at(node, moves)
            proof = WIN if count == 0 else UNKNOWN
            if count > 0 and depth > 0 and node.reversible >= _FIRST_REPETITION:
                proof = _draw(nodes, slots, paths, histories, g, depth)
            if proof != UNKNOWN:
                prove(nodes, paths, g, depth, proof, 0)
                backup(nodes, paths, g, depth, np.float32(0.0), np.float32(0.0))
                return -1
            slot.depth = depth
            if slot.used + count > slot.limit or depth == MAX_DEPTH - 1:
                return 0
            slot.used = np.int32(add_children(nodes, slot.used, index, moves, count))
            if count > 1 or depth == 0:
                return count
        if node.num_children == 1:
            index = node.first_child
        elif depth == 0 and slot.schedule >= 0:
            considered = schedule[slot.schedule, min(node.visits - 1, schedule.shape[1] - 1)]
            index = select_gumbel(
                nodes, index, gumbels, g, considered, slot.raw_value, c_visit, c_scale, rescale, scores
            )
        else:
            index = select_puct(nodes, index, c_puct, fpu_reduction)
        depth += 1
        paths[g, depth] = index
        if nodes[index].proof != UNKNOWN:
            backup(nodes, paths, g, depth, np.float32(0.0), np.float32(0.0))
            return -1


@njit(cache=True, nogil=True)
def select_leaves(
    nodes,
    slots,
    paths,
    histories,
    codes,
    gumbels,
    schedule,
    c_visit,
    c_scale,
    rescale,
    c_puct,
    fpu_reduction,
    moves,
    scores,
    leaves,
    waiting,
    n,
):
    """Every active game that has no leaf waiting runs until one needs its evaluation or its target is reached.

    Forced moves, proven and terminal nodes cost no evaluation, so a game may do several simulations in one call.

    Args:
        moves, scores: buffers [MAX_MOVES] of ``MOVE`` and float32.
        leaves: uint32 [slots, 4], filled with the positions to judge.
        waiting: int32 [slots], filled with their slots.
        n: how many of both are filled already.

    Returns:
        Number of leaves, the earlier ones included.
    """
    nodes, slots, paths, codes = borrowed(nodes), borrowed(slots), borrowed(paths), borrowed(codes)
    histories, gumbels, schedule = borrowed(histories), borrowed(gumbels), borrowed(schedule)
    moves, scores, leaves, waiting = borrowed(moves), borrowed(scores), borrowed(leaves), borrowed(waiting)
    for g in range(slots.shape[0]):
        slot = slots[g]
        if slot.active == 0 or slot.waiting != 0:
            continue
        root = nodes[slot.root]
        while True:
            if root.visits > 0 and (root.visits > slot.target or root.proof != UNKNOWN):
                slot.active = 0
                break
            count = _descend(
                nodes,
                slots,
                paths,
                histories,
                gumbels,
                schedule,
                g,
                c_visit,
                c_scale,
                rescale,
                c_puct,
                fpu_reduction,
                moves,
                scores,
            )
            if count >= 0:
                for i in range(count):
                    codes[g, i] = moves[i].code
                leaf = nodes[paths[g, slot.depth]]
                leaves[n, 0], leaves[n, 1], leaves[n, 2] = turned(leaf.opp), turned(leaf.own), turned(leaf.kings)
                leaves[n, 3] = leaf.reversible
                waiting[n] = g
                slot.waiting = 1
                n += 1
                break
    return n


@njit(cache=True)
def mix_noise(nodes, slots, noises, g):
    """Mixes the game's noise into the prior of its root's moves."""
    root, fraction = nodes[slots[g].root], slots[g].noise
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        child.prior = np.float32((1 - fraction) * child.prior + fraction * noises[g, i])


@njit(cache=True, inline="always")
def _set_priors(nodes, leaf, codes, g, policy_logits, i):
    """Softmax of the moves' logits."""
    first, count = leaf.first_child, np.int64(leaf.num_children)
    highest = np.float32(-np.inf)
    for j in range(count):
        logit = move_logit(policy_logits, i, codes[g, j])
        nodes[first + j].prior = logit
        highest = max(highest, logit)
    total = np.float32(0.0)
    for j in range(count):
        child = nodes[first + j]
        child.prior = exp32(child.prior - highest)
        total += child.prior
    scale = np.float32(1.0) / total
    for j in range(count):
        nodes[first + j].prior *= scale


@njit(cache=True, nogil=True)
def backup_leaves(nodes, slots, paths, codes, noises, waiting, n, policy_logits, wdl_logits):
    """Gives every waiting leaf its priors and backs its value up.

    Args:
        noises: float32 [slots, MAX_MOVES], mixed into the prior of a root that is judged for the first time.
        policy_logits, wdl_logits: the evaluator's answer for the ``n`` leaves of ``waiting``; no rows of policy logits
            leave the priors equal.
    """
    nodes, slots, paths, codes = borrowed(nodes), borrowed(slots), borrowed(paths), borrowed(codes)
    noises, waiting = borrowed(noises), borrowed(waiting)
    policy_logits, wdl_logits = borrowed(policy_logits), borrowed(wdl_logits)
    for i in range(n):
        g = waiting[i]
        slot = slots[g]
        if slot.waiting == 0:
            continue  # its search was ended in the meantime
        slot.waiting = 0
        win, draw, loss = wdl_logits[i, 0], wdl_logits[i, 1], wdl_logits[i, 2]
        highest = max(win, max(draw, loss))
        win, draw, loss = exp32(win - highest), exp32(draw - highest), exp32(loss - highest)
        scale = np.float32(1.0) / np.float32(win + draw + loss)
        value, draw = np.float32((win - loss) * scale), np.float32(draw * scale)
        leaf = nodes[paths[g, slot.depth]]
        if leaf.num_children > 0:  # new ones: a leaf without room for them may have been visited before
            if policy_logits.shape[0] > 0:
                _set_priors(nodes, leaf, codes, g, policy_logits, i)
            if slot.depth == 0:
                slot.raw_value = value
                if slot.noise > 0:
                    mix_noise(nodes, slots, noises, g)
        backup(nodes, paths, g, slot.depth, value, draw)
