"""The pool of Ray actors: on this machine, or on a cluster that shares the run's folder. The only module with Ray."""

import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .config import RunConfig
from .knowledge import endgame_knowledge
from .pool import Pool, PoolError
from .processes import give_way
from .worker import Played, Weights, Worker

_OBJECT_STORE_BYTES = 128 * 1024**2  # it carries weights only
_ANSWER_S = 5.0  # that a cluster's head node gets to answer


class _RayWorker(Worker):
    def __init__(self, *arguments: Any) -> None:
        give_way()
        super().__init__(*arguments)


class RayPool(Pool):
    """Actors as Ray processes, see ``Pool``; raises ``PoolError`` if Ray cannot be started or a cluster not joined."""

    def __init__(self, config: RunConfig, next_path: Callable[[], Path], start: int) -> None:
        self._ray = _import_ray(config.address)
        _connect(self._ray, config.address)
        self.dead = self._ray.exceptions.RayActorError
        # A CPU is only an entry in Ray's books here; half a one lets the learner share the machine.
        self._worker_class: Any = self._ray.remote(num_cpus=0.5, max_restarts=0)(_RayWorker)
        super().__init__(config, next_path, start)

    def _start(self, number: int, seed: int) -> Any:
        return self._worker_class.remote(self._config, number, seed, endgame_knowledge)

    def _ask(self, handle: Any, path: Path, weights: Any) -> Any:
        return handle.play.remote(str(path), weights)

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

    def close(self) -> None:
        """See ``Pool.close``; also leaves the cluster, or ends the Ray that this pool has started."""
        self._ray.shutdown()


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


def _connect(ray: Any, address: str | None) -> None:
    own = {} if address else {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:  # "local" is never a cluster that happens to run on this machine
        ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    except (ray.exceptions.RayError, ConnectionError, OSError, RuntimeError, ValueError) as error:
        where = "Ray cannot be started"
        if address:
            where = f"the cluster at {address} cannot be joined (does it want RAY_AUTH_MODE=token in the environment?)"
        raise PoolError(f"{where}: {' '.join(str(error).split())[:300]}") from error
