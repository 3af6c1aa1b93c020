"""One Numba call per half-step of the lockstep: every game descends to its next leaf; all leaves are backed up.

State of one slot (game) beside its tree:

    histories [g, MAX_HISTORY]   positions since the last irreversible move, before the root, stored like nodes
    noises, gumbels [g, MAX_MOVES]   random numbers of the root's moves

Each slot has a number of lanes (one, or ``leaves_in_flight``): leaves of its tree that wait together. State of a lane:

    paths [lane, MAX_DEPTH]      nodes from the root to the leaf that waits for its evaluation
    depths [lane]                index of that leaf in its path
    codes [lane, MAX_MOVES]      move codes of the leaf's children
    pledges [lane, MAX_DEPTH]    what the leaf added to the values of its path's nodes while it waits

Where a tree has several lanes, a waiting leaf counts as a visit of every node of its path already, with a value that is
``virtual_loss`` below the node's own mean, so that the next leaf is another one (0: like "watch the unobserved" of Liu
et al. 2020). The visit is taken back before the true one is backed up.
"""

import numpy as np
from numba import njit

from ..bitboard import borrowed, exp32, turned
from ..encoding import move_logit
from .gumbel import select_gumbel
from .shots import raise_prior
from .tree import (
    DRAW,
    UNKNOWN,
    WIN,
    add_children,
    backup,
    legal_at,
    mark,
    prove,
    same_position,
    select_puct,
)

MAX_DEPTH = 512
MAX_HISTORY = 96
REVERSIBLE_LIMIT = 80
REPETITION_LIMIT = 3
_FIRST_REPETITION = 4  # plies from a position back to itself, at the least
_IN_FLIGHT = 255  # ``proof_plies`` of a leaf that waits beside others of its tree
_COLLISION = -2
_LEAST_IN_FLIGHT = 8  # leaves of one tree; more only where the root has
_VISITS_PER_LEAF = 32  # so many visits for each: leaves that wait must be few beside those that are judged

SLOT = np.dtype(
    [
        ("root", np.int32),  # first of the game's nodes
        ("used", np.int32),  # end of those in use
        ("limit", np.int32),  # end of those it owns
        ("target", np.int32),  # simulations wanted at the root
        ("waiting", np.int32),  # leaves that wait for their evaluation
        ("num_history", np.int32),  # positions in the history
        ("num_legal", np.int32),  # moves at the root
        ("schedule", np.int32),  # row of the table of considered visits; -1: PUCT root
        ("raw_value", np.float32),  # the network's value of the root for the side to move
        ("noise", np.float32),  # share of noise in the root prior
        ("tainted", np.uint8),  # the tree holds draws by repetition that another root may not see
        ("active", np.uint8),  # the search has not reached its target
        ("ending", np.uint8),
    ],
    align=True,
)


@njit(cache=True)
def _repeats(nodes, paths, histories, g, lane, depth, num_history):
    """(occurrences earlier in the tree's path, occurrences in the game before the root) of the path's last position."""
    node = nodes[paths[lane, depth]]
    in_tree, in_game = 0, 0
    for back in range(2, np.int64(node.reversible) + 1, 2):
        if back <= depth:
            in_tree += same_position(node, nodes[paths[lane, depth - back]])
        elif back - depth <= num_history:
            in_game += same_position(node, histories[g, num_history - (back - depth)])
        else:
            break
    return in_tree, in_game


@njit(cache=True)
def _draw(nodes, slots, paths, histories, g, lane, depth):
    """DRAW if the rules end the game at the path's last node, which is not the root and has a legal move."""
    if nodes[paths[lane, depth]].reversible >= REVERSIBLE_LIMIT:
        return DRAW
    in_tree, in_game = _repeats(nodes, paths, histories, g, lane, depth, slots[g].num_history)
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
    depths,
    histories,
    gumbels,
    schedule,
    g,
    lane,
    c_visit,
    c_scale,
    rescale,
    c_puct,
    fpu_reduction,
    draw_value,
    shot_prior,
    frames,
    shot_moves,
    moves,
    scores,
):
    """One simulation of game ``g`` down to its end.

    Returns:
        Number of moves of a leaf that waits for its evaluation (0, and no children, where the tree has no room for
        them); -1 if the simulation ended in a proven node and is backed up already; ``_COLLISION`` if it came to a
        leaf that waits already.
    """
    slot = slots[g]
    depth, index = 0, slot.root
    paths[lane, 0] = index
    while True:
        node = nodes[index]
        if node.num_children == 0:
            count = legal_at(node, moves)
            proof = WIN if count == 0 else UNKNOWN
            if count > 0 and depth > 0 and node.reversible >= _FIRST_REPETITION:
                proof = _draw(nodes, slots, paths, histories, g, lane, depth)
            if proof != UNKNOWN:
                prove(nodes, paths, lane, depth, proof, 0)
                backup(nodes, paths, lane, depth, np.float32(0.0), np.float32(0.0))
                return -1
            depths[lane] = depth
            if slot.used + count > slot.limit or depth == MAX_DEPTH - 1:
                return 0
            slot.used = np.int32(add_children(nodes, slot.used, index, moves, count))
            if count > 1 or depth == 0:
                return count
        elif node.proof_plies == _IN_FLIGHT:
            return _COLLISION
        if shot_prior > 0 and node.visits == 1 and node.num_children > 1:
            raise_prior(nodes, node, shot_prior, frames, shot_moves)  # now: most leaves are never visited again
        if node.num_children == 1:
            index = node.first_child
        elif depth == 0 and slot.schedule >= 0:
            considered = schedule[slot.schedule, min(node.visits - 1, schedule.shape[1] - 1)]
            index = select_gumbel(
                nodes, index, gumbels, g, considered, slot.raw_value, c_visit, c_scale, rescale, scores
            )
        else:
            index = select_puct(nodes, index, c_puct, fpu_reduction, draw_value)
        draw_value = -draw_value  # what the one gains the other loses
        depth += 1
        paths[lane, depth] = index
        if nodes[index].proof != UNKNOWN:
            backup(nodes, paths, lane, depth, np.float32(0.0), np.float32(0.0))
            return -1


@njit(cache=True)
def _pledge(nodes, paths, pledges, lane, depth, virtual_loss):
    """Counts a leaf that waits as a visit of its path, with values ``virtual_loss`` below each node's mean."""
    value = np.float32(0.0)
    for i in range(depth + 1):
        node = nodes[paths[lane, i]]
        # A node without visits is worth what the node above it is, seen from the other side.
        value = np.float32(-value) if node.visits == 0 else np.float32(node.value_sum / np.float32(node.visits))
        pledges[lane, i] = value - virtual_loss
        node.visits += 1
        node.value_sum += pledges[lane, i]
    nodes[paths[lane, depth]].proof_plies = np.uint8(_IN_FLIGHT)


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
def drop_leaves(nodes, slots, paths, depths, pledges, waiting, n):
    """Forgets the ``n`` leaves of ``waiting``, as if nobody had come to them; the room of their children stays lost."""
    lanes = depths.shape[0] // slots.shape[0]
    for i in range(n):
        lane = np.int64(waiting[i])
        if slots[lane // lanes].waiting > 0:
            slots[lane // lanes].waiting -= 1
            if lanes > 1:
                take_back(nodes, paths, depths, pledges, lane)
            nodes[paths[lane, depths[lane]]].num_children = np.uint8(0)


@njit(cache=True, nogil=True)
def select_leaves(
    nodes,
    slots,
    paths,
    depths,
    pledges,
    histories,
    codes,
    gumbels,
    schedule,
    c_visit,
    c_scale,
    rescale,
    c_puct,
    fpu_reduction,
    draw_value,
    virtual_loss,
    shot_prior,
    frames,
    shot_moves,
    moves,
    scores,
    leaves,
    waiting,
    n,
):
    """Every active game without a waiting leaf runs until all its lanes have one or its target is reached.

    Forced moves, proven and terminal nodes cost no evaluation, so a game may do several simulations in one call. A game
    of several lanes also stops when it comes to a leaf that waits already, and after its root.

    Args:
        shot_prior: float32, given to a shot when a node is visited for the second time, see ``shots.raise_prior``; 0
            looks for none. frames, shot_moves: its buffers.
        moves, scores: buffers [MAX_MOVES] of ``MOVE`` and float32.
        leaves: uint32 [lanes, 4], filled with the positions to judge.
        waiting: int32 [lanes], filled with their lanes.
        n: how many of both are filled already.

    Returns:
        Number of leaves, the earlier ones included.
    """
    nodes, slots, paths, codes = borrowed(nodes), borrowed(slots), borrowed(paths), borrowed(codes)
    histories, gumbels, schedule = borrowed(histories), borrowed(gumbels), borrowed(schedule)
    moves, scores, leaves, waiting = borrowed(moves), borrowed(scores), borrowed(leaves), borrowed(waiting)
    depths, pledges, frames, shot_moves = borrowed(depths), borrowed(pledges), borrowed(frames), borrowed(shot_moves)
    lanes = depths.shape[0] // slots.shape[0]
    for g in range(slots.shape[0]):
        slot = slots[g]
        if slot.active == 0 or slot.waiting != 0:
            continue
        root = nodes[slot.root]
        lane = np.int64(g) * lanes
        end = lane + min(lanes, max(_LEAST_IN_FLIGHT, np.int64(root.visits) // _VISITS_PER_LEAF))
        while lane < end:
            if root.visits > 0 and (root.visits > slot.target or root.proof != UNKNOWN):
                slot.active = np.uint8(slot.waiting > 0)
                break
            count = _descend(
                nodes,
                slots,
                paths,
                depths,
                histories,
                gumbels,
                schedule,
                g,
                lane,
                c_visit,
                c_scale,
                rescale,
                c_puct,
                fpu_reduction,
                draw_value,
                shot_prior,
                frames,
                shot_moves,
                moves,
                scores,
            )
            if count == _COLLISION:
                break
            if count >= 0:
                for i in range(count):
                    codes[lane, i] = moves[i].code
                leaf = nodes[paths[lane, depths[lane]]]
                leaves[n, 0], leaves[n, 1], leaves[n, 2] = turned(leaf.opp), turned(leaf.own), turned(leaf.kings)
                leaves[n, 3] = leaf.reversible
                waiting[n] = lane
                slot.waiting += 1
                n += 1
                if lanes > 1:
                    _pledge(nodes, paths, pledges, lane, depths[lane], virtual_loss)
                lane = lane + 1 if depths[lane] > 0 else end
    return n


@njit(cache=True)
def mix_noise(nodes, slots, noises, g):
    """Mixes the game's noise into the prior of its root's moves."""
    root, fraction = nodes[slots[g].root], slots[g].noise
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        child.prior = np.float32((1 - fraction) * child.prior + fraction * noises[g, i])


@njit(cache=True, inline="always")
def _set_priors(nodes, leaf, codes, lane, policy_logits, i, sharpness):
    """Softmax of the moves' logits times ``sharpness``."""
    first, count = leaf.first_child, np.int64(leaf.num_children)
    highest = np.float32(-np.inf)
    for j in range(count):
        logit = np.float32(sharpness * move_logit(policy_logits, i, codes[lane, j]))
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
def backup_leaves(
    nodes,
    slots,
    paths,
    depths,
    pledges,
    codes,
    noises,
    waiting,
    n,
    policy_logits,
    wdl_logits,
    sharpness,
):
    """Gives every waiting leaf its priors and backs its value up.

    Args:
        noises: float32 [slots, MAX_MOVES], mixed into the prior of a root that is judged for the first time.
        policy_logits, wdl_logits: the evaluator's answer for the ``n`` leaves of ``waiting``; no rows of policy logits
            leave the priors equal.
        sharpness: float32, the policy logits are multiplied by it: 1 / policy_temperature.
    """
    nodes, slots, paths, codes = borrowed(nodes), borrowed(slots), borrowed(paths), borrowed(codes)
    noises, waiting, depths, pledges = borrowed(noises), borrowed(waiting), borrowed(depths), borrowed(pledges)
    policy_logits, wdl_logits = borrowed(policy_logits), borrowed(wdl_logits)
    lanes = depths.shape[0] // slots.shape[0]
    for i in range(n):
        lane = np.int64(waiting[i])
        g = lane // lanes
        slot = slots[g]
        if slot.waiting == 0:
            continue  # its search was ended in the meantime
        slot.waiting -= 1
        if lanes > 1:
            take_back(nodes, paths, depths, pledges, lane)
        win, draw, loss = wdl_logits[i, 0], wdl_logits[i, 1], wdl_logits[i, 2]
        highest = max(win, max(draw, loss))
        win, draw, loss = exp32(win - highest), exp32(draw - highest), exp32(loss - highest)
        scale = np.float32(1.0) / np.float32(win + draw + loss)
        value, draw = np.float32((win - loss) * scale), np.float32(draw * scale)
        depth = depths[lane]
        leaf = nodes[paths[lane, depth]]
        if leaf.num_children > 0:  # new ones: a leaf without room for them may have been visited before
            if policy_logits.shape[0] > 0:
                _set_priors(nodes, leaf, codes, lane, policy_logits, i, sharpness)
            if depth == 0:
                slot.raw_value = value
                if slot.noise > 0:
                    mix_noise(nodes, slots, noises, g)
        backup(nodes, paths, lane, depth, value, draw)
