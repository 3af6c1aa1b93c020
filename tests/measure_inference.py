"""Measures positions per second of every inference backend with one thread, and the time to update its weights.

Run it: ``PYTHONPATH=. python tests/measure_inference.py [NETWORK]...``, where NETWORK is a size (4x48) or the folder of
a checkpoint. It measures processor time, so that other work on the machine matters little, and backends take turns. It
prints the median of the rounds and, in brackets, the best.
"""

import statistics
import sys
import time

import numpy as np
import torch

from learner.checkpoint import load_checkpoint
from learner.inference import BackendError, NetworkEvaluator, make_evaluator
from learner.inference.backends import KERNELS
from learner.inference.calibration import random_positions
from learner.network import NETWORKS, Network, make_network

BATCHES = (1, 8, 64, 256)
ROUNDS = 9
SECONDS = 0.04  # seconds of a round, at least one call
NAMES = ("torch-float32", "torch", *KERNELS)


def load(name: str) -> Network:
    """Loads a trained network, or makes a random one of a size in which all layers have an effect."""
    if name not in NETWORKS:
        return load_checkpoint(name).network
    torch.manual_seed(0)
    network = make_network(NETWORKS[name]).eval()
    for block in getattr(network, "blocks", ()):
        torch.nn.init.normal_(block.second.norm.weight, std=0.5)  # the blocks of a new network have no effect
    return network


def rate(evaluator: NetworkEvaluator, positions: np.ndarray) -> float:
    """Positions per second of processor time, in one round."""
    start, done = time.process_time(), 0
    while (elapsed := time.process_time() - start) < SECONDS or done == 0:
        evaluator.evaluate(positions)
        done += len(positions)
    return done / elapsed


def update_seconds(evaluator: NetworkEvaluator, network: Network) -> float:
    """Seconds that an actor waits for new weights, including the first evaluation."""
    positions, times = random_positions(64), []
    for _ in range(3):
        start = time.process_time()
        evaluator.update(network)
        evaluator.evaluate(positions)
        times.append(time.process_time() - start)
    return statistics.median(times)


def measure(name: str) -> None:
    """Prints the table of one network."""
    network, evaluators = load(name), {}
    for backend in NAMES:
        try:
            evaluators[backend] = make_evaluator(network, backend)
        except BackendError as error:
            print(f"{backend}: {error}")
    rates: dict[tuple[str, int], list[float]] = {(backend, n): [] for backend in evaluators for n in BATCHES}
    for number in range(ROUNDS + 1):
        for n in BATCHES:
            for backend, evaluator in evaluators.items():
                found = rate(evaluator, random_positions(n))
                if number:  # the first round warms up
                    rates[backend, n].append(found)
    print(f"\n{name}: batch {', '.join(map(str, BATCHES))}; update")
    for backend, evaluator in evaluators.items():
        cells = [f"{statistics.median(rates[backend, n]):8.0f} ({max(rates[backend, n]):6.0f})" for n in BATCHES]
        print(f"{backend:18}", *cells, f"{update_seconds(evaluator, network):8.3f} s", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for argument in sys.argv[1:] or ("4x48", "5x64", "10x128"):
        measure(argument)
