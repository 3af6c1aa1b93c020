"""One Numba call per half-step of the lockstep: every game descends to its next leaf; all leaves are backed up.

State of one slot (game) beside its tree:

    histories [g, MAX_HISTORY]   positions since the last irreversible move, before the root, stored like nodes
    paths [g, MAX_DEPTH]         nodes from the root to the leaf that waits for its evaluation
    codes [g, MAX_MOVES]         move codes of that leaf's children
    noises, gumbels [g, MAX_MOVES]   random numbers of the root's moves
"""

import math

import numpy as np
from numba import njit

from ..bitboard import borrowed, exp32, turned
from ..encoding import move_logit
from .gumbel import SMALLEST_PRIOR, best_gumbel, completed_q, select_gumbel
from .tree import (
    DRAW,
    LOSS,
    MAX_PLIES,
    UNKNOWN,
    WIN,
    add_children,
    backup,
    keep_subtree,
    legal_at,
    node_value,
    prove,
    same_position,
    select_puct,
)

MAX_DEPTH = 512
MAX_HISTORY = 96
REVERSIBLE_LIMIT = 80
REPETITION_LIMIT = 3

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
        ("ending", np.uint8),
    ],
    align=True,
)
RUNNING, LOST, REPETITION, REVERSIBLE = 0, 1, 2, 3  # endings; LOST: the side to move has no move


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
def _terminal(nodes, slots, paths, histories, g, depth, count):
    """Proof of the path's last node by the rules, for the player who moved into it; ``count`` legal moves follow.

    A root that is drawn by the rules is searched all the same: whoever asks wants to know its moves.
    """
    if count == 0:
        return WIN
    if depth == 0:
        return UNKNOWN
    node = nodes[paths[g, depth]]
    if node.reversible >= REVERSIBLE_LIMIT:
        return DRAW
    if node.reversible >= 4:
        in_tree, in_game = _repeats(nodes, paths, histories, g, depth, slots[g].num_history)
        if in_tree > 0:
            # Whoever could do better the second time could have done so the first time: both lie in this tree.
            slots[g].tainted = 1
            return DRAW
        if in_game + 1 >= REPETITION_LIMIT:
            return DRAW
    return UNKNOWN


@njit(cache=True)
def _descend(
    nodes, slots, paths, histories, gumbels, schedule, g, c_visit, c_scale, c_puct, fpu_reduction, moves, scores
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
            proof = _terminal(nodes, slots, paths, histories, g, depth, count)
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
            index = select_gumbel(nodes, index, gumbels, g, considered, slot.raw_value, c_visit, c_scale, scores)
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
    c_puct,
    fpu_reduction,
    moves,
    scores,
    leaves,
    waiting,
):
    """Every active game runs until a leaf needs its evaluation or its target is reached.

    Forced moves, proven and terminal nodes cost no evaluation, so a game may do several simulations in one call.

    Args:
        moves, scores: buffers [MAX_MOVES] of ``MOVE`` and float32.
        leaves: uint32 [slots, 4], filled with the positions to judge.
        waiting: int32 [slots], filled with their slots.

    Returns:
        Number of leaves.
    """
    nodes, slots, paths, codes = borrowed(nodes), borrowed(slots), borrowed(paths), borrowed(codes)
    histories, gumbels, schedule = borrowed(histories), borrowed(gumbels), borrowed(schedule)
    moves, scores, leaves, waiting = borrowed(moves), borrowed(scores), borrowed(leaves), borrowed(waiting)
    n = 0
    for g in range(slots.shape[0]):
        slot = slots[g]
        if slot.active == 0:
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


@njit(cache=True)
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
        policy_logits, wdl_logits: the evaluator's answer for the ``n`` leaves of ``waiting``.
    """
    nodes, slots, paths, codes = borrowed(nodes), borrowed(slots), borrowed(paths), borrowed(codes)
    noises, waiting = borrowed(noises), borrowed(waiting)
    policy_logits, wdl_logits = borrowed(policy_logits), borrowed(wdl_logits)
    for i in range(n):
        g = waiting[i]
        slot = slots[g]
        win, draw, loss = wdl_logits[i, 0], wdl_logits[i, 1], wdl_logits[i, 2]
        highest = max(win, max(draw, loss))
        win, draw, loss = exp32(win - highest), exp32(draw - highest), exp32(loss - highest)
        scale = np.float32(1.0) / np.float32(win + draw + loss)
        value, draw = np.float32((win - loss) * scale), np.float32(draw * scale)
        leaf = nodes[paths[g, slot.depth]]
        if leaf.num_children > 0:  # new ones: a leaf without room for them may have been visited before
            _set_priors(nodes, leaf, codes, g, policy_logits, i)
            if slot.depth == 0:
                slot.raw_value = value
                if slot.noise > 0:
                    mix_noise(nodes, slots, noises, g)
        backup(nodes, paths, g, slot.depth, value, draw)


@njit(cache=True)
def clear_root(nodes, slots, g):
    """Forgets all but the root's position."""
    root = nodes[slots[g].root]
    root.visits = 0
    root.value_sum = np.float32(0.0)
    root.draw_sum = np.float32(0.0)
    root.num_children = np.uint8(0)
    root.proof = np.uint8(UNKNOWN)
    slots[g].used = slots[g].root + 1
    slots[g].tainted = 0


@njit(cache=True)
def judge_root(nodes, slots, histories, g, moves):
    """Sets ``num_legal`` and ``ending`` of the root by the rules of the game (draws by the third occurrence)."""
    slot = slots[g]
    root = nodes[slot.root]
    slot.num_legal = legal_at(root, moves)
    slot.ending = RUNNING
    if slot.num_legal == 0:
        slot.ending = LOST
        return
    occurrences = 1
    for back in range(2, min(np.int64(root.reversible), np.int64(slot.num_history)) + 1, 2):
        occurrences += same_position(root, histories[g, slot.num_history - back])
    if occurrences >= REPETITION_LIMIT:
        slot.ending = REPETITION
    elif root.reversible >= REVERSIBLE_LIMIT:
        slot.ending = REVERSIBLE


@njit(cache=True)
def _remember_root(nodes, slots, histories, g):
    """Appends the root to the game's history; the oldest position falls out where no rule can reach it any more."""
    slot = slots[g]
    if slot.num_history == histories.shape[1]:
        for i in range(1, slot.num_history):
            histories[g, i - 1] = histories[g, i]
        slot.num_history -= 1
    histories[g, slot.num_history] = nodes[slot.root]
    slot.num_history += 1


@njit(cache=True)
def play_root(nodes, slots, histories, g, child_index, reuse, through_forced, scratch, moves):
    """Plays root move ``child_index`` and, if asked, every forced move after it; returns the number of plies played.

    Args:
        reuse: keep the subtree of the move, unless it holds draws by repetition of positions that are now past.
    """
    slot = slots[g]
    plies = 0
    while True:
        root = nodes[slot.root]
        if root.num_children == 0:
            slot.used = np.int32(add_children(nodes, slot.used, slot.root, moves, legal_at(root, moves)))
        index = root.first_child + np.int32(child_index)
        child = nodes[index]
        if child.reversible == 0:
            slot.num_history = 0
        else:
            _remember_root(nodes, slots, histories, g)
        if reuse and slot.tainted == 0 and child.num_children > 0:
            slot.used = np.int32(keep_subtree(nodes, slot.root, index, scratch))
        else:
            nodes[slot.root] = child
            clear_root(nodes, slots, g)
        plies += 1
        judge_root(nodes, slots, histories, g, moves)
        if not through_forced or slot.ending != RUNNING or slot.num_legal != 1:
            return plies
        child_index = 0


@njit(cache=True)
def root_moves(nodes, root_index, visits, priors, values, draws, proofs, plies):
    """Copies the root's moves out; values and draw rates are means for the side to move. Returns their number."""
    root = nodes[root_index]
    count = np.int64(root.num_children)
    for i in range(count):
        child = nodes[root.first_child + i]
        visits[i], priors[i], values[i] = child.visits, child.prior, node_value(child)
        draws[i] = child.draw_sum / max(child.visits, 1)
        proofs[i], plies[i] = child.proof, child.proof_plies
    return count


@njit(cache=True)
def improved_policy(nodes, slots, g, c_visit, c_scale, target):
    """Writes the policy target over the root's moves into ``target`` (sums to 1).

    Visit shares at a PUCT root; softmax(log prior + completed Q) at a Gumbel root. Proven wins share everything;
    proven losses get nothing unless all moves lose.
    """
    slot = slots[g]
    root = nodes[slot.root]
    count = np.int64(root.num_children)
    if slot.schedule >= 0:
        completed_q(nodes, slot.root, slot.raw_value, c_visit, c_scale, target)
        highest = np.float32(-np.inf)
        for i in range(count):
            target[i] += math.log(max(nodes[root.first_child + i].prior, SMALLEST_PRIOR))
            highest = max(highest, target[i])
        for i in range(count):
            target[i] = math.exp(target[i] - highest)
    else:
        for i in range(count):
            target[i] = nodes[root.first_child + i].visits
    wins, losses = 0, 0
    for i in range(count):
        wins += nodes[root.first_child + i].proof == WIN
        losses += nodes[root.first_child + i].proof == LOSS
    total = 0.0
    for i in range(count):
        proof = nodes[root.first_child + i].proof
        if (wins > 0 and proof != WIN) or (proof == LOSS and losses < count):
            target[i] = 0.0
        total += target[i]
    for i in range(count):
        target[i] = target[i] / total if total > 0 else nodes[root.first_child + i].prior
    return count


@njit(cache=True)
def _weigh_moves(nodes, root_index, scores):
    """Writes the root moves' visits into ``scores``, or the priors if nothing is visited; proven losses get 0."""
    root = nodes[root_index]
    most = 0
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        most = max(most, np.int64(0 if child.proof == LOSS else child.visits))
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        scores[i] = np.float32(child.visits) if most > 0 else child.prior
        if child.proof == LOSS:
            scores[i] = np.float32(0.0)


@njit(cache=True)
def _proven_choice(nodes, root_index):
    """The shortest proven win; else, if all moves lose, the longest defence; else -1."""
    root = nodes[root_index]
    won, shortest, lost, longest, losses = -1, MAX_PLIES + 1, -1, -1, 0
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        plies = np.int64(child.proof_plies)
        if child.proof == WIN and plies < shortest:
            won, shortest = i, plies
        elif child.proof == LOSS:
            losses += 1
            if plies > longest:
                lost, longest = i, plies
    if won >= 0:
        return won
    return lost if losses == np.int64(root.num_children) else -1


@njit(cache=True)
def choose_root(nodes, slots, gumbels, g, c_visit, c_scale, temperature, uniform):
    """Index of the move to play, 0 before the first visit.

    A proven win is played by the shortest way, a lost position by the longest. Else the Gumbel root's winner, or a
    draw among visit counts (priors if nothing is visited) ** (1 / temperature) without the proven losses.

    Args:
        temperature: 0 plays the most visited move (ties: the higher value); ignored by a Gumbel root.
        uniform: a random number in [0, 1) for the draw.
    """
    slot = slots[g]
    root = nodes[slot.root]
    count = np.int64(root.num_children)
    best = _proven_choice(nodes, slot.root)
    if best >= 0 or count == 0:
        return max(best, 0)
    scores = np.empty(count, np.float32)
    if slot.schedule >= 0:
        return best_gumbel(nodes, slot.root, gumbels, g, slot.raw_value, c_visit, c_scale, scores)
    _weigh_moves(nodes, slot.root, scores)
    for i in range(count):
        child = nodes[root.first_child + i]
        tie = best >= 0 and scores[i] == scores[best] and node_value(child) > node_value(nodes[root.first_child + best])
        if child.proof != LOSS and (best < 0 or scores[i] > scores[best] or tie):
            best = i
    if temperature <= 0:
        return best
    most, total = scores[best], 0.0
    for i in range(count):
        scores[i] = (scores[i] / most) ** (1.0 / temperature)
        total += scores[i]
    left = uniform * total
    for i in range(count):
        left -= scores[i]
        if left < 0 and scores[i] > 0:
            return i
    return best
