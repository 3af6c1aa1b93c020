"""Every backend gives the network's own answers, int8 within its bounds, whatever the batch, network and thread."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
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

from engine.encoding import hop_table
from learner.checkpoint import load_checkpoint
from learner.inference import BackendError, choose_backend, compare, make_evaluator, measuring, open_backend
from learner.inference import choice as choice_module
from learner.inference.backends import KERNELS, RUNTIMES, BackendName, backend_name
from learner.inference.calibration import calibrate
from learner.inference.calibration import random_positions as calibration_positions
from learner.inference.evaluator import CPU_BUCKETS
from learner.inference.fidelity import MAX_POLICY_KL, MAX_WDL_ERROR
from learner.inference.runtimes import OnnxRuntimeEvaluator, OpenVinoEvaluator
from learner.network import NETWORKS, NetworkError, ResidualConfig, make_network

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")

TINY = NETWORKS["tiny"]
CHAMPION = Path(__file__).parents[1] / "checkpoints" / "champion"
CONFIGS = {
    "tiny": TINY,
    "3x40": ResidualConfig(blocks=3, channels=40),
    "8x8": ResidualConfig(blocks=2, channels=24, board="8x8", activation="mish"),
    "even kernel": ResidualConfig(blocks=1, channels=20, kernel_size=4, activation="silu", wdl_hidden=10),
    "wide kernel": ResidualConfig(blocks=2, channels=16, kernel_size=5, activation="leaky_relu", policy_channels=7),
}
TOLERANCES = {"torch-float32": 1e-5, "torch": 0.05, "onnxruntime": 1e-5, "openvino": 1e-5, "openvino-bf16": 0.05}
BATCHED = (*KERNELS, *RUNTIMES)


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
    found = open_backend(network, backend).evaluate(positions)
    assert_close(found, plainly(network, positions), TOLERANCES[backend])


@pytest.mark.parametrize("backend", ["torch-float32", *BATCHED])
def test_an_evaluator_tells_its_backend(backend):
    assert open_backend(moderate(TINY), backend).backend == backend


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("backend", ["onnxruntime-int8", "openvino-int8"])
def test_int8_is_near_the_network(backend, config):
    """On random weights: a layer that is left out or scaled otherwise shows.

    Processors that add up products of 8 bits in 16 are less exact (0.036 on Zen 3, less than 0.03 on Zen 4).
    """
    network = moderate(CONFIGS[config])
    positions = random_positions(60, seed=1)
    found = open_backend(network, backend).evaluate(positions)
    for ours, theirs in zip(found, plainly(network, positions), strict=True):
        assert np.std(ours - theirs) < 0.1 * np.std(theirs)
        assert abs(np.mean(ours - theirs)) < 0.06 * np.std(theirs)


@pytest.mark.parametrize("backend", ["onnxruntime-int8", "openvino-int8"])
def test_int8_of_a_trained_network_keeps_well_within_the_bounds(backend, champion):
    positions = random_positions(1000, seed=2)
    exact = open_backend(champion, "torch-float32").evaluate(positions)
    evaluator = open_backend(champion, backend)
    fidelity = compare(positions, exact, evaluator.evaluate(positions))
    assert evaluator.precision == "int8"
    assert evaluator.fidelity.acceptable
    assert 0 < fidelity.policy_kl < MAX_POLICY_KL / 3
    assert 0 < fidelity.wdl_error < MAX_WDL_ERROR / 2
    assert fidelity.value_error < 0.015
    assert fidelity.top1_agreement > 0.95


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
@given(size=st.integers(0, 2 * CPU_BUCKETS[-1] + 5), backend=st.sampled_from(BATCHED))
def test_any_batch_size_gives_the_same_answers(size, backend):
    """Odd ones, and more than the largest bucket."""
    evaluator, positions, expected = _evaluated(backend)
    found = evaluator.evaluate(positions[:size])
    assert_close(found, (expected[0][:size], expected[1][:size]), 0.02 if "bf16" in backend else 1e-5)


_EVALUATED: dict = {}


def _evaluated(backend):
    """An evaluator with its answers to 300 positions, asked one by one."""
    if backend not in _EVALUATED:
        evaluator, positions = open_backend(moderate(TINY), backend), random_positions(300, seed=4)
        answers = [evaluator.evaluate(positions[i : i + 1]) for i in range(300)]
        expected = tuple(np.concatenate(column) for column in zip(*answers, strict=True))
        _EVALUATED[backend] = evaluator, positions, expected
    return _EVALUATED[backend]


@pytest.mark.parametrize("backend", BATCHED)
def test_answers_belong_to_the_caller(backend):
    evaluator, positions, expected = _evaluated(backend)
    first = evaluator.evaluate(positions[:8])
    evaluator.evaluate(positions[8:16])
    assert_close(first, (expected[0][:8], expected[1][:8]), 0.02)
    assert all(array.flags.c_contiguous and array.flags.writeable for array in first)
    strided = evaluator.evaluate(positions[:16:2])
    assert_close(strided, (expected[0][:16:2], expected[1][:16:2]), 0.02)


@pytest.mark.parametrize("backend", BATCHED)
def test_update_changes_the_answers(backend):
    first, second = (moderate(TINY, seed=seed) for seed in range(2))
    positions = random_positions(30, seed=5)
    evaluator, fresh = open_backend(first, backend), open_backend(second, backend)
    before = evaluator.evaluate(positions)
    evaluator.update(second.state_dict())
    assert_close(evaluator.evaluate(positions), fresh.evaluate(positions), 1e-6)
    with pytest.raises(NetworkError, match="another network"):
        evaluator.update(moderate(NETWORKS["2x32"]))
    assert_close(evaluator.evaluate(positions), fresh.evaluate(positions), 1e-6)
    evaluator.update(first)
    assert_close(evaluator.evaluate(positions), before, 1e-6)


@pytest.mark.parametrize("backend", BATCHED)
@pytest.mark.parametrize("positions", [np.zeros((2, 4), np.int64), np.zeros((2, 3), np.uint32), np.zeros(4, np.uint32)])
def test_refuses_other_arrays(backend, positions):
    with pytest.raises(ValueError, match=r"not uint32 \[N, 4\]"):
        _evaluated(backend)[0].evaluate(positions)


@pytest.mark.parametrize("backend", ["torch-float32", *BATCHED])
def test_two_threads_may_share_an_evaluator(backend):
    evaluator, positions = open_backend(moderate(TINY), backend), random_positions(64, seed=6)
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
        evaluator = OpenVinoEvaluator(network)
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


def test_calibration_takes_the_ranges_of_the_positions_given():
    network = moderate(NETWORKS["2x32"]).folded()
    few, many = random_positions(4, seed=8), random_positions(200, seed=8)
    narrow, wide = calibrate(network, few), calibrate(network, many)
    assert set(wide.ranges) == {"stem"} | {
        f"blocks.{i}.{layer}" for i in range(2) for layer in ("first", "second.conv", "second")
    }
    for name, (low, high) in narrow.ranges.items():
        assert wide.ranges[name][0] <= low <= high <= wide.ranges[name][1]
    assert wide.ranges["blocks.0.second.conv"][0] < 0 == wide.ranges["blocks.0.second"][0]
    assert any(narrow.ranges[name] != wide.ranges[name] for name in narrow.ranges)
    np.testing.assert_array_equal(calibration_positions(50, 3), calibration_positions(50, 3))
    assert len(np.unique(calibration_positions(50, 3), axis=0)) > 40


def broken(network):
    """The same network but for a channel that nothing looks at, so large that int8 has no steps left for the others."""
    with torch.no_grad():
        network.stem.norm.bias[0] = 1e4
        readers = [block.first.conv for block in network.blocks]
        for reader in [*readers, network.policy_head.unit.conv, network.wdl_head.unit.conv]:
            reader.weight[:, 0] = 0
        network.wdl_head.hidden.weight[:, -network.config.channels] = 0
    return network


def test_int8_gives_way_where_it_is_untrue(champion, caplog):
    network = broken(load_checkpoint(CHAMPION).network)
    bounded, asked = OnnxRuntimeEvaluator(champion, "int8", bounded=True), OnnxRuntimeEvaluator(network, "int8")
    assert bounded.precision == "int8"
    assert asked.precision == "int8", "asked for by name it is used"
    assert not asked.fidelity.acceptable
    bounded.update(network)
    assert (bounded.precision, bounded.backend) == ("float32", "onnxruntime")
    assert "float32 is used instead" in caplog.text
    positions = random_positions(20, seed=9)
    assert_close(bounded.evaluate(positions), plainly(network, positions), 1e-4)
    bounded.update(champion)
    assert bounded.precision == "int8"


@pytest.fixture
def fresh_choices(tmp_path, monkeypatch):
    """Nothing measured yet; returns the folder of the memory."""
    monkeypatch.setattr(choice_module, "_CHOICES", {})
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *names, **options: tmp_path / names[0])
    return tmp_path / "crownhead"


def test_the_fastest_is_chosen_and_remembered(fresh_choices, monkeypatch):
    network = moderate(TINY)
    chosen = choose_backend(network, batch=16)
    assert set(chosen.rates) >= {"torch", "numba-int16", "onnxruntime", "onnxruntime-int8", "openvino", "openvino-int8"}
    assert chosen.rates[chosen.name] == max(chosen.rates.values())
    assert not chosen.fallback.endswith("int8")
    assert all(rate > 0 for rate in chosen.rates.values())
    monkeypatch.setattr(measuring, "_rate", None)  # nothing is measured again, in this process or in the next
    assert choose_backend(network, batch=16) is chosen
    choice_module._CHOICES.clear()
    assert choose_backend(network, batch=16) == chosen
    with pytest.raises(TypeError):
        choose_backend(network, batch=3)


@pytest.mark.parametrize(
    ("batch", "sizes"), [(1, {1}), (3, {2, 3}), (8, {4, 5, 6, 7, 8}), (10_000, {32, 40, 48, 56, 64})]
)
def test_speeds_are_measured_on_calls_of_changing_size(batch, sizes, monkeypatch):
    class Recorder:
        def __init__(self):
            self.asked = []

        def evaluate(self, positions):
            self.asked.append(len(positions))

    recorders = {"torch": Recorder(), "openvino": Recorder()}
    monkeypatch.setattr(measuring, "_candidates", lambda *arguments: recorders)
    assert all(rate > 0 for rate in measuring.measure_rates(moderate(TINY), batch).values())
    for recorder in recorders.values():
        assert set(recorder.asked) == sizes
        assert all(before != after for before, after in pairwise(recorder.asked)) or len(sizes) < 5


@pytest.mark.parametrize(
    "content", [b"", b"{}}", b'{"schema_version": 2, "rates": {}}', b'{"rates": {"x": {"torch": "a"}}}']
)
def test_a_damaged_memory_is_replaced(fresh_choices, content, monkeypatch):
    monkeypatch.setattr(measuring, "measure_rates", lambda *arguments: {"torch": 2.0, "onnxruntime": 3.0})
    fresh_choices.mkdir()
    (fresh_choices / "backends.json").write_bytes(content)
    network = moderate(TINY)
    assert choose_backend(network).name == "onnxruntime"
    assert len(measuring._read(fresh_choices / "backends.json").rates) == 1


@pytest.mark.parametrize("package", ["crownhead", "numba", "openvino"])
def test_another_version_is_measured_anew(fresh_choices, package, monkeypatch):
    network, versions, measured = moderate(TINY), {}, []
    monkeypatch.setattr(measuring, "installed_version", lambda package: versions.get(package, "1"))
    monkeypatch.setattr(measuring, "measure_rates", lambda *arguments: measured.append(1) or {"torch": 2.0})
    for version in ("1", "2", "2", "1"):
        versions[package] = version
        measuring.measured_rates(network, 8)
    assert len(measured) == 2


def test_a_memory_that_cannot_be_written_is_done_without(fresh_choices, monkeypatch):
    monkeypatch.setattr(measuring, "measure_rates", lambda *arguments: {"torch": 2.0})
    fresh_choices.write_text("a file is in the way")
    assert choose_backend(moderate(TINY)).name == "torch"


def test_auto_takes_no_untrue_int8(fresh_choices, champion, monkeypatch):
    rates = {"torch": 1.0, "onnxruntime-int8": 9.0, "openvino": 3.0}
    monkeypatch.setattr(measuring, "measure_rates", lambda *arguments: rates)
    evaluator = make_evaluator(champion)
    assert isinstance(evaluator, OnnxRuntimeEvaluator)
    assert evaluator.precision == "int8"
    fallback = make_evaluator(broken(load_checkpoint(CHAMPION).network))
    assert isinstance(fallback, OpenVinoEvaluator)
    assert fallback.precision == "float32"


def test_without_the_extra_there_are_torch_and_numba(fresh_choices, monkeypatch):
    network, other = moderate(TINY), moderate(CONFIGS["8x8"])
    for package in ("onnx", "onnxruntime", "openvino"):
        monkeypatch.setitem(sys.modules, package, None)
    for backend in RUNTIMES:
        with pytest.raises(BackendError, match=r"pip install 'crownhead\[inference\]'"):
            open_backend(network, backend)
    assert choose_backend(network).rates.keys() == {"torch", "numba-int16"}
    assert make_evaluator(network).backend == choose_backend(network).name
    assert choose_backend(other).rates.keys() == {"torch"}
    assert type(make_evaluator(other)).__name__ == "TorchEvaluator"


@pytest.mark.parametrize(("package", "left"), [("onnxruntime", "openvino"), ("openvino", "onnxruntime")])
def test_one_runtime_is_enough(package, left, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    network = moderate(TINY)
    with pytest.raises(BackendError, match=package):
        open_backend(network, f"{package}-int8")
    assert {name.split("-")[0] for name in measuring.measure_rates(network, 4)} == {"torch", "numba", left}


def test_unknown_names_are_refused():
    with pytest.raises(BackendError, match="'tensorrt' is no backend: choose one of auto, student, torch"):
        make_evaluator(make_network(TINY), "tensorrt")
    assert backend_name("openvino-int8") == "openvino-int8"
    assert {"auto", "student", "torch", "torch-float32", *BATCHED} == set(BackendName.__args__)


@pytest.mark.parametrize("backend", ["numba-int16", "onnxruntime-int8", "openvino-int8"])
def test_new_weights_reach_an_actor_within_a_second(backend):
    """Processor time of this process, which other work on the machine does not lengthen much; the best of three."""
    network = make_network(NETWORKS["5x64"]).eval()
    evaluator, positions, times = open_backend(network, backend), random_positions(64, seed=10), []
    for _ in range(3):
        start = time.process_time()
        evaluator.update(network)
        evaluator.evaluate(positions)
        times.append(time.process_time() - start)
    assert min(times) < 1
