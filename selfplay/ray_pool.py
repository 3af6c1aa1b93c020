"""The pool of Ray actors: on this machine, or on a cluster. The only module with Ray.

Nodes need the package and the cluster's address, nothing else: weights travel to each node once, through Ray's object
store, and games come back to the learner as the bytes of shards.
"""

import ipaddress
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from .config import RunConfig
from .knowledge import endgame_knowledge
from .pool import Pool, PoolActor, PoolError
from .processes import give_way
from .worker import Played, Weights, Worker

_OBJECT_STORE_BYTES = 128 * 1024**2  # it carries weights and games
_ANSWER_S = 5.0  # that a cluster's head node gets to answer
_PLACE_S = 60.0  # until an actor that has no place is spoken of
_LONGEST_FOLDER = 40  # characters; the paths of Ray's sockets have 62 more, and may have 103
_LOG = logging.getLogger(__name__)


class _RayWorker:
    """Makes its worker when it plays: what goes wrong then is the worker's own exception, not the death of an actor."""

    def __init__(self, *arguments: Any) -> None:
        give_way()
        self._arguments = arguments
        self._worker: Worker | None = None

    def here(self) -> str:
        """The name of the machine."""
        return socket.gethostname()

    def play(self, weights: Weights) -> Played | None:
        self._worker = self._worker or Worker(*self._arguments)
        return self._worker.play(weights)


@dataclass
class _Handle:
    """An actor, and the name of its machine once it is at work."""

    actor: Any
    greeting: Any
    asked: float
    machine: str | None = None


class RayPool(Pool):
    """Actors as Ray processes, see ``Pool``; raises ``PoolError`` if Ray cannot be started or a cluster not joined.

    With ``selfplay.actors = auto`` each node has as many as it has CPUs, nodes that join later, too.
    """

    def __init__(self, config: RunConfig, start: int) -> None:
        self._ray = _import_ray(config.address)
        self.dashboard = _connect(self._ray, config.address)
        # All that is not the worker's own exception: the actor or its node died, ran out of memory, or has no place.
        self.dead = (self._ray.exceptions.RayError,)
        self._worker_class: Any = self._ray.remote(max_restarts=0)(_RayWorker)
        self._known: Sequence[Hashable] = ()
        self._speak_at = time.monotonic() + _PLACE_S
        super().__init__(config, start)

    def _places(self) -> Sequence[Hashable]:
        try:
            nodes = [node for node in self._ray.nodes() if node["Alive"]]
        except self._ray.exceptions.RayError:  # the cluster's head does not answer now
            return self._known
        self.nodes = max(1, len(nodes))
        actors = self._config.selfplay.actors
        if actors == "auto":
            self._known = [(node["NodeID"], n) for node in nodes for n in range(int(node["Resources"].get("CPU", 0)))]
        else:
            self._known = [(None, n) for n in range(actors)]
        self._speak_of_missing()
        return self._known

    def _speak_of_missing(self) -> None:
        """Says how many actors have no place, now and then."""
        if time.monotonic() < self._speak_at:
            return
        missing = sum(not self._is_ready(actor) for actor in self._actors)
        if missing:
            cpus = self._ray.cluster_resources().get("CPU", 0)
            _LOG.warning(
                "%d of %d actors have no place: the cluster has %g CPUs, and each actor takes %g; they start when one "
                "is free, or choose fewer with --set selfplay.actors=N",
                missing, len(self._actors), cpus, self._cpus,
            )  # fmt: skip
        self._speak_at = time.monotonic() + 10 * _PLACE_S

    @property
    def _cpus(self) -> float:
        """Entries in Ray's books only; half a CPU lets the learner share its machine."""
        return 1.0 if self._config.selfplay.actors == "auto" else 0.5

    def _start(self, actor: PoolActor, seed: int) -> _Handle:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        assert isinstance(actor.place, tuple)
        options: dict[str, Any] = {"num_cpus": self._cpus}
        if actor.place[0] is not None:
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(actor.place[0], soft=False)
        remote = self._worker_class.options(**options).remote(self._config, actor.number, seed, endgame_knowledge)
        return _Handle(remote, remote.here.remote(), time.monotonic())

    def _is_ready(self, actor: PoolActor) -> bool:
        handle: _Handle | None = actor.handle
        if handle is not None and handle.machine is None and self._is_done(handle.greeting):
            try:
                handle.machine = self._ray.get(handle.greeting)
            except self._ray.exceptions.RayError:  # what it has been asked for will say so, too
                return False
        return handle is not None and handle.machine is not None

    def machines(self) -> Counter[str]:
        """Names of the machines with actors at work, and how many each has."""
        return Counter(actor.handle.machine for actor in self._actors if self._is_ready(actor))

    def _where(self, actor: PoolActor) -> str:
        return f" on {actor.handle.machine}" if self._is_ready(actor) else ""

    def _ask(self, handle: _Handle, weights: Any) -> Any:
        return handle.actor.play.remote(weights)

    def _shared(self, weights: Weights) -> Any:
        return self._ray.put(weights)  # once; requests carry a reference

    def _wait(self, requests: Sequence[Any], timeout: float) -> None:
        if requests:
            self._ray.wait(requests, timeout=timeout)
        else:
            time.sleep(timeout)

    def _is_done(self, request: Any) -> bool:
        return bool(self._ray.wait([request], timeout=0)[0])

    def _result(self, request: Any) -> Played | None:
        try:
            return self._ray.get(request)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None

    def _bury(self, handle: _Handle) -> None:
        self._ray.kill(handle.actor)

    def close(self) -> list[Played]:
        """See ``Pool.close``; also leaves the cluster, or ends the Ray that this pool has started."""
        played = []
        for actor in self._actors:
            while actor.requests and self._is_done(actor.requests[0]):
                try:
                    played.append(self._result(actor.requests.popleft()))
                except Exception as error:
                    _LOG.warning("actor %d: %s", actor.number, " ".join(str(error).split())[:200])
        self._ray.shutdown()
        return [result for result in played if result is not None]


def _import_ray(address: str | None) -> Any:
    """Imports Ray with the settings that it reads from the environment at import.

    Without a cluster to join, Ray is told that it will never be one: then its processes listen on loopback alone
    (it replaces a loopback ``_node_ip_address``). The variable is read on all systems, whatever its name says.
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
    """Raises ``PoolError`` if nothing answers where a cluster is said to be; Ray itself would try for minutes.

    Args:
        address: ``HOST:PORT``, with or without ``ray://``; for other words (``auto``) Ray looks by itself.
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


def _connect(ray: Any, address: str | None) -> str | None:
    """Starts or joins a cluster; returns the address of its dashboard, if it has one."""
    own = {} if address else {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES, **_own_folder()}
    try:  # "local" is never a cluster that happens to run on this machine
        context = ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    except (ray.exceptions.RayError, ConnectionError, OSError, RuntimeError, ValueError) as error:
        where = "Ray cannot be started"
        if address:
            where = f"the cluster at {address} cannot be joined (does it want RAY_AUTH_MODE=token in the environment?)"
        raise PoolError(f"{where}: {' '.join(str(error).split())[:300]}") from error
    _keep_to_user(Path.home() / ".ray" / "auth_token")
    head = ray.get_runtime_context().gcs_address
    if address and not _is_loopback(head) and os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        ray.shutdown()
        raise PoolError(
            f"the cluster at {head} is open to the network, and whoever reaches it may run programs there: start it "
            "with RAY_AUTH_MODE=token in the environment of all nodes, and train with that, too (docs/cluster.md)"
        )
    return f"http://{context.dashboard_url}" if context.dashboard_url else None


def _own_folder() -> dict[str, str]:
    """Where Ray puts logs and sockets: a folder that is closed to others, for Ray opens what lies in it to all."""
    folder = platformdirs.user_cache_path("crownhead", appauthor=False) / "ray"
    if len(str(folder)) > _LONGEST_FOLDER:
        return {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError:  # a home that cannot be written to
        return {}
    return {"_temp_dir": str(folder)}


def _keep_to_user(path: Path) -> None:
    """Ray writes the token so that all users of the machine can read it."""
    try:
        path.chmod(0o600)
    except OSError:
        return


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
