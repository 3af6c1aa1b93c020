"""The thread that searches, so that the window never waits: requests in, snapshots out.

All public methods return at once, except ``close``. Only one request runs at a time; a new one replaces it.
"""

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from engine.board import Board, Move
from engine.errors import IllegalMoveError, one_line
from engine.players import Player, PlayerError, Thinking, WatchablePlayer
from engine.players.base import close_player, rest_player, search_moves
from engine.players.watching import PlanningPlayer
from engine.reasons.explaining import Explainer

from ..threads import Result, in_thread
from .game_report import GameReport, GameReview
from .opponents import Opponents, OpponentSpec
from .snapshot import Mode, MoveRow, Snapshot, line_of, rows_of

SLICE = 0.02  # seconds of search between two checks whether the request has changed
LOOK = 0.1  # seconds between two snapshots
_MOST_PLAYERS = 4  # players kept ready: two that play each other, one that analyses, one more
_CLOSING = 0.5  # seconds that ``close`` waits for the thread
_LEAVING = 3.5  # seconds that it waits for players; ending an engine that does not quit takes less
_SHOWN = 200  # characters of an error that are shown
_log = logging.getLogger(__name__)


class _SupersededError(Exception):
    """The request has been cancelled or replaced."""


@dataclass(eq=False)
class _Job:
    """A request: to search ``board``, or to report on the game that led to it."""

    number: int
    board: Board
    spec: OpponentSpec
    mode: Mode
    seconds: float | None = None
    cancelled: bool = False
    hurried: bool = False
    wake: threading.Event = field(default_factory=threading.Event)

    @property
    def slot(self) -> str:
        """The attribute of the thinker that has the request's snapshots."""
        return "review" if self.mode == "report" else "snapshot"

    @property
    def limit(self) -> float | None:
        """Seconds after which the search ends: what the clock and the player allow; None if neither limits it."""
        limits = [self.seconds, self.spec.seconds if self.spec.by_time else None] if self.mode != "analyse" else []
        return min((limit for limit in limits if limit is not None), default=None)

    def check(self) -> None:
        if self.cancelled:
            raise _SupersededError


class Thinker:
    """Searches positions and reviews games for the window.

    Args:
        opponents: makes the players; called in other threads.
        clock: returns seconds, for display and time limits.
        wake: called in the thinker's thread when a request has ended, to wake a window that waits for events.
        known: exact values for reports, see ``GameReview``; called in the thinker's thread.

    Attributes:
        snapshot, review: latest snapshots of a search and of a report; None before the first.
    """

    def __init__(
        self,
        opponents: Opponents,
        clock: Callable[[], float] = time.perf_counter,
        wake: Callable[[], None] = lambda: None,
        known: Callable[[Board], int | None] = lambda board: None,
    ) -> None:
        self.snapshot: Snapshot | None = None
        self.review: Snapshot | None = None
        self._clock, self._wake, self._known = clock, wake, known
        self._bench = _Bench(opponents)
        self._changed = threading.Condition()  # guards the attributes below and the two above
        self._job: _Job | None = None  # the current request
        self._waiting: _Job | None = None  # the current request, until the thread takes it
        self._wanted: OpponentSpec | None = None  # player to make when there is no request
        self._prepared: OpponentSpec | None = None  # the player of the last ``prepare``
        self._fault = ""  # why it could not be made, until that is told
        self._resting = False  # whether players are to stop thinking in their opponents' time
        self._closed = False
        self._number = 0
        self._thread = threading.Thread(target=self._work, name="thinker", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a request or a review is running."""
        return self._job is not None

    def request(self, board: Board, spec: OpponentSpec, mode: Mode = "play", seconds: float | None = None) -> int:
        """Begins a search of a board, which is copied; cancels the running request.

        Args:
            mode: "play": the search of the opponent ``spec``. "hint": the same without variety and contempt.
                "analyse": like "hint", but until it is cancelled or its memory is full. "report": the report on the
                game that led to the board, with searches like "hint".
            seconds: time limit in addition to that of ``spec``, such as by a clock.

        Returns:
            The ``number`` of its snapshots.
        """
        with self._changed:
            if self._closed:
                raise RuntimeError("this thinker was closed")
            self._stop()
            self._number += 1
            asked = spec if mode == "play" else steady(spec)
            job = self._job = self._waiting = _Job(self._number, board.copy(), asked, mode, seconds)
            first = Snapshot(job.number, mode, "loading", asked.name, board.fen(), board.ply, board.turn)
            setattr(self, job.slot, first)
            self._changed.notify()
            return job.number

    def prepare(self, spec: OpponentSpec) -> None:
        """Begins to make a player that will be needed soon; see ``fault``."""
        with self._changed:
            self._wanted = self._prepared = spec
            self._changed.notify()

    def fault(self) -> str:
        """Why the player of the last ``prepare`` could not be made, in one line, once; "" otherwise."""
        fault, self._fault = self._fault, ""
        return fault

    def move_now(self) -> None:
        """Ends the search for a move and takes the best one so far. Has no effect on players that cannot be watched."""
        job = self._job
        if job is not None and job.mode in ("play", "hint"):
            job.hurried = True

    def cancel(self) -> None:
        """Cancels the running request at once: its status becomes "stopped", and no move follows."""
        with self._changed:
            self._stop()

    def _stop(self) -> None:
        if self._job is not None:
            self._job.cancelled = True
            self._job.wake.set()
        self._job = self._waiting = None
        if self.snapshot is not None and self.snapshot.busy:
            self.snapshot = replace(self.snapshot, status="stopped")
        if self.review is not None and self.review.busy:
            self.review = replace(self.review, status="stopped")

    def forget(self) -> None:
        """Cancels the running request and clears snapshot and review, for a new game."""
        with self._changed:
            self._stop()
            self.snapshot = self.review = None
            self._prepared, self._fault = None, ""
        self.rest()

    def rest(self) -> None:
        """Has players that think in their opponents' time stop, until they are asked again."""
        with self._changed:
            self._resting = True
            self._changed.notify()

    def close(self) -> None:
        """Ends the thread and the players; later requests raise ``RuntimeError``."""
        with self._changed:
            self._stop()
            self._closed = True
            self._changed.notify()
        self._thread.join(_CLOSING)
        self._bench.close()

    # --- the thread

    def _work(self) -> None:
        while True:
            with self._changed:
                while self._waiting is None and self._wanted is None and not (self._resting or self._closed):
                    self._changed.wait()
                if self._closed:
                    return
                job, self._waiting = self._waiting, None
                wanted, self._wanted = self._wanted, None
                resting, self._resting = self._resting, False
            if resting:
                self._bench.rest()
            if wanted is not None:
                self._bench.player(wanted).add_done_callback(partial(self._made, wanted))
            if job is None:
                continue
            try:
                with contextlib.suppress(_SupersededError):
                    self._answer(job)
            except BaseException as error:  # an error in a player must not end the thread
                if not isinstance(error, ValueError):
                    _log.exception("%s failed", job.spec.label)
                self._show(job, status="failed", error=_one_line(job.spec, error))

    def _made(self, spec: OpponentSpec, future: "Future[Player]") -> None:
        error = future.exception()
        if error is not None and spec is self._prepared:
            self._fault = _one_line(spec, error)
            self._wake()

    def _show(self, job: _Job, **changes: Any) -> None:
        """Updates the snapshot of a job, unless the job has been cancelled."""
        with self._changed:
            if self._job is not job:
                return
            shown: Snapshot = replace(getattr(self, job.slot), **changes)
            setattr(self, job.slot, shown)
            if shown.busy:
                return
            self._job = None
        self._wake()

    def _answer(self, job: _Job) -> None:
        moves = search_moves(job.board) if job.mode in ("play", "hint") else []
        if len(moves) == 1:
            self._show_move(job, moves[0])
            return
        player = self._await(self._bench.player(job.spec), job)
        if not isinstance(player, WatchablePlayer) and job.mode not in ("play", "hint"):
            raise PlayerError("it cannot analyse, only play; choose another engine for this")
        self._show(job, status="thinking")
        if isinstance(player, PlanningPlayer):
            limit = job.limit  # which is looked at between slices of the search, and planning is none
            player.planning_s = None if limit is None else limit / 2
        try:
            if not isinstance(player, WatchablePlayer):
                self._ask(job, player)
            elif job.mode == "report":
                self._review(job, player)
            else:
                thinking = player.begin(job.board, "analysis" if job.mode == "analyse" else "move")
                self._show(job, player=getattr(player, "title", "") or job.spec.name)
                self._watch(job, thinking)
        except _SupersededError:
            raise
        except BaseException:  # its state is unknown now
            self._bench.drop(job.spec)
            raise

    def _await(self, future: "Future[Result]", job: _Job) -> Result:
        """Waits for a result of another thread; raises ``_SupersededError`` if the job is cancelled before."""
        future.add_done_callback(lambda _: job.wake.set())
        while not future.done() and not job.cancelled:
            job.wake.wait()
            job.wake.clear()
        job.check()
        return future.result()

    def _watch(self, job: _Job, thinking: Thinking) -> None:
        """Searches in time slices and checks after each whether the job has changed."""
        begun = looked = self._clock()
        limit = job.limit
        while True:
            left = SLICE if limit is None else min(SLICE, begun + limit - self._clock())
            more = thinking.advance(max(0.0, left))
            job.check()
            now = self._clock()
            if not more or job.hurried or (limit is not None and now - begun >= limit):
                break
            if now - looked >= LOOK:
                looked = now
                self._show(job, **self._picture(job, thinking, now - begun, limit))
        picture = self._picture(job, thinking, now - begun, limit)
        move = None if job.mode == "analyse" else _legal(job.board, thinking.choose())
        progress = None if job.mode == "analyse" else 1.0
        self._show(job, **{**picture, "status": "done", "move": move, "progress": progress})

    def _picture(self, job: _Job, thinking: Thinking, seconds: float, limit: float | None) -> dict[str, Any]:
        thought = thinking.thought()
        pv, pv_pdn = line_of(job.board, thought)
        progress = max(thinking.progress, min(1.0, seconds / limit) if limit else 0.0)
        return {
            "moves": rows_of(job.board, thought.moves),
            "pv": pv,
            "pv_pdn": pv_pdn,
            "wdl": thought.wdl,
            "value": thought.value,
            "count": thought.count,
            "unit": thinking.unit,
            "seconds": seconds,
            "per_second": (thought.count - thought.kept) / seconds if seconds > 0 else 0.0,
            "depth": thought.depth,
            "progress": None if job.mode == "analyse" else progress,
        }

    def _ask(self, job: _Job, player: Player) -> None:
        """Gets the move of a player that cannot be watched; drops the player if the job is cancelled meanwhile."""
        begun = self._clock()
        try:
            answer = self._await(in_thread("player", lambda: player.choose([job.board.copy()])), job)
        except _SupersededError:
            self._bench.drop(job.spec)
            raise
        if len(answer) != 1:
            raise PlayerError(f"it answered with {len(answer)} moves, not one")
        move = _legal(job.board, answer[0])
        self._show_move(job, move, seconds=self._clock() - begun)

    def _show_move(self, job: _Job, move: Move, seconds: float = 0.0) -> None:
        """Ends a job by a move about which nothing else is known."""
        row = MoveRow(move, pdn=job.board.pdn(move))
        line = {"moves": (row,), "pv": (move,), "pv_pdn": (row.pdn,)}
        self._show(job, status="done", progress=1.0, move=move, seconds=seconds, **line)

    def _review(self, job: _Job, player: WatchablePlayer) -> None:
        seconds, explainer = job.spec.seconds if job.spec.by_time else None, Explainer(self._known, check=job.check)
        review = GameReview(job.board, player, seconds, self._known, explainer.explain)
        seen: GameReport | None = None
        while review.advance(SLICE):
            job.check()
            if review.report is not seen:
                seen = review.report
                self._show(job, progress=review.progress, report=seen)
        self._show(job, status="done", progress=1.0, report=review.report)


class _Bench:
    """The players that are ready or being made, by their specs; at most ``_MOST_PLAYERS``, those used last."""

    def __init__(self, opponents: Opponents) -> None:
        self._opponents = opponents
        self._players: OrderedDict[OpponentSpec, Future[Player]] = OrderedDict()
        self._leaving: list[Future[None]] = []

    def player(self, spec: OpponentSpec) -> "Future[Player]":
        """The player of a spec; made in a thread of its own if it is new or could not be made before."""
        known = self._players.get(spec)
        if known is None or (known.done() and known.exception() is not None):
            self._players[spec] = in_thread("player", lambda: self._opponents.make(spec))
            while len(self._players) > _MOST_PLAYERS:
                self.drop(next(iter(self._players)))
        self._players.move_to_end(spec)
        return self._players[spec]

    def drop(self, spec: OpponentSpec) -> None:
        """Closes a player, as soon as it has been made; does nothing if there is none."""
        future = self._players.pop(spec, None)
        if future is not None:
            future.add_done_callback(_close)

    def rest(self) -> None:
        """See ``Thinker.rest``."""
        for future in self._players.values():
            if future.done() and future.exception() is None:
                rest_player(future.result())

    def close(self) -> None:
        """Closes all players in parallel and waits for this, except for players that are still being made."""
        for spec, future in list(self._players.items()):
            if future.done():
                del self._players[spec]
                self._leaving.append(in_thread("player", partial(_close, future)))
            else:
                self.drop(spec)
        wait(self._leaving, _LEAVING)


def _close(future: "Future[Player]") -> None:
    """Closes the player, if it could be made."""
    if future.exception() is None:
        try:
            close_player(future.result())
        except Exception:
            _log.exception("closing a player failed")


def steady(spec: OpponentSpec) -> OpponentSpec:
    """The same opponent without variety, pondering, and contempt for draws."""
    return spec.changed(vary=False, ponder=False, search=spec.search.impartial())


def _legal(board: Board, move: Move) -> Move:
    """The move with its path; raises ``IllegalMoveError`` if it is illegal."""
    after = board.copy()
    try:
        after.push(move)
    except IllegalMoveError as error:
        raise IllegalMoveError(f"it played an illegal move: {error}") from error
    return after.peek()


def _one_line(spec: OpponentSpec, error: BaseException) -> str:
    kind = "" if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: "
    return f"{spec.name}: {kind}{one_line(error)}"[:_SHOWN]
