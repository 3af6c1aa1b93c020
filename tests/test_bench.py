"""``crownhead bench`` and the rates that a training reports: what is counted, not how fast it is here."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from learner.inference import BackendError
from learner.inference.calibration import random_positions
from learner.inference.torch_evaluator import TorchEvaluator
from learner.network import NETWORKS, make_network
from selfplay.measures import bench
from selfplay.measures.bench import bare_network_rate, bench_command, network_evaluations_per_second
from selfplay.requests import BenchRequest
from selfplay.run.config import make_config


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_SECONDS", 0.02)
    monkeypatch.setattr(bench, "_PERFT_DEPTH", 4)
    monkeypatch.setattr(bench, "_SEARCH_CASES", ((1, 4), (2, 4)))
    monkeypatch.setattr(bench, "_BATCHES", (1, 4))
    monkeypatch.setattr(bench, "_BACKEND_BATCHES", (4,))
    monkeypatch.setattr(bench, "_SELFPLAY_GAMES", 4)


@pytest.mark.slow
def test_every_figure_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    figures = bench_command(BenchRequest("tiny", backend="torch"), quiet=False)
    assert "learner_samples_per_second: " in capsys.readouterr().out
    rates = {key: value for key, value in figures.items() if "per_second" in key or "ratio" in key}
    assert set(rates) == {
        "perft_leaves_per_second",
        "search_simulations_per_second",
        "network_evaluations_per_second",
        "backend_evaluations_per_second",
        "selfplay_evaluations_per_second",
        "selfplay_positions_per_second",
        "selfplay_to_network_ratio",
        "learner_samples_per_second",
    }
    assert set(figures["search_simulations_per_second"]) == {"1x4", "2x4"}
    assert set(figures["network_evaluations_per_second"]) == {"1", "4"}
    assert set(figures["backend_evaluations_per_second"]) == {"4"}
    assert set(figures["backend_evaluations_per_second"]["4"]) == {"torch", "torch-float32", "numba", "numba-int16"}
    assert figures["backend"] == TorchEvaluator(make_network(NETWORKS["tiny"])).backend  # bf16 or not
    # Every searched position has cost an evaluation or more.
    assert figures["selfplay_evaluations_per_second"] >= figures["selfplay_positions_per_second"] > 0
    assert torch.get_num_threads() == 1


def test_what_the_kernels_cannot_compute_torch_does() -> None:
    network = make_network(NETWORKS["tiny"].model_copy(update={"board": "8x8"})).eval()
    assert set(bench.backend_rates(network, 2)) == {"torch", "torch-float32"}
    wide = make_network(NETWORKS["wide32"]).eval()
    assert set(bench.backend_rates(wide, 2)) == {"torch", "torch-float32", "numba", "numba-int16"}


def test_positions_are_counted_not_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    evaluator = TorchEvaluator(make_network(NETWORKS["tiny"]).eval(), "cpu")

    def in_a_second(positions: np.ndarray) -> None:
        now[0] += 1

    monkeypatch.setattr(bench.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(evaluator, "evaluate", in_a_second)
    assert network_evaluations_per_second(evaluator, random_positions(7)) == 7


@pytest.mark.parametrize(
    ("device", "pool", "times"), [("cpu", "local", 2), ("cpu", "ray", 3), ("cuda", "local", 2), ("cuda", "ray", 2)]
)
def test_three_actors_share_a_gpu_or_the_cores_there_are(
    device: str, pool: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU the batch is that of two actors, because three actors are divided between two lanes."""
    asked = []
    monkeypatch.setattr(bench, "num_cores", lambda: 2)
    monkeypatch.setattr(bench, "choose_device", lambda name: device)
    evaluator = SimpleNamespace(device=torch.device(device))
    monkeypatch.setattr(bench, "make_evaluator", lambda *given: asked.append(given[1:]) or evaluator)
    monkeypatch.setattr(bench, "network_evaluations_per_second", lambda evaluator, batch, _: 100.0 * len(batch))
    config = make_config("smoke", ["selfplay.games_in_lockstep=8", "selfplay.backend=torch"], pool=pool)
    assert bare_network_rate(make_network(NETWORKS["tiny"]), config, 3) == 800 * times
    assert asked == [("torch", device)]


def test_a_backend_that_cannot_be_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "perft_leaves_per_second", lambda: pytest.fail("it began"))
    with pytest.raises(BackendError, match="student"):
        bench_command(BenchRequest("tiny", backend="student"), True)
