"""The pool of actors as processes of this machine: none waits for another's interpreter."""

import logging
import multiprocessing
import multiprocessing.connection
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from engine.interrupts import interrupt_held

from .config import RunConfig
from .knowledge import endgame_knowledge
from .pool import MOST_DEATHS, REQUESTS_IN_FLIGHT, PoolError, Turns, actor_seed, rescued
from .processes import follow_parent, no_interrupt
from .worker import Played, Weights, Worker

_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy locks that threads hold
_LOG = logging.getLogger(__name__)
_worker: Worker | None = None


@dataclass
class _Actor:
    """A process and what it has been asked for, oldest first."""

    executor: ProcessPoolExecutor
    requests: deque[tuple[Future[Played | None], Path]] = field(default_factory=deque)
    deaths: int = 0


class ProcessPool:
    """Actors as processes of this machine. One that dies is replaced by a new one and the run goes on.

    Args:
        next_path: gives each shard its name.
        start: number of the first shard asked for, larger with every start that has kept any; seeds the actors.
    """

    def __init__(self, config: RunConfig, next_path: Callable[[], Path], start: int) -> None:
        self._config, self._next_path, self._started = config, next_path, start
        self._turns = Turns()
        # Its end tells actors to stop. An event would wait for ever for an actor that was killed while it waited.
        self._stopped, self._running = _SPAWN.Pipe(duplex=False)
        self._actors = [_Actor(self._start(number)) for number in range(config.selfplay.actors)]

    def _start(self, number: int) -> ProcessPoolExecutor:
        self._started += 1
        seed = actor_seed(self._config, number, self._started)
        return ProcessPoolExecutor(1, _SPAWN, _begin, (self._config, number, seed, self._stopped))

    def set_weights(self, weights: Weights) -> None:
        """See ``Pool.set_weights``."""
        self._turns.own = weights

    def set_teacher(self, weights: Weights, share: float) -> None:
        """See ``Pool.set_teacher``."""
        self._turns.set_teacher(weights, share)

    def refill(self) -> None:
        """See ``Pool.refill``."""
        for actor in self._actors:
            while len(actor.requests) < REQUESTS_IN_FLIGHT:
                path, weights = self._next_path(), self._turns.next()
                try:
                    with no_interrupt():  # the first request starts the process
                        actor.requests.append((actor.executor.submit(_play, path.resolve(), weights), path))
                except BrokenProcessPool:
                    break  # ``collect`` meets what it was asked for before

    def collect(self, timeout: float) -> list[Played]:
        """See ``Pool.collect``."""
        heads = [actor.requests[0][0] for actor in self._actors if actor.requests]
        with interrupt_held():
            wait(heads, timeout, FIRST_COMPLETED)
        played = []
        for number, actor in enumerate(self._actors):
            while actor.requests and actor.requests[0][0].done():
                future, path = actor.requests.popleft()
                try:
                    result = future.result()
                except BrokenProcessPool as error:
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
        if actor.deaths > MOST_DEATHS:
            raise PoolError(f"actor {number} died {actor.deaths} times in a row: {' '.join(str(error).split())[:300]}")
        _LOG.warning("actor %d died and is replaced", number)
        found = rescued(number, [path, *(path for _, path in actor.requests)])
        actor.requests.clear()
        actor.executor.shutdown(wait=False)
        actor.executor = self._start(number)
        return found

    def close(self) -> None:
        """See ``Pool.close``; what the actors have finished is written first."""
        self._running.close()
        for actor in self._actors:
            actor.executor.shutdown(wait=True, cancel_futures=True)


def _begin(config: RunConfig, number: int, seed: int, stopped: Connection) -> None:
    """In the actor's process, once."""
    global _worker
    follow_parent()
    _worker = worker = Worker(config, number, seed, endgame_knowledge)

    def stop() -> None:
        multiprocessing.connection.wait([stopped])
        worker.stop()

    threading.Thread(target=stop, daemon=True).start()


def _play(path: Path, weights: Weights) -> Played | None:
    """In the actor's process, for each request."""
    assert _worker is not None
    return _worker.play(path, weights)
