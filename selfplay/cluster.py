"""Ray: started on this machine, or a cluster joined. The only module that imports it."""

import contextlib
import ipaddress
import logging
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

_OBJECT_STORE_BYTES = 128 * 1024**2  # it carries weights and games
_ANSWER_S = 5.0  # seconds that a cluster's head node gets to answer
_LONGEST_FOLDER = 40  # characters; the paths of Ray's sockets have 62 more, and may have 103


class ClusterError(ValueError):
    """Ray that cannot be started, or a cluster that cannot be joined; the message says why."""


class Cluster:
    """Ray at work, joined or started by this process; raises ``ClusterError``.

    Args:
        address: of a cluster's head node; None: a Ray of its own on this machine, which listens on loopback alone.

    Attributes:
        ray: the module.
        dashboard: the address of its dashboard, if it has one.
    """

    def __init__(self, address: str | None) -> None:
        if address:
            check_address(address)
        self.ray = _import_ray(address)
        self.dashboard = _connect(self.ray, address)
        self._last: list[Mapping[str, Any]] = []

    def nodes(self) -> list[Mapping[str, Any]]:
        """The nodes that are alive, as Ray describes them; while the head node does not answer, those it named last."""
        with contextlib.suppress(self.ray.exceptions.RayError):
            self._last = [node for node in self.ray.nodes() if node["Alive"]]
        return self._last

    def cpus(self) -> dict[str, int]:
        """The CPUs of each node that is alive, by its name in Ray's books."""
        return {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in self.nodes()}

    def result(self, request: Any) -> Any:
        """What a process has answered; raises what it has raised, or Ray's own error where it has died."""
        try:
            return self.ray.get(request)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None

    def is_done(self, request: Any) -> bool:
        return bool(self.ray.wait([request], timeout=0)[0])

    @staticmethod
    def on_node(node: str) -> Any:
        """A scheduling strategy: on this node or nowhere."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node, soft=False)


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
        raise ClusterError(
            f"--pool ray needs Ray (pip install 'crownhead[ray]'), or use --pool local: {error}"
        ) from error
    return ray


def check_address(address: str) -> None:
    """Raises ``ClusterError`` if nothing answers where a cluster is said to be; Ray itself would try for minutes.

    Args:
        address: ``HOST:PORT``, with or without ``ray://``; for other words (``auto``) Ray looks by itself.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(
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
        raise ClusterError(f"{where}: {' '.join(str(error).split())[:300]}") from error
    _keep_to_user(Path.home() / ".ray" / "auth_token")
    head = ray.get_runtime_context().gcs_address
    if address and not _is_loopback(head) and os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        ray.shutdown()
        raise ClusterError(
            f"the cluster at {head} is open to the network, and whoever reaches it may run programs there: start it "
            "with RAY_AUTH_MODE=token in the environment of all nodes, and train with that, too (docs/cluster.md)"
        )
    return f"http://{context.dashboard_url}" if context.dashboard_url else None


def _own_folder() -> dict[str, str]:
    """Folder for Ray's logs and sockets, closed to other users: Ray itself makes what lies in it readable to all."""
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
