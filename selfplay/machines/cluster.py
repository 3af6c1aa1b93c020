"""Starts Ray on this machine, or joins a Ray cluster. The only module that imports Ray."""

import contextlib
import ipaddress
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import platformdirs

from engine.errors import one_line
from engine.files import open_locked

_OBJECT_STORE_BYTES = 128 * 1024**2  # it carries weights and games
_ANSWER_S = 5.0  # seconds to wait for an answer of a cluster's head node
_STATUS_S = 60.0  # seconds to wait until the head node answers, or refuses who has no token
_LONGEST_FOLDER = 40  # characters; Ray's socket paths are 62 longer, and the system allows 103
_PLACE_S = 60.0  # seconds without a free CPU before the first warning
_WORDS = ("auto", "local")  # in place of an address
_LOG = logging.getLogger(__name__)


class ClusterError(ValueError):
    """Ray cannot be started, or a cluster cannot be joined; the message says why."""


class Cluster:
    """A Ray cluster that this process has joined or started; raises ``ClusterError``.

    Args:
        address: address of a cluster's head node; None: start Ray on this machine, listening on loopback only.

    Attributes:
        ray: the module ``ray``.
        dashboard: address of the cluster's dashboard; None if it has none.
    """

    def __init__(self, address: str | None) -> None:
        if address:
            check_address(address)
        self.ray = _import_ray(address)
        if address and address not in _WORDS and not address.startswith("ray://"):
            _check_head(address)
        with _same_sigterm():
            self.dashboard = _connect(self.ray, address)
        self._last: list[Mapping[str, Any]] = []

    def nodes(self) -> list[Mapping[str, Any]]:
        """Returns Ray's descriptions of the live nodes; if the head node does not answer, those of its last answer."""
        with contextlib.suppress(self.ray.exceptions.RayError):
            self._last = [node for node in self.ray.nodes() if node["Alive"]]
        return self._last

    def cpus(self) -> dict[str, int]:
        """Ray's node id → number of CPUs, for each live node."""
        return {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in self.nodes()}

    def result(self, request: Any) -> Any:
        """Returns the answer of a remote call; raises the exception of the call, or Ray's error if its process died."""
        try:
            return self.ray.get(request)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None

    def is_done(self, request: Any) -> bool:
        return bool(self.ray.wait([request], timeout=0)[0])

    @staticmethod
    def on_node(node: str) -> Any:
        """A scheduling strategy: run on this node or not at all."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node, soft=False)


def start_error(error: Exception) -> str:
    """Why a machine could not start an actor, if that is what one of Ray's errors tells; else "".

    The error itself is the last line of many, the others are Ray's.
    """
    if not getattr(error, "actor_init_failed", False):
        return ""
    text = str(error).strip()
    machine, reason = re.search(r"ip=([^,)]+)", text), text.splitlines()[-1].strip()[:100]
    is_of_package = reason.startswith(("ModuleNotFoundError", "ImportError", "AttributeError"))
    advice = "; it needs this package, in the same version" if is_of_package else ""
    return f"{machine[1]}: {reason}{advice}" if machine else reason + advice


def reason_of(error: Exception) -> str:
    """What one of Ray's errors says, in one line."""
    return start_error(error) or one_line(error)


class Patience:
    """Waits while the cluster does nothing for this process, and warns from time to time.

    Args:
        what: what begins when a CPU is free.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.reset()

    def reset(self) -> None:
        """Called when something is going on."""
        self._warn_at = time.monotonic() + _PLACE_S

    def wait(self, seconds: float) -> None:
        if time.monotonic() >= self._warn_at:
            _LOG.warning("no CPU of the cluster is free: %s", self._what)
            self._warn_at = time.monotonic() + 10 * _PLACE_S
        time.sleep(seconds)


def _import_ray(address: str | None) -> Any:
    """Imports Ray, after setting the environment variables that it reads at import.

    Without an address, RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 makes Ray's processes listen on loopback only (a loopback
    ``_node_ip_address`` would be replaced). Despite its name, Ray reads this variable on all systems.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # lets actors use the GPU without reserving one
    if not address:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        os.environ.setdefault("RAY_worker_niceness", "0")  # else 15, to which an actor's own priority would be added
    try:
        import ray
    except ModuleNotFoundError as error:
        what, instead = ("--address", "leave it out") if address else ("--pool ray", "use --pool local")
        raise ClusterError(f"{what} needs Ray (pip install 'crownhead[ray]'), or {instead}: {error}") from error
    return ray


def check_address(address: str) -> None:
    """Raises ``ClusterError`` if nothing answers at ``address``; Ray itself would try for minutes.

    Args:
        address: ``HOST:PORT``, with or without ``ray://``; or Ray's words ``auto`` and ``local``.
    """
    if address in _WORDS:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(
            f"no Ray cluster answers at {address}: {error}; write HOST:PORT of its head node, or leave --address out"
        ) from error


@contextlib.contextmanager
def _same_sigterm() -> Iterator[None]:
    """Restores this process's handler of SIGTERM, in place of which Ray sets one, in the main thread, that saves
    nothing."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():  # no other may set one
            signal.signal(signal.SIGTERM, before)


def _connect(ray: Any, address: str | None) -> str | None:
    """Starts or joins a cluster; returns the address of its dashboard, if it has one."""
    own = {} if address else {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES, **_own_folder()}
    if ray.is_initialized():  # by an earlier match of this process
        ray.shutdown()
    try:  # "local" starts Ray anew, even if a cluster is running on this machine
        context = ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    except (ray.exceptions.RayError, ConnectionError, OSError, RuntimeError, ValueError) as error:
        where = "Ray cannot be started"
        if address:
            where = f"the cluster at {address} cannot be joined"
        raise ClusterError(f"{where}: {' '.join(str(error).split())[:300]}") from error
    _keep_to_user(Path.home() / ".ray" / "auth_token")
    head = ray.get_runtime_context().gcs_address
    if address and not _is_loopback(head) and _is_open(head):
        ray.shutdown()
        raise ClusterError(
            f"the cluster at {head} is open to the network, and whoever reaches it may run programs there: start it "
            "with RAY_AUTH_MODE=token in the environment of all nodes and of this command (docs/cluster.md)"
        )
    return f"http://{context.dashboard_url}" if context.dashboard_url else None


class ProcessFolder:
    """A new folder for the files of this process. Ray kills its processes, so that none can clean up after itself: each
    removes what those left that are gone.

    Attributes:
        path: of the folder.
    """

    def __init__(self, kind: str) -> None:
        for left in Path(tempfile.gettempdir()).glob(f"crownhead-{kind}-*"):
            with contextlib.suppress(OSError):
                # Others could have put a link into theirs. The lock is held as long as its process lives.
                if os.name == "nt" or left.lstat().st_uid == os.getuid():
                    with open_locked(left / "lock"):
                        shutil.rmtree(left, ignore_errors=True)
        self.path = Path(tempfile.mkdtemp(prefix=f"crownhead-{kind}-"))
        self._held = open_locked(self.path / "lock")


def _own_folder() -> dict[str, str]:
    """Ray's setting of a folder for logs and sockets that only this user can open; {} if it is not usable.

    Ray would make its files readable to all users.
    """
    folder = platformdirs.user_cache_path("crownhead", appauthor=False) / "ray"
    if len(str(folder)) > _LONGEST_FOLDER:
        return {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError:  # the home folder cannot be written to
        return {}
    return {"_temp_dir": str(folder)}


def _keep_to_user(path: Path) -> None:
    """Makes the file readable for this user only; Ray writes its token readable for all."""
    try:
        path.chmod(0o600)
    except OSError:
        return


def _status(address: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What ``ray status`` says of a cluster; raises ``TimeoutExpired``."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, errors="replace", timeout=_STATUS_S
    )


def _check_head(address: str) -> None:
    """Raises ``ClusterError`` if no head node of a cluster is there, or it refuses this process.

    Joining would try 20 times, for up to a quarter of an hour, and would not say why it failed.
    """
    advice = f"write HOST:PORT of a head node in place of {address}, not of its dashboard, or leave --address out"
    try:
        answer = _status(address)
    except subprocess.TimeoutExpired:
        raise ClusterError(f"what listens at {address} does not answer as a Ray cluster: {advice}") from None
    if not answer.returncode:
        return
    reason = (answer.stderr.strip().splitlines() or [f"ray status fails with {answer.returncode}"])[-1]
    if "authentication" not in answer.stderr.lower():
        raise ClusterError(f"no Ray cluster answers at {address}: {reason[:200]}; {advice}")
    if _has_token_mode():
        wanted = "refuses the token of this command, or there is none: copy ~/.ray/auth_token from the head node"
    else:
        wanted = "wants a token: copy ~/.ray/auth_token from the head node, and export RAY_AUTH_MODE=token"
    raise ClusterError(f"the cluster at {address} {wanted} (docs/cluster.md)")


def _has_token_mode() -> bool:
    return os.environ.get("RAY_AUTH_MODE", "").lower() == "token"


def _is_open(address: str) -> bool:
    """Whether the cluster answers who has no token. A token of this process says nothing: an open one ignores it."""
    if not _has_token_mode():
        return True  # it has answered
    try:
        return _status(address, RAY_AUTH_MODE="disabled").returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
