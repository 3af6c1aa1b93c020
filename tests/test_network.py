"""The network's shapes and geometry, compared with the encoding."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.encoding import encode_planes
from learner.inference.calibration import random_positions
from learner.network import NETWORKS, ResidualConfig, make_network
from learner.network_base import NetworkError, planes_from_positions, planes_on
from learner.residual import DARK_SQUARES, Block, ConvUnit, PolicyHead
from learner.residual import SIZES as RESIDUAL
from learner.wide import SIZES as WIDE

TINY = NETWORKS["tiny"]
WORD = st.integers(0, 2**32 - 1)


def config(**changes):
    return ResidualConfig(**{**TINY.model_dump(), **changes})


def trained_like(network_config, seed=0):
    """A network in evaluation mode with random weights and batch-norm statistics."""
    torch.manual_seed(seed)
    network = make_network(network_config).eval()
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            positive = name.endswith(("running_var", "norm.weight"))
            tensor.copy_(torch.rand_like(tensor) + 0.5 if positive else 0.2 * torch.randn_like(tensor))
    return network


BOARDS = [(name, board) for name in RESIDUAL for board in ("8x4", "8x8")] + [(name, None) for name in WIDE]


@pytest.mark.parametrize(("name", "board"), BOARDS)
def test_shapes_of_every_preset(name, board):
    network = make_network(NETWORKS[name].model_copy(update={"board": board} if board else {})).eval()
    policy_logits, wdl_logits = network(torch.from_numpy(encode_planes(random_positions(3))))
    assert policy_logits.shape == (3, 128)
    assert wdl_logits.shape == (3, 3)


def test_presets_are_what_their_names_say():
    assert all(name == f"{preset.blocks}x{preset.channels}" for name, preset in RESIDUAL.items() if name != "tiny")
    assert all(name == f"wide{preset.units}" for name, preset in WIDE.items())
    for family in (RESIDUAL, WIDE):
        sizes = [sum(weight.numel() for weight in make_network(preset).parameters()) for preset in family.values()]
        assert sizes == sorted(sizes)


def test_both_boards_have_the_same_weights():
    compact, full = (make_network(config(board=board)).state_dict() for board in ("8x4", "8x8"))
    assert {name: value.shape for name, value in compact.items()} == {name: value.shape for name, value in full.items()}


@pytest.mark.parametrize("changes", [{"colour": 1}, {"blocks": 0}, {"channels": 10_000}, {"board": "10x10"}])
def test_config_refuses(changes):
    with pytest.raises(ValidationError):
        config(**changes)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(WORD, WORD, WORD, st.integers(0, 200)), min_size=1, max_size=5))
def test_planes_equal_the_engines(rows):
    positions = np.array(rows, np.uint32)
    positions[:, 1] &= ~positions[:, 0]
    expected = torch.from_numpy(encode_planes(positions))
    as_int32 = torch.from_numpy(positions.view(np.int32))
    assert torch.equal(planes_from_positions(as_int32), expected)
    assert torch.equal(planes_from_positions(torch.from_numpy(positions.astype(np.int64))), expected)
    assert torch.equal(planes_on(torch.device("cpu"), as_int32), expected)


def test_dark_squares_are_where_the_board_has_them():
    for square, place in enumerate(DARK_SQUARES):
        row, column = divmod(place, 8)
        assert row == square // 4
        assert (row + column) % 2 == 1  # the corner at row 0, column 0 is light
    assert sorted(DARK_SQUARES) == DARK_SQUARES


def test_full_board_puts_every_square_in_its_place():
    network = make_network(config(board="8x8"))
    for square, place in enumerate(DARK_SQUARES):
        planes = torch.zeros(1, 6, 32)
        planes[0, 2, square] = 1.0
        board = network._spread(planes.view(1, 6, 8, 4)).flatten()
        assert board.nonzero().flatten().tolist() == [2 * 64 + place]


def test_boards_agree_where_no_neighbour_counts():
    compact, full = (trained_like(config(board=board, kernel_size=1)) for board in ("8x4", "8x8"))
    planes = torch.rand(5, 6, 8, 4)
    for ours, theirs in zip(compact(planes), full(planes), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_boards_differ_where_neighbours_count():
    compact, full = (trained_like(config(board=board)) for board in ("8x4", "8x8"))
    planes = torch.rand(5, 6, 8, 4)
    assert not torch.allclose(compact(planes)[0], full(planes)[0])


def test_policy_logit_of_direction_and_square():
    head = PolicyHead(TINY).eval()
    x = torch.rand(1, TINY.channels, 8, 4)
    before = head(x)
    for square in range(32):
        changed = x.clone()
        changed[0, :, square // 4, square % 4] += 1.0
        different = (head(changed) != before).flatten().nonzero().flatten().tolist()
        assert different
        assert {index % 32 for index in different} == {square}
    torch.nn.init.zeros_(head.logits.weight)
    head.logits.bias.data = torch.arange(4.0)
    assert torch.equal(head(x), torch.arange(4.0).repeat_interleave(32).view(1, 128))


def test_fresh_block_only_applies_the_activation():
    x = torch.randn(2, 8, 8, 4)
    torch.testing.assert_close(Block(8, 3, "relu")(x), x.relu())


@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4, 5])
def test_unit_keeps_the_board_and_looks_at_the_window(kernel_size):
    unit = ConvUnit(1, 1, kernel_size, "relu").eval()
    torch.nn.init.ones_(unit.conv.weight)
    x = torch.zeros(1, 1, 8, 8)
    x[0, 0, 4, 4] = 1.0
    y = unit(x)
    assert y.shape == x.shape
    seen = y[0, 0].nonzero().tolist()
    window = range(4 - kernel_size // 2, 4 - kernel_size // 2 + kernel_size)
    assert seen == [[row, column] for row in window for column in window]


@pytest.mark.parametrize("changes", [{}, {"board": "8x8"}, {"activation": "mish", "kernel_size": 4}])
def test_folding_changes_nothing(changes):
    network = trained_like(config(**changes))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    planes = torch.rand(7, 6, 8, 4)
    folded = network.folded()
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in folded.modules())
    for ours, theirs in zip(folded(planes), network(planes), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize("activation", ["relu", "mish"])
@pytest.mark.parametrize("kernel_size", [3, 4])
def test_fused_kernels_are_given_what_belongs_to_them(monkeypatch, activation, kernel_size):
    """Arguments of cuDNN's kernels, which need a GPU; ``test_cuda`` tests their results."""
    network = trained_like(config(blocks=2, activation=activation, kernel_size=kernel_size)).folded()
    planes = torch.from_numpy(encode_planes(random_positions(5)))
    expected, used = network(planes), []

    def plus_relu(x, weight, skip, alpha, bias, stride, padding, dilation, groups):
        used.append(skip)
        return torch.relu(torch.conv2d(x, weight, bias, stride, padding, dilation, groups) + alpha * skip)

    def only_relu(x, weight, *how):
        return plus_relu(x, weight, torch.zeros(()), 1.0, *how)

    monkeypatch.setattr("learner.residual._has_fused", lambda x: True)
    monkeypatch.setattr("torch.cudnn_convolution_relu", only_relu)
    monkeypatch.setattr("torch.cudnn_convolution_add_relu", plus_relu)
    for found, answer in zip(network(planes), expected, strict=True):
        torch.testing.assert_close(found, answer)
    assert sum(skip.ndim == 4 for skip in used) == (2 if activation == "relu" else 0)


def test_set_weights_copies():
    source, target = trained_like(TINY, seed=1), trained_like(TINY, seed=2)
    target.set_weights(source.state_dict())
    planes = torch.rand(2, 6, 8, 4)
    assert torch.equal(target(planes)[0], source(planes)[0])


def _without(weights):
    del weights["stem.conv.weight"]


def _with_another(weights):
    weights["stem.conv.extra"] = torch.zeros(1)


def _of_another_shape(weights):
    weights["stem.conv.weight"] = torch.zeros(1)


def _not_finite(weights):
    weights["wdl_head.logits.bias"] = torch.tensor([0.0, float("nan"), 0.0])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_without, "lack 'stem.conv.weight'"),
        (_with_another, "unknown 'stem.conv.extra'"),
        (_of_another_shape, r"is \(1,\), not \(16, 6, 3, 3\)"),
        (_not_finite, "not finite"),
    ],
)
def test_set_weights_refuses_whole(spoil, message):
    network = trained_like(TINY)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    weights = dict(trained_like(TINY, seed=3).state_dict())
    spoil(weights)
    with pytest.raises(NetworkError, match=message):
        network.set_weights(weights)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
