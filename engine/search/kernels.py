"""One Numba call per half-step of the lockstep: every game descends to its next leaf; all leaves are backed up.

State of one slot (game) beside its tree:

    histories [g, MAX_HISTORY]   positions since the last irreversible move, before the root, stored like nodes
    noises, gumbels [g, MAX_MOVES]   random numbers of the root's moves

Each slot has a number of lanes (one, or ``leaves_in_flight``): leaves of its tree that wait together. State of a lane:

    paths [lane, MAX_DEPTH]      nodes from the root to the leaf that waits for its evaluation
    depths [lane]                index of that leaf in its path
    codes [lane, MAX_MOVES]      move codes of the leaf's children
    pledges [lane, MAX_DEPTH]    see ``in_flight``
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import borrowed, exp32, turned
from ..board import REPETITIONS_TO_DRAW, REVERSIBLE_PLIES_TO_DRAW
from ..encoding import move_logit
from .graph import NO_NODE, backup_shared, enter, find_twin, position_visits, share
from .gumbel import select_gumbel
from .in_flight import IN_FLIGHT, pledge, take_back
from .shots import raise_priors
from .tree import (
    DRAW,
    UNKNOWN,
    WIN,
    add_children,
    backup,
    legal_at,
    prove,
    prove_above,
    same_position,
    select_puct,
    settle,
)

MAX_DEPTH = 512
MAX_HISTORY = 96
_FIRST_REPETITION = 4  # plies from a position back to itself, at the least
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
        ("draw_value", np.float32),  # what a draw is worth to the side to move at the root, for now
        ("searcher", np.float32),  # 1: it is the side to move that values draws so; -1: its opponent
        ("tainted", np.uint8),  # the tree holds draws by repetition that another root may not see
        ("active", np.uint8),  # the search has not reached its target
        ("ending", np.uint8),
        ("shares", np.uint8),  # positions are shared, see ``graph``
    ],
    align=True,
)


class Settings(NamedTuple):
    """Those of ``SearchConfig`` by which leaves are selected."""

    c_visit: np.float32
    c_scale: np.float32
    rescale_q: bool
    c_puct: np.float32
    fpu_reduction: np.float32
    virtual_loss: np.float32
    shot_prior: np.float32
    shot_visits: np.int64
    draw_value: np.float32
    contempt_lead: np.float32


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
    if nodes[paths[lane, depth]].reversible >= REVERSIBLE_PLIES_TO_DRAW:
        return DRAW
    in_tree, in_game = _repeats(nodes, paths, histories, g, lane, depth, slots[g].num_history)
    if in_tree > 0:
        # Whoever could do better the second time could have done so the first time: both lie in this tree.
        slots[g].tainted = 1
        return DRAW
    return DRAW if in_game + 1 >= REPETITIONS_TO_DRAW else UNKNOWN


@njit(cache=True, inline="always")
def back_up(nodes, slot, paths, lane, depth, value, draw):
    """``tree.backup``, or that of shared positions."""
    if slot.shares:
        backup_shared(nodes, paths, lane, depth, value, draw)
    else:
        backup(nodes, paths, lane, depth, value, draw)


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
    settings,
    frames,
    shot_moves,
    moves,
    scores,
    table,
):
    """One simulation of game ``g`` down to its end.

    Returns:
        Number of moves of a leaf that waits for its evaluation (0, and no children, where the tree has no room for
        them); -1 if the simulation ended in a proven node, or where the mean is known, and is backed up already;
        ``_COLLISION`` if it came to a leaf that waits already.
    """
    slot = slots[g]
    depth, index, draw_value = np.int64(0), slot.root, slot.draw_value  # see DISTINCT about the type
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
                back_up(nodes, slot, paths, lane, depth, np.float32(0.0), np.float32(0.0))
                return -1
            twin = np.int64(NO_NODE)
            if slot.shares and depth > 0 and count > 1 and node.reversible == 0 and node.visits == 0:
                twin = find_twin(nodes, table, slots.shape[0], g, index)
            if twin != NO_NODE:
                share(nodes, index, twin)
            else:
                depths[lane] = depth
                if slot.used + count > slot.limit or depth == MAX_DEPTH - 1:
                    return 0
                slot.used = np.int32(add_children(nodes, slot.used, index, moves, count))
                if count > 1 or depth == 0:
                    return count
        elif node.proof_plies == IN_FLIGHT:
            return _COLLISION
        known = node.shared and depth > 0 and (settle(nodes, index) or node.visits < position_visits(nodes, node))
        if known or depth == MAX_DEPTH - 1:  # a node with children lies so deep only by way of a twin
            if node.proof != UNKNOWN:
                prove_above(nodes, paths, lane, depth)
            back_up(nodes, slot, paths, lane, depth, np.float32(0.0), np.float32(0.0))
            return -1
        if settings.shot_prior > 0 and node.sought == 0 and node.visits >= settings.shot_visits:
            # Not before: most leaves are never visited again.
            node.sought = np.uint8(1)
            if node.num_children > 1:
                raise_priors(nodes, node, settings.shot_prior, frames, shot_moves)
        if node.num_children == 1:
            index = node.first_child
        elif depth == 0 and slot.schedule >= 0:
            considered = schedule[slot.schedule, min(node.visits - 1, schedule.shape[1] - 1)]
            scales = settings.c_visit, settings.c_scale, settings.rescale_q
            index = select_gumbel(nodes, index, gumbels, g, considered, slot.raw_value, *scales, scores)
        else:
            index = select_puct(nodes, index, settings.c_puct, settings.fpu_reduction, draw_value)
        draw_value = -draw_value  # what the one gains the other loses
        depth += 1
        paths[lane, depth] = index
        if nodes[index].proof != UNKNOWN:
            if slot.shares:
                prove_above(nodes, paths, lane, depth)
            back_up(nodes, slot, paths, lane, depth, np.float32(0.0), np.float32(0.0))
            return -1


@njit(cache=True, inline="always")
def _draw_value(slot, root, settings):
    """What a draw is worth to the side to move at the root: contempt grows with the searcher's lead."""
    draw_value = np.float32(slot.searcher * settings.draw_value)
    if settings.contempt_lead > 0 and settings.draw_value < 0:
        ahead = np.float32(-slot.searcher * root.value_sum / np.float32(max(root.visits, 1)))
        share = np.float32(ahead / settings.contempt_lead)
        draw_value *= min(max(share, np.float32(0.0)), np.float32(1.0))
    return draw_value


@njit(cache=True, inline="always")
def _write_leaf(node, leaves, n):
    """Writes the position to judge, seen by its side to move."""
    leaves[n, 0], leaves[n, 1], leaves[n, 2] = turned(node.opp), turned(node.own), turned(node.kings)
    leaves[n, 3] = node.reversible


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
    settings,
    frames,
    shot_moves,
    moves,
    scores,
    table,
    leaves,
    waiting,
    n,
):
    """Every active game without a waiting leaf runs until all its lanes have one or its target is reached.

    Forced moves, proven and terminal nodes cost no evaluation, so a game may do several simulations in one call. A game
    of several lanes also stops when it comes to a leaf that waits already, and after its root.

    Args:
        settings: ``Settings``.
        frames, shot_moves: buffers for the search of shots, see ``shots.raise_priors``.
        moves, scores: buffers [MAX_MOVES] of ``MOVE`` and float32.
        table: see ``graph``.
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
    table, lanes = borrowed(table), depths.shape[0] // slots.shape[0]
    for g in range(slots.shape[0]):
        slot = slots[g]
        if slot.active == 0 or slot.waiting != 0:
            continue
        root = nodes[slot.root]
        slot.draw_value = _draw_value(slot, root, settings)
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
                settings,
                frames,
                shot_moves,
                moves,
                scores,
                table,
            )
            if count == _COLLISION:
                break
            if count >= 0:
                for i in range(count):
                    codes[lane, i] = moves[i].code
                _write_leaf(nodes[paths[lane, depths[lane]]], leaves, n)
                waiting[n] = lane
                slot.waiting += 1
                n += 1
                if lanes > 1:
                    pledge(nodes, paths, pledges, lane, depths[lane], settings.virtual_loss)
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
    table,
    sharpness,
    n,
    policy_logits,
    wdl_logits,
):
    """Gives every waiting leaf its priors and backs its value up.

    Args:
        noises: float32 [slots, MAX_MOVES], mixed into the prior of a root that is judged for the first time.
        table: see ``graph``.
        sharpness: float32, the policy logits are multiplied by it: 1 / policy_temperature.
        policy_logits, wdl_logits: the evaluator's answer for the ``n`` leaves of ``waiting``; no rows of policy logits
            leave the priors equal.
    """
    nodes, slots, paths, codes = borrowed(nodes), borrowed(slots), borrowed(paths), borrowed(codes)
    noises, waiting, depths, pledges = borrowed(noises), borrowed(waiting), borrowed(depths), borrowed(pledges)
    policy_logits, wdl_logits, table = borrowed(policy_logits), borrowed(wdl_logits), borrowed(table)
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
            leaf.judged, leaf.raw_value, leaf.raw_draw = np.uint8(1), value, draw
            if slot.shares and depth > 0:
                enter(nodes, table, slots.shape[0], g, np.int64(paths[lane, depth]))
        back_up(nodes, slot, paths, lane, depth, value, draw)
