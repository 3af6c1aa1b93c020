"""The wide network's forward pass compiled by Numba, and the step loop of a search with it.

The wide layer of a position's phase adds up the weights of the pieces that are on the board: two thirds of its inputs
are never on, and none has a value but one. Six in seven of its units are then below zero, and the layer behind it does
without these. Of the policy a search computes what belongs to legal moves: some eight logits of 128. Sums of the wide
layer, and what they are multiplied by, are 16-bit integers: half of the memory to read, and twice as many numbers an
instruction. A network with neighbours adds a second row for each piece.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.bitboard import NUM_SQUARES, lowest_bit, popcount, step
from engine.draw_rules import REVERSIBLE_PLIES_TO_DRAW
from engine.encoding import MAX_HOPS, NUM_POLICY, hop_indices
from engine.search.step_loop import search_steps

from ..wide import NUM_NEIGHBOUR_ROWS, NUM_PHASES
from .lanes import WIDTH, load, multiply_add, spread, store
from .shorts import DOTS, OUTPUTS, STRIP, dot_rows, multiply_positive, sum_rows

BEGINNINGS = REVERSIBLE_PLIES_TO_DRAW + 1
"""Rows of a phase before those of pieces: bias and reversible plies, by the number of these."""
_KINDS = 4  # kinds of pieces
PHASE_ROWS = BEGINNINGS + _KINDS * NUM_SQUARES
"""Rows of a phase."""
_STATES = NUM_NEIGHBOUR_ROWS // _KINDS


class WideWeights(NamedTuple):
    """Flat arrays, phase after phase but for the policy, and the table of phases.

    Attributes:
        phases: ``learner.wide.PHASES``.
        states: int64 [32, 5], by the bits of squares: ``learner.wide.STATE_BEGINS`` and ``STATE_STEPS``.
        rows: int16 [PHASE_ROWS, units]: ``BEGINNINGS``, then own men, own kings, the opponent's men and kings by the
            bits of their squares; behind those of the last phase, where there are neighbours, their rows.
        policy: int16 [128, units].
        hidden: int16, see ``shorts.multiply_positive``.
        policy_scale, hidden_scale: float32, what their integers are multiplied by.
        wdl: float32 [3, hidden].
        policy_bias, hidden_bias, wdl_bias: float32, of these layers.
    """

    phases: np.ndarray
    states: np.ndarray
    rows: np.ndarray
    policy: np.ndarray
    policy_scale: np.ndarray
    policy_bias: np.ndarray
    hidden: np.ndarray
    hidden_scale: np.ndarray
    hidden_bias: np.ndarray
    wdl: np.ndarray
    wdl_bias: np.ndarray


class WideBuffers(NamedTuple):
    """Room for what lies between the layers.

    Attributes:
        rows: int64 [98], where the weights of two positions' beginnings and pieces begin.
        hops: int64 [128 + DOTS], logits of the policy that are wanted of one position.
        begins: int64 [128 + DOTS], where their weights begin.
        is_wanted: bool [128], whether a logit is among them.
        products: float32 [OUTPUTS].
        hidden: float32, of one position.
        wdl: float32 [3, WIDTH], parts of the three sums.
        sums: int16 [positions, units], of the wide layer; units are what is above zero.
    """

    rows: np.ndarray
    hops: np.ndarray
    begins: np.ndarray
    is_wanted: np.ndarray
    products: np.ndarray
    hidden: np.ndarray
    wdl: np.ndarray
    sums: np.ndarray


@njit(inline="always")
def units_of(weights):
    return weights.policy.size // NUM_POLICY


@njit(inline="always")
def phase_of(position, weights):
    own, opp, kings = position[0], position[1], position[2]
    return np.int64(weights.phases[popcount(own | opp), np.int64(kings != 0)])


@njit(cache=True)
def _list_pieces(pieces, first, units, rows, n):
    """Adds where the weights of the pieces of one kind, whose first row is given, begin; returns the new number."""
    while pieces != 0:
        rows[n] = (first + np.int64(lowest_bit(pieces))) * units
        pieces = np.uint32(pieces & (pieces - np.uint32(1)))
        n += 1
    return n


@njit(cache=True)
def _list_states(pieces, first, around, states, units, rows, n):
    """Adds where the weights of the pieces of one kind and what is next to them begin; returns the new number."""
    while pieces != 0:
        bit = np.int64(lowest_bit(pieces))
        state = first + states[bit, 0]
        for direction in range(4):
            own, opp = around[direction] >> np.uint32(bit), around[4 + direction] >> np.uint32(bit)
            state += states[bit, 1 + direction] * np.int64((own & np.uint32(1)) + 2 * (opp & np.uint32(1)))
        rows[n] = state * units
        pieces = np.uint32(pieces & (pieces - np.uint32(1)))
        n += 1
    return n


@njit(inline="always")
def _list_neighbours(position, among, states, units, rows, n):
    """Adds to ``rows`` those of pieces on some squares and what is next to them; returns the new number."""
    own, opp, kings = position[0], position[1], position[2]
    around = (
        step(own, 2), step(own, 3), step(own, 0), step(own, 1),
        step(opp, 2), step(opp, 3), step(opp, 0), step(opp, 1),
    )  # fmt: skip
    men, kings, first = np.uint32(among & ~kings), np.uint32(among & kings), np.int64(NUM_PHASES * PHASE_ROWS)
    n = _list_states(np.uint32(own & men), first, around, states, units, rows, n)
    n = _list_states(np.uint32(own & kings), first + _STATES, around, states, units, rows, n)
    n = _list_states(np.uint32(opp & men), first + 2 * _STATES, around, states, units, rows, n)
    return _list_states(np.uint32(opp & kings), first + 3 * _STATES, around, states, units, rows, n)


@njit(inline="always")
def _list_rows(position, phase, among, units, rows, n):
    """Adds to ``rows`` those of a position's beginning and of its pieces on some squares; returns the new number."""
    own, opp, kings = position[0], position[1], position[2]
    men, kings, first = np.uint32(among & ~kings), np.uint32(among & kings), phase * PHASE_ROWS
    rows[n] = (first + min(np.int64(position[3]), BEGINNINGS - 1)) * units
    first += BEGINNINGS
    n = _list_pieces(np.uint32(own & men), first, units, rows, n + 1)
    n = _list_pieces(np.uint32(own & kings), first + NUM_SQUARES, units, rows, n)
    n = _list_pieces(np.uint32(opp & men), first + 2 * NUM_SQUARES, units, rows, n)
    return _list_pieces(np.uint32(opp & kings), first + 3 * NUM_SQUARES, units, rows, n)


@njit(inline="always")
def _list_all(position, phase, changed, weights, rows, n):
    """Adds to ``rows`` all that the given squares and their pieces have a part in; returns the new number."""
    units = units_of(weights)
    n = _list_rows(position, phase, changed, units, rows, n)
    if weights.rows.size > NUM_PHASES * PHASE_ROWS * units:
        touched = changed | step(changed, 0) | step(changed, 1) | step(changed, 2) | step(changed, 3)
        n = _list_neighbours(position, touched, weights.states, units, rows, n)
    return n


@njit(inline="always")
def sum_units(position, phase, weights, buffers, i):
    """Computes the sums of the wide layer of a position, as those of position ``i``."""
    units, rows = units_of(weights), buffers.rows
    count = _list_all(position, phase, np.uint32(0xFFFFFFFF), weights, rows, np.int64(0))
    for unit in range(0, units, STRIP):
        sum_rows(weights.rows, rows, count, count, unit, buffers.sums, -1, i * units)


@njit(inline="always")
def change_units(earlier, position, phase, weights, buffers, old, new):
    """Computes them as those of position ``new`` from those of an earlier one, ``old``.

    Both have the same side to move and are of the same phase.
    """
    units, rows = units_of(weights), buffers.rows
    changed = np.uint32((earlier[0] ^ position[0]) | (earlier[1] ^ position[1]) | (earlier[2] ^ position[2]))
    count = _list_all(position, phase, changed, weights, rows, np.int64(0))
    end = _list_all(earlier, phase, changed, weights, rows, count)
    for unit in range(0, units, STRIP):
        sum_rows(weights.rows, rows, count, end, unit, buffers.sums, old * units, new * units)


@njit(inline="always")
def results_of(i, phase, weights, buffers):
    """Win, draw and loss logits of position ``i``, whose sums are computed."""
    units, size = units_of(weights), weights.hidden_bias.size // NUM_PHASES
    hidden, products, first, nothing = buffers.hidden, buffers.products, phase * size, spread(np.float32(0.0))
    for at in range(0, size, OUTPUTS):
        multiply_positive(buffers.sums, i * units, units, weights.hidden, (first + at) * units, products)
        for output in range(OUTPUTS):
            value = (
                weights.hidden_bias[first + at + output] + weights.hidden_scale[first + at + output] * products[output]
            )
            hidden[at + output] = max(value, np.float32(0.0))
    for result in range(3):
        total, row = nothing, (3 * phase + result) * size
        for at in range(0, size, WIDTH):
            total = multiply_add(load(hidden, at), load(weights.wdl, row + at), total)
        store(buffers.wdl, result * WIDTH, total)
    win, draw, loss = weights.wdl_bias[3 * phase], weights.wdl_bias[3 * phase + 1], weights.wdl_bias[3 * phase + 2]
    for part in range(WIDTH):
        win += buffers.wdl[part]
        draw += buffers.wdl[WIDTH + part]
        loss += buffers.wdl[2 * WIDTH + part]
    return win, draw, loss


@njit(inline="always")
def policy_of(i, count, weights, buffers, policy_logits):
    """Writes ``count`` policy logits of position ``i``, those that ``buffers.hops`` lists, into a row for them."""
    units, hops, begins = units_of(weights), buffers.hops, buffers.begins
    hops[count : count + DOTS] = hops[0]
    for hop in range(count + DOTS):
        begins[hop] = hops[hop] * units
    for first in range(0, count, DOTS):
        dot_rows(buffers.sums, i * units, units, weights.policy, begins, first, buffers.products)
        for dot in range(DOTS):
            hop = hops[first + dot]
            policy_logits[hop] = weights.policy_bias[hop] + weights.policy_scale[hop] * buffers.products[dot]


@njit(inline="always")
def list_hops(codes, count, buffers, hops_of_move):
    """Lists the logits that ``count`` moves are made of, each once; returns their number."""
    hops, is_wanted, n = buffers.hops, buffers.is_wanted, 0
    for move in range(count):
        for hop in hops_of_move[: hop_indices(codes[move], hops_of_move)]:
            if not is_wanted[hop]:
                is_wanted[hop] = True
                hops[n] = hop
                n += 1
    for hop in hops[:n]:
        is_wanted[hop] = False
    return n


@njit(nogil=True, cache=True)
def evaluate_wide(positions, weights, buffers, policy_logits, wdl_logits):
    """All policy and win/draw/loss logits of positions.

    Args:
        positions: uint32 [N, 4].
        weights: ``WideWeights``.
        buffers: ``WideBuffers``.
        policy_logits, wdl_logits: float32 [N or more, 128] and [N or more, 3], filled.
    """
    for hop in range(NUM_POLICY):
        buffers.hops[hop] = hop
    for i in range(positions.shape[0]):
        phase = phase_of(positions[i], weights)
        sum_units(positions[i], phase, weights, buffers, 0)
        policy_of(0, NUM_POLICY, weights, buffers, policy_logits[i])
        wdl_logits[i, 0], wdl_logits[i, 1], wdl_logits[i, 2] = results_of(0, phase, weights, buffers)


@njit(nogil=True, cache=True)
def _judge_wide(state, network, n):
    weights, buffers = network
    hops_of_move = np.empty(MAX_HOPS, np.int64)
    for i in range(n):
        position, lane = state.leaves[i], state.waiting[i]
        phase = phase_of(position, weights)
        sum_units(position, phase, weights, buffers, 0)
        moves = np.int64(state.nodes[state.paths[lane, state.depths[lane]]].num_children)
        policy_of(0, list_hops(state.codes[lane], moves, buffers, hops_of_move), weights, buffers, state.policy[i])
        state.wdl[i, 0], state.wdl[i, 1], state.wdl[i, 2] = results_of(0, phase, weights, buffers)
    return True


@njit(nogil=True, cache=True)
def search_wide(state, settings, tables, weights, buffers, steps):
    """``step_loop.search_steps`` with a wide network; of the policy it computes what legal moves need."""
    return search_steps(state, settings, tables, _judge_wide, (weights, buffers), steps)
