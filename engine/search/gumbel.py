"""The Gumbel root: Sequential Halving over a sample of moves without replacement, and completed Q-values.

Danihelka, Guez, Schrittwieser, Silver: "Policy improvement by planning with Gumbel" (ICLR 2022), sections 3-4 and
appendix D.
"""

import math

import numpy as np
from numba import njit

from .tree import DRAW, LOSS, node_value

SMALLEST_PRIOR = np.float32(1e-30)


@njit(cache=True)
def considered_visits(num_considered, num_simulations):
    """Visit count that the move of each simulation must have, int32 [num_simulations].

    Sequential Halving written as a schedule: simulation t goes to the best-scored move among those visited
    ``schedule[t]`` times, so that the field halves by itself (Karnin et al. 2013).
    """
    schedule = np.zeros(num_simulations, np.int32)
    if num_considered <= 1:
        for t in range(num_simulations):
            schedule[t] = t
        return schedule
    phases = math.ceil(math.log2(num_considered))
    field, visits, t = num_considered, 0, 0
    while t < num_simulations:
        rounds = max(1, int(num_simulations / (phases * field)))
        for _ in range(rounds):
            for _ in range(field):
                if t < num_simulations:
                    schedule[t] = visits
                    t += 1
            visits += 1
        field = max(2, field // 2)
    return schedule


@njit(cache=True)
def completed_q(nodes, root_index, raw_value, c_visit, c_scale, rescale, scores):
    """Writes the transformed completed Q-value of every root move into ``scores``.

    A move never visited gets the mixed value of appendix D (the network's value and the visited moves' values weighted
    by their priors). All are brought to [0, 1] and scaled by (c_visit + most visits) * c_scale.

    Args:
        raw_value: the network's value of the root for the side to move.
        rescale: bring the smallest to 0 and the largest to 1 (the published implementation); else -1 to 0 and 1 to 1
            (the paper's board games), which leaves small differences small.
        scores: float32 [>= number of root moves].
    """
    root = nodes[root_index]
    total, most, weight, weighted = 0, 0, np.float64(0.0), np.float64(0.0)
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        if child.visits > 0:
            prior = max(child.prior, SMALLEST_PRIOR)
            weight += prior
            weighted += prior * node_value(child)
        total += child.visits
        most = max(most, child.visits)
    mixed = raw_value
    if weight > 0:
        mixed = (raw_value + total * (weighted / weight)) / (total + 1)
    low, high = np.inf, -np.inf
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        value = node_value(child) if child.visits > 0 else mixed
        scores[i] = value
        low, high = min(low, value), max(high, value)
    if not rescale:
        low, high = -1.0, 1.0
    scale = (c_visit + most) * c_scale / max(high - low, 1e-8)
    for i in range(np.int64(root.num_children)):
        scores[i] = (scores[i] - low) * scale


@njit(cache=True)
def select_gumbel(nodes, root_index, gumbels, g, considered, raw_value, c_visit, c_scale, rescale, scores):
    """The root move for the next simulation: the best score among moves visited ``considered`` times.

    Proven losses are passed over; where that leaves no move with the wanted count, the nearest count takes its place.
    """
    root = nodes[root_index]
    completed_q(nodes, root_index, raw_value, c_visit, c_scale, rescale, scores)
    best, best_score, best_gap = -1, -np.inf, np.int64(1 << 40)
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        if child.proof == LOSS:
            continue
        gap = abs(np.int64(child.visits) - np.int64(considered))
        if child.proof == DRAW and child.visits > 0:
            gap += 1  # nothing more to learn here; prefer an open move
        score = gumbels[g, i] + math.log(max(child.prior, SMALLEST_PRIOR)) + scores[i]
        if gap < best_gap or (gap == best_gap and score > best_score):
            best, best_score, best_gap = root.first_child + i, score, gap
    return np.int32(best if best >= 0 else root.first_child)


@njit(cache=True)
def best_gumbel(nodes, root_index, gumbels, g, raw_value, c_visit, c_scale, rescale, scores):
    """Index of the move to play: the best score among the most visited moves that are not proven losses."""
    root = nodes[root_index]
    completed_q(nodes, root_index, raw_value, c_visit, c_scale, rescale, scores)
    best, best_score, best_visits = 0, -np.inf, np.int64(-1)
    for i in range(np.int64(root.num_children)):
        child = nodes[root.first_child + i]
        if child.proof == LOSS:
            continue
        score = gumbels[g, i] + math.log(max(child.prior, SMALLEST_PRIOR)) + scores[i]
        if child.visits > best_visits or (child.visits == best_visits and score > best_score):
            best, best_score, best_visits = i, score, np.int64(child.visits)
    return best
