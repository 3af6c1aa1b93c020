"""The two halves of a step of all games: descending to the next leaves, and backing up evaluated leaves."""

import numpy as np
from numba import njit

from ..bitboard import borrowed, exp32, turned
from ..draw_rules import REPETITIONS_TO_DRAW, REVERSIBLE_PLIES_TO_DRAW
from ..encoding import move_logit
from ..outcomes import DRAW, LOSS, UNKNOWN, WIN
from .graph import NO_NODE, backup_shared, enter, find_twin, position_visits, share
from .in_flight import IN_FLIGHT, pledge, take_back
from .prefetch import prefetch
from .shots import raise_priors
from .state import MAX_DEPTH, lanes_of, shares
from .tree import (
    add_children,
    backup,
    earlier_in_game,
    legal_at,
    prove,
    prove_above,
    same_position,
    select_puct,
    settle,
)

_FIRST_REPETITION = 4  # fewest plies after which a position can occur again
_COLLISION = -2
_LEAST_IN_FLIGHT = 8  # waiting leaves that a tree may always have, whatever the visits of its root
_VISITS_PER_LEAF = 32  # visits of the root for each waiting leaf, if there are more of them
_LOWEST = np.finfo(np.float32).min
_TRUST = np.float32(0.9)  # weight of the tables in the value of a leaf that they know but do not prove


@njit(cache=True)
def _repeats(nodes, paths, histories, g, lane, depth, num_history):
    """Earlier occurrences of the path's last position: (on the path, in the game before the root)."""
    node = nodes[paths[lane, depth]]
    in_tree = 0
    for back in range(2, min(np.int64(node.reversible), depth) + 1, 2):
        in_tree += same_position(node, nodes[paths[lane, depth - back]])
    return in_tree, earlier_in_game(node, histories, g, depth, np.int64(num_history))


@njit(cache=True)
def _draw(nodes, slots, paths, histories, g, lane, depth):
    """DRAW if the game is drawn at the path's last node, which is not the root and has a legal move; else UNKNOWN.

    In the tree, the first repetition of a position on the path is a draw; ``slots[g].tainted`` is then set.
    """
    if nodes[paths[lane, depth]].reversible >= REVERSIBLE_PLIES_TO_DRAW:
        return DRAW
    in_tree, in_game = _repeats(nodes, paths, histories, g, lane, depth, slots[g].num_history)
    if in_tree > 0:
        # A side with a better move at the repetition has the same move at the first occurrence, also in this tree.
        slots[g].tainted = 1
        return DRAW
    return DRAW if in_game + 1 >= REPETITIONS_TO_DRAW else UNKNOWN


@njit(cache=True, inline="always")
def back_up(state, lane, depth, value, draw):
    """``tree.backup``, or ``graph.backup_shared`` if positions are shared."""
    if shares(state):
        backup_shared(state.nodes, state.paths, lane, depth, value, draw)
    else:
        backup(state.nodes, state.paths, lane, depth, value, draw)


@njit(cache=True, inline="always")
def _back_up_known(state, lane, depth):
    """Backs up a path whose last node is proven or has a known mean; returns -1."""
    back_up(state, lane, depth, np.float32(0.0), np.float32(0.0))
    return -1


@njit(cache=True, inline="always")
def _descend(state, settings, g, lane):
    """Descends from the root of game ``g`` to the end of one simulation.

    Returns:
        Number of moves of the leaf, which needs an evaluation (0, and no children, if the arena is full); -1 if the
        simulation ended in a node that is proven or has a known mean, and is backed up already; ``_COLLISION`` if it
        reached a leaf that already waits.
    """
    nodes, paths, slot = state.nodes, state.paths, state.slots[g]
    depth, index, draw_value = np.int64(0), slot.root, slot.draw_value  # see DISTINCT about the type
    paths[lane, 0] = index
    while True:
        node = nodes[index]
        if node.proof_plies == IN_FLIGHT and node.proof == UNKNOWN:  # it has no children if the arena is full
            return _COLLISION
        if node.num_children == 0:
            count = legal_at(node, state.moves)
            proof = WIN if count == 0 else UNKNOWN
            if count > 0 and depth > 0 and node.reversible >= _FIRST_REPETITION:
                proof = _draw(nodes, state.slots, paths, state.histories, g, lane, depth)
            if proof != UNKNOWN:
                prove(nodes, paths, lane, depth, proof, 0)
                return _back_up_known(state, lane, depth)
            twin = np.int64(NO_NODE)
            if shares(state) and depth > 0 and count > 1 and node.reversible == 0 and node.visits == 0:
                twin = find_twin(nodes, state.table, state.slots.shape[0], g, index)
            if twin != NO_NODE:
                share(nodes, index, twin)
            else:
                state.depths[lane] = depth
                if slot.used + count > slot.limit or depth == MAX_DEPTH - 1:
                    return 0
                slot.used = np.int32(add_children(nodes, slot.used, index, state.moves, count))
                if count > 1 or depth == 0:
                    return count
        known = node.shared and depth > 0 and (settle(nodes, index) or node.visits < position_visits(nodes, node))
        if known or depth == MAX_DEPTH - 1:  # only a node with a twin can have children at this depth
            if node.proof != UNKNOWN:
                prove_above(nodes, paths, lane, depth)
            return _back_up_known(state, lane, depth)
        if settings.shot_prior > 0 and node.sought == 0 and node.visits >= settings.shot_visits:
            # Not earlier: most leaves are never visited again.
            node.sought = np.uint8(1)
            if node.num_children > 1:
                raise_priors(nodes, node, settings.shot_prior, state.frames, state.shot_moves)
        if node.num_children == 1:
            index = node.first_child
        else:
            index = select_puct(nodes, index, settings.c_puct, settings.fpu_reduction, draw_value)
        draw_value = -draw_value  # a zero-sum game
        depth += 1
        paths[lane, depth] = index
        if nodes[index].proof != UNKNOWN:
            if shares(state):
                prove_above(nodes, paths, lane, depth)
            return _back_up_known(state, lane, depth)


@njit(cache=True, inline="always")
def _draw_value(slot, root, settings):
    """Value of a draw for the side to move at the root: contempt grows with the searching side's value."""
    draw_value = np.float32(slot.searcher * settings.draw_value)
    if settings.contempt_lead > 0 and settings.draw_value < 0:
        ahead = np.float32(-slot.searcher * root.value_sum / np.float32(max(root.visits, 1)))
        share = np.float32(ahead / settings.contempt_lead)
        draw_value *= min(max(share, np.float32(0.0)), np.float32(1.0))
    return draw_value


@njit(cache=True, inline="always")
def _write_leaf(state, lane, count, n):
    """Writes the leaf's position, seen by its side to move, and the codes of its moves, as waiting leaf ``n``."""
    node, leaves = state.nodes[state.paths[lane, state.depths[lane]]], state.leaves
    leaves[n, 0], leaves[n, 1], leaves[n, 2] = turned(node.opp), turned(node.own), turned(node.kings)
    leaves[n, 3] = node.reversible
    for i in range(count):
        state.codes[lane, i] = state.moves[i].code
    state.waiting[n], state.outcomes[lane] = lane, UNKNOWN


@njit(cache=True, nogil=True)
def select_leaves(state, settings, first, end, n):
    """Searches every active game without a waiting leaf until all its lanes have one or its target is reached.

    Forced moves and proven nodes need no evaluation, so a game may do several simulations in one call. A game with
    several lanes also stops at a leaf that already waits, and after its root.

    Args:
        first, end: the games are slots ``first`` to ``end - 1``.
        n: number of leaves that wait already; they are the first ones of ``state.leaves`` and ``state.waiting``.

    Returns:
        Number of waiting leaves, including the earlier ones.
    """
    state = borrowed(state)
    lanes = lanes_of(state)
    for g in range(first, end):
        slot = state.slots[g]
        if slot.active == 0 or slot.waiting != 0:
            continue
        root = state.nodes[slot.root]
        slot.draw_value = _draw_value(slot, root, settings)
        prefetch(state.nodes, slot.used)  # where the leaf's children will be written
        lane = np.int64(g) * lanes
        last = lane + min(lanes, max(_LEAST_IN_FLIGHT, np.int64(root.visits) // _VISITS_PER_LEAF))
        while lane < last:
            if root.visits > 0 and (root.visits > slot.target or root.proof != UNKNOWN):
                slot.active = np.uint8(slot.waiting > 0)
                break
            count = _descend(state, settings, g, lane)
            if count == _COLLISION:
                break
            if count >= 0:
                _write_leaf(state, lane, count, n)
                slot.waiting += 1
                n += 1
                if lanes > 1:
                    pledge(state.nodes, state.paths, state.pledges, lane, state.depths[lane], settings.virtual_loss)
                lane = lane + 1 if state.depths[lane] > 0 else last
    return n


@njit(cache=True)
def mix_noise(nodes, slots, noises, g):
    """Mixes the noise of game ``g`` into the priors of its root's moves."""
    root, fraction = nodes[slots[g].root], slots[g].noise
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        child.prior = np.float32((1 - fraction) * child.prior + fraction * noises[g, i])


@njit(cache=True, inline="always")
def _set_priors(state, leaf, lane, i, sharpness):
    """Sets the priors of waiting leaf ``i`` (node ``leaf``): softmax of its moves' logits times ``sharpness``."""
    nodes, first, count = state.nodes, leaf.first_child, np.int64(leaf.num_children)
    highest = _LOWEST  # not minus infinity: where all logits are that, priors are equal
    for j in range(count):
        logit = np.float32(sharpness * move_logit(state.policy, i, state.codes[lane, j]))
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


@njit(cache=True, inline="always")
def _value_of(state, i, lane):
    """(P(win) - P(loss), P(draw)) of waiting leaf ``i`` from the evaluator's logits, mixed with the tables' outcome."""
    win, draw, loss = state.wdl[i, 0], state.wdl[i, 1], state.wdl[i, 2]
    highest = max(win, max(draw, loss))
    win, draw, loss = exp32(win - highest), exp32(draw - highest), exp32(loss - highest)
    scale = np.float32(1.0) / np.float32(win + draw + loss)
    value, draw = np.float32((win - loss) * scale), np.float32(draw * scale)
    outcome = state.outcomes[lane]
    if outcome != UNKNOWN:
        known = np.float32(outcome == WIN) - np.float32(outcome == LOSS)
        value += np.float32(_TRUST * np.float32(known - value))
        draw += np.float32(_TRUST * np.float32(np.float32(outcome == DRAW) - draw))
    return value, draw


@njit(cache=True, nogil=True)
def backup_leaves(state, settings, n, has_policy):
    """Sets the priors of the first ``n`` waiting leaves and backs up their values.

    Args:
        has_policy: whether ``state.policy`` holds their logits; otherwise priors stay equal.
    """
    state = borrowed(state)
    nodes, lanes = state.nodes, lanes_of(state)
    for i in range(n):
        lane = np.int64(state.waiting[i])
        g = lane // lanes
        slot = state.slots[g]
        if slot.waiting == 0:
            continue  # its search has been ended meanwhile
        slot.waiting -= 1
        if lanes > 1:
            take_back(nodes, state.paths, state.depths, state.pledges, lane)
        value, draw = _value_of(state, i, lane)
        depth = np.int64(state.depths[lane])
        leaf = nodes[state.paths[lane, depth]]
        if leaf.num_children > 0:  # a leaf without children (the arena was full) may have been visited before
            if has_policy:
                _set_priors(state, leaf, lane, i, settings.sharpness)
            if depth == 0 and slot.noise > 0:
                mix_noise(nodes, state.slots, state.noises, g)
            leaf.judged, leaf.raw_value, leaf.raw_draw = np.uint8(1), value, draw
            if shares(state) and depth > 0:
                enter(nodes, state.table, state.slots.shape[0], g, np.int64(state.paths[lane, depth]))
        back_up(state, lane, depth, value, draw)
