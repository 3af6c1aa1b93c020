"""A residual network's forward pass compiled by Numba, with convolutions by Winograd's minimal filtering, and the step
loop of a search with it.

A convolution of 3 by 3 takes nine multiplications a square and pair of channels. Computed for 4 by 4 squares at once,
by way of 36 points (F(4x4, 3x3) of Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks"), it takes
two and a quarter. A board is two such patches; what lies beyond its edges is zero.

Every matrix [rows, channels] is stored in tiles of 4 rows and 8 channels, those of the first four rows from left to
right, then those of the next. Rows are squares of boards (activations) or patches of boards (points), so that a vector
is always eight channels. Channels are filled up to pairs of tiles. All is float32, but points and filters may be int16.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.bitboard import BIT_OF_SQUARE, NUM_DIRECTIONS, NUM_SQUARES
from engine.encoding import REVERSIBLE_SCALE
from engine.search.step_loop import search_steps

from .lanes import WIDTH, bent, load, multiply_add, spread, store
from .tiles import BLOCK, ROWS, multiply_tiles

LARGEST_BATCH = 16
"""Positions of one pass: weights are read once for it, and what lies between two layers stays in the cache."""
POINTS = 36
PATCHES = 2
LINES = 8 * 6 * WIDTH
"""Numbers of a board for one vector of channels where the squares of each row have become six points."""
_STEP = 6 * WIDTH  # from one row of them to the next


class Weights(NamedTuple):
    """What a network has learnt, flat arrays of float32; matrices [inputs, outputs] are in tiles, column by column.

    Attributes:
        slope: of the activation left of zero.
        filters: of each convolution, from the stem on, and of each block of outputs the 36 matrices; float32, or int16
            with inputs in pairs.
        gains [convolutions]: what points are multiplied by before they are multiplied by filters.
        scales [convolutions * 36, channels]: what that is multiplied by then.
        biases: of the convolutions.
        policy, policy_bias, moves, moves_bias: the policy head's two matrices.
        wdl, wdl_bias, hidden, hidden_bias, logits, logits_bias: the win/draw/loss head's three.
    """

    slope: np.float32
    filters: np.ndarray
    gains: np.ndarray
    scales: np.ndarray
    biases: np.ndarray
    policy: np.ndarray
    policy_bias: np.ndarray
    moves: np.ndarray
    moves_bias: np.ndarray
    wdl: np.ndarray
    wdl_bias: np.ndarray
    hidden: np.ndarray
    hidden_bias: np.ndarray
    logits: np.ndarray
    logits_bias: np.ndarray


class Buffers(NamedTuple):
    """Flat arrays for the intermediate results of a batch of positions, and for the zeros and ones that they need.

    ``points_in`` has the type of ``Weights.filters``; all others are float32.
    """

    zeros: np.ndarray
    ones: np.ndarray
    planes: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    points_in: np.ndarray
    points_out: np.ndarray
    lines: np.ndarray
    features: np.ndarray
    hidden: np.ndarray
    logits: np.ndarray


@njit(inline="always")
def place(row, channel, channels):
    """Offset of eight channels of a row; ``channel`` and ``channels`` are multiples of eight."""
    return (row // ROWS * channels + channel) * ROWS + row % ROWS * WIDTH


@njit(inline="always")
def filled_rows(rows):
    """The next number of rows that makes whole tiles."""
    return (rows + ROWS - 1) // ROWS * ROWS


@njit
def _to_points(d0, d1, d2, d3, d4, d5):
    """Six points of six numbers in a row."""
    a, b = multiply_add(spread(np.float32(-4.0)), d2, d4), multiply_add(spread(np.float32(-4.0)), d1, d3)
    c, e = d4 - d2, spread(np.float32(2.0)) * (d3 - d1)
    four, five = spread(np.float32(4.0)), spread(np.float32(-5.0))
    first, last = multiply_add(five, d2, d4), multiply_add(five, d3, d5)
    return multiply_add(four, d0, first), a + b, a - b, c + e, c - e, multiply_add(four, d1, last)


@njit
def _from_points(points):
    """The four results of six points."""
    p0, p1, p2, p3, p4, p5 = points
    s, d, t, e = p1 + p2, p1 - p2, p3 + p4, p3 - p4
    two, four, eight = spread(np.float32(2.0)), spread(np.float32(4.0)), spread(np.float32(8.0))
    return p0 + s + t, multiply_add(two, e, d), multiply_add(four, t, s), multiply_add(eight, e, d) + p5


@njit
def _load_six(array, at, step):
    return (
        load(array, at),
        load(array, at + step),
        load(array, at + 2 * step),
        load(array, at + 3 * step),
        load(array, at + 4 * step),
        load(array, at + 5 * step),
    )


@njit
def _store_six(array, at, step, values):
    store(array, at, values[0])
    store(array, at + step, values[1])
    store(array, at + 2 * step, values[2])
    store(array, at + 3 * step, values[3])
    store(array, at + 4 * step, values[4])
    store(array, at + 5 * step, values[5])


@njit(inline="always")
def _points_of_boards(x, points, lines, n, channels, gain):
    """Activations of ``n`` boards, times ``gain``, to 36 matrices of points."""
    zero = spread(np.float32(0.0))
    matrix = filled_rows(PATCHES * n) * channels
    for board in range(n):
        for channel in range(0, channels, WIDTH):
            for row in range(8):
                at = place(board * NUM_SQUARES + row * 4, channel, channels)
                a, b, c, d = load(x, at), load(x, at + WIDTH), load(x, at + 2 * WIDTH), load(x, at + 3 * WIDTH)
                a, b, c, d = a * gain, b * gain, c * gain, d * gain
                _store_six(lines, row * _STEP, WIDTH, _to_points(zero, a, b, c, d, zero))
            for column in range(6):
                a, b, c, d, e, f = _load_six(lines, column * WIDTH, _STEP)
                g, h = load(lines, column * WIDTH + 6 * _STEP), load(lines, column * WIDTH + 7 * _STEP)
                to = column * matrix + place(PATCHES * board, channel, channels)
                _store_six(points, to, 6 * matrix, _to_points(zero, a, b, c, d, e))
                _store_six(points, to + WIDTH, 6 * matrix, _to_points(d, e, f, g, h, zero))


@njit(inline="always")
def _boards_of_points(points, bias, skip, add, y, lines, n, first, channels, slope):
    """Points of the channels from ``first`` on, ``BLOCK`` of them, to activations; ``skip`` is added where ``add``."""
    matrix = filled_rows(PATCHES * n) * BLOCK
    for board in range(n):
        for half in range(0, BLOCK, WIDTH):
            for column in range(6):
                for patch in range(PATCHES):
                    at = column * matrix + place(PATCHES * board + patch, half, BLOCK)
                    a, b, c, d = _from_points(_load_six(points, at, 6 * matrix))
                    to = patch * 4 * _STEP + column * WIDTH
                    store(lines, to, a)
                    store(lines, to + _STEP, b)
                    store(lines, to + 2 * _STEP, c)
                    store(lines, to + 3 * _STEP, d)
            shift = load(bias, half)
            for row in range(8):
                a, b, c, d = _from_points(_load_six(lines, row * _STEP, WIDTH))
                a, b, c, d = a + shift, b + shift, c + shift, d + shift
                at = place(board * NUM_SQUARES + row * 4, first + half, channels)
                if add:
                    a, b = a + load(skip, at), b + load(skip, at + WIDTH)
                    c, d = c + load(skip, at + 2 * WIDTH), d + load(skip, at + 3 * WIDTH)
                store(y, at, bent(a, slope))
                store(y, at + WIDTH, bent(b, slope))
                store(y, at + 2 * WIDTH, bent(c, slope))
                store(y, at + 3 * WIDTH, bent(d, slope))


@njit
def multiply(a, b, scale, bias, out, rows, depth, width, slope):
    """``out`` [rows, width] = ``a`` [rows, depth] @ ``b`` * ``scale`` + ``bias``, bent."""
    for column in range(0, width, BLOCK):
        for row in range(0, rows, ROWS):
            to = place(row, column, width)
            tiles = depth // WIDTH
            multiply_tiles(a, row * depth, b, column * depth, tiles, scale, column, bias, column, out, to, slope)


@njit(inline="always")
def _convolve(x, depth, weights, at, layer, skip, add, y, buffers, n):
    """``y`` = convolution number ``layer`` of ``x``, plus ``skip`` where ``add``, bent; ``at`` begin its filters."""
    channels, rows = buffers.zeros.size, filled_rows(PATCHES * n)
    points_in, points_out, zeros = buffers.points_in, buffers.points_out, buffers.zeros
    _points_of_boards(x, points_in, buffers.lines, n, depth, spread(weights.gains[layer]))
    slope, straight = spread(weights.slope), spread(np.float32(1.0))
    for first in range(0, channels, BLOCK):  # what lies between the two steps stays in the fastest cache
        for point in range(POINTS):
            b_at = at + (first * POINTS + point * BLOCK) * depth
            scale_at = (layer * POINTS + point) * channels + first
            for row in range(0, rows, ROWS):
                multiply_tiles(
                    points_in,
                    (point * rows + row) * depth,
                    weights.filters,
                    b_at,
                    depth // WIDTH,
                    weights.scales,
                    scale_at,
                    zeros,
                    0,
                    points_out,
                    (point * rows + row) * BLOCK,
                    straight,
                )
        bias = weights.biases[layer * channels + first :]
        _boards_of_points(points_out, bias, skip, add, y, buffers.lines, n, first, channels, slope)


@njit(inline="always")
def _write_planes(positions, planes):
    """``engine.encoding``'s planes, channels last, and two that stay zero."""
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        counter = np.float32(positions[i, 3] / REVERSIBLE_SCALE)
        for square in range(NUM_SQUARES):
            at = (i * NUM_SQUARES + square) * WIDTH
            bit = np.uint32(1) << np.uint32(BIT_OF_SQUARE[square])
            planes[at : at + 4] = np.float32(0.0)
            if (own | opp) & bit:
                planes[at + (0 if own & bit else 2) + (1 if kings & bit else 0)] = 1.0
            planes[at + 4] = counter
            planes[at + 5] = square >> 2 & 1


@njit(inline="always")
def _policy(x, weights, buffers, n, policy_logits):
    rows, channels, width = n * NUM_SQUARES, buffers.zeros.size, weights.policy_bias.size
    hidden, moves = buffers.y, buffers.z
    slope, straight = spread(weights.slope), spread(np.float32(1.0))
    ones = buffers.ones
    multiply(x, weights.policy, ones, weights.policy_bias, hidden, rows, channels, width, slope)
    multiply(hidden, weights.moves, ones, weights.moves_bias, moves, rows, width, BLOCK, straight)
    for i in range(n):
        for direction in range(NUM_DIRECTIONS):
            for square in range(NUM_SQUARES):
                move = moves[place(i * NUM_SQUARES + square, 0, BLOCK) + direction]
                policy_logits[i, direction * NUM_SQUARES + square] = move


@njit(inline="always")
def _write_features(x, squares, features, n, channels, width):
    """What the win/draw/loss head judges by: ``width`` numbers of each square and the mean of every channel."""
    depth, share = NUM_SQUARES * width + channels, spread(np.float32(1 / NUM_SQUARES))
    for i in range(n):
        for square in range(NUM_SQUARES):
            for channel in range(0, width, WIDTH):
                numbers = load(squares, place(i * NUM_SQUARES + square, channel, width))
                store(features, place(i, square * width + channel, depth), numbers)
        for channel in range(0, channels, WIDTH):
            total = spread(np.float32(0.0))
            for square in range(NUM_SQUARES):
                total = total + load(x, place(i * NUM_SQUARES + square, channel, channels))
            store(features, place(i, NUM_SQUARES * width + channel, depth), total * share)


@njit(inline="always")
def _win_draw_loss(x, weights, buffers, n, wdl_logits):
    channels, width, units = buffers.zeros.size, weights.wdl_bias.size, weights.hidden_bias.size
    slope, straight = spread(weights.slope), spread(np.float32(1.0))
    squares, features, hidden, logits = buffers.y, buffers.features, buffers.hidden, buffers.logits
    ones = buffers.ones
    multiply(x, weights.wdl, ones, weights.wdl_bias, squares, n * NUM_SQUARES, channels, width, slope)
    _write_features(x, squares, features, n, channels, width)
    depth = NUM_SQUARES * width + channels
    multiply(features, weights.hidden, ones, weights.hidden_bias, hidden, n, depth, units, slope)
    multiply(hidden, weights.logits, ones, weights.logits_bias, logits, n, units, BLOCK, straight)
    for i in range(n):
        for result in range(3):
            wdl_logits[i, result] = logits[place(i, 0, BLOCK) + result]


@njit(nogil=True, cache=True)
def forward(positions, weights, buffers, policy_logits, wdl_logits):
    """Policy and win/draw/loss logits of positions.

    Args:
        positions: uint32 [N, 4], not more than there is room for in the buffers.
        weights: ``Weights``.
        buffers: ``Buffers``.
        policy_logits, wdl_logits: float32 [N, 128] and [N, 3], filled.
    """
    n = positions.shape[0]
    _write_planes(positions, buffers.planes)
    channels = buffers.zeros.size
    source, to, depth, at = buffers.planes, buffers.x, WIDTH, 0
    for layer in range(weights.biases.size // channels):
        second = layer > 0 and layer % 2 == 0  # second convolution of its block
        _convolve(source, depth, weights, at, layer, to, second, to, buffers, n)
        at += POINTS * depth * channels
        source, to, depth = to, buffers.x if layer % 2 else buffers.y, channels
    _policy(buffers.x, weights, buffers, n, policy_logits)
    _win_draw_loss(buffers.x, weights, buffers, n, wdl_logits)


@njit(nogil=True, cache=True)
def forward_many(positions, network, policy_logits, wdl_logits):
    """``forward`` for any number of positions; ``network`` are its weights and buffers."""
    weights, buffers = network
    for first in range(0, positions.shape[0], LARGEST_BATCH):
        part = slice(first, min(first + LARGEST_BATCH, positions.shape[0]))
        forward(positions[part], weights, buffers, policy_logits[part], wdl_logits[part])


@njit(nogil=True, cache=True)
def _judge(state, network, n):
    forward_many(state.leaves[:n], network, state.policy, state.wdl)
    return True


@njit(nogil=True, cache=True)
def search_residual(state, settings, tables, weights, buffers, steps):
    """``step_loop.search_steps`` with a residual network."""
    return search_steps(state, settings, tables, _judge, (weights, buffers), steps)
