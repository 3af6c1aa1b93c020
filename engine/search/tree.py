"""The tree of one game: an arena of nodes, and the kernels that read and update it.

A node stands for the move that leads to it. Its position and values are seen by the side that made this move (the
parent's side to move), so a parent compares its children without changing signs; ``value_sum / visits`` is that side's
mean value. The root is seen by the opponent of the side to move.

All games share one flat array. Game g owns the nodes from g * capacity on; the first of them is its root. Kernels take
whole arrays and indices, never slices: for each slice Numba changes a reference count twice by atomic operations, which
halved the search's speed. Kernels that run once per simulation are inlined, because a call passes all words that
describe the arrays.
"""

import math

import numpy as np
from numba import njit

from ..bitboard import turned
from ..draw_rules import is_reversible
from ..movegen import DISTINCT, generate
from ..outcomes import DRAW, LOSS, UNKNOWN, WIN
from ..records import record

NODE = record(
    [
        ("own", np.uint32),
        ("opp", np.uint32),
        ("kings", np.uint32),
        ("first_child", np.int32),
        ("prior", np.float32),
        ("visits", np.int32),
        ("value_sum", np.float32),
        ("draw_sum", np.float32),
        ("raw_value", np.float32),  # evaluation P(win) - P(loss) for the side to move, if ``judged``
        ("raw_draw", np.float32),  # P(draw), if ``judged``
        ("num_children", np.uint8),
        ("reversible", np.uint8),
        ("proof", np.uint8),  # WIN, DRAW, LOSS or UNKNOWN, for the player who moved into the node
        ("proof_plies", np.uint8),
        ("judged", np.uint8),
        ("shared", np.uint8),  # has a twin, see ``graph``
        ("sought", np.uint8),  # its shots have been searched
    ]
)
MAX_PLIES = 255
NO_DISTANCE = 192  # ``proof_plies`` from here on: proven by tables without distances to the end of the game
_HOPELESS = np.float32(-1e6)


@njit(cache=True)
def proven_value(proof):
    """Value of a proven node for the side that moved into it."""
    if proof == WIN:
        return np.float32(1.0)
    if proof == LOSS:
        return np.float32(-1.0)
    return np.float32(0.0)


@njit(cache=True, inline="always")
def node_value(node):
    """Mean value of a visited node for the side that moved into it; exact if the node is proven."""
    return np.float32(node.value_sum / np.float32(max(node.visits, 1)))


@njit(cache=True, inline="always")
def select_puct(nodes, parent, c_puct, fpu_reduction, draw_value):
    """The child of ``parent`` with the largest Q + U; a proven loss only if all children are proven losses.

    Q = (wins - losses + draw_value * draws) / visits, U = c_puct * prior * sqrt(visits of the parent) / (1 + visits).
    Q of an untried move is the parent's Q - fpu_reduction * sqrt(sum of tried priors), as in lc0 and KataGo.
    """
    node = nodes[parent]
    first, visits = np.uint64(node.first_child), np.float32(max(node.visits, 1))
    exploration = np.float32(c_puct * np.float32(math.sqrt(visits)))
    best, best_score = np.uint64(0), np.float32(-np.inf)
    untried, untried_prior, tried = np.uint64(0), np.float32(-1.0), np.float32(0.0)
    for i in range(np.uint64(node.num_children)):  # one pass without branches, which would often be mispredicted
        move = nodes[first + i]
        is_tried = move.visits > 0 or move.proof == LOSS
        tried += move.prior * np.float32(min(move.visits, 1))
        value = np.float32((move.value_sum + draw_value * move.draw_sum) / np.float32(max(move.visits, 1)))
        value += _HOPELESS if move.proof == LOSS else np.float32(0.0)
        score = np.float32(value + exploration * move.prior / np.float32(1 + move.visits))
        score = score if is_tried else np.float32(-np.inf)
        best = i if score > best_score else best
        best_score = max(best_score, score)
        prior = np.float32(-1.0) if is_tried else move.prior
        untried = i if prior > untried_prior else untried
        untried_prior = max(untried_prior, prior)
    mean = np.float32((draw_value * node.draw_sum - node.value_sum) / visits)
    untried_value = np.float32(mean - fpu_reduction * np.float32(math.sqrt(tried)))
    score = np.float32(untried_value + exploration * untried_prior)
    if untried_prior >= 0 and (score > best_score or (score == best_score and untried < best)):
        best = untried
    return np.int32(first + best)


@njit(cache=True, inline="always")
def backup(nodes, paths, g, depth, value, draw):
    """Adds one visit to the nodes ``paths[g, 0..depth]``; a proven node passes its exact value on to those above.

    Args:
        value, draw: P(win) - P(loss) and P(draw) for the side to move at the end of the path.
    """
    for i in range(depth, -1, -1):
        value = np.float32(-value)
        node = nodes[paths[g, i]]
        if node.proof != UNKNOWN:
            value, draw = proven_value(node.proof), np.float32(node.proof == DRAW)
        node.visits += 1
        node.value_sum += value
        node.draw_sum += draw


@njit(cache=True)
def mark(node, proof, plies):
    """Marks a node as proven and makes its mean value exact."""
    node.proof = np.uint8(proof)
    node.proof_plies = np.uint8(min(plies, MAX_PLIES))
    visits = np.float32(node.visits)
    node.value_sum = np.float32(proven_value(proof) * visits)
    node.draw_sum = visits if proof == DRAW else np.float32(0.0)


@njit(cache=True)
def settle(nodes, index):
    """Marks a node as proven if its children determine its value; returns whether they do.

    The plies are those of the shortest win or the longest loss.
    """
    parent = nodes[index]
    shortest_win, longest_loss = MAX_PLIES + 1, -1
    draw_plies = -1
    open_children = False
    for child in range(parent.first_child, parent.first_child + np.int32(parent.num_children)):
        node = nodes[child]
        if node.proof == WIN:
            shortest_win = min(shortest_win, np.int64(node.proof_plies))
        elif node.proof == LOSS:
            longest_loss = max(longest_loss, np.int64(node.proof_plies))
        elif node.proof == DRAW:
            draw_plies = max(draw_plies, np.int64(node.proof_plies))
        else:
            open_children = True
    if shortest_win <= MAX_PLIES:
        mark(parent, LOSS, shortest_win + 1)
    elif open_children:
        return False
    elif draw_plies >= 0:
        mark(parent, DRAW, draw_plies + 1)
    else:
        mark(parent, WIN, longest_loss + 1)
    return True


@njit(cache=True)
def prove_above(nodes, paths, g, depth):
    """Marks nodes of the path above its proven end as proven, as long as their children determine their value."""
    for i in range(depth - 1, -1, -1):
        if not settle(nodes, paths[g, i]):
            return


@njit(cache=True)
def prove(nodes, paths, g, depth, proof, plies):
    """Marks the end of the path as proven, and then the nodes above it (``prove_above``)."""
    mark(nodes[paths[g, depth]], proof, plies)
    prove_above(nodes, paths, g, depth)


@njit(cache=True, inline="always")
def clear(node):
    """Resets a node except for its position, its prior and its reversible plies."""
    node.visits = 0
    node.value_sum = np.float32(0.0)
    node.draw_sum = np.float32(0.0)
    node.raw_value = np.float32(0.0)
    node.raw_draw = np.float32(0.0)
    node.num_children = np.uint8(0)
    node.proof = np.uint8(UNKNOWN)
    node.proof_plies = np.uint8(0)
    node.judged = np.uint8(0)
    node.shared = np.uint8(0)
    node.sought = np.uint8(0)


@njit(cache=True, inline="always")
def add_children(nodes, used, index, moves, count):
    """Adds ``count`` unvisited children with equal priors to a leaf, from generated ``moves``.

    Returns:
        The new end of the nodes in use.
    """
    parent = nodes[index]
    parent.first_child = np.int32(used)
    parent.num_children = np.uint8(count)
    own, opp, kings = turned(parent.opp), turned(parent.own), turned(parent.kings)
    prior = np.float32(1.0) / np.float32(count)
    for i in range(count):
        node = nodes[used + i]
        node.own, node.opp, node.kings = moves[i].own, moves[i].opp, moves[i].kings
        goes_on = is_reversible(own, opp, kings, moves[i])
        node.reversible = np.uint8(min(np.int64(parent.reversible) + 1, MAX_PLIES) if goes_on else 0)
        node.prior = prior
        node.first_child = 0
        clear(node)
    return used + count


@njit(cache=True, inline="always")
def legal_at(node, moves):
    """Generates the distinct legal moves in the position after ``node`` into ``moves``; returns their number."""
    return generate(turned(node.opp), turned(node.own), turned(node.kings), moves, DISTINCT)


@njit(cache=True)
def same_position(a, b):
    """Whether two nodes, an even number of plies apart, have the same position."""
    return a.own == b.own and a.opp == b.opp and a.kings == b.kings


@njit(cache=True)
def earlier_in_game(node, histories, g, depth, num_history):
    """Number of occurrences, in the game before the root, of the position of a node ``depth`` plies below the root."""
    count = 0
    for back in range(max(2, depth + 2 - depth % 2), min(np.int64(node.reversible), depth + num_history) + 1, 2):
        count += same_position(node, histories[g, num_history - (back - depth)])
    return count


@njit(cache=True)
def keep_subtree(nodes, root, child, end, scratch, moved):
    """Makes ``child`` the root: moves its subtree to the front of the game's nodes and returns their new end.

    Args:
        end: end of the game's nodes in use.
        scratch, moved: buffers, ``NODE`` and int32 [nodes of the game].
    """
    scratch[0] = nodes[child]
    moved[: end - root] = 0  # new index of each group of children, by its first child: twins have the same group
    used = 1
    i = 0
    while i < used:
        count = np.int32(scratch[i].num_children)
        if count > 0:
            first = scratch[i].first_child
            if moved[first - root] == 0:
                for j in range(count):
                    scratch[used + j] = nodes[first + j]
                moved[first - root] = used
                used += count
            scratch[i].first_child = np.int32(root + moved[first - root])
        i += 1
    for i in range(used):
        nodes[root + i] = scratch[i]
    return root + used
