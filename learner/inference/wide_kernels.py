"""The wide network's forward pass compiled by Numba, and the step loop of a search with it.

The wide layer of a position's phase adds up the weights of the pieces that are on the board: two thirds of its inputs
are never on, and none has a value but one. Of the policy a search computes what belongs to legal moves: some eight
logits of 128. Sums of the wide layer, and what they are multiplied by, are 16-bit integers: half of the memory to read,
and twice as many numbers an instruction. A network with neighbours adds a second row for each piece.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.bitboard import NUM_SQUARES, lowest_bit, popcount, step
from engine.board import REVERSIBLE_PLIES_TO_DRAW
from engine.encoding import MAX_HOPS, NUM_POLICY, hop_indices
from engine.search.step_loop import search_steps

from ..wide import NUM_NEIGHBOUR_ROWS, NUM_PHASES
from .lanes import WIDTH, spread
from .shorts import DOTS, STRIP, dot_rows, sum_rows
from .tiles import BLOCK, ROWS, multiply_tiles
from .winograd import filled_rows, place

BEGINNINGS = REVERSIBLE_PLIES_TO_DRAW + 1
"""Rows of a phase before those of pieces: bias and reversible plies, by the number of these."""
_KINDS = 4  # of pieces
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
        hidden: int16, matrices in tiles with inputs in pairs, see ``tiles``.
        policy_scale, hidden_scale: float32, what their integers are multiplied by.
        wdl: float32, matrices in tiles.
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
    """Room for what lies between the layers of a batch; ``ones`` are ``BLOCK`` ones.

    Attributes:
        places: int64 [positions], their rows in ``units``, ``hidden`` and ``wdl``: each phase has whole tiles.
        ends: int64 [phases], where the rows of each end.
        rows: int64 [49], where the weights of one position's beginning and pieces begin.
        hops: int64 [128 + DOTS], logits of the policy that are wanted of one position.
        begins: int64 [128 + DOTS], where their weights begin.
        is_wanted: bool [128], whether a logit is among them.
        sums: of the products for some logits.
        units: int16.
    """

    ones: np.ndarray
    places: np.ndarray
    ends: np.ndarray
    rows: np.ndarray
    hops: np.ndarray
    begins: np.ndarray
    is_wanted: np.ndarray
    sums: np.ndarray
    units: np.ndarray
    hidden: np.ndarray
    wdl: np.ndarray


@njit(inline="always")
def units_of(weights):
    return weights.policy.size // NUM_POLICY


@njit(inline="always")
def phase_of(position, weights):
    own, opp, kings = position[0], position[1], position[2]
    return np.int64(weights.phases[popcount(own | opp), np.int64(kings != 0)])


@njit(inline="always")
def _place_positions(positions, weights, buffers):
    """Gives each position a row among those of its phase."""
    places, ends = buffers.places, buffers.ends
    ends[:] = 0
    for i in range(positions.shape[0]):
        ends[phase_of(positions[i], weights)] += 1
    first = 0
    for phase in range(NUM_PHASES):
        first, ends[phase] = first + filled_rows(ends[phase]), first
    for i in range(positions.shape[0]):
        phase = phase_of(positions[i], weights)
        places[i] = ends[phase]
        ends[phase] += 1


@njit(inline="always")
def _list_pieces(pieces, first, units, rows, n):
    """Adds where the weights of the pieces of one kind, whose first row is given, begin; returns the new number."""
    while pieces != 0:
        rows[n] = (first + np.int64(lowest_bit(pieces))) * units
        pieces = np.uint32(pieces & (pieces - np.uint32(1)))
        n += 1
    return n


@njit(inline="always")
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
def _list_neighbours(position, states, units, rows, n):
    """Adds to ``rows`` those of pieces and what is next to them; returns the new number."""
    own, opp, kings = position[0], position[1], position[2]
    around = (
        step(own, 2), step(own, 3), step(own, 0), step(own, 1),
        step(opp, 2), step(opp, 3), step(opp, 0), step(opp, 1),
    )  # fmt: skip
    first = np.int64(NUM_PHASES * PHASE_ROWS)
    n = _list_states(np.uint32(own & ~kings), first, around, states, units, rows, n)
    n = _list_states(np.uint32(own & kings), first + _STATES, around, states, units, rows, n)
    n = _list_states(np.uint32(opp & ~kings), first + 2 * _STATES, around, states, units, rows, n)
    return _list_states(np.uint32(opp & kings), first + 3 * _STATES, around, states, units, rows, n)


@njit(inline="always")
def _list_rows(position, phase, units, rows):
    """Lists where the weights of a position's beginning and pieces begin; returns their number."""
    own, opp, kings = position[0], position[1], position[2]
    first = phase * PHASE_ROWS
    rows[0] = (first + min(np.int64(position[3]), BEGINNINGS - 1)) * units
    first += BEGINNINGS
    count = _list_pieces(np.uint32(own & ~kings), first, units, rows, 1)
    count = _list_pieces(np.uint32(own & kings), first + NUM_SQUARES, units, rows, count)
    count = _list_pieces(np.uint32(opp & ~kings), first + 2 * NUM_SQUARES, units, rows, count)
    return _list_pieces(np.uint32(opp & kings), first + 3 * NUM_SQUARES, units, rows, count)


@njit(inline="always")
def sum_units(position, phase, weights, buffers, row):
    """Computes the wide layer of a position into a row of ``buffers.units``."""
    units, rows = units_of(weights), buffers.rows
    count = _list_rows(position, phase, units, rows)
    if weights.rows.size > NUM_PHASES * PHASE_ROWS * units:
        count = _list_neighbours(position, weights.states, units, rows, count)
    for unit in range(0, units, STRIP):
        sum_rows(weights.rows, rows, count, unit, buffers.units, place(row, unit, units))


@njit(inline="always")
def _wide_layer(positions, weights, buffers):
    _place_positions(positions, weights, buffers)
    for i in range(positions.shape[0]):
        sum_units(positions[i], phase_of(positions[i], weights), weights, buffers, buffers.places[i])


@njit(inline="always")
def _results(n, weights, buffers, wdl_logits):
    """Win/draw/loss logits of the positions in the wide layer."""
    units, hidden, ones = units_of(weights), weights.hidden_bias.size // NUM_PHASES, buffers.ones
    bend, straight = spread(np.float32(0.0)), spread(np.float32(1.0))
    first = 0
    for phase in range(NUM_PHASES):
        for row in range(first, buffers.ends[phase], ROWS):
            for at in range(phase * hidden, (phase + 1) * hidden, BLOCK):
                out = place(row, at - phase * hidden, hidden)
                multiply_tiles(
                    buffers.units, row * units, weights.hidden, at * units, units // WIDTH,
                    weights.hidden_scale, at, weights.hidden_bias, at, buffers.hidden, out, bend,
                )  # fmt: skip
            multiply_tiles(
                buffers.hidden, row * hidden, weights.wdl, phase * hidden * BLOCK, hidden // WIDTH,
                ones, 0, weights.wdl_bias, phase * BLOCK, buffers.wdl, row * BLOCK, straight,
            )  # fmt: skip
        first = filled_rows(buffers.ends[phase])
    for i in range(n):
        for result in range(3):
            wdl_logits[i, result] = buffers.wdl[place(buffers.places[i], 0, BLOCK) + result]


@njit(inline="always")
def policy_of(i, count, weights, buffers, policy_logits):
    """Writes ``count`` policy logits of a position in the wide layer, those that ``buffers.hops`` lists."""
    units, hops, begins = units_of(weights), buffers.hops, buffers.begins
    hops[count : count + DOTS] = hops[0]
    for hop in range(count + DOTS):
        begins[hop] = hops[hop] * units
    row = place(buffers.places[i], 0, units)
    for first in range(0, count, DOTS):
        dot_rows(buffers.units, row, units // WIDTH, weights.policy, begins, first, buffers.sums)
        for dot in range(DOTS):
            hop = hops[first + dot]
            policy_logits[i, hop] = weights.policy_bias[hop] + weights.policy_scale[hop] * buffers.sums[dot]


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
        positions: uint32 [N, 4], not more than there is room for in the buffers.
        weights: ``WideWeights``.
        buffers: ``WideBuffers``.
        policy_logits, wdl_logits: float32 [N or more, 128] and [N or more, 3], filled.
    """
    _wide_layer(positions, weights, buffers)
    for hop in range(NUM_POLICY):
        buffers.hops[hop] = hop
    for i in range(positions.shape[0]):
        policy_of(i, NUM_POLICY, weights, buffers, policy_logits)
    _results(positions.shape[0], weights, buffers, wdl_logits)


@njit(nogil=True, cache=True)
def _judge_wide(state, network, n):
    weights, buffers = network
    hops_of_move, room = np.empty(MAX_HOPS, np.int64), buffers.places.size
    for first in range(0, n, room):
        end = min(first + room, n)
        _wide_layer(state.leaves[first:end], weights, buffers)
        policy = state.policy[first:end]
        for i in range(end - first):
            lane = state.waiting[first + i]
            moves = np.int64(state.nodes[state.paths[lane, state.depths[lane]]].num_children)
            wanted = list_hops(state.codes[lane], moves, buffers, hops_of_move)
            policy_of(i, wanted, weights, buffers, policy)
        _results(end - first, weights, buffers, state.wdl[first:end])
    return True


@njit(nogil=True, cache=True)
def search_wide(state, settings, tables, weights, buffers, steps):
    """``step_loop.search_steps`` with a wide network; of the policy it computes what legal moves need."""
    return search_steps(state, settings, tables, _judge_wide, (weights, buffers), steps)
