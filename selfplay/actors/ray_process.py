"""The pool of Ray actors in a separate process, whose death does not end the learner.

If Ray's daemon on this machine dies, Ray ends the process that has started or joined it. So this is a separate process
and not the learner. It is started again, with a new Ray if needed; only games in play are lost. It also stops Ray after
a learner was killed.
"""

import contextlib
import logging
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from engine.errors import one_line
from engine.interrupts import interrupt_held

from ..machines.cluster import ClusterError
from ..machines.processes import leave_with_parent, no_interrupt
from ..run.config import RunConfig
from .pool import REQUESTS_IN_FLIGHT, PoolError, Result
from .pool_match import PoolMatch
from .weights import Weights

_MOST_DEATHS = 5  # deaths in a row, without a result in between, that end the run
_MOST_LOSSES = 12  # the same with a cluster, whose head may take minutes to come back
_LONGEST_PAUSE_S = 60.0
_START_S = 180.0  # seconds to wait for Ray to start
_LEAVE_S = 20.0  # seconds to wait for Ray to end
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Answer:
    """A message of the pool's process: results or an error, and the state of the pool.

    Attributes:
        size, in_flight, started, dashboard: see ``Pool``.
        warnings: texts that its loggers have written.
        last: whether the pool is closed.
    """

    played: list[Result]
    error: Exception | None = None
    size: int = 0
    in_flight: int = 0
    started: int = 0
    dashboard: str | None = None
    warnings: tuple[str, ...] = ()
    last: bool = False


class RayProcess:
    """Runs ``RayPool`` in another process; calls do not wait longer for Ray than they are asked to.

    Raises:
        ClusterError: Ray is not installed or cannot be started, or the cluster cannot be joined.
    """

    def __init__(self, config: RunConfig, start: int) -> None:
        self.size = self.in_flight = 0
        self.dashboard: str | None = None
        self._config, self._started = config, start
        self._told: dict[str, tuple[Any, ...]] = {}  # method of the pool → its latest arguments
        self._wanted: int | None = None
        self._asked = self._ready = self._has_run = False
        self._untold: dict[str, tuple[Any, ...]] = {}  # of these, what it has not been told yet
        self._deaths, self._begin_at, self._answer_by = 0, 0.0, math.inf
        self._played: list[Result] = []
        self._connection: Connection | None = None
        self._begin()
        self._wait(_START_S)
        if not self._ready:
            self._process.kill()
            raise PoolError(f"Ray has not started within {_START_S:.0f} s: see its logs, or try --pool local")

    def set_weights(self, weights: Weights) -> None:
        """See ``Pool.set_weights``."""
        self._tell("set_weights", weights)

    def set_teacher(self, weights: Weights, share: float) -> None:
        """See ``Pool.set_teacher``."""
        self._tell("set_teacher", weights, share)

    def set_opponent(self, weights: Weights) -> None:
        """See ``Pool.set_opponent``."""
        self._tell("set_opponent", weights)

    def set_match(self, match: PoolMatch | None) -> None:
        """See ``Pool.set_match``."""
        self._tell("set_match", match)

    def refill(self, in_flight: int = REQUESTS_IN_FLIGHT) -> None:
        """See ``Pool.refill``; takes effect at the next ``collect``."""
        if "set_weights" not in self._told:
            raise PoolError("the pool has no weights yet: call set_weights first")
        self._wanted = in_flight

    def collect(self, timeout: float) -> list[Result]:
        """See ``Pool.collect``."""
        if self._connection is None and time.monotonic() >= self._begin_at:
            self._begin()
        if not self._asked:
            # Only now, when it reads: what both sides send at the same time would fill the pipe, and both would wait.
            for method in list(self._untold):
                if self._send(method, *self._untold[method]):
                    self._untold.pop(method, None)
            self._asked = self._send("collect", self._wanted, timeout)
            self._wanted = None if self._asked else self._wanted
            self._answer_by = time.monotonic() + _START_S if self._asked else self._answer_by
        self._wait(timeout)
        if self._connection is not None and time.monotonic() >= self._answer_by and not self._connection.poll():
            self._died(TimeoutError(f"its process has not answered within {_START_S:.0f} s"))
        played, self._played = self._played, []
        return played

    def close(self) -> list[Result]:
        """See ``Pool.close``."""
        self._send("close")
        end, last = time.monotonic() + _LEAVE_S, False
        with contextlib.suppress(EOFError, OSError):  # if the process has died, its results are lost
            while self._connection is not None and time.monotonic() < end and not last:
                if (answer := self._receive(self._connection, 1.0)) is not None:
                    self._played += answer.played
                    last = answer.last
        if self._connection is not None:
            self._connection.close()
        self._process.join(max(0.0, end - time.monotonic()))
        self._process.kill()
        return self._played

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        arguments = (other, self._config, self._started)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        with no_interrupt():
            self._process.start()
        other.close()
        self._ready = self._asked = False
        self._answer_by = time.monotonic() + _START_S

    def _tell(self, method: str, *arguments: Any) -> None:
        """Has the pool call a method at the next ``collect``, also the pools of processes to come."""
        self._told[method] = arguments
        self._untold[method] = arguments

    def _send(self, *message: Any) -> bool:
        """Sends a message if the process is ready; returns whether it was sent."""
        if self._connection is None or not self._ready:
            return False
        try:
            with interrupt_held():
                self._connection.send(message)
        except OSError as error:
            self._died(error)
        return self._ready

    def _wait(self, timeout: float) -> None:
        """Waits up to ``timeout`` seconds for an answer."""
        if self._connection is None:
            time.sleep(timeout)
            return
        try:
            answer = self._receive(self._connection, timeout)
        except (EOFError, OSError) as error:
            self._died(error)
            return
        if answer is not None:
            self._store(answer)

    @staticmethod
    def _receive(connection: Connection, timeout: float) -> _Answer | None:
        """The next answer; None if none comes within ``timeout`` seconds."""
        if not connection.poll(timeout):
            return None
        with interrupt_held():  # an answer read by half would spoil the next ones
            answer: _Answer = connection.recv()
        return answer

    def _store(self, answer: _Answer) -> None:
        """Stores an answer; raises the error of the process, if it has one."""
        for warning in answer.warnings:
            _LOG.warning("%s", warning)
        if isinstance(answer.error, ClusterError) and self._deaths:  # Ray worked before, so try again
            self._died(answer.error)
            return
        if answer.error is not None:
            self._played += answer.played  # for ``close``
            raise answer.error
        self._asked, self._answer_by = False, math.inf
        self._played += answer.played
        self._deaths = 0 if answer.played else self._deaths
        self.size, self.in_flight, self._started = answer.size, answer.in_flight, answer.started
        self.dashboard = answer.dashboard
        if not self._ready:
            self._ready = self._has_run = True
            self._untold = dict(self._told)

    def _died(self, error: Exception) -> None:
        self._process.kill()
        if self._connection is not None:
            self._connection.close()
        self._connection, self._ready = None, False
        if not self._has_run:
            raise PoolError(f"Ray could not be started here ({one_line(error)}): try --pool local") from error
        self.size = self.in_flight = 0
        self._deaths += 1
        reason, address = one_line(error), self._config.address
        where = "on this machine" if address is None else f"for the cluster at {address}"
        if self._deaths >= (_MOST_DEATHS if address is None else _MOST_LOSSES):
            advice = "try --pool local" if address is None else "start its head again, then go on with --resume"
            raise PoolError(f"Ray has ended {self._deaths} times in a row {where} ({reason}): {advice}") from error
        pause = min(2.0 ** (self._deaths - 1), _LONGEST_PAUSE_S)
        self._begin_at = time.monotonic() + pause
        _LOG.warning(
            "Ray has ended %s (%s), the games in play are lost; it is started again in %.0f s", where, reason, pause
        )


class _Warnings(logging.Handler):
    """Keeps warnings until ``take``."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._texts: deque[str] = deque()

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(record.getMessage())

    def take(self) -> tuple[str, ...]:
        taken = tuple(self._texts)
        self._texts.clear()
        return taken


def _serve(connection: Connection, config: RunConfig, start: int) -> None:
    """Main function of the process: makes a ``RayPool`` and answers messages."""
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole job; only the learner saves
        signal.signal(number, signal.SIG_IGN)
    if not os.environ.get("CROWNHEAD_DEBUG"):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)  # Ray writes long messages to both when its daemon has died
        os.dup2(nowhere, 2)
    warnings = _Warnings()
    logging.getLogger("selfplay").addHandler(warnings)
    logging.getLogger("selfplay").propagate = False
    leave_with_parent(_LEAVE_S)  # Ray ends with this process
    try:
        _answer(connection, config, start, warnings)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the learner has gone
    except Exception as error:
        connection.send(_Answer([], error, warnings=warnings.take()))


def _answer(connection: Connection, config: RunConfig, start: int, warnings: _Warnings) -> None:
    from .ray_pool import RayPool

    pool = RayPool(config, start)

    def answer(played: list[Result]) -> None:
        figures = pool.size, pool.in_flight, pool.started, pool.dashboard
        connection.send(_Answer(played, None, *figures, warnings.take()))

    answer([])
    while True:
        match connection.recv():
            case ("collect", wanted, timeout):
                try:
                    if wanted is not None:
                        pool.refill(wanted)
                    played = pool.collect(timeout)
                except Exception as error:
                    played = []
                    with contextlib.suppress(Exception):  # Ray may have gone
                        played = pool.close()
                    connection.send(_Answer(played, error, warnings=warnings.take()))
                    return
                answer(played)
            case ("close",):
                connection.send(_Answer(pool.close(), warnings=warnings.take(), last=True))
                return
            case (method, *arguments):  # see ``RayProcess._tell``
                getattr(pool, method)(*arguments)
