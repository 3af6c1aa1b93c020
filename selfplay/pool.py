"""Pools of actors: what all have in common, and the in-process pool."""

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from engine.errors import one_line
from engine.interrupts import interrupt_held

from .config import RunConfig
from .knowledge import endgame_knowledge
from .pool_match import MatchPart, MatchPlayed, PoolMatch
from .weights import Weights
from .worker import Played, Worker, actors_here

REQUESTS_IN_FLIGHT = 2  # per actor: the one it works on, and one that it finds when it is done
_MOST_FAILURES = 5  # failures of every actor in a row, without a shard in between
_LONGEST_PAUSE_S = 60.0  # before an actor is started again
_LOOK_S = 2.0  # between two looks at where actors could play
_LOG = logging.getLogger(__name__)


Result = Played | MatchPlayed
"""What actors deliver."""


class PoolError(ValueError):
    """A pool that cannot go on; the message says why."""


class Turns:
    """Whose weights a request is played with: the run's own, or for a fraction of the requests the teacher's."""

    def __init__(self) -> None:
        self.own: Any = None
        self._teacher: Any = None
        self._share = self._owed = 0.0

    def set_teacher(self, weights: Any, share: float) -> None:
        """See ``Pool.set_teacher``."""
        self._teacher, self._share = weights, share

    def next(self) -> Any:
        """The weights of the next request; raises ``PoolError`` while there are none."""
        if self.own is None:
            raise PoolError("the pool has no weights yet: call set_weights first")
        self._owed += self._share
        if self._owed < 1:
            return self.own
        self._owed -= 1
        return self._teacher


@dataclass(frozen=True)
class Request:
    """What an actor has been asked for: where its answer will be, and which games of a match it is about."""

    answer: Any
    part: MatchPart | None = None


@dataclass
class PoolActor:
    """What plays, as the pool knows it.

    Attributes:
        place: where it plays; see ``Pool._places``.
        handle: None while it is not running.
        requests: what it has been asked for, oldest first.
        failures: in a row.
        starts_at: when it may be started, by ``time.monotonic``.
    """

    number: int
    place: Hashable
    handle: Any = None
    requests: deque[Request] = field(default_factory=deque)
    failures: int = 0
    starts_at: float = 0.0


class Source(Protocol):
    """Where shards come from: a ``Pool``, which says what its methods do, here or in another process."""

    @property
    def size(self) -> int: ...

    @property
    def in_flight(self) -> int: ...

    @property
    def dashboard(self) -> str | None: ...

    def set_weights(self, weights: Weights) -> None: ...

    def set_teacher(self, weights: Weights, share: float) -> None: ...

    def set_match(self, match: PoolMatch | None) -> None: ...

    def refill(self, in_flight: int = REQUESTS_IN_FLIGHT) -> None: ...

    def collect(self, timeout: float) -> list[Result]: ...

    def close(self) -> list[Result]: ...


class Pool(ABC):
    """Actors that play shards, and games of a match before these.

    Requests in flight are bounded; what is finished waits to be collected.

    An actor that fails is started again, after the second failure in a row with growing pauses, and the run goes on.

    Args:
        start: larger with every start of the run that has kept any games; seeds the actors.

    Attributes:
        dead: what a request raises whose actor has died.
        nodes: machines that actors play on.
        dashboard: address of a page that shows the cluster, if there is one.
        started: actors that have been started, ``start`` included.
    """

    dead: type[Exception] | tuple[type[Exception], ...] = ()
    nodes = 1
    dashboard: str | None = None

    def __init__(self, config: RunConfig, start: int) -> None:
        self._config, self.started = config, start
        self._turns = Turns()
        self._actors: list[PoolActor] = []
        self._match_number: int | None = None
        self._match_networks: list[Any] = []
        self._parts: deque[MatchPart] = deque()
        self._look_at = 0.0
        self._staff()

    @property
    def size(self) -> int:
        """Actors that are at work."""
        return sum(self._is_ready(actor) for actor in self._actors)

    @property
    def in_flight(self) -> int:
        """What has been asked for and not been collected: at most ``REQUESTS_IN_FLIGHT`` of each actor."""
        return sum(len(actor.requests) for actor in self._actors)

    def set_weights(self, weights: Weights) -> None:
        """Weights for all requests made from now on."""
        self._turns.own = self._shared(weights)

    def set_teacher(self, weights: Weights, share: float) -> None:
        """Weights for this fraction (0 to 1) of the requests, in place of the run's own."""
        self._turns.set_teacher(self._shared(weights), share)

    def set_match(self, match: PoolMatch | None) -> None:
        """The match that is played before shards; it takes the place of another one, and None ends that."""
        self._match_number = None if match is None else match.number
        self._match_networks = [] if match is None else [self._shared(weights) for weights in match.networks]
        self._parts = deque([] if match is None else match.parts())

    def refill(self, in_flight: int = REQUESTS_IN_FLIGHT) -> None:
        """Starts actors where there is room for them, and gives each as many requests as it may hold.

        Without any ``in_flight`` they still play the match, if there is one.
        """
        self._staff()
        for actor in list(self._actors):
            while actor.handle is not None and len(actor.requests) < (in_flight or bool(self._parts)):
                part = self._parts.popleft() if self._parts else None
                try:
                    actor.requests.append(Request(self._asked(actor.handle, part), part))
                except self.dead as error:
                    self._put_back([part])
                    self._fail(actor, error)

    def _asked(self, handle: Any, part: MatchPart | None) -> Any:
        if part is None:
            return self._ask(handle, self._turns.next())
        return self._ask_match(handle, part, *self._match_networks)

    def _put_back(self, parts: Sequence[MatchPart | None]) -> None:
        """Games that somebody else has to play."""
        self._parts.extendleft(part for part in parts if part is not None and part.match == self._match_number)

    def collect(self, timeout: float) -> list[Result]:
        """What has been played since the last call; waits up to ``timeout`` seconds for the first.

        Raises:
            PoolError: all actors die again and again.
            ValueError, OSError: what an actor raises, if that is so on every machine.
        """
        self._wait([actor.requests[0].answer for actor in self._actors if actor.requests], timeout)
        played = []
        for actor in list(self._actors):
            while actor.requests and self._is_done(actor.requests[0].answer):
                try:
                    result = self._result(actor.requests[0].answer)
                except Exception as error:
                    self._fail(actor, error)
                    break
                actor.requests.popleft()
                actor.failures = 0
                if result is not None:
                    played.append(result)
        return played

    def _staff(self) -> None:
        """Starts actors whose time has come, on machines that have come, too; forgets those of machines that left."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_S
            places = self._places()
            gone = [actor for actor in self._actors if actor.place not in places]
            for actor in gone:
                _LOG.warning("actor %d has gone with its machine", actor.number)
                self._actors.remove(actor)
                self._forget_requests(actor)
            taken = {actor.place for actor in self._actors}
            for place in places:
                if place not in taken:
                    self._actors.append(PoolActor(self._free_number(), place))
        for actor in self._actors:
            if actor.handle is None and now >= actor.starts_at:
                self._start_again(actor)

    def _free_number(self) -> int:
        numbers = {actor.number for actor in self._actors}
        return next(number for number in range(len(numbers) + 1) if number not in numbers)

    def _start_again(self, actor: PoolActor) -> None:
        """Starts an actor with a seed that no other start of this run had."""
        self.started += 1
        entropy = [self._config.seed, actor.number, self.started]
        actor.handle = self._start(actor, int(np.random.SeedSequence(entropy).generate_state(1)[0]))

    def _fail(self, actor: PoolActor, error: Exception) -> None:
        """Buries an actor that has failed, to be started again."""
        died, reason = isinstance(error, self.dead), one_line(error)
        if not died and self.nodes == 1:
            raise error
        actor.failures += 1
        if all(other.failures >= _MOST_FAILURES for other in self._actors):
            if died:
                raise PoolError(f"every actor has died {_MOST_FAILURES} times in a row: {reason}") from error
            raise error
        pause = min(2.0 ** (actor.failures - 2), _LONGEST_PAUSE_S) if actor.failures > 1 else 0.0
        what = "died" if died else f"failed ({type(error).__name__}: {reason})"
        when = f" in {pause:.0f} s" if pause else ""
        _LOG.warning("actor %d%s %s and is replaced%s", actor.number, self._where(actor), what, when)
        self._bury(actor.handle)
        self._forget_requests(actor)
        actor.handle, actor.starts_at = None, time.monotonic() + pause
        self._look_at = 0.0

    def _forget_requests(self, actor: PoolActor) -> None:
        self._put_back([request.part for request in actor.requests])
        actor.requests.clear()

    def _places(self) -> Sequence[Hashable]:
        """The places where actors should play now, one for each actor."""
        return range(actors_here(self._config))

    def _where(self, actor: PoolActor) -> str:
        """The machine of an actor for messages."""
        return ""

    def _is_ready(self, actor: PoolActor) -> bool:
        return actor.handle is not None

    @abstractmethod
    def _start(self, actor: PoolActor, seed: int) -> Any:
        """The handle of a new actor."""

    @abstractmethod
    def _ask(self, handle: Any, weights: Any) -> Any:
        """Asks an actor for a shard, see ``Worker.play``."""

    @abstractmethod
    def _ask_match(self, handle: Any, part: MatchPart, *networks: Any) -> Any:
        """Asks an actor for games of a match, see ``Worker.play_match``."""

    def _shared(self, weights: Weights) -> Any:
        """Weights in the form that requests carry."""
        return weights

    def _wait(self, requests: Sequence[Any], timeout: float) -> None:
        """Waits until one of the requests is done."""
        if not requests:
            time.sleep(timeout)
        with interrupt_held():
            wait(requests, timeout, FIRST_COMPLETED)

    def _is_done(self, request: Any) -> bool:
        return request.done()

    def _result(self, request: Any) -> Result | None:
        return request.result()

    def _bury(self, handle: Any) -> None:  # noqa: B027 - most leave nothing
        """Puts away what is left of an actor that has failed."""

    @abstractmethod
    def close(self) -> list[Result]:
        """Ends all actors and returns what they had finished; the games in play are lost."""


class ThreadPool(Pool):
    """Actors as threads of this process: for tests, to find errors, and for short runs."""

    def _start(self, actor: PoolActor, seed: int) -> tuple[Worker, ThreadPoolExecutor]:
        worker = Worker(self._config, actor.number, seed, endgame_knowledge)
        return worker, ThreadPoolExecutor(1, f"actor-{actor.number}")

    def _ask(self, handle: tuple[Worker, ThreadPoolExecutor], weights: Weights) -> Future[Played | None]:
        worker, executor = handle
        return executor.submit(worker.play, weights)

    def _ask_match(
        self, handle: tuple[Worker, ThreadPoolExecutor], part: MatchPart, *networks: Weights
    ) -> Future[MatchPlayed | None]:
        worker, executor = handle
        return executor.submit(worker.play_match, part, *networks)

    def _bury(self, handle: tuple[Worker, ThreadPoolExecutor]) -> None:
        handle[0].stop()
        handle[1].shutdown(wait=False, cancel_futures=True)

    def close(self) -> list[Result]:
        """See ``Pool.close``."""
        running = [actor for actor in self._actors if actor.handle is not None]
        for actor in running:
            actor.handle[0].stop()
        for actor in running:
            actor.handle[1].shutdown(wait=True, cancel_futures=True)
        return finished(running)


def finished(actors: Sequence[PoolActor]) -> list[Result]:
    """What actors that have ended were still asked for and have played."""
    answers = [request.answer for actor in actors for request in actor.requests]
    done = [answer for answer in answers if not answer.cancelled() and answer.exception() is None]
    return [result for answer in done if (result := answer.result()) is not None]
