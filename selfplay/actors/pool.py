"""Pools of actors: their common base class, and the pool of threads."""

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from engine.errors import one_line
from engine.interrupts import interrupt_held

from ..run.config import RunConfig
from .pool_match import MatchPart, MatchPlayed, PoolMatch
from .weights import Weights
from .worker import Played, Worker, actors_here

if TYPE_CHECKING:
    from .ray_process import RayProcess

REQUESTS_IN_FLIGHT = 2  # per actor: the one it works on, and the next one, so that it need not wait
_MOST_FAILURES = 5  # failures in a row, without a result in between; if all actors reach it, the run ends
_LONGEST_PAUSE_S = 60.0  # longest pause before an actor is started again
_LOOK_S = 2.0  # seconds between two checks where actors can play
_LOG = logging.getLogger(__name__)


Result = Played | MatchPlayed
"""What an actor delivers: a shard, or games of a match."""
Source: TypeAlias = "Pool | RayProcess"
"""What the learner gets results from; ``Pool`` documents the methods."""


class PoolError(ValueError):
    """A pool cannot continue; the message says why."""


class Turns:
    """Chooses the weights of each request: the run's own, or for a fraction of the requests the teacher's."""

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
    """A request to an actor: its pending answer, and the games of a match that it asks for (None: a shard)."""

    answer: Any
    part: MatchPart | None = None


@dataclass
class PoolActor:
    """An actor as the pool sees it.

    Attributes:
        place: where it plays; see ``Pool._places``.
        handle: the pool's handle of the running actor; None while it is not running.
        requests: its unfinished requests, oldest first.
        failures: number of failures in a row.
        starts_at: earliest time of its next start, by ``time.monotonic``.
    """

    number: int
    place: Hashable
    handle: Any = None
    requests: deque[Request] = field(default_factory=deque)
    failures: int = 0
    starts_at: float = 0.0


class Pool(ABC):
    """Actors that play shards, and before these the games of a match, if one is set.

    The number of requests in flight is bounded; results wait to be collected. An actor that fails is started again;
    from the second failure in a row on with growing pauses.

    Args:
        start: number that seeds the actors together with the run's seed; larger than ``started`` ever was in the run.

    Attributes:
        dead: exceptions of requests whose actor has died.
        nodes: number of machines on which actors play.
        dashboard: address of a page that shows the cluster; None if there is none.
        started: ``start`` plus the number of actor starts so far.
    """

    dead: type[Exception] | tuple[type[Exception], ...] = ()
    nodes = 1
    dashboard: str | None = None

    def __init__(self, config: RunConfig, start: int) -> None:
        self._config, self.started = config, start
        self._turns = Turns()
        self._opponent: tuple[Any, ...] = ()  # its weights, if there is one
        self._actors: list[PoolActor] = []
        self._match_number: int | None = None
        self._match_networks: list[Any] = []
        self._parts: deque[MatchPart] = deque()
        self._look_at = 0.0
        self._kept: list[Result] = []  # finished, and not yet handed over
        self._start_missing()

    @property
    def size(self) -> int:
        """Number of actors that are running."""
        return sum(self._is_ready(actor) for actor in self._actors)

    @property
    def in_flight(self) -> int:
        """Number of requested shards that are not yet collected: at most ``REQUESTS_IN_FLIGHT`` per actor."""
        return sum(request.part is None for actor in self._actors for request in actor.requests)

    def set_weights(self, weights: Weights) -> None:
        """Sets the weights of all later requests."""
        self._turns.own = self._shared(weights)

    def set_teacher(self, weights: Weights, share: float) -> None:
        """Sets the teacher's weights, which a fraction ``share`` (0 to 1) of the requests use."""
        self._turns.set_teacher(self._shared(weights), share)

    def set_opponent(self, weights: Weights) -> None:
        """Sets the network that all games of self-play are against, see ``RunConfig.opponent``."""
        self._opponent = (self._shared(weights),)

    def set_match(self, match: PoolMatch | None) -> None:
        """Sets the match whose games are played before shards, in place of an earlier one; None: no match."""
        self._match_number = None if match is None else match.number
        self._match_networks = [] if match is None else [self._shared(weights) for weights in match.networks]
        self._parts = deque([] if match is None else match.parts())

    def refill(self, in_flight: int = REQUESTS_IN_FLIGHT) -> None:
        """Starts actors where places are free, and fills the requests of each actor up to ``in_flight``.

        With ``in_flight`` 0, actors still get games of the match, one request at a time. An actor that still waits for
        a place gets none: they would wait with it, and the match for them.
        """
        self._start_missing()
        for actor in list(self._actors):
            plays = self._may_play(actor)
            while actor.handle is not None and len(actor.requests) < (in_flight or (plays and bool(self._parts))):
                part = self._parts.popleft() if plays and self._parts else None
                try:
                    actor.requests.append(Request(self._asked(actor.handle, part), part))
                except self.dead as error:
                    self._put_back([part])
                    self._fail(actor, error)

    def _asked(self, handle: Any, part: MatchPart | None) -> Any:
        if part is None:
            return self._ask(handle, "play", self._turns.next(), *self._opponent)
        return self._ask(handle, "play_match", part, *self._match_networks)

    def _put_back(self, parts: Sequence[MatchPart | None]) -> None:
        """Returns games of the present match to the queue, for another actor."""
        self._parts.extendleft(part for part in parts if part is not None and part.match.number == self._match_number)

    def collect(self, timeout: float) -> list[Result]:
        """Returns the results since the last call; waits up to ``timeout`` seconds for the first one.

        Raises:
            PoolError: every actor has died ``_MOST_FAILURES`` times in a row.
            ValueError, OSError: the exception of an actor: at once with one machine, else when every actor has failed
                ``_MOST_FAILURES`` times in a row.
        """
        self._wait([actor.requests[0].answer for actor in self._actors if actor.requests], timeout)
        for actor in list(self._actors):
            if (error := self._take(actor)) is not None:
                self._fail(actor, error)
        return self._take_kept()

    def _take(self, actor: PoolActor) -> Exception | None:
        """Keeps the finished results of an actor for ``collect``; returns its error, if it has failed."""
        while actor.requests and self._is_done(actor.requests[0].answer):
            try:
                result = self._result(actor.requests[0].answer)
            except Exception as error:
                return error
            actor.requests.popleft()
            actor.failures = 0
            if result is not None:
                self._kept.append(result)
        return None

    def _take_kept(self) -> list[Result]:
        kept, self._kept = self._kept, []
        return kept

    def _start_missing(self) -> None:
        """Starts actors that are due, also on new machines; removes actors of machines that have left."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_S
            places = self._places()
            gone = [actor for actor in self._actors if actor.place not in places]
            for actor in gone:
                _LOG.warning("actor %d has gone with its machine", actor.number)
                self._actors.remove(actor)
                self._take(actor)
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
        """Starts an actor with a seed that no other start in this run has."""
        self.started += 1
        entropy = [self._config.seed, actor.number, self.started]
        actor.handle = self._start(actor, int(np.random.SeedSequence(entropy).generate_state(1)[0]))

    def _fail(self, actor: PoolActor, error: Exception) -> None:
        """Stops a failed actor and schedules its next start; raises the errors of ``collect``."""
        died, reason = isinstance(error, self.dead), one_line(error)
        if not died and self.nodes == 1:
            raise error
        actor.failures += 1
        if all(other.failures >= _MOST_FAILURES for other in self._actors):
            if died:
                raise PoolError(f"every actor has died {_MOST_FAILURES} times in a row: {reason}") from error
            raise error
        pause = min(2.0 ** min(actor.failures - 2, 10), _LONGEST_PAUSE_S) if actor.failures > 1 else 0.0
        what = f"died{self._cause(error)}" if died else f"failed ({type(error).__name__}: {reason})"
        when = f" in {pause:.0f} s" if pause else ""
        _LOG.warning("actor %d%s %s and is replaced%s", actor.number, self._where(actor), what, when)
        self._release(actor.handle)
        self._forget_requests(actor)
        actor.handle, actor.starts_at = None, time.monotonic() + pause
        self._look_at = 0.0

    def _forget_requests(self, actor: PoolActor) -> None:
        self._put_back([request.part for request in actor.requests])
        actor.requests.clear()

    def _places(self) -> Sequence[Hashable]:
        """The places where actors should play now, one per actor."""
        return range(actors_here(self._config))

    def _where(self, actor: PoolActor) -> str:
        """Words for messages that name an actor's machine, like " on HOST"; "" if there is only one."""
        return ""

    def _cause(self, error: Exception) -> str:
        """Words for messages that say why an actor has died; "" if the error does not tell."""
        return ""

    def _is_ready(self, actor: PoolActor) -> bool:
        return actor.handle is not None

    def _may_play(self, actor: PoolActor) -> bool:
        """Whether an actor answers its requests before long, be it with an error."""
        return actor.handle is not None

    @abstractmethod
    def _start(self, actor: PoolActor, seed: int) -> Any:
        """Starts an actor and returns its handle."""

    @abstractmethod
    def _ask(self, handle: Any, method: Literal["play", "play_match"], *arguments: Any) -> Any:
        """Calls a method of an actor's ``Worker``; returns the pending answer."""

    def _shared(self, weights: Weights) -> Any:
        """Converts weights to the form in which requests carry them."""
        return weights

    def _wait(self, requests: Sequence[Any], timeout: float) -> None:
        """Waits until one of the requests is done, up to ``timeout`` seconds."""
        if not requests:
            time.sleep(timeout)
        with interrupt_held():
            wait(requests, timeout, FIRST_COMPLETED)

    def _is_done(self, request: Any) -> bool:
        return request.done()

    def _result(self, request: Any) -> Result | None:
        return request.result()

    def _release(self, handle: Any) -> None:  # noqa: B027 - not needed by every pool
        """Releases what a failed actor has left."""

    @abstractmethod
    def close(self) -> list[Result]:
        """Ends all actors and returns their finished results; games in play are lost."""


class ThreadPool(Pool):
    """Actors as threads of this process: for tests, debugging and short runs."""

    def _start(self, actor: PoolActor, seed: int) -> tuple[Worker, ThreadPoolExecutor]:
        return Worker(self._config, actor.number, seed), ThreadPoolExecutor(1, f"actor-{actor.number}")

    def _ask(self, handle: tuple[Worker, ThreadPoolExecutor], method: str, *arguments: Any) -> Future[Result | None]:
        worker, executor = handle
        return executor.submit(getattr(worker, method), *arguments)

    def _release(self, handle: tuple[Worker, ThreadPoolExecutor]) -> None:
        handle[0].stop()
        handle[1].shutdown(wait=False, cancel_futures=True)

    def close(self) -> list[Result]:
        """See ``Pool.close``."""
        running = [actor for actor in self._actors if actor.handle is not None]
        for actor in running:
            actor.handle[0].stop()
        for actor in running:
            actor.handle[1].shutdown(wait=True, cancel_futures=True)
        return self._take_kept() + finished(running)


def finished(actors: Sequence[PoolActor]) -> list[Result]:
    """Results that ended actors have finished and that were not collected."""
    answers = [request.answer for actor in actors for request in actor.requests]
    done = [answer for answer in answers if not answer.cancelled() and answer.exception() is None]
    return [result for answer in done if (result := answer.result()) is not None]
