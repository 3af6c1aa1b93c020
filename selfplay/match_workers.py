"""Workers that play the games of a match: processes of this machine, each with one thread. Messages are JSON."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Protocol

from pydantic import TypeAdapter

from .match_players import Players
from .match_record import MatchGame
from .match_tasks import Task
from .openings import MatchError
from .processes import follow_parent, no_interrupt

_LEAVE_S = 2.0  # seconds that a process gets to end its engines and itself
_MESSAGE: TypeAdapter[MatchGame | str | None] = TypeAdapter(MatchGame | str | None)
"""What a worker says: a game that is over, what went wrong, or that it has played all."""


class MatchWorker(ABC):
    """Somebody who plays, elsewhere.

    Attributes:
        task: those of its games that are not over; None if it has none.
    """

    task: Task | None = None

    def receive(self) -> MatchGame | None:
        """A game that is over; None once all are.

        Raises:
            EOFError, OSError: it has died.
            MatchError: it cannot play.
        """
        message = _MESSAGE.validate_json(self._listen())
        if isinstance(message, str):
            raise MatchError(message)
        if message is None:
            self.task = None
        return message

    def is_ready(self) -> bool:
        """Whether it may be given a task; one that still waits for a place may not."""
        return True

    @abstractmethod
    def send(self, task: Task) -> None:
        """Gives it a task; one that has died says so when it is listened to."""

    @abstractmethod
    def _listen(self) -> bytes:
        """The worker's next message; see ``receive``."""

    @abstractmethod
    def stop(self) -> None:
        """Tells it to end."""

    @abstractmethod
    def end(self) -> str:
        """Waits until it has ended, with force in the end; returns how it ended."""


class Staff(Protocol):
    """Where workers come from."""

    def capacity(self) -> int:
        """How many there may be now."""

    def hire(self) -> MatchWorker: ...

    def wait(self, workers: Sequence[MatchWorker], timeout: float) -> Sequence[MatchWorker]:
        """Workers with a message, or that have died; waits up to ``timeout`` seconds for the first."""


class ProcessStaff:
    """Processes of this machine, ``jobs`` at the most."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def capacity(self) -> int:
        return self._jobs

    def hire(self) -> MatchWorker:
        return _Process()

    def wait(self, workers: Sequence[MatchWorker], timeout: float) -> Sequence[MatchWorker]:
        connections = {worker.connection: worker for worker in workers if isinstance(worker, _Process)}
        ready = multiprocessing.connection.wait(list(connections), timeout)
        return [connections[connection] for connection in ready]  # type: ignore[index]


class _Process(MatchWorker):
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        with no_interrupt():
            self.process.start()
        other.close()

    def send(self, task: Task) -> None:
        self.task = task
        with contextlib.suppress(OSError):
            self.connection.send_bytes(task.encode())

    def _listen(self) -> bytes:
        return self.connection.recv_bytes()

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
    """A process: plays the tasks it is sent until there is nobody to send any."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that engines are ended
    follow_parent()
    players = Players()
    try:
        while True:
            for message in messages(players, connection.recv_bytes()):
                connection.send_bytes(message)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        players.close()


def messages(players: Players, task: bytes) -> Iterator[bytes]:
    """Plays the games of a task and says so, as ``MatchWorker.receive`` understands it."""
    try:
        for game in players.play(Task.decode(task)):
            yield _MESSAGE.dump_json(game)
    except Exception as error:
        if os.environ.get("CROWNHEAD_DEBUG"):
            raise
        expected = isinstance(error, (ValueError, OSError))
        yield _MESSAGE.dump_json(str(error) if expected else f"a player failed by {type(error).__name__}: {error}")
    else:
        yield _MESSAGE.dump_json(None)
