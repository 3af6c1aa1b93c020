"""The pool of Ray actors, on this machine or on a cluster.

Nodes need only the package and the cluster's address: Ray's object store sends weights to each node once, and games
come back to the learner as the bytes of shards.
"""

import logging
import socket
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.errors import one_line

from ..machines.cluster import Cluster, start_error
from ..machines.processes import give_way
from ..run.config import RunConfig
from .pool import Pool, PoolActor, Result
from .weights import Weights
from .worker import Worker

_PATIENCE_S = 60.0  # seconds after which an actor that has not started is warned of
_QUIET_S = 600.0  # seconds between two such warnings
_LOG = logging.getLogger(__name__)


class _RayWorker:
    """Makes its worker at the first request, so that an error in it is an exception and not the death of an actor."""

    def __init__(self, config: RunConfig, number: int, seed: int) -> None:
        give_way(config.selfplay.nice)
        self._arguments = config, number, seed

    @cached_property
    def _worker(self) -> Worker:
        return Worker(*self._arguments)

    def here(self) -> str:
        """The name of the machine."""
        return socket.gethostname()

    def call(self, method: str, *arguments: Any) -> Result | None:
        answer: Result | None = getattr(self._worker, method)(*arguments)
        return answer


@dataclass
class _Handle:
    """A Ray actor, asked for at ``since`` (``time.monotonic``); ``machine`` is None until it has started, which
    ``greeting`` (Ray's reference) tells."""

    actor: Any
    greeting: Any
    since: float
    machine: str | None = None


class RayPool(Pool):
    """Actors as Ray processes, see ``Pool``; raises ``ClusterError`` if Ray cannot be started or a cluster not joined.

    With ``selfplay.actors = auto`` there is one actor per CPU of each node, also of nodes that join later.
    """

    def __init__(self, config: RunConfig, start: int) -> None:
        self._cluster = Cluster(config.address)
        self._ray, self.dashboard = self._cluster.ray, self._cluster.dashboard
        # Errors that are not exceptions of the worker: the actor or its node died, ran out of memory, or has no CPU.
        self.dead = (self._ray.exceptions.RayError,)
        self._worker_class: Any = self._ray.remote(max_restarts=0)(_RayWorker)
        self._warn_at = time.monotonic()
        super().__init__(config, start)

    def _places(self) -> Sequence[Hashable]:
        nodes, actors = self._cluster.cpus(), self._config.selfplay.actors
        self.nodes = max(1, len(nodes))
        self._warn_of_missing()
        if actors == "auto" and not any(nodes.values()):
            self._warn_of_no_cpu(len(nodes))
        if actors == "auto":
            return [(node, n) for node, cpus in nodes.items() for n in range(cpus)]
        return [(None, n) for n in range(actors)]

    def _warn_of_missing(self) -> None:
        """Warns from time to time how many actors have been waiting for a place."""
        now = time.monotonic()
        if now < self._warn_at:
            return
        asked = [actor for actor in self._actors if actor.handle is not None and now - actor.handle.since > _PATIENCE_S]
        missing = sum(not self._is_ready(actor) for actor in asked)
        if missing:
            try:
                cpus = self._ray.cluster_resources().get("CPU", 0)
            except self.dead:  # the head does not answer now
                cpus = sum(self._cluster.cpus().values())
            _LOG.warning(
                "%d of %d actors have not started for a minute: the cluster has %g CPUs, and each actor takes %g; they "
                "start when one is free and its machine has time, or choose fewer with --set selfplay.actors=N",
                missing, len(self._actors), cpus, self._cpus,
            )  # fmt: skip
            self._warn_at = now + _QUIET_S

    def _warn_of_no_cpu(self, nodes: int) -> None:
        now = time.monotonic()
        if now >= self._warn_at:
            _LOG.warning("nobody plays: none of the %d machines of the cluster has a CPU for actors", nodes)
            self._warn_at = now + _QUIET_S

    @property
    def _cpus(self) -> float:
        """CPUs that Ray reserves for an actor; with half a CPU actors fit beside the learner on its machine."""
        return 1.0 if self._config.selfplay.actors == "auto" else 0.5

    def _start(self, actor: PoolActor, seed: int) -> _Handle:
        assert isinstance(actor.place, tuple)
        options: dict[str, Any] = {"num_cpus": self._cpus}
        if actor.place[0] is not None:
            options["scheduling_strategy"] = self._cluster.on_node(actor.place[0])
        remote = self._worker_class.options(**options).remote(self._config, actor.number, seed)
        return _Handle(remote, remote.here.remote(), time.monotonic())

    def _is_ready(self, actor: PoolActor) -> bool:
        handle: _Handle | None = actor.handle
        if handle is not None and handle.machine is None and self._cluster.is_done(handle.greeting):
            try:
                handle.machine = self._ray.get(handle.greeting)
            except self._ray.exceptions.RayError:  # its requests will raise the same
                return False
        return handle is not None and handle.machine is not None

    def _may_play(self, actor: PoolActor) -> bool:
        handle: _Handle | None = actor.handle
        return handle is not None and self._cluster.is_done(handle.greeting)

    def _where(self, actor: PoolActor) -> str:
        return f" on {actor.handle.machine}" if self._is_ready(actor) else ""

    def _cause(self, error: Exception) -> str:
        return f" ({reason})" if (reason := start_error(error)) else ""

    def _ask(self, handle: _Handle, method: str, *arguments: Any) -> Any:
        return handle.actor.call.remote(method, *arguments)

    def _shared(self, weights: Weights) -> Any:
        return self._ray.put(weights)  # sent once; requests carry a reference

    def _wait(self, requests: Sequence[Any], timeout: float) -> None:
        if requests:
            self._ray.wait(requests, timeout=timeout)
        else:
            time.sleep(timeout)

    def _is_done(self, request: Any) -> bool:
        return self._cluster.is_done(request)

    def _result(self, request: Any) -> Result | None:
        result: Result | None = self._cluster.result(request)
        return result

    def _release(self, handle: _Handle) -> None:
        self._ray.kill(handle.actor)

    def close(self) -> list[Result]:
        """See ``Pool.close``; also leaves the cluster, or ends Ray if this pool has started it."""
        played: list[Result | None] = [*self._take_kept()]
        for actor in self._actors:
            while actor.requests and self._cluster.is_done(actor.requests[0].answer):
                try:
                    played.append(self._result(actor.requests.popleft().answer))
                except Exception as error:
                    _LOG.warning("actor %d: %s", actor.number, one_line(error))
        self._ray.shutdown()
        return [result for result in played if result is not None]
