"""The root of one game's tree: state of the game, playing moves, reading results, and choosing a move."""

import numpy as np
from numba import njit

from ..bitboard import popcount, turned
from ..draw_rules import REPETITIONS_TO_DRAW, REVERSIBLE_PLIES_TO_DRAW
from ..outcomes import DRAW, LOSS, UNKNOWN, WIN
from .graph import enter, forget, position_visits, refresh
from .kernels import mix_noise
from .state import shares
from .tree import MAX_PLIES, add_children, clear, earlier_in_game, keep_subtree, legal_at, node_value, proven_value

RUNNING, LOST, REPETITION, REVERSIBLE = 0, 1, 2, 3  # endings; LOST: the side to move has no move


@njit(cache=True)
def clear_root(state, g):
    """Clears the tree of slot ``g`` except for the root's position."""
    slot = state.slots[g]
    clear(state.nodes[slot.root])
    forget(state.table, state.slots.shape[0], g)
    slot.used = slot.root + 1
    slot.tainted = 0


@njit(cache=True)
def start_roots(state, slots, targets, noises, searcher, few):
    """Makes slots active; see ``LockstepSearch.start``.

    Args:
        slots: int64 [n].
        targets: int64 [n], simulations.
        noises: float32 [n], fraction of noise in the root's priors.
        searcher: 1 if the searching side is the side to move, -1 if it is the opponent.
        few: most pieces of a leaf that is looked up in tables. Trees whose root has no more are cleared, see
            ``LeafJudge.judges_root``.
    """
    for i in range(slots.shape[0]):
        g = slots[i]
        slot = state.slots[g]
        root = state.nodes[slot.root]
        if popcount(root.own | root.opp) <= few:
            clear_root(state, g)
        slot.target, slot.noise, slot.searcher = targets[i], noises[i], searcher
        slot.active, slot.waiting, slot.covered, slot.known = 1, 0, few, UNKNOWN
        if slot.noise > 0 and root.visits > 0:
            mix_noise(state.nodes, state.slots, state.noises, g)


@njit(cache=True)
def judge_root(state, g):
    """Sets ``num_legal`` and ``ending`` of a new root by the rules of the game (a third occurrence is a draw)."""
    slot = state.slots[g]
    root = state.nodes[slot.root]
    slot.known = UNKNOWN
    slot.num_legal = legal_at(root, state.moves)
    slot.ending = RUNNING
    if slot.num_legal == 0:
        slot.ending = LOST
        return
    earlier = earlier_in_game(root, state.histories, g, 0, np.int64(slot.num_history))
    if earlier + 1 >= REPETITIONS_TO_DRAW:
        slot.ending = REPETITION
    elif root.reversible >= REVERSIBLE_PLIES_TO_DRAW:
        slot.ending = REVERSIBLE


@njit(cache=True)
def _remember_root(nodes, slots, histories, g):
    """Appends the root to the game's history; a full one loses its oldest position, which no rule needs any more."""
    slot = slots[g]
    if slot.num_history == histories.shape[1]:
        for i in range(1, slot.num_history):
            histories[g, i - 1] = histories[g, i]
        slot.num_history -= 1
    histories[g, slot.num_history] = nodes[slot.root]
    slot.num_history += 1


@njit(cache=True)
def _share_anew(state, g):
    """Enters the nodes of a kept subtree into the emptied table."""
    nodes, slot = state.nodes, state.slots[g]
    nodes[slot.root].shared = np.uint8(0)
    forget(state.table, state.slots.shape[0], g)
    for index in range(slot.root + 1, slot.used):
        enter(nodes, state.table, state.slots.shape[0], g, np.int64(index))


@njit(cache=True)
def _count_root(nodes, root):
    """Sets the visits of a kept root to those of its position: its twins had others, or there was no room below it."""
    visits = position_visits(nodes, root)
    if root.proof == UNKNOWN and visits > 0 and (root.shared or root.visits != visits):
        root.visits = np.int32(visits)
        refresh(nodes, root)


@njit(cache=True)
def play_root(state, g, child_index, reuse, through_forced, scratch, moved):
    """Plays root move ``child_index``; returns the number of plies played.

    Args:
        reuse: whether to keep the subtree of the move. It is dropped all the same if the tree has draws by repetition
            (``tainted``), which may not be draws for the new root.
        through_forced: whether to play every forced move after it, too.
        scratch, moved: see ``keep_subtree``.
    """
    nodes, slot = state.nodes, state.slots[g]
    plies = 0
    while True:
        root = nodes[slot.root]
        if root.num_children == 0:
            count = legal_at(root, state.moves)
            slot.used = np.int32(add_children(nodes, slot.used, slot.root, state.moves, count))
        index = root.first_child + np.int32(child_index)
        child = nodes[index]
        if child.reversible == 0:
            slot.num_history = 0
        else:
            _remember_root(nodes, state.slots, state.histories, g)
        if reuse and slot.tainted == 0 and child.num_children > 0:
            slot.used = np.int32(keep_subtree(nodes, slot.root, index, slot.used, scratch, moved))
            _count_root(nodes, nodes[slot.root])
            if shares(state):
                _share_anew(state, g)
        else:
            nodes[slot.root] = child
            clear_root(state, g)
        plies += 1
        judge_root(state, g)
        if not through_forced or slot.ending != RUNNING or slot.num_legal != 1:
            return plies
        child_index = 0


@njit(cache=True)
def play_chosen(state, slots, draws, reuse, scratch, moved):
    """Chooses and plays a move in each slot, and the forced moves after it; see ``choose_root`` and ``play_root``.

    Args:
        slots: int64 [n].
        draws: float64 [n, 2], temperature and random number.

    Returns:
        int64 [n, 3]: the move's index, plies played, and ending.
    """
    played = np.empty((slots.shape[0], 3), np.int64)
    for i in range(slots.shape[0]):
        g = slots[i]
        played[i, 0] = choose_root(state, g, draws[i, 0], draws[i, 1])
        played[i, 1] = play_root(state, g, played[i, 0], reuse, True, scratch, moved)
        played[i, 2] = state.slots[g].ending
    return played


@njit(cache=True)
def read_moves(state, g, counts, means):
    """Copies what the search found about the root's moves into ``counts`` and ``means``; returns their number.

    Args:
        counts: int32 [3, MAX_MOVES]: visits, proof, plies of the proof.
        means: float32 [3, MAX_MOVES]: prior, mean value, mean P(draw).
    """
    nodes, slot = state.nodes, state.slots[g]
    root = nodes[slot.root]
    count = np.int64(root.num_children)
    for i in range(count):
        child = nodes[root.first_child + i]
        proof = DRAW if slot.known == DRAW and child.proof == UNKNOWN else child.proof
        counts[0, i], counts[1, i], counts[2, i] = child.visits, proof, child.proof_plies
        means[0, i], means[2, i] = child.prior, _mean_draw(child)
        means[1, i] = _clipped(node_value(child), means[2, i])
        if proof != UNKNOWN:  # it may be unvisited
            means[1, i], means[2, i] = proven_value(proof), np.float32(proof == DRAW)
    return count


@njit(cache=True)
def read_positions(state, slots, positions):
    """Writes the roots' positions of ``slots`` (int64 [n]), seen by the sides to move, into uint32 [n, 4]."""
    for i in range(slots.shape[0]):
        root = state.nodes[state.slots[slots[i]].root]
        positions[i, 0], positions[i, 1], positions[i, 2] = turned(root.opp), turned(root.own), turned(root.kings)
        positions[i, 3] = root.reversible


@njit(cache=True)
def read_targets(state, slots, wdl, policies, counts):
    """Writes the training targets from the searches of ``slots`` (int64 [n]).

    Args:
        wdl: float32 [n, 3]: win, draw, loss for the side to move.
        policies: float32 [n, MAX_MOVES], see ``improved_policy``.
        counts: int64 [n], numbers of moves.
    """
    for i in range(slots.shape[0]):
        slot = state.slots[slots[i]]
        root = state.nodes[slot.root]
        counts[i] = improved_policy(state.nodes, slot, policies[i])
        draw = _mean_draw(root)
        value = _clipped(-node_value(root), draw)
        wdl[i, 0], wdl[i, 1], wdl[i, 2] = (1 - draw + value) / 2, draw, (1 - draw - value) / 2
        if slot.known != UNKNOWN:
            wdl[i, 0], wdl[i, 1], wdl[i, 2] = slot.known == WIN, slot.known == DRAW, slot.known == LOSS
        if root.proof != UNKNOWN:  # seen by the opponent, whose win is the loss of the side to move
            wdl[i, 0], wdl[i, 1], wdl[i, 2] = root.proof == LOSS, root.proof == DRAW, root.proof == WIN


@njit(cache=True)
def _mean_draw(node):
    return min(np.float32(1.0), node.draw_sum / np.float32(max(node.visits, 1)))


@njit(cache=True)
def _clipped(value, draw):
    """Limits a value to what ``draw`` allows, |value| <= 1 - draw: rounding errors in sums may exceed it a little."""
    return max(draw - np.float32(1.0), min(np.float32(1.0) - draw, value))


@njit(cache=True)
def _is_refuted(slot, root, child):
    """Whether a root move is proven to be worse than another one: where the 80-ply rule makes a draw of a root that the
    tables call won, a proven draw is not."""
    return child.proof == LOSS or (slot.known == WIN and child.proof == DRAW and root.proof == UNKNOWN)


@njit(cache=True)
def improved_policy(nodes, slot, target):
    """Writes the policy target of the root's moves into ``target`` (sums to 1); returns their number.

    The target is proportional to visits, or to priors if nothing is visited. If there are proven wins, only they count;
    refuted moves get 0 unless all moves lose.
    """
    root = nodes[slot.root]
    count = np.int64(root.num_children)
    for i in range(count):
        target[i] = nodes[root.first_child + i].visits
    wins, losses = 0, 0
    for i in range(count):
        wins += nodes[root.first_child + i].proof == WIN
        losses += nodes[root.first_child + i].proof == LOSS
    total, prior = 0.0, 0.0
    for i in range(count):
        child = nodes[root.first_child + i]
        if (wins > 0 and child.proof != WIN) or (_is_refuted(slot, root, child) and losses < count):
            target[i] = -1.0
        else:
            total += target[i]
            prior += child.prior
    for i in range(count):
        if target[i] < 0:
            target[i] = 0.0
        else:  # moves that an oracle has proven may have no visits
            target[i] = target[i] / total if total > 0 else nodes[root.first_child + i].prior / prior
    return count


@njit(cache=True)
def _weigh_moves(nodes, slot, scores):
    """Writes the root moves' visits into ``scores``, or the priors if nothing is visited; refuted moves get 0."""
    root = nodes[slot.root]
    most = 0
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        most = max(most, np.int64(0 if _is_refuted(slot, root, child) else child.visits))
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        scores[i] = np.float32(child.visits) if most > 0 else child.prior
        if _is_refuted(slot, root, child):
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
def choose_root(state, g, temperature, uniform):
    """Index of the move to play; 0 before the first visit.

    Plays the shortest proven win, or the longest loss if all moves lose. Otherwise it draws a move that is not refuted
    (a proven loss, or a proven draw where the root can be won), with probabilities proportional to visits
    (priors if nothing is visited) ** (1 / temperature).

    Args:
        temperature: 0 plays the most visited move; among equals, the one with the highest value.
        uniform: a random number in [0, 1) for the draw.
    """
    nodes, slot = state.nodes, state.slots[g]
    root = nodes[slot.root]
    count = np.int64(root.num_children)
    best = _proven_choice(nodes, slot.root)
    if best >= 0 or count == 0:
        return max(best, 0)
    scores = np.empty(count, np.float32)
    _weigh_moves(nodes, slot, scores)
    for i in range(count):
        child = nodes[root.first_child + i]
        tie = best >= 0 and scores[i] == scores[best] and node_value(child) > node_value(nodes[root.first_child + best])
        if not _is_refuted(slot, root, child) and (best < 0 or scores[i] > scores[best] or tie):
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
