"""The pool of Ray actors: on this machine, or on a cluster that shares the run's folder. The only module with Ray."""

import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .config import RunConfig
from .knowledge import endgame_knowledge
from .pool import MOST_DEATHS, REQUESTS_IN_FLIGHT, PoolError, Turns, actor_seed, rescued
from .worker import Played, Weights, Worker

_OBJECT_STORE_BYTES = 128 * 1024**2  # it carries weights only
_ANSWER_S = 5.0  # that a cluster's head node gets to answer
_LOG = logging.getLogger(__name__)


@dataclass
class _Request:
    reference: Any
    path: Path


@dataclass
class _RemoteActor:
    handle: Any
    requests: deque[_Request] = field(default_factory=deque)
    deaths: int = 0


class RayPool:
    """Actors as Ray processes. One that dies is replaced by a new one and the run goes on.

    Args:
        next_path, start: as for ``ProcessPool``.

    Raises:
        PoolError: Ray cannot be started or the cluster cannot be joined.
    """

    def __init__(self, config: RunConfig, next_path: Callable[[], Path], start: int) -> None:
        self._config = config
        self._next_path = next_path
        self._started = start
        self._turns = Turns()
        self._ray = _import_ray(config.address)
        _connect(self._ray, config.address)
        # A CPU is only an entry in Ray's books here; half a one lets the learner share the machine.
        self._worker_class: Any = self._ray.remote(num_cpus=0.5, max_restarts=0)(Worker)
        self._actors = [_RemoteActor(self._start(number)) for number in range(config.selfplay.actors)]

    def _start(self, number: int) -> Any:
        self._started += 1
        seed = actor_seed(self._config, number, self._started)
        return self._worker_class.remote(self._config, number, seed, endgame_knowledge)

    def set_weights(self, weights: Weights) -> None:
        """See ``Pool.set_weights``; the weights enter the object store once, requests carry a reference."""
        self._turns.own = self._ray.put(weights)

    def set_teacher(self, weights: Weights, share: float) -> None:
        """See ``Pool.set_teacher``."""
        self._turns.set_teacher(self._ray.put(weights), share)

    def refill(self) -> None:
        """See ``Pool.refill``."""
        for actor in self._actors:
            while len(actor.requests) < REQUESTS_IN_FLIGHT:
                path = self._next_path()
                reference = actor.handle.play.remote(str(path.resolve()), self._turns.next())
                actor.requests.append(_Request(reference, path))

    def collect(self, timeout: float) -> list[Played]:
        """See ``Pool.collect``."""
        heads = [actor.requests[0].reference for actor in self._actors if actor.requests]
        if not heads:
            time.sleep(timeout)
            return []
        self._ray.wait(heads, timeout=timeout)
        played = []
        for number, actor in enumerate(self._actors):
            while actor.requests and self._is_ready(actor.requests[0]):
                request = actor.requests.popleft()
                try:
                    played.append(self._ray.get(request.reference))
                    actor.deaths = 0
                except self._ray.exceptions.RayTaskError as error:
                    raise error.cause if isinstance(error.cause, Exception) else error from None
                except self._ray.exceptions.RayActorError as error:
                    played += self._replace(number, request, error)
        return played

    def _replace(self, number: int, request: _Request, error: Exception) -> list[Played]:
        """A new actor for a dead one; returns the shards that the dead one had written but not reported."""
        actor = self._actors[number]
        actor.deaths += 1
        if actor.deaths > MOST_DEATHS:
            raise PoolError(f"actor {number} died {actor.deaths} times in a row: {' '.join(str(error).split())[:300]}")
        _LOG.warning("actor %d died and is replaced", number)
        found = rescued(number, [lost.path for lost in (request, *actor.requests)])
        actor.requests.clear()
        actor.handle = self._start(number)
        return found

    def _is_ready(self, request: _Request) -> bool:
        return bool(self._ray.wait([request.reference], timeout=0)[0])

    def close(self) -> None:
        """See ``Pool.close``; also leaves the cluster, or ends the Ray that this pool has started."""
        self._ray.shutdown()


def _import_ray(address: str | None) -> Any:
    """Imports Ray with the settings that it reads from the environment at import.

    Without a cluster to join, Ray is told that it will never be one: then its processes listen on loopback alone
    (a loopback ``_node_ip_address`` is replaced by Ray). The variable's name speaks of other systems, but it is read on
    all of them.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # actors see the GPU though they reserve none
    if not address:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        import ray
    except ModuleNotFoundError as error:
        raise PoolError(f"--pool ray needs Ray (pip install 'crownhead[ray]'), or use --pool local: {error}") from error
    return ray


def check_address(address: str) -> None:
    """Whether anything answers where a cluster is said to be; Ray itself would try for minutes.

    Args:
        address: ``HOST:PORT``, with or without ``ray://``; for other words (``auto``) Ray looks by itself.

    Raises:
        PoolError: nothing answers.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise PoolError(
            f"no Ray cluster answers at {address}: {error}; write HOST:PORT of its head node, or leave --address out"
        ) from error


def _connect(ray: Any, address: str | None) -> None:
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address:
            ray.init(address=address, **quiet)
            return
        ray.init(
            address="local",  # never a cluster that happens to run on this machine
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE_BYTES,
            **quiet,
        )
    except (ray.exceptions.RayError, ConnectionError, OSError, RuntimeError, ValueError) as error:
        where = "Ray cannot be started"
        if address:
            where = f"the cluster at {address} cannot be joined (does it want RAY_AUTH_MODE=token in the environment?)"
        raise PoolError(f"{where}: {' '.join(str(error).split())[:300]}") from error
