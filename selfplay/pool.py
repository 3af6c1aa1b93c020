"""Pools of actors: what all have in common, and the in-process pool."""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.interrupts import interrupt_held

from .actor import PlayStats
from .config import RunConfig
from .knowledge import endgame_knowledge
from .shards import ShardError, read_shard_info
from .worker import Played, Weights, Worker

_MOST_DEATHS = 5  # of one actor without a shard in between
_REQUESTS_IN_FLIGHT = 2  # per actor: the one it works on, and one that it finds when it is done
_LOG = logging.getLogger(__name__)


class PoolError(ValueError):
    """A pool that cannot go on; the message says why."""


class Turns:
    """Whose weights a request is played with: the run's own, or for a fraction of the requests the teacher's."""

    def __init__(self) -> None:
        self.own: Any = None
        self._teacher: Any = None
        self._share = self._owed = 0.0

    def set_teacher(self, weights: Any, share: float) -> None:
        """See ``Pool.set_teacher``."""
        self._teacher, self._share = weights, share

    def next(self) -> Any:
        """The weights of the next request; raises ``PoolError`` while there are none."""
        if self.own is None:
            raise PoolError("the pool has no weights yet: call set_weights first")
        self._owed += self._share
        if self._owed < 1:
            return self.own
        self._owed -= 1
        return self._teacher


@dataclass
class _Actor:
    """What plays, as the pool knows it, and what it has been asked for, oldest first."""

    handle: Any
    requests: deque[tuple[Any, Path]] = field(default_factory=deque)
    deaths: int = 0


class Pool(ABC):
    """Actors that play and write shards. Requests in flight are bounded; what is finished waits to be collected.

    An actor that dies is replaced by a new one, and the run goes on.

    Args:
        next_path: gives each shard its name.
        start: number of the first shard asked for, larger with every start that has kept any; seeds the actors.

    Attributes:
        dead: what a request raises whose actor has died.
    """

    dead: type[Exception] | tuple[()] = ()

    def __init__(self, config: RunConfig, next_path: Callable[[], Path], start: int) -> None:
        self._config, self._next_path, self._started = config, next_path, start
        self._turns = Turns()
        self._actors = [_Actor(self._begin(number)) for number in range(config.selfplay.actors)]

    def set_weights(self, weights: Weights) -> None:
        """Weights for all requests made from now on."""
        self._turns.own = self._shared(weights)

    def set_teacher(self, weights: Weights, share: float) -> None:
        """Weights for this fraction (0 to 1) of the requests, in place of the run's own."""
        self._turns.set_teacher(self._shared(weights), share)

    def refill(self) -> None:
        """Gives every actor as many requests as it may hold."""
        for actor in self._actors:
            while len(actor.requests) < _REQUESTS_IN_FLIGHT:
                path, weights = self._next_path(), self._turns.next()
                try:
                    actor.requests.append((self._ask(actor.handle, path.resolve(), weights), path))
                except self.dead:
                    break  # ``collect`` meets what it was asked for before

    def collect(self, timeout: float) -> list[Played]:
        """The shards finished since the last call; waits up to ``timeout`` seconds for the first.

        Raises:
            PoolError: actors cannot be kept alive.
            StorageError: a shard could not be written.
        """
        self._wait([actor.requests[0][0] for actor in self._actors if actor.requests], timeout)
        played = []
        for number, actor in enumerate(self._actors):
            while actor.requests and self._is_done(actor.requests[0][0]):
                request, path = actor.requests.popleft()
                try:
                    result = self._result(request)
                except self.dead as error:
                    played += self._replace(number, path, error)
                    break
                actor.deaths = 0
                if result is not None:
                    played.append(result)
        return played

    def _replace(self, number: int, path: Path, error: Exception) -> list[Played]:
        """A new actor for a dead one; returns the shards that the dead one had written but not reported."""
        actor = self._actors[number]
        actor.deaths += 1
        if actor.deaths > _MOST_DEATHS:
            raise PoolError(f"actor {number} died {actor.deaths} times in a row: {' '.join(str(error).split())[:300]}")
        _LOG.warning("actor %d died and is replaced", number)
        found = []
        for asked in [path, *(path for _, path in actor.requests)]:
            try:
                found.append(Played(number, read_shard_info(asked), PlayStats()))
            except (OSError, ShardError):
                continue
        actor.requests.clear()
        self._bury(actor.handle)
        actor.handle = self._begin(number)
        return found

    def _begin(self, number: int) -> Any:
        """Starts an actor with a seed that no other start of this run had."""
        self._started += 1
        entropy = [self._config.seed, number, self._started]
        return self._start(number, int(np.random.SeedSequence(entropy).generate_state(1)[0]))

    @abstractmethod
    def _start(self, number: int, seed: int) -> Any:
        """The handle of a new actor."""

    @abstractmethod
    def _ask(self, handle: Any, path: Path, weights: Any) -> Any:
        """Asks an actor for a shard, see ``Worker.play``."""

    def _shared(self, weights: Weights) -> Any:
        """Weights in the form that requests carry."""
        return weights

    def _wait(self, requests: Sequence[Any], timeout: float) -> None:
        """Waits until one of the requests is done."""
        with interrupt_held():
            wait(requests, timeout, FIRST_COMPLETED)

    def _is_done(self, request: Any) -> bool:
        return request.done()

    def _result(self, request: Any) -> Played | None:
        return request.result()

    def _bury(self, handle: Any) -> None:  # noqa: B027 - most leave nothing
        """Puts away what is left of an actor that has died."""

    @abstractmethod
    def close(self) -> None:
        """Ends all actors; the games in play are lost."""


class ThreadPool(Pool):
    """Actors as threads of this process: for tests, to find errors, and for short runs."""

    def _start(self, number: int, seed: int) -> tuple[Worker, ThreadPoolExecutor]:
        worker = Worker(self._config, number, seed, endgame_knowledge)
        return worker, ThreadPoolExecutor(1, f"actor-{number}")

    def _ask(self, handle: tuple[Worker, ThreadPoolExecutor], path: Path, weights: Weights) -> Future[Played | None]:
        worker, executor = handle
        return executor.submit(worker.play, path, weights)

    def close(self) -> None:
        """See ``Pool.close``; what the actors have finished is written first."""
        for actor in self._actors:
            actor.handle[0].stop()
        for actor in self._actors:
            actor.handle[1].shutdown(wait=True, cancel_futures=True)
