"""The kernels of the numba backend against plain numpy and torch, and its answers against the network's."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from test_inference_torch import assert_close, plainly
from test_loss import random_positions
from test_network import trained_like

from engine.encoding import encode_planes
from learner.checkpoint import load_checkpoint
from learner.inference import BackendError, open_backend, winograd
from learner.inference.lanes import BLOCK, ROWS, WIDTH, bent, load, multiply_add, spread, store
from learner.inference.numba_evaluator import LARGEST_BATCH, NumbaEvaluator, blocked, points_of
from learner.network import NETWORKS, NetworkConfig

CHAMPION = Path(__file__).parents[1] / "checkpoints" / "champion"
CONFIGS = {
    **{name: NETWORKS[name] for name in ("tiny", "2x32", "4x48", "5x64")},
    "odd sizes": NetworkConfig(blocks=2, channels=20, policy_channels=7, wdl_channels=5, wdl_hidden=10),
    "smallest": NetworkConfig(blocks=1, channels=4, policy_channels=1, wdl_channels=1, wdl_hidden=1),
    "leaky": NetworkConfig(blocks=3, channels=40, activation="leaky_relu", wdl_channels=17, wdl_hidden=70),
    "wide heads": NetworkConfig(blocks=1, channels=8, policy_channels=50, wdl_channels=40),
}


@pytest.mark.parametrize("config", CONFIGS)
def test_answers_are_the_networks(config):
    network = trained_like(CONFIGS[config], seed=1)
    positions = random_positions(2 * LARGEST_BATCH + 3, seed=1)
    assert_close(NumbaEvaluator(network).evaluate(positions), plainly(network, positions), 1e-5)


@settings(max_examples=40)
@given(sizes=st.lists(st.integers(0, 2 * LARGEST_BATCH + 1), min_size=2, max_size=6))
def test_a_batch_does_not_depend_on_those_before(sizes):
    """Rows that fill up tiles hold what an earlier batch left there."""
    network, positions, evaluator = _leaky()
    expected = evaluator.evaluate(positions)
    assert_close(expected, plainly(network, positions), 1e-5)
    for size in sizes:
        found = evaluator.evaluate(positions[len(positions) - size :])
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs[len(positions) - size :])


_LEAKY: list = []


def _leaky():
    if not _LEAKY:
        network = trained_like(CONFIGS["leaky"], seed=2)
        _LEAKY.extend([network, random_positions(2 * LARGEST_BATCH + 1, seed=2), NumbaEvaluator(network)])
    return _LEAKY


def test_the_champion_is_as_true_as_float32():
    network, positions = load_checkpoint(CHAMPION).network, random_positions(500, seed=3)
    exact = open_backend(network, "torch-float32").evaluate(positions)
    assert_close(open_backend(network, "numba").evaluate(positions), exact, 1e-5)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"board": "8x8"}, "3x3 over 8x8 with relu"),
        ({"kernel_size": 5}, "5x5 over 8x4 with relu"),
        ({"activation": "mish"}, "3x3 over 8x4 with mish"),
    ],
)
def test_other_networks_are_refused(changes, named):
    with pytest.raises(BackendError, match=f"not {named}"):
        open_backend(trained_like(NETWORKS["tiny"].model_copy(update=changes)), "numba")


@njit
def _on_lanes(a, b, c, slope, out):
    x, y, z = load(a, 3), load(b, 0), load(c, 1)
    store(out, 0, x + y)
    store(out, 8, x - y)
    store(out, 16, x * y)
    store(out, 24, multiply_add(x, y, z))
    store(out, 32, bent(x, spread(slope)))


def test_lanes_compute_number_by_number():
    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(size=11).astype(np.float32) for _ in range(3))
    out = np.zeros(42, np.float32)
    _on_lanes(a, b, c, np.float32(0.25), out)
    x, y, z = a[3:], b[:8], c[1:9]
    expected = [x + y, x - y, x * y, x * y + z, np.where(x > 0, x, x / 4)]
    np.testing.assert_allclose(out[:40].reshape(5, 8), expected, rtol=1e-6, atol=1e-7)
    assert not out[40:].any()


def tiled(matrix):
    """[rows, columns] as the kernels keep it: whole tiles, zeros below."""
    rows, columns = matrix.shape
    whole = np.zeros((-(-rows // ROWS) * ROWS, columns), np.float32)
    whole[:rows] = matrix
    return whole.reshape(-1, ROWS, columns // WIDTH, WIDTH).transpose(0, 2, 1, 3).ravel()


def untiled(flat, rows, columns):
    whole = flat.reshape(-1, columns // WIDTH, ROWS, WIDTH).transpose(0, 2, 1, 3)
    return whole.reshape(-1, columns)[:rows]


@njit
def _product(a, b, bias, out, rows, depth, width, slope):
    winograd._multiply(a, 0, b, 0, bias, out, 0, rows, depth, width, spread(slope))


@settings(max_examples=30)
@given(
    rows=st.integers(1, 21),
    depth=st.integers(1, 6).map(lambda tiles: tiles * WIDTH),
    width=st.integers(1, 4).map(lambda blocks: blocks * BLOCK),
    slope=st.sampled_from([0.0, 0.1, 1.0]),
    seed=st.integers(0, 1000),
)
def test_product_of_matrices(rows, depth, width, slope, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(rows, depth)), rng.normal(size=(depth, width))
    bias = rng.normal(size=width)
    in_tiles = tiled(a)
    out = np.zeros(len(in_tiles) // depth * width, np.float32)
    _product(in_tiles, blocked(b), bias.astype(np.float32), out, rows, depth, width, np.float32(slope))
    expected = a @ b + bias
    np.testing.assert_allclose(untiled(out, rows, width), np.maximum(expected, slope * expected), atol=1e-4)
    for row in range(rows):
        place = winograd.place(row, width - WIDTH, width)
        np.testing.assert_array_equal(out[place : place + WIDTH], untiled(out, rows, width)[row, -WIDTH:])


@njit
def _convolution(x, depth, filters, biases, skip, add, y, buffers, n):
    winograd._convolve(x, depth, filters, 0, biases, 0, skip, add, y, buffers, n, spread(np.float32(0.0)))


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("boards", "inputs", "outputs"), [(1, 8, 16), (2, 16, 16), (5, 32, 48), (16, 16, 32)])
def test_convolution(boards, inputs, outputs, add):
    torch.manual_seed(boards)
    conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1)
    x, skip = torch.randn(boards, inputs, 8, 4), torch.randn(boards, outputs, 8, 4)
    with torch.no_grad():
        expected = torch.relu(conv(x) + (skip if add else 0))
    buffers = NumbaEvaluator(trained_like(NetworkConfig(blocks=1, channels=max(inputs, outputs))))._buffers
    buffers = buffers._replace(zeros=np.zeros(outputs, np.float32))
    squares, before, after = (
        tiled(array.flatten(2).transpose(1, 2).flatten(0, 1).numpy()) for array in (x, skip, expected)
    )
    y, bias = np.zeros_like(after), conv.bias.detach().numpy()
    _convolution(squares, inputs, points_of(conv, inputs, outputs), bias, before, add, y, buffers, boards)
    np.testing.assert_allclose(y, after, atol=2e-5)


@njit
def _planes(positions, planes):
    winograd._write_planes(positions, planes)


def test_planes_are_those_of_the_encoding():
    positions = random_positions(30, seed=5)
    planes = np.zeros(30 * 32 * WIDTH, np.float32)
    _planes(positions, planes)
    _planes(positions[::-1].copy(), planes)  # what was there is overwritten
    expected = encode_planes(positions[::-1].copy()).reshape(30, 6, 32).transpose(0, 2, 1)
    np.testing.assert_array_equal(planes.reshape(30, 32, WIDTH)[:, :, :6], expected)
    assert not planes.reshape(30, 32, WIDTH)[:, :, 6:].any()
