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
from learner.inference import BackendError, make_evaluator, numba_evaluator, winograd
from learner.inference.backends import KERNELS
from learner.inference.fidelity import MAX_POLICY_KL, MAX_WDL_ERROR, compare
from learner.inference.lanes import LARGEST_SHORT, WIDTH, bent, load, multiply_add, spread, store
from learner.inference.numba_evaluator import (
    LARGEST_BATCH,
    NumbaEvaluator,
    blocked,
    blocks_of,
    largest_points,
    paired,
    points_of,
    steps_of,
)
from learner.inference.tiles import BLOCK, LARGEST_SUM, ROWS
from learner.network import NETWORKS, ResidualConfig

CHAMPION = Path(__file__).parents[1] / "checkpoints" / "champion"
CONFIGS = {
    **{name: NETWORKS[name] for name in ("tiny", "2x32", "4x48", "5x64")},
    "odd sizes": ResidualConfig(blocks=2, channels=20, policy_channels=7, wdl_channels=5, wdl_hidden=10),
    "smallest": ResidualConfig(blocks=1, channels=4, policy_channels=1, wdl_channels=1, wdl_hidden=1),
    "leaky": ResidualConfig(blocks=3, channels=40, activation="leaky_relu", wdl_channels=17, wdl_hidden=70),
    "wide heads": ResidualConfig(blocks=1, channels=8, policy_channels=50, wdl_channels=40),
}


@pytest.mark.parametrize("config", CONFIGS)
def test_answers_are_the_networks(config):
    network = trained_like(CONFIGS[config], seed=1)
    positions = random_positions(2 * LARGEST_BATCH + 3, seed=1)
    assert_close(NumbaEvaluator(network).evaluate(positions), plainly(network, positions), 1e-5)


@pytest.mark.parametrize("config", CONFIGS)
def test_int16_is_near_the_network(config):
    network = trained_like(CONFIGS[config], seed=1)
    positions = random_positions(2 * LARGEST_BATCH + 3, seed=1)
    evaluator = NumbaEvaluator(network, "int16")
    found, expected = evaluator.evaluate(positions), plainly(network, positions)
    assert (evaluator.precision, evaluator.backend) == ("int16", "numba-int16")
    for ours, theirs in zip(found, expected, strict=True):
        assert np.std(ours - theirs) <= 0.02 * np.std(theirs)
        assert np.abs(ours - theirs).max() <= 0.03 * np.abs(theirs).max()


@settings(max_examples=40)
@given(sizes=st.lists(st.integers(0, 2 * LARGEST_BATCH + 1), min_size=2, max_size=6), shorts=st.booleans())
def test_a_batch_does_not_depend_on_those_before(sizes, shorts):
    """Padding rows of tiles hold values of an earlier batch, which must not change the answers."""
    network, positions, *evaluators = _leaky()
    evaluator = evaluators[shorts]
    expected = evaluator.evaluate(positions)
    assert_close(expected, plainly(network, positions), 0.03 if shorts else 1e-5)
    for size in sizes:
        found = evaluator.evaluate(positions[len(positions) - size :])
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs[len(positions) - size :])


_LEAKY: list = []


def _leaky():
    if not _LEAKY:
        network = trained_like(CONFIGS["leaky"], seed=2)
        _LEAKY.extend([network, random_positions(2 * LARGEST_BATCH + 1, seed=2)])
        _LEAKY.extend([NumbaEvaluator(network), NumbaEvaluator(network, "int16")])
    return _LEAKY


def test_the_champion_is_as_true_as_float32():
    """With 16-bit integers the errors are far below the limits for int8 (measured: 0.00001 nats and 0.0008)."""
    network, positions = load_checkpoint(CHAMPION).network, random_positions(500, seed=3)
    exact = make_evaluator(network, "torch-float32").evaluate(positions)
    assert_close(make_evaluator(network, "numba").evaluate(positions), exact, 1e-5)
    fidelity = compare(positions, exact, make_evaluator(network, "numba-int16").evaluate(positions))
    assert fidelity.policy_kl < MAX_POLICY_KL / 50
    assert fidelity.wdl_error < MAX_WDL_ERROR / 5
    assert fidelity.top1_agreement > 0.98


def test_int16_gives_way_where_it_is_untrue(caplog):
    """An unused channel has values so large that all others are rounded to zero."""
    network = trained_like(NETWORKS["tiny"])
    with torch.no_grad():
        network.stem.norm.bias[0] = 1e6
        for reader in (network.blocks[0].first.conv, network.policy_head.unit.conv, network.wdl_head.unit.conv):
            reader.weight[:, 0] = 0
        network.wdl_head.hidden.weight[:, -network.config.channels] = 0
    assert not NumbaEvaluator(network, "int16").fidelity.acceptable
    bounded = NumbaEvaluator(network, "int16", bounded=True)
    assert bounded.backend == "numba"
    assert "float32 is used instead" in caplog.text
    bounded.update(trained_like(NETWORKS["tiny"]))
    assert bounded.backend == "numba-int16"


def test_points_beyond_the_integers_are_cut_off(monkeypatch):
    """Values are clipped and do not wrap around, so the answers stay close."""
    monkeypatch.setattr(numba_evaluator, "_HEADROOM", 0.5)
    network, positions = trained_like(NETWORKS["2x32"]), random_positions(200, seed=4)
    evaluator = NumbaEvaluator(network, "int16", calibration=positions)
    wanted = evaluator._weights.gains * largest_points(network.folded(), positions)[0]
    np.testing.assert_allclose(wanted, 2 * LARGEST_SHORT, rtol=1e-5)
    for ours, theirs in zip(evaluator.evaluate(positions), plainly(network, positions), strict=True):
        assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.8


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"board": "8x8"}, "3x3 over 8x8 with relu"),
        ({"kernel_size": 5}, "5x5 over 8x4 with relu"),
        ({"activation": "mish"}, "3x3 over 8x4 with mish"),
    ],
)
@pytest.mark.parametrize("backend", KERNELS)
def test_other_networks_are_refused(backend, changes, named):
    with pytest.raises(BackendError, match=f"not {named}"):
        make_evaluator(trained_like(NETWORKS["tiny"].model_copy(update=changes)), backend)


@njit
def _shortened(a, out):
    store(out, 0, load(a, 0))


def test_numbers_are_rounded_to_shorts():
    numbers = np.array([0.4, -0.6, 1.5, 2.5, 32766.6, -32767.4, 1e9, -1e9], np.float32)
    out = np.zeros(9, np.int16)
    _shortened(numbers, out)
    assert out.tolist() == [0, -1, 2, 2, 32767, -32767, 32767, -32767, 0]


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
    """A matrix [rows, columns] in the kernels' layout: whole tiles, padded with zero rows."""
    rows, columns = matrix.shape
    whole = np.zeros((-(-rows // ROWS) * ROWS, columns), np.float32)
    whole[:rows] = matrix
    return whole.reshape(-1, ROWS, columns // WIDTH, WIDTH).transpose(0, 2, 1, 3).ravel()


def untiled(flat, rows, columns):
    whole = flat.reshape(-1, columns // WIDTH, ROWS, WIDTH).transpose(0, 2, 1, 3)
    return whole.reshape(-1, columns)[:rows]


@njit
def _product(a, b, scale, bias, out, rows, depth, width, slope):
    winograd.multiply(a, b, scale, bias, out, rows, depth, width, spread(slope))


SIZES = {
    "rows": st.integers(1, 21),
    "depth": st.integers(1, 6).map(lambda tiles: tiles * WIDTH),
    "width": st.integers(1, 4).map(lambda blocks: blocks * BLOCK),
    "seed": st.integers(0, 1000),
}


@settings(max_examples=30)
@given(**SIZES, slope=st.sampled_from([0.0, 0.1, 1.0]))
def test_product_of_matrices(rows, depth, width, slope, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(rows, depth)), rng.normal(size=(depth, width))
    scale, bias = rng.normal(size=(2, width)).astype(np.float32)
    in_tiles = tiled(a)
    out = np.zeros(len(in_tiles) // depth * width, np.float32)
    _product(in_tiles, blocked(b), scale, bias, out, rows, depth, width, np.float32(slope))
    expected = a @ b * scale + bias
    np.testing.assert_allclose(untiled(out, rows, width), np.maximum(expected, slope * expected), atol=1e-4)
    for row in range(rows):
        place = winograd.place(row, width - WIDTH, width)
        np.testing.assert_array_equal(out[place : place + WIDTH], untiled(out, rows, width)[row, -WIDTH:])


@settings(max_examples=30)
@given(**SIZES)
def test_product_of_shorts(rows, depth, width, seed):
    """The product is exact up to the largest sums that ``steps_of`` allows."""
    rng = np.random.default_rng(seed)
    a = rng.choice([-LARGEST_SHORT, LARGEST_SHORT, -1, 0, 1, 1000], size=(rows, depth))
    wanted = rng.normal(size=(1, depth, width)) * rng.choice([0.001, 1, 1000], size=(1, 1, width))
    steps = steps_of(wanted)
    b = np.rint(wanted[0] / steps)
    assert np.abs(b).max() <= LARGEST_SHORT
    assert (np.abs(b).sum(0) * LARGEST_SHORT).max() <= LARGEST_SUM
    assert np.abs(b).max(0).min() > LARGEST_SUM / LARGEST_SHORT / depth / 2, "the integers are made use of"
    in_tiles = tiled(a).astype(np.int16)
    out, ones, zeros = np.zeros(len(in_tiles) // depth * width, np.float32), *(np.full(width, x, "f") for x in (1, 0))
    _product(in_tiles, paired(b), ones, zeros, out, rows, depth, width, np.float32(1))
    np.testing.assert_allclose(untiled(out, rows, width), a @ b, rtol=1e-6)


@njit
def _convolution(x, depth, weights, skip, add, y, buffers, n):
    winograd._convolve(x, depth, weights, 0, 0, skip, add, y, buffers, n)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("boards", "inputs", "outputs"), [(1, 8, 16), (2, 16, 16), (5, 32, 48), (16, 16, 32)])
def test_convolution(boards, inputs, outputs, add):
    torch.manual_seed(boards)
    conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1)
    x, skip = torch.randn(boards, inputs, 8, 4), torch.randn(boards, outputs, 8, 4)
    with torch.no_grad():
        expected = torch.relu(conv(x) + (skip if add else 0))
    evaluator = NumbaEvaluator(trained_like(ResidualConfig(blocks=1, channels=max(inputs, outputs))))
    buffers = evaluator._buffers._replace(zeros=np.zeros(outputs, np.float32))
    filters = np.concatenate([blocked(block) for block in blocks_of(points_of(conv, inputs, outputs))])
    weights = evaluator._weights._replace(filters=filters, biases=conv.bias.detach().numpy())
    squares, before, after = (
        tiled(array.flatten(2).transpose(1, 2).flatten(0, 1).numpy()) for array in (x, skip, expected)
    )
    y = np.zeros_like(after)
    _convolution(squares, inputs, weights, before, add, y, buffers, boards)
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
