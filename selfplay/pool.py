"""Pools of actors behind one interface, and the in-process pool."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

import numpy as np

from engine.interrupts import interrupt_held

from .config import RunConfig
from .knowledge import endgame_knowledge
from .worker import Played, Weights, Worker

REQUESTS_IN_FLIGHT = 2  # per actor: the one it works on, and one that it finds when it is done


class PoolError(ValueError):
    """A pool that cannot go on; the message says why."""


class Pool(Protocol):
    """Actors that play and write shards. Requests in flight are bounded; what is finished waits to be collected."""

    def set_weights(self, weights: Weights) -> None:
        """Weights for all requests made from now on."""

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


def actor_seed(config: RunConfig, actor: int, start: int) -> int:
    """Seed of an actor that begins with shard number ``start`` of the run: never the same for two shards."""
    return int(np.random.SeedSequence([config.seed, actor, start]).generate_state(1)[0])


class LocalPool:
    """Actors as threads of this process. Kernels and network release the interpreter's lock while they compute.

    Args:
        next_path: gives each shard its name.
        start: number of the first shard asked for, larger with every start that has kept any; seeds the actors.
    """

    def __init__(self, config: RunConfig, next_path: Callable[[], Path], start: int) -> None:
        self._next_path = next_path
        self._weights: Weights | None = None
        actors = range(config.selfplay.actors)
        seeds = [actor_seed(config, actor, start) for actor in actors]
        self._workers = [Worker(config, actor, seeds[actor], endgame_knowledge) for actor in actors]
        self._executors = [ThreadPoolExecutor(1, f"actor-{actor}") for actor in actors]
        self._requests: list[deque[Future[Played | None]]] = [deque() for _ in actors]

    def set_weights(self, weights: Weights) -> None:
        """See ``Pool.set_weights``."""
        self._weights = weights

    def refill(self) -> None:
        """See ``Pool.refill``."""
        if self._weights is None:
            raise PoolError("the pool has no weights yet: call set_weights first")
        for worker, executor, requests in zip(self._workers, self._executors, self._requests, strict=True):
            while len(requests) < REQUESTS_IN_FLIGHT:
                requests.append(executor.submit(worker.play, self._next_path(), self._weights))

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
