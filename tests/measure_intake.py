"""Measures how many shards per second the learner's process receives from many actors that cost nothing.

    PYTHONPATH=.:tests python tests/measure_intake.py [--actors 1000] [--samples 100 2000 20000] [--seconds 10]

The code of pool and replay window is the real one; actors answer each request at once with the same shard. Prints
shards, samples and megabytes per second, and the time for a shard.
"""

import argparse
import tempfile
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from test_shards import make_record

from selfplay.actors.actor import PlayStats
from selfplay.actors.pool import Pool, PoolActor, Result
from selfplay.actors.worker import Played
from selfplay.games.records import GameRecord
from selfplay.games.replay import ReplayBuffer, ReplayConfig
from selfplay.games.shards import pack_shard
from selfplay.run.config import make_config


class FakePool(Pool):
    """Actors whose shards are available as soon as they are requested."""

    def __init__(self, actors: int, shard: bytes) -> None:
        self._number, self._shard = actors, shard
        super().__init__(make_config("smoke"), 0)
        self._turns.own = "weights"

    def _places(self) -> Sequence[Hashable]:
        return range(self._number)

    def _start(self, actor: PoolActor, seed: int) -> Any:
        return actor.number

    def _ask(self, handle: Any, method: str, *arguments: Any) -> Any:
        return handle

    def _wait(self, requests: Sequence[Any], timeout: float) -> None:
        return

    def _is_done(self, request: Any) -> bool:
        return True

    def _result(self, request: Any) -> Played:
        return Played(request, "nowhere", self._shard, PlayStats())

    def close(self) -> list[Result]:
        return []


def measure(actors: int, samples: int, seconds: float, folder: Path) -> str:
    records, games = [make_record(seed) for seed in range(50)], list[GameRecord]()
    while sum(len(game.samples) for game in games) < samples:
        games.append(records[len(games) % len(records)])
    shard = pack_shard(games)
    pool = FakePool(actors, shard)
    replay = ReplayBuffer(folder, ReplayConfig(keep_shards=False, window_start=200_000))
    shards, begun, worked, asked = 0, time.perf_counter(), time.process_time(), 0.0
    while time.perf_counter() - begun < seconds:
        start = time.perf_counter()
        pool.refill()
        played = pool.collect(0.0)
        asked += time.perf_counter() - start
        for result in played:
            replay.store(result.shard)
            shards += 1
            if time.perf_counter() - begun >= seconds:
                break
    took, work = time.perf_counter() - begun, time.process_time() - worked
    return (
        f"{actors} actors, {len(shard) / 1e6:.3f} MB a shard of {sum(len(game.samples) for game in games)} samples: "
        f"{shards / took:.0f} shards/s, {replay.total_samples / took:.0f} samples/s, "
        f"{len(shard) * shards / took / 1e6:.1f} MB/s; "
        f"{1e3 * work / shards:.2f} ms of the processor a shard, {1e3 * took / shards:.2f} ms of the clock, of which "
        f"{1e3 * asked / shards:.3f} ms for asking and collecting"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--actors", type=int, default=1000)
    parser.add_argument("--samples", type=int, nargs="+", default=[100, 2000, 20_000])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    for samples in asked.samples:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            print(measure(asked.actors, samples, asked.seconds, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
