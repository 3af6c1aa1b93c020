"""``crownhead bench``: the speed of every part on this machine, in one process with one thread."""

import contextlib
import statistics
import time
from collections.abc import Callable
from typing import Any, NotRequired, TypedDict, cast

import numpy as np

from engine.board import Board
from engine.console import Console, progress_console
from engine.encoding import hop_table
from engine.perft import count
from engine.search import LockstepSearch, SearchConfig, UniformEvaluator
from learner.inference import BackendError, NetworkEvaluator, make_evaluator
from learner.inference.backends import KERNELS
from learner.inference.calibration import random_positions
from learner.network import NETWORKS, Network, make_network
from learner.trainer import Trainer, TrainerConfig

from ..actors.actor import Actor
from ..actors.shared_evaluator import LANES, shares_evaluator
from ..games.records import TREE, Samples, found_samples
from ..games.replay import to_training_batch
from ..machines.threads import choose_device, describe_machine, num_cores, use_single_thread
from ..requests import BenchRequest
from ..run.config import ConfigError, RunConfig, SelfPlayConfig, make_config

_USUAL_SIZE = "4x48"
_PERFT_DEPTH = 10
_SEARCH_CASES = ((1, 64), (1, 800), (256, 64), (256, 800))  # games in lockstep, simulations
_BATCHES = (1, 16, 64, 256, 1024)
_BACKEND_BATCHES = (1, 8, 64)
_BACKENDS = ("torch", "torch-float32", *KERNELS)
_SELFPLAY_GAMES = 256
_REPEATS = 5
_SECONDS = 1.0
_PART_AFTER_A_RUN = 0.25


def _median_rate(measure: Callable[[], int], part: float = 1.0) -> float:
    """Median over ``_REPEATS`` of units per second; ``measure`` does some work and returns how many units it did.

    ``part``: of the usual time.
    """
    measure()  # loads compiled code and fills caches
    rates = []
    for _ in range(_REPEATS):
        start, units = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < part * _SECONDS / _REPEATS or units == 0:
            units += measure()
        rates.append(units / elapsed)
    return statistics.median(rates)


def perft_leaves_per_second() -> float:
    board = Board()
    return _median_rate(lambda: count(board, _PERFT_DEPTH))


def search_simulations_per_second(games: int, simulations: int) -> float:
    """Simulations per second of searches from the start position with an evaluator that takes almost no time."""
    search = LockstepSearch(SearchConfig(num_simulations=simulations), games)
    evaluator, board = UniformEvaluator(), Board()
    rates = []
    for _ in range(_REPEATS + 1):
        for slot in range(games):
            search.set_board(slot, board)
            search.start(slot, explore=False)
        start = time.perf_counter()
        search.run(evaluator)
        rates.append(games * simulations / (time.perf_counter() - start))
    return statistics.median(rates[1:])


def network_evaluations_per_second(evaluator: NetworkEvaluator, positions: np.ndarray, part: float = 1.0) -> float:
    """Positions judged per second by the network alone, all ``positions`` in one batch; ``part``: of the usual time."""

    def measure() -> int:
        evaluator.evaluate(positions)
        return len(positions)

    return _median_rate(measure, part)


def backend_rates(network: Network, batch: int) -> dict[str, float]:
    """Backend → positions judged per second on the CPU, in batches of ``batch``."""
    positions, rates = random_positions(batch), {}
    for name in _BACKENDS:
        with contextlib.suppress(BackendError):  # kernels do not compute every network
            rates[name] = network_evaluations_per_second(make_evaluator(network, name), positions)
    return rates


def bare_network_rate(network: Network, config: RunConfig, actors: float) -> float:
    """Positions per second that the networks of a run's actors could judge if the actors did nothing else.

    On a CPU this is the rate of one thread times the number of actors, but at most the number of cores (except with
    Ray, which reserves a core for each actor). A GPU is shared by all actors: its rate counts once.
    """
    device, settings = choose_device(config.device), config.selfplay
    evaluator, batch = make_evaluator(network.eval(), settings.backend, device), settings.games_in_lockstep
    if shares_evaluator(settings.evaluator, network.config, settings.backend, device):
        batch *= max(1, round(actors / LANES))
    rate = network_evaluations_per_second(evaluator, random_positions(batch), _PART_AFTER_A_RUN)
    threads = actors if config.pool == "ray" else min(actors, num_cores())
    return rate * threads if evaluator.device.type == "cpu" else rate


def selfplay_rates(evaluator: NetworkEvaluator, games: int) -> tuple[float, float]:
    """(evaluations, searched positions) per second of self-play with the quick preset's search.

    Measured over whole calls of ``Actor.play``, so the recording of games is included.
    """
    settings = SelfPlayConfig(games_in_lockstep=games)
    actor = Actor(settings, make_config("quick").search, evaluator, seed=1)
    actor.play(games * 2)  # so that games do not all start at the same moment
    start, evaluations, positions = time.perf_counter(), 0, 0
    while (elapsed := time.perf_counter() - start) < 4 * _SECONDS:
        _, stats = actor.play(games * 4)
        evaluations += stats.evaluations
        positions += stats.samples
    return evaluations / elapsed, positions / elapsed


def learner_samples_per_second(network: Network, config: TrainerConfig, device: str) -> float:
    """Samples learnt per second, including the making of batches."""
    positions = random_positions(config.batch_size)
    samples = _uniform_samples(positions)
    trainer = Trainer(network, config, device)

    def measure() -> int:
        trainer.step(to_training_batch(samples, 0.5))
        return len(samples)

    return _median_rate(measure)


def _uniform_samples(positions: np.ndarray) -> Samples:
    """Samples with uniform policies and the draw as search result."""
    _, counts = hop_table(positions)
    policies = np.concatenate([np.full(n, 1 / n) for n in counts])
    return found_samples(TREE, positions, np.tile((0, 1, 0), (len(positions), 1)), counts, policies)


class BenchFigures(TypedDict):
    """How fast this machine is. Rates are per second.

    Keys of searches are "games x simulations", of networks the batch size. Backends (measured on CPUs only) have the
    batch size as first key and the backend's name as second.
    """

    device: str
    network: str
    backend: str
    perft_leaves_per_second: float
    search_simulations_per_second: dict[str, float]
    network_evaluations_per_second: dict[str, float]
    selfplay_evaluations_per_second: float
    selfplay_positions_per_second: float
    selfplay_to_network_ratio: float
    learner_samples_per_second: float
    backend_evaluations_per_second: NotRequired[dict[str, dict[str, float]]]


def bench_command(request: BenchRequest, quiet: bool) -> BenchFigures:
    """Measures this machine; see ``crownhead bench --help``.

    Raises:
        ConfigError: there is no network of this size.
        BackendError: there is no such backend, or it cannot compute this network.
    """
    size = request.net or _USUAL_SIZE
    if size not in NETWORKS:
        raise ConfigError(f"no network size {size!r}: choose one of {', '.join(NETWORKS)}")
    use_single_thread()
    console, device = progress_console(True) if quiet else Console(), choose_device("auto")
    network = make_network(NETWORKS[size]).eval()
    evaluator = make_evaluator(network, request.backend, device)  # raises now what is wrong with the backend
    figures: dict[str, Any] = {"device": describe_machine(device), "network": size}
    console.print(figures["device"], highlight=False)

    def report(key: str, value: Any) -> None:
        figures[key] = value
        shown = _rounded(value) if isinstance(value, dict) else f"{value:,.3g}"
        console.print(f"{key}: {shown}")

    report("perft_leaves_per_second", perft_leaves_per_second())
    cases = {f"{g}x{s}": search_simulations_per_second(g, s) for g, s in _SEARCH_CASES}
    report("search_simulations_per_second", cases)
    for n in _BACKEND_BATCHES if device == "cpu" else ():
        figures.setdefault("backend_evaluations_per_second", {})[str(n)] = rates = backend_rates(network, n)
        console.print(f"backends in batches of {n}: {_rounded(rates)}")
    figures["backend"] = evaluator.backend
    console.print(f"backend: {evaluator.backend}")
    batches = {str(n): network_evaluations_per_second(evaluator, random_positions(n)) for n in _BATCHES}
    report("network_evaluations_per_second", batches)
    evaluations, positions = selfplay_rates(evaluator, _SELFPLAY_GAMES)
    report("selfplay_evaluations_per_second", evaluations)
    report("selfplay_positions_per_second", positions)
    again = network_evaluations_per_second(evaluator, random_positions(_SELFPLAY_GAMES))
    bare = statistics.mean((batches[str(_SELFPLAY_GAMES)], again))  # before and after: the machine's speed drifts
    report("selfplay_to_network_ratio", evaluations / bare)
    report("learner_samples_per_second", learner_samples_per_second(network, make_config("quick").trainer, device))
    return cast(BenchFigures, figures)


def _rounded(rates: dict[str, float]) -> dict[str, int]:
    return {name: round(rate) for name, rate in rates.items()}
