"""The torch evaluator gives the network's own answers, whatever the batch, the padding and the precision."""

import numpy as np
import pytest
import torch
from test_loss import random_positions
from test_network import trained_like

from engine.encoding import encode_planes
from learner.inference import make_evaluator
from learner.inference.torch_evaluator import GraphedForward, TorchEvaluator
from learner.network import NETWORKS, make_network
from learner.network_base import Network, NetworkError, has_bf16

TINY = NETWORKS["tiny"]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def plainly(network, positions):
    """The network's answers, one position at a time, batch norm not folded."""
    with torch.no_grad():
        rows = [network(torch.from_numpy(encode_planes(positions[i : i + 1]))) for i in range(len(positions))]
    return tuple(torch.cat(column).numpy() for column in zip(*rows, strict=True))


def assert_close(found, expected, tolerance):
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=tolerance * np.abs(theirs).max(initial=1.0), rtol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["tiny", "2x32", "4x48"])
@pytest.mark.parametrize("board", ["8x4", "8x8"])
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("bf16", 0.05)])
def test_answers_are_the_networks(device, name, board, precision, tolerance):
    network = trained_like(NETWORKS[name].model_copy(update={"board": board}))
    positions = random_positions(20, seed=1)
    evaluator = TorchEvaluator(network, device=device, precision=precision)
    assert_close(evaluator.evaluate(positions), plainly(network, positions), tolerance)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 8, 9, 16, 17, 40])
@pytest.mark.parametrize("buckets", [(4, 16), (1, 2, 64), (7,)])
def test_answers_do_not_depend_on_padding_and_pieces(size, buckets):
    network = trained_like(TINY)
    positions = random_positions(40, seed=2)
    evaluator = TorchEvaluator(network, precision="float32", batch_buckets=buckets)
    evaluator.evaluate(positions)  # leaves other positions where the padding will be
    policy_logits, wdl_logits = evaluator.evaluate(positions[:size])
    assert policy_logits.shape == (size, 128)
    assert wdl_logits.shape == (size, 3)
    expected = plainly(network, positions)
    assert_close((policy_logits, wdl_logits), (expected[0][:size], expected[1][:size]), 1e-5)


def test_every_size_up_to_two_buckets():
    network = trained_like(TINY)
    positions = random_positions(260, seed=3)
    evaluator = TorchEvaluator(network, precision="float32")
    expected = evaluator.evaluate(positions)
    for size in range(1, 261, 7):
        found = evaluator.evaluate(positions[:size])
        assert_close(found, (expected[0][:size], expected[1][:size]), 1e-5)


def test_answers_belong_to_the_caller():
    evaluator = TorchEvaluator(trained_like(TINY), precision="float32")
    positions = random_positions(8, seed=4)
    first = evaluator.evaluate(positions[:4])
    kept = [array.copy() for array in first]
    evaluator.evaluate(positions[4:])
    for now, before in zip(first, kept, strict=True):
        np.testing.assert_array_equal(now, before)
        assert now.flags.c_contiguous
        assert now.flags.writeable


def test_positions_in_any_memory_order():
    evaluator = TorchEvaluator(trained_like(TINY), precision="float32")
    positions = random_positions(8, seed=5)
    expected = evaluator.evaluate(positions)
    assert_close(evaluator.evaluate(np.asfortranarray(positions)), expected, 1e-5)
    assert_close(evaluator.evaluate(positions[::2]), (expected[0][::2], expected[1][::2]), 1e-5)


def test_update_takes_a_network_or_its_weights():
    first, second, third = (trained_like(TINY, seed=seed) for seed in range(3))
    positions = random_positions(8, seed=6)
    evaluator = TorchEvaluator(first, precision="float32")
    evaluator.update(second)
    assert_close(evaluator.evaluate(positions), plainly(second, positions), 1e-5)
    evaluator.update(third.state_dict())
    assert_close(evaluator.evaluate(positions), plainly(third, positions), 1e-5)


def test_training_the_network_does_not_change_the_evaluator():
    network = trained_like(TINY)
    positions = random_positions(8, seed=7)
    evaluator = TorchEvaluator(network, precision="float32")
    before = evaluator.evaluate(positions)
    network.stem.conv.weight.data.zero_()
    assert_close(evaluator.evaluate(positions), before, 0)


def test_weights_of_another_network_change_nothing():
    evaluator = TorchEvaluator(trained_like(TINY), precision="float32")
    positions = random_positions(8, seed=8)
    before = evaluator.evaluate(positions)
    with pytest.raises(NetworkError, match="another network"):
        evaluator.update(trained_like(NETWORKS["2x32"]))
    assert_close(evaluator.evaluate(positions), before, 0)


@pytest.mark.parametrize("positions", [np.zeros((2, 4), np.int64), np.zeros((2, 3), np.uint32), np.zeros(4, np.uint32)])
def test_refuses_other_arrays(positions):
    with pytest.raises(ValueError, match=r"not uint32 \[N, 4\]"):
        TorchEvaluator(trained_like(TINY)).evaluate(positions)


def test_refuses_buckets_that_are_not_positive():
    with pytest.raises(ValueError, match="not all positive"):
        TorchEvaluator(trained_like(TINY), batch_buckets=(0, 4))


def test_precision_is_chosen_by_the_processor(monkeypatch):
    cpu = torch.device("cpu")
    assert make_network(TINY).dtype(cpu, "auto") == (torch.bfloat16 if has_bf16(cpu) else torch.float32)
    wide = make_network(NETWORKS["wide32"])
    assert wide.dtype(cpu, "auto") == torch.float32
    assert wide.dtype(cpu, "bf16") == torch.bfloat16
    for supported, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda supported=supported: supported)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
        assert TorchEvaluator(trained_like(TINY)).dtype == expected
        assert TorchEvaluator(trained_like(TINY), precision="float32").dtype == torch.float32


def test_recorded_passes_are_run_again_with_new_positions_and_weights():
    """Like a CUDA graph, a recorder on the CPU runs a recorded pass again, which uses the same memory."""
    first, second = (trained_like(TINY, seed=seed) for seed in range(2))
    positions = random_positions(9, seed=10)
    recorded = []

    def capture(run):
        recorded.append(run)
        run()
        return run

    evaluator = TorchEvaluator(first, precision="float32", batch_buckets=(4, 8))
    evaluator._graphs = GraphedForward(evaluator._outputs, evaluator.device, capture)
    for network in (first, second, first):
        evaluator.update(network)
        for size in (3, 8, 2, 9, 4):
            expected = plainly(network, positions[:size])
            assert_close(evaluator.evaluate(positions[:size]), expected, 1e-5)
    assert len(recorded) == 2, "each bucket once, not again after an update"


class Counting(Network):
    """A family that this package does not know: one number for each piece, and the same for all moves."""

    def __init__(self):
        super().__init__()
        self.config = None
        self.weight = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, planes):
        own, opp = planes[:, :2].sum((1, 2, 3)), planes[:, 2:4].sum((1, 2, 3))
        lead = self.weight * (own - opp)
        return planes.new_zeros(len(planes), 128), torch.stack([lead, torch.zeros_like(lead), -lead], 1)


def test_networks_of_other_families_are_evaluated():
    network, positions = Counting(), random_positions(20, seed=3)
    evaluator = make_evaluator(network)
    with torch.no_grad():
        network.weight.fill_(100.0)  # the evaluator has a copy
    lead = np.bitwise_count(positions[:, 0]).astype(int) - np.bitwise_count(positions[:, 1])
    policy_logits, wdl_logits = evaluator.evaluate(positions)
    assert not policy_logits.any()
    np.testing.assert_array_equal(wdl_logits, np.stack([2 * lead, 0 * lead, -2 * lead], 1))
    evaluator.update(network)
    np.testing.assert_array_equal(evaluator.evaluate(positions)[1][:, 0], 100 * lead)
