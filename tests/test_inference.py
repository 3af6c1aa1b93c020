"""Every backend gives the network's own answers, whatever the batch, network and thread; and which one ``auto`` is."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from test_inference_torch import assert_close, plainly
from test_loss import random_positions
from test_network import trained_like
from torch import Tensor

from engine.board import Board
from engine.encoding import hop_table
from engine.search import LockstepSearch, SearchConfig
from learner.checkpoint import load_checkpoint
from learner.inference import BackendError, make_evaluator
from learner.inference.backends import KERNELS, BackendName
from learner.inference.evaluator import CPU_BUCKETS
from learner.inference.fidelity import compare
from learner.inference.numba_evaluator import NumbaEvaluator
from learner.inference.torch_evaluator import TorchEvaluator
from learner.network import NETWORKS, ResidualConfig, ResidualNetwork, make_network
from learner.network_base import NetworkError, has_bf16

TINY = NETWORKS["tiny"]
CHAMPION = Path(__file__).parents[1] / "checkpoints" / "champion"
CONFIGS = {
    "tiny": TINY,
    "3x40": ResidualConfig(blocks=3, channels=40),
    "8x8": ResidualConfig(blocks=2, channels=24, board="8x8", activation="mish"),
    "even kernel": ResidualConfig(blocks=1, channels=20, kernel_size=4, activation="silu", wdl_hidden=10),
    "wide kernel": ResidualConfig(blocks=2, channels=16, kernel_size=5, activation="leaky_relu", policy_channels=7),
}
TOLERANCES = {"torch-float32": 1e-5, "torch": 0.05}
EVERY = ("torch-float32", "torch", *KERNELS)


@pytest.fixture(scope="module")
def champion():
    return load_checkpoint(CHAMPION).network


def moderate(config, seed=0):
    """A network in which every layer matters, with logits of ordinary size."""
    network = trained_like(config, seed)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.endswith("conv.weight"):
                weight *= 0.7
    return network


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("backend", TOLERANCES)
def test_answers_are_the_networks(backend, config):
    network = moderate(CONFIGS[config])
    positions = random_positions(20, seed=1)
    found = make_evaluator(network, backend).evaluate(positions)
    assert_close(found, plainly(network, positions), TOLERANCES[backend])


@pytest.mark.parametrize("backend", EVERY)
def test_an_evaluator_tells_its_backend(backend):
    without_bf16 = backend == "torch" and not has_bf16(torch.device("cpu"))
    expected = "torch-float32" if without_bf16 else backend
    assert make_evaluator(moderate(TINY), backend).backend == expected


def test_compare_sees_what_differs():
    positions = random_positions(200, seed=3)
    rng = np.random.default_rng(0)
    policy, wdl = rng.normal(size=(200, 128)).astype(np.float32), rng.normal(size=(200, 3)).astype(np.float32)
    same = compare(positions, (policy, wdl), (policy, wdl + 5))
    assert (same.policy_kl, same.top1_agreement, same.acceptable) == (0, 1, True)
    assert same.wdl_error == pytest.approx(0, abs=1e-7)
    other = compare(positions, (policy, wdl), (-policy, wdl))
    assert other.policy_kl > 0.5
    assert other.top1_agreement < 0.5
    assert not other.acceptable
    win, loss = (np.tile(np.array(row, np.float32), (200, 1)) for row in ([20, 0, 0], [0, 0, 20]))
    wrong = compare(positions, (policy, win), (policy, loss))
    assert wrong.value_error == pytest.approx(2, abs=1e-4)
    assert wrong.wdl_error == pytest.approx(2 / 3, abs=1e-4)
    assert not compare(positions, (policy, wdl), (policy * np.nan, wdl)).acceptable
    with pytest.raises(ValueError, match="choice of moves"):
        compare(positions[:0], (policy[:0], wdl[:0]), (policy[:0], wdl[:0]))


def test_compare_against_a_plain_reference():
    """Position by position; those with a forced move count for win, draw and loss alone."""
    positions = random_positions(60, seed=12)
    rng = np.random.default_rng(1)
    answers = [
        (rng.normal(size=(60, 128)).astype(np.float32), rng.normal(size=(60, 3)).astype(np.float32)) for _ in range(2)
    ]
    table, counts = hop_table(positions)
    divergences, agreements = [], []
    for i in np.flatnonzero(counts > 1):
        p, q = (
            softmax([sum(policy[i, hop] for hop in hops if hop < 128) for hops in table[i, : counts[i]]])
            for policy, _ in answers
        )
        divergences.append(float(np.sum(p * np.log(p / q))))
        agreements.append(np.argmax(p) == np.argmax(q))
    assert 0 < len(divergences) < 60
    found = compare(positions, *answers)
    assert found.policy_kl == pytest.approx(np.mean(divergences), rel=1e-5)
    assert found.top1_agreement == pytest.approx(np.mean(agreements))
    wdl = [softmax(logits, axis=1) for _, logits in answers]
    assert found.wdl_error == pytest.approx(np.abs(wdl[0] - wdl[1]).mean(), rel=1e-5)
    values = [p[:, 0] - p[:, 2] for p in wdl]
    assert found.value_error == pytest.approx(np.sqrt(np.mean((values[0] - values[1]) ** 2)), rel=1e-5)


@settings(max_examples=25)
@given(size=st.integers(0, 2 * CPU_BUCKETS[-1] + 5), backend=st.sampled_from(EVERY))
def test_any_batch_size_gives_the_same_answers(size, backend):
    """Odd ones, and more than the largest bucket."""
    evaluator, positions, expected = _evaluated(backend)
    found = evaluator.evaluate(positions[:size])
    assert_close(found, (expected[0][:size], expected[1][:size]), 0.02 if backend == "torch" else 1e-5)


_EVALUATED: dict = {}


def _evaluated(backend):
    """An evaluator with its answers to 300 positions, asked one by one."""
    if backend not in _EVALUATED:
        evaluator, positions = make_evaluator(moderate(TINY), backend), random_positions(300, seed=4)
        answers = [evaluator.evaluate(positions[i : i + 1]) for i in range(300)]
        expected = tuple(np.concatenate(column) for column in zip(*answers, strict=True))
        _EVALUATED[backend] = evaluator, positions, expected
    return _EVALUATED[backend]


@pytest.mark.parametrize("backend", EVERY)
def test_answers_belong_to_the_caller(backend):
    evaluator, positions, expected = _evaluated(backend)
    first = evaluator.evaluate(positions[:8])
    evaluator.evaluate(positions[8:16])
    assert_close(first, (expected[0][:8], expected[1][:8]), 0.02)
    assert all(array.flags.c_contiguous and array.flags.writeable for array in first)
    strided = evaluator.evaluate(positions[:16:2])
    assert_close(strided, (expected[0][:16:2], expected[1][:16:2]), 0.02)


@pytest.mark.parametrize("backend", EVERY)
def test_update_changes_the_answers(backend):
    first, second = (moderate(TINY, seed=seed) for seed in range(2))
    positions = random_positions(30, seed=5)
    evaluator, fresh = make_evaluator(first, backend), make_evaluator(second, backend)
    before = evaluator.evaluate(positions)
    evaluator.update(second.state_dict())
    assert_close(evaluator.evaluate(positions), fresh.evaluate(positions), 1e-6)
    with pytest.raises(NetworkError, match="another network"):
        evaluator.update(moderate(NETWORKS["2x32"]))
    assert_close(evaluator.evaluate(positions), fresh.evaluate(positions), 1e-6)
    evaluator.update(first)
    assert_close(evaluator.evaluate(positions), before, 1e-6)


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize("positions", [np.zeros((2, 4), np.int64), np.zeros((2, 3), np.uint32), np.zeros(4, np.uint32)])
def test_refuses_other_arrays(backend, positions):
    with pytest.raises(ValueError, match=r"not uint32 \[N, 4\]"):
        _evaluated(backend)[0].evaluate(positions)


@pytest.mark.parametrize("backend", EVERY)
def test_two_threads_may_share_an_evaluator(backend):
    evaluator, positions = make_evaluator(moderate(TINY), backend), random_positions(64, seed=6)
    expected = [evaluator.evaluate(positions[i : i + 13]) for i in range(4)]

    def ask(i):
        return [evaluator.evaluate(positions[i : i + 13]) for _ in range(20)]

    with ThreadPoolExecutor(4) as executor:
        for answers, own in zip(executor.map(ask, range(4)), expected, strict=True):
            for found in answers:
                assert_close(found, own, 1e-6)


def test_evaluators_of_two_threads_update_independently():
    networks = [moderate(TINY, seed=seed) for seed in range(2)]
    positions = random_positions(16, seed=7)
    failures = []

    def work(network):
        evaluator = NumbaEvaluator(network)
        for _ in range(5):
            evaluator.update(network)
            try:
                assert_close(evaluator.evaluate(positions), plainly(network, positions), 1e-5)
            except AssertionError as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=(network,)) for network in networks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def broken(network, size=1e4):
    """Adds an unused channel with values so large that integer steps are too coarse for all others."""
    with torch.no_grad():
        network.stem.norm.bias[0] = size
        readers = [block.first.conv for block in network.blocks]
        for reader in [*readers, network.policy_head.unit.conv, network.wdl_head.unit.conv]:
            reader.weight[:, 0] = 0
        network.wdl_head.hidden.weight[:, -network.config.channels] = 0
    return network


@pytest.mark.parametrize("config", CONFIGS)
def test_auto_on_the_cpu_is_the_kernels_where_they_can(config):
    network, positions = moderate(CONFIGS[config]), random_positions(20, seed=9)
    evaluator = make_evaluator(network)
    if config in ("tiny", "3x40"):
        assert (type(evaluator), evaluator.backend) == (NumbaEvaluator, "numba-int16")
    else:
        assert type(evaluator) is TorchEvaluator
    assert_close(evaluator.evaluate(positions), plainly(network, positions), 0.05)


def test_auto_elsewhere_is_torch():
    assert type(make_evaluator(moderate(TINY), "auto", "meta")) is TorchEvaluator


def test_auto_takes_no_untrue_integers(champion, caplog):
    network = broken(load_checkpoint(CHAMPION).network, 1e6)
    evaluator, asked = make_evaluator(network), make_evaluator(network, "numba-int16")
    assert asked.backend == "numba-int16", "asked for by name it is used"
    assert not asked.fidelity.acceptable
    assert evaluator.backend == "numba"
    assert "float32 is used instead" in caplog.text
    positions = random_positions(20, seed=9)
    assert_close(evaluator.evaluate(positions), plainly(network, positions), 1e-4)
    evaluator.update(champion)
    assert evaluator.backend == "numba-int16"


def test_no_other_package_is_needed(monkeypatch):
    for package in ("onnx", "onnxruntime", "openvino"):
        monkeypatch.setitem(sys.modules, package, None)
    for name in EVERY:
        assert make_evaluator(moderate(TINY), name).evaluate(random_positions(2, seed=1))[1].shape == (2, 3)


def test_unknown_names_are_refused():
    with pytest.raises(BackendError, match="'tensorrt' is no backend: choose one of auto, student, torch"):
        make_evaluator(make_network(TINY), "tensorrt")
    assert {"auto", "student", "torch", *EVERY} == set(BackendName.__args__)


@pytest.mark.parametrize("backend", ["torch", "numba-int16"])
def test_new_weights_reach_an_actor_within_a_second(backend):
    """Processor time of this process, which other work on the machine does not lengthen much; the best of three."""
    network = make_network(NETWORKS["5x64"]).eval()
    evaluator, positions, times = make_evaluator(network, backend), random_positions(64, seed=10), []
    for _ in range(3):
        start = time.process_time()
        evaluator.update(network)
        evaluator.evaluate(positions)
        times.append(time.process_time() - start)
    assert min(times) < 1


def test_what_a_subclass_computes_is_not_left_to_kernels() -> None:
    """Kernels know a network only by its configuration, so a subclass with another computation must not use them."""

    class Reversed(ResidualNetwork):
        def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
            policy, wdl = super().forward(planes)
            return policy.flip(1), wdl

    network = Reversed(NETWORKS["2x32"]).eval()
    positions = random_positions(5, seed=1)
    policy, _ = make_evaluator(network, "torch-float32").evaluate(positions)
    np.testing.assert_allclose(make_evaluator(network).evaluate(positions)[0], policy, atol=0.05)
    with pytest.raises(BackendError, match="knows no Reversed"):
        make_evaluator(network, "numba")


@pytest.mark.parametrize("backend", ["torch-float32", "numba"])
def test_answers_that_are_no_numbers_end_a_search(backend):
    network = moderate(NETWORKS["tiny"])
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1e12)
    evaluator = make_evaluator(network, backend)
    assert np.isnan(evaluator.evaluate(random_positions(1, seed=0))[1]).any()
    search = LockstepSearch(SearchConfig(num_simulations=30), 1)
    search.set_board(0, Board())
    search.start(0)
    with pytest.raises(ValueError, match="logits that are not finite numbers"):
        search.run(evaluator)


@pytest.mark.parametrize("backend", EVERY)
def test_only_what_is_asked_is_counted(backend):
    evaluator = make_evaluator(moderate(NETWORKS["tiny"]), backend)
    assert evaluator.asked == 0
    evaluator.evaluate(random_positions(3, seed=0))
    assert evaluator.asked == 3
