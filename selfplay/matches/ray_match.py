"""Plays matches on the nodes of a Ray cluster. A node needs only the package: networks are sent to it."""

import logging
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.players.spec import NetworkSpec
from learner.student import STUDENT_FOLDER

from ..machines.cluster import Cluster, ClusterError, Patience, ProcessFolder, reason_of
from .players import Players
from .tasks import Task
from .workers import MatchWorker, Message, messages

_PATIENCE_S = 0.2  # seconds to sleep while no worker plays
_LOOK_S = 2.0  # seconds between two queries of the cluster
_MOST_FAILURES = 5  # starts of one worker in a row that may fail; if all workers reach it, the match ends
_RESTART_S = 60.0  # pause after so many, if others play
_LOG = logging.getLogger(__name__)

Files = Mapping[str, bytes]
"""Path below a network's folder → contents of the file."""


class _RayPlayers:
    """A Ray actor on a node that plays tasks; see ``messages``."""

    def __init__(self) -> None:
        self._folder = ProcessFolder("match")
        self._players = Players()

    def here(self) -> str:
        return socket.gethostname()

    def play(self, task: Task, names: Sequence[str], *networks: Files) -> Iterator[Message]:
        for name, files in zip(names, networks, strict=True):
            if name not in self._players.folders:
                self._players.folders[name] = self._unpacked(files, str(len(self._players.folders)))
        yield from messages(self._players, task)

    def _unpacked(self, files: Files, name: str) -> str:
        folder = self._folder.path / name
        for path, data in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return str(folder)


class RayStarter:
    """Starts workers on a cluster, one for so many CPUs; raises ``ClusterError`` if the cluster cannot be joined.

    Args:
        cpus: of each worker; fewer where no node has so many now.
    """

    def __init__(self, address: str, cpus: int = 1) -> None:
        self.cluster = Cluster(address)
        self._cpus_each = max(1, min(cpus, max(self.cluster.cpus().values(), default=1)))
        if self._cpus_each < cpus:
            _LOG.warning("a player ponders, and no node has %d CPUs: it does so at the cost of the other", cpus)
        self._worker_class: Any = self.cluster.ray.remote(num_cpus=self._cpus_each, max_restarts=0)(_RayPlayers)
        self._networks: dict[str, Any] = {}
        self.workers: list[_RayWorker] = []
        self._places, self._look_at = 0, 0.0
        self._patience = Patience("games begin when one is; a training also takes them all")

    def capacity(self) -> int:
        if time.monotonic() >= self._look_at:
            self._places = sum(cpus // self._cpus_each for cpus in self.cluster.cpus().values())
            self._look_at = time.monotonic() + _LOOK_S
        return max(1, self._places)

    def start_worker(self) -> MatchWorker:
        self.workers.append(_RayWorker(self))
        return self.workers[-1]

    def network(self, folder: str) -> Any:
        """Ray's reference to the files of a checkpoint; Ray sends them to each node once."""
        if folder not in self._networks:
            path = Path(folder)
            files = {
                file.relative_to(path).as_posix(): file.read_bytes()
                for file in [*path.glob("*.*"), *path.glob(f"{STUDENT_FOLDER}/*.*")]
                if file.suffix in (".json", ".safetensors")
            }
            self._networks[folder] = self.cluster.ray.put(files)
        return self._networks[folder]

    def wait(self, workers: Sequence[MatchWorker], timeout: float) -> Sequence[MatchWorker]:
        asked = {worker.answers: worker for worker in workers if isinstance(worker, _RayWorker)}
        if not asked:
            self._patience.wait(_PATIENCE_S)
            return []
        self._patience.reset()
        ready, _ = self.cluster.ray.wait(list(asked), timeout=timeout)
        return [asked[answers] for answers in ready]

    def start_actor(self) -> Any:
        """Asks Ray for a new process, which starts when a CPU is free."""
        return self._worker_class.remote()


class _RayWorker(MatchWorker):
    def __init__(self, starter: RayStarter) -> None:
        self._starter, self._ray = starter, starter.cluster.ray
        self._begin()
        self._how, self.failures, self._begin_at = "", 0, 0.0
        self.answers: Any = None

    def _begin(self) -> None:
        self._actor: Any = self._starter.start_actor()
        self._greeting, self._ready = self._actor.here.remote(), False

    def is_ready(self) -> bool:
        if self._actor is None and time.monotonic() >= self._begin_at:
            self._begin()
        if self._actor is not None and not self._ready and self._starter.cluster.is_done(self._greeting):
            try:
                self._ray.get(self._greeting)
                self._ready, self.failures = True, 0
            except self._ray.exceptions.RayError as error:  # its node was lost before it started, or cannot start it
                self._fail(error)
        return self._ready

    def _fail(self, error: Exception) -> None:
        """Starts another process; after several failures only later, since Ray may choose the same node again.

        Raises ``ClusterError`` if no worker starts.
        """
        self.failures += 1
        if self.failures < _MOST_FAILURES:
            self._begin()
            return
        reason = reason_of(error)
        if all(worker.failures >= _MOST_FAILURES for worker in self._starter.workers):
            raise ClusterError(f"a process could not be started {_MOST_FAILURES} times: {reason}") from error
        _LOG.warning("a process cannot be started, to be tried again in %.0f s: %s", _RESTART_S, reason)
        self._actor, self._begin_at = None, time.monotonic() + _RESTART_S

    def send(self, task: Task) -> None:
        self.task = task
        folders = sorted({spec.folder for spec in task.pairing.players if isinstance(spec, NetworkSpec)})
        networks = [self._starter.network(task.folders[folder]) for folder in folders]
        self.answers = self._actor.play.options(num_returns="streaming").remote(task, folders, *networks)

    def _listen(self) -> Message:
        try:
            answer: Message = self._ray.get(next(self.answers))
        except (self._ray.exceptions.RayError, StopIteration) as error:
            self._how = reason_of(error)
            raise EOFError(self._how) from error
        return answer

    def stop(self) -> None:
        self._starter.workers.remove(self)
        if self._actor is not None:
            self._ray.kill(self._actor)

    def end(self) -> str:
        return self._how
