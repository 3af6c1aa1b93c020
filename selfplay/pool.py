"""Pools of actors behind one interface, and the in-process pool."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from engine.interrupts import interrupt_held

from .actor import PlayStats
from .config import RunConfig
from .knowledge import endgame_knowledge
from .shards import ShardError, read_shard_info
from .worker import Played, Weights, Worker

MOST_DEATHS = 5  # of one actor without a shard in between
REQUESTS_IN_FLIGHT = 2  # per actor: the one it works on, and one that it finds when it is done


class PoolError(ValueError):
    """A pool that cannot go on; the message says why."""


class Pool(Protocol):
    """Actors that play and write shards. Requests in flight are bounded; what is finished waits to be collected."""

    def set_weights(self, weights: Weights) -> None:
        """Weights for all requests made from now on."""

    def set_teacher(self, weights: Weights, share: float) -> None:
        """Weights that a share of the requests is played with instead."""

    def collect(self, timeout: float) -> list[Played]:
        """The shards finished since the last call; waits up to ``timeout`` seconds for the first.

        Raises:
            PoolError: actors cannot be kept alive.
            StorageError: a shard could not be written.
        """
        ...

    def refill(self) -> None:
        """Gives every actor as many requests as it may hold."""

    def close(self) -> None:
        """Ends all actors; the games in play are lost."""


class Turns:
    """Whose weights a request is played with: the run's own, or for a share of the requests the teacher's.

    Attributes:
        own: None before the first are set.
    """

    def __init__(self) -> None:
        self.own: Any = None
        self._teacher: Any = None
        self._share = self._owed = 0.0

    def set_teacher(self, weights: Any, share: float) -> None:
        """See ``Pool.set_teacher``."""
        self._teacher, self._share = weights, share

    def next(self) -> Any:
        """The weights of the next request.

        Raises:
            PoolError: there are none yet.
        """
        if self.own is None:
            raise PoolError("the pool has no weights yet: call set_weights first")
        self._owed += self._share
        if self._owed < 1:
            return self.own
        self._owed -= 1
        return self._teacher


def rescued(actor: int, paths: Iterable[Path]) -> list[Played]:
    """The shards that an actor which died has written but not reported."""
    found = []
    for path in paths:
        try:
            found.append(Played(actor, read_shard_info(path), PlayStats()))
        except (OSError, ShardError):
            continue
    return found


def actor_seed(config: RunConfig, actor: int, start: int) -> int:
    """Seed of an actor that begins with shard number ``start`` of the run: never the same for two shards."""
    return int(np.random.SeedSequence([config.seed, actor, start]).generate_state(1)[0])


class ThreadPool:
    """Actors as threads of this process: for tests, to find errors, and for short runs.

    Args:
        next_path: gives each shard its name.
        start: number of the first shard asked for, larger with every start that has kept any; seeds the actors.
    """

    def __init__(self, config: RunConfig, next_path: Callable[[], Path], start: int) -> None:
        self._next_path = next_path
        self._turns = Turns()
        actors = range(config.selfplay.actors)
        seeds = [actor_seed(config, actor, start) for actor in actors]
        self._workers = [Worker(config, actor, seeds[actor], endgame_knowledge) for actor in actors]
        self._executors = [ThreadPoolExecutor(1, f"actor-{actor}") for actor in actors]
        self._requests: list[deque[Future[Played | None]]] = [deque() for _ in actors]

    def set_weights(self, weights: Weights) -> None:
        """See ``Pool.set_weights``."""
        self._turns.own = weights

    def set_teacher(self, weights: Weights, share: float) -> None:
        """See ``Pool.set_teacher``."""
        self._turns.set_teacher(weights, share)

    def refill(self) -> None:
        """See ``Pool.refill``."""
        for worker, executor, requests in zip(self._workers, self._executors, self._requests, strict=True):
            while len(requests) < REQUESTS_IN_FLIGHT:
                requests.append(executor.submit(worker.play, self._next_path(), self._turns.next()))

    def collect(self, timeout: float) -> list[Played]:
        """See ``Pool.collect``."""
        heads = [requests[0] for requests in self._requests if requests]
        with interrupt_held():
            wait(heads, timeout, FIRST_COMPLETED)
        played = []
        for requests in self._requests:
            while requests and requests[0].done():
                result = requests.popleft().result()
                if result is not None:
                    played.append(result)
        return played

    def close(self) -> None:
        """See ``Pool.close``; what the actors have finished is written first."""
        for worker in self._workers:
            worker.stop()
        for executor in self._executors:
            executor.shutdown(wait=True, cancel_futures=True)
