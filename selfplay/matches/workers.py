"""Workers that play the games of a match: processes of this machine with one thread each."""

import contextlib
import multiprocessing.connection
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, TypeAlias

from ..games.openings import MatchError
from ..machines.processes import follow_parent, no_interrupt, on_sigterm, player_context
from .players import Players
from .record import MatchGame
from .tasks import Task

if TYPE_CHECKING:
    from .ray_match import RayStarter

_LEAVE_S = 10.0  # most seconds for a process to end its engines, some of which must be killed, and itself
Message = MatchGame | str | None
"""A message of a worker: a finished game, an error (str), or None at the end of its task."""
WorkerStarter: TypeAlias = "ProcessStarter | RayStarter"
"""What starts workers; ``ProcessStarter`` documents the methods."""


class MatchWorker(ABC):
    """A process that plays games, here or on another machine.

    Attributes:
        task: its task without the finished games; None if it has no task.
    """

    task: Task | None = None

    def receive(self) -> MatchGame | None:
        """Returns a finished game; None once the task is done.

        Raises:
            EOFError, OSError: the worker has died.
            MatchError: the worker cannot play.
        """
        message = self._listen()
        if isinstance(message, str):
            raise MatchError(message)
        if message is None:
            self.task = None
        return message

    def is_ready(self) -> bool:
        """Whether it can take a task; false while it waits for a place in a cluster."""
        return True

    @abstractmethod
    def send(self, task: Task) -> None:
        """Sends a task; if the worker has died, only ``receive`` raises."""

    @abstractmethod
    def _listen(self) -> Message:
        """The worker's next message; see ``receive``."""

    @abstractmethod
    def stop(self) -> None:
        """Tells the worker to end."""

    @abstractmethod
    def end(self) -> str:
        """Waits until the worker has ended, and kills it after some time; returns how it ended."""


class ProcessStarter:
    """Starts processes of this machine, at most ``jobs``."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def capacity(self) -> int:
        """Number of workers that there may be now."""
        return self._jobs

    def start_worker(self) -> MatchWorker:
        return _Process()

    def wait(self, workers: Sequence[MatchWorker], timeout: float) -> Sequence[MatchWorker]:
        """Returns workers that have a message or have died; waits up to ``timeout`` seconds for the first one."""
        connections = {worker.connection: worker for worker in workers if isinstance(worker, _Process)}
        ready = multiprocessing.connection.wait(list(connections), timeout)
        return [connections[connection] for connection in ready]  # type: ignore[index]


class _Process(MatchWorker):
    def __init__(self) -> None:
        context = player_context()
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        with no_interrupt():
            self.process.start()
        other.close()

    def send(self, task: Task) -> None:
        self.task = task
        with contextlib.suppress(OSError):
            self.connection.send(task)

    def _listen(self) -> Message:
        message: Message = self.connection.recv()
        return message

    def stop(self) -> None:
        self.process.terminate()

    def end(self) -> str:
        self.process.join(_LEAVE_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()
        return f"exit code {self.process.exitcode}"


def _work(connection: Connection) -> None:
    """Main function of a process: plays the tasks that it receives until the connection is closed."""
    on_sigterm(lambda *_: _leave(connection))
    follow_parent()
    players = Players()
    try:
        while True:
            for message in messages(players, connection.recv()):
                connection.send(message)
    except (EOFError, OSError):
        pass
    finally:
        players.close()


def _leave(connection: Connection) -> None:
    """Ends this process and its external engines, without another message.

    Where Numba compiles, the exception may be lost in a callback, and the player then fails: no lost game of its own.
    """
    connection.close()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.exit(1)


def messages(players: Players, task: Task) -> Iterator[Message]:
    """Plays the games of a task; yields messages for ``MatchWorker.receive``."""
    try:
        yield from players.play(task)
    except Exception as error:
        if os.environ.get("CROWNHEAD_DEBUG"):
            raise
        expected = isinstance(error, (ValueError, OSError))
        yield str(error) if expected else f"a player failed by {type(error).__name__}: {error}"
    else:
        yield None
