"""Compares the rate of self-play with that of the network alone: actors in processes as in a run, without a learner.

    python tests/measure_selfplay.py [--preset gpu] [--actors 16] [--warm-up 20] [--seconds 60] [--set KEY=VALUE]...

Weights are random. The network alone is measured before and after, since machines drift, with batches of the sizes of
self-play. Prints positions per second of both, their ratio, and the use of processors and GPU.
"""

import argparse
import resource
import statistics
import time

from learner.network import make_network
from selfplay.actors.process_pool import ProcessPool
from selfplay.actors.weights import Weights
from selfplay.actors.worker import Played
from selfplay.machines.threads import choose_device, describe_machine, num_cores, use_single_thread
from selfplay.measures.bench import bare_network_rate
from selfplay.run.config import RunConfig, make_config


def play(config: RunConfig, pool: ProcessPool, seconds: float) -> list[Played]:
    """Runs the actors for some seconds and returns what they deliver."""
    played, end = list[Played](), time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        pool.refill()
        played += [result for result in pool.collect(min(left, 0.5)) if isinstance(result, Played)]
    return played


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="gpu")
    parser.add_argument("--actors", type=int, default=num_cores())
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds from the first shard on, not counted")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    options = parser.parse_args()
    # Small shards, since work in progress at the beginning and the end is not counted.
    settings = [f"selfplay.actors={options.actors}", "selfplay.positions_per_shard=1000", *options.settings]
    config = make_config(options.preset, settings)
    use_single_thread()
    network = make_network(config.network).eval()
    print(describe_machine(choose_device(config.device)), flush=True)
    bare = [bare_network_rate(network, config, options.actors)]
    pool = ProcessPool(config, 0)
    try:
        pool.set_weights(Weights.of(network, "random"))
        while not play(config, pool, 1.0):
            pass
        play(config, pool, options.warm_up)
        start = time.monotonic()
        played = play(config, pool, options.seconds)
        elapsed = time.monotonic() - start
    finally:
        pool.close()
    bare.append(bare_network_rate(network, config, options.actors))
    rate = sum(shard.stats.evaluations for shard in played) / elapsed
    cores = sum(shard.stats.processor_seconds for shard in played) / elapsed
    busy = [shard.gpu_busy for shard in played if shard.gpu_busy is not None]
    shown = f", GPU {statistics.mean(busy):.0f} % busy" if busy else ""
    print(f"bare network, before and after: {bare[0]:,.0f} and {bare[1]:,.0f} positions/s")
    print(f"self-play, {options.actors} actors: {rate:,.0f} evaluations/s, {rate / statistics.mean(bare):.1%}")
    print(f"actors at work on {cores:.1f} cores{shown}; peak of a process {_peak_mb():,.0f} MB")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


if __name__ == "__main__":
    main()
