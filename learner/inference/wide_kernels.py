"""The wide network's forward pass compiled by Numba, and the step loop of a search with it.

The wide layer of a position's phase adds up the weights of the pieces that are on the board: two thirds of its inputs
are never on, and none has a value but one. Of the policy a search computes what belongs to legal moves: some eight
logits of 128.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.bitboard import NUM_SQUARES, lowest_bit, popcount
from engine.encoding import MAX_HOPS, NUM_POLICY, REVERSIBLE_SCALE, hop_indices
from engine.search.step_loop import search_steps

from ..wide import NUM_PHASES
from .lanes import WIDTH, bent, load, multiply_add, spread, store
from .tiles import BLOCK, ROWS, multiply_tiles
from .winograd import filled_rows, place

STRIP = 4 * WIDTH
"""Units of the wide layer that are computed together."""
LOGITS_PER_PASS = 4
"""Logits of the policy that are computed together."""
_KINDS = 4  # of pieces


class WideWeights(NamedTuple):
    """Flat arrays of float32, phase after phase but for the policy, and the table of phases.

    Attributes:
        phases: ``learner.wide.PHASES``.
        pieces: [4 * 32, units], own men, own kings, the opponent's men and kings by the bits of their squares.
        counter, bias: [units], of the reversible plies, and of the wide layer.
        policy: [128, units].
        hidden, wdl: the other matrices, in tiles as in ``winograd``.
        policy_bias, hidden_bias, wdl_bias: of these layers.
    """

    phases: np.ndarray
    pieces: np.ndarray
    counter: np.ndarray
    bias: np.ndarray
    policy: np.ndarray
    policy_bias: np.ndarray
    hidden: np.ndarray
    hidden_bias: np.ndarray
    wdl: np.ndarray
    wdl_bias: np.ndarray


class WideBuffers(NamedTuple):
    """Room for what lies between the layers of a batch; ``ones`` are ``BLOCK`` ones.

    Attributes:
        places: int64 [positions], their rows in ``units``, ``hidden`` and ``wdl``: each phase has whole tiles.
        ends: int64 [phases], where the rows of each end.
        rows: int64 [32], where the weights of one position's pieces begin.
        hops: int64 [128 + LOGITS_PER_PASS], logits of the policy that are wanted of one position.
        is_wanted: bool [128], whether a logit is among them.
        sums: of the products for some logits.
    """

    ones: np.ndarray
    places: np.ndarray
    ends: np.ndarray
    rows: np.ndarray
    hops: np.ndarray
    is_wanted: np.ndarray
    sums: np.ndarray
    units: np.ndarray
    hidden: np.ndarray
    wdl: np.ndarray


@njit(inline="always")
def _phase_of(position, weights):
    own, opp, kings = position[0], position[1], position[2]
    return np.int64(weights.phases[popcount(own | opp), np.int64(kings != 0)])


@njit(inline="always")
def _place_positions(positions, weights, buffers):
    """Gives each position a row among those of its phase."""
    places, ends = buffers.places, buffers.ends
    ends[:] = 0
    for i in range(positions.shape[0]):
        ends[_phase_of(positions[i], weights)] += 1
    first = 0
    for phase in range(NUM_PHASES):
        first, ends[phase] = first + filled_rows(ends[phase]), first
    for i in range(positions.shape[0]):
        phase = _phase_of(positions[i], weights)
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
def _list_rows(own, opp, kings, phase, units, rows):
    """Lists where the weights of a position's pieces begin; returns their number."""
    first = phase * _KINDS * NUM_SQUARES
    count = _list_pieces(np.uint32(own & ~kings), first, units, rows, 0)
    count = _list_pieces(np.uint32(own & kings), first + NUM_SQUARES, units, rows, count)
    count = _list_pieces(np.uint32(opp & ~kings), first + 2 * NUM_SQUARES, units, rows, count)
    return _list_pieces(np.uint32(opp & kings), first + 3 * NUM_SQUARES, units, rows, count)


@njit(inline="always")
def _begun(weights, at, counter):
    """Eight sums of a wide layer without pieces."""
    return multiply_add(counter, load(weights.counter, at), load(weights.bias, at))


@njit(inline="always")
def _wide_layer(positions, weights, buffers):
    _place_positions(positions, weights, buffers)
    units, rows = weights.bias.size // NUM_PHASES, buffers.rows
    zero = spread(np.float32(0.0))
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        phase = _phase_of(positions[i], weights)
        count = _list_rows(own, opp, kings, phase, units, rows)
        counter = spread(np.float32(positions[i, 3] / REVERSIBLE_SCALE))
        for unit in range(0, units, STRIP):
            a = _begun(weights, phase * units + unit, counter)
            b = _begun(weights, phase * units + unit + WIDTH, counter)
            c = _begun(weights, phase * units + unit + 2 * WIDTH, counter)
            d = _begun(weights, phase * units + unit + 3 * WIDTH, counter)
            for piece in range(count):
                at = rows[piece] + unit
                a, b = a + load(weights.pieces, at), b + load(weights.pieces, at + WIDTH)
                c, d = c + load(weights.pieces, at + 2 * WIDTH), d + load(weights.pieces, at + 3 * WIDTH)
            at = place(buffers.places[i], unit, units)
            store(buffers.units, at, bent(a, zero))
            store(buffers.units, at + ROWS * WIDTH, bent(b, zero))
            store(buffers.units, at + 2 * ROWS * WIDTH, bent(c, zero))
            store(buffers.units, at + 3 * ROWS * WIDTH, bent(d, zero))


@njit(inline="always")
def _results(n, weights, buffers, wdl_logits):
    """Win/draw/loss logits of the positions in the wide layer."""
    units, hidden, ones = weights.bias.size // NUM_PHASES, weights.hidden_bias.size // NUM_PHASES, buffers.ones
    bend, straight = spread(np.float32(0.0)), spread(np.float32(1.0))
    first = 0
    for phase in range(NUM_PHASES):
        for row in range(first, buffers.ends[phase], ROWS):
            for at in range(phase * hidden, (phase + 1) * hidden, BLOCK):
                out = place(row, at - phase * hidden, hidden)
                multiply_tiles(
                    buffers.units, row * units, weights.hidden, at * units, units // WIDTH,
                    ones, 0, weights.hidden_bias, at, buffers.hidden, out, bend,
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
def _policy(i, count, weights, buffers, policy_logits):
    """Writes ``count`` policy logits of a position in the wide layer, those that ``buffers.hops`` lists."""
    units, hops, sums, row = weights.bias.size // NUM_PHASES, buffers.hops, buffers.sums, buffers.places[i]
    hops[count : count + LOGITS_PER_PASS] = hops[0]
    for first in range(0, count, LOGITS_PER_PASS):
        a, b, c, d = hops[first] * units, hops[first + 1] * units, hops[first + 2] * units, hops[first + 3] * units
        sum_a = sum_b = sum_c = sum_d = spread(np.float32(0.0))
        for unit in range(0, units, WIDTH):
            x = load(buffers.units, place(row, unit, units))
            sum_a = multiply_add(x, load(weights.policy, a + unit), sum_a)
            sum_b = multiply_add(x, load(weights.policy, b + unit), sum_b)
            sum_c = multiply_add(x, load(weights.policy, c + unit), sum_c)
            sum_d = multiply_add(x, load(weights.policy, d + unit), sum_d)
        store(sums, 0, sum_a)
        store(sums, WIDTH, sum_b)
        store(sums, 2 * WIDTH, sum_c)
        store(sums, 3 * WIDTH, sum_d)
        for hop in range(LOGITS_PER_PASS):
            logit = weights.policy_bias[hops[first + hop]]
            for lane in range(hop * WIDTH, (hop + 1) * WIDTH):
                logit += sums[lane]
            policy_logits[i, hops[first + hop]] = logit


@njit(inline="always")
def _list_hops(codes, count, buffers, hops_of_move):
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
        _policy(i, NUM_POLICY, weights, buffers, policy_logits)
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
            wanted = _list_hops(state.codes[lane], moves, buffers, hops_of_move)
            _policy(i, wanted, weights, buffers, policy)
        _results(end - first, weights, buffers, state.wdl[first:end])
    return True


@njit(nogil=True, cache=True)
def search_wide(state, settings, tables, weights, buffers, steps):
    """``step_loop.search_steps`` with a wide network; of the policy it computes what legal moves need."""
    return search_steps(state, settings, tables, _judge_wide, (weights, buffers), steps)
