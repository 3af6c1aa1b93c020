"""State of a run, read from its folder during training or afterwards."""

import json
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, BinaryIO, TypedDict

from engine.files import cannot_read

from ..rating.elo import EloRating
from ..rating.ratings import Ratings
from .folder import RunError, RunFolder, RunState

_TAIL_BYTES = 1 << 22  # bytes read from the end of the log: about ten thousand events
_LATEST = 1e12  # seconds; what lies beyond is no time
_SHOWN = 5  # latest gates and faults that are shown

Event = Mapping[str, Any]


class MachineFigures(TypedDict):
    """What one machine has played lately.

    ``behind`` is the largest number of promotions since the networks of its shards, ``gpu_busy`` the mean utilisation
    of its GPUs in percent (None without a GPU).
    """

    machine: str
    actors: int
    games_per_second: float
    samples_per_second: float
    evaluations_per_second: float
    gpu_busy: float | None
    behind: int


class LearnerFigures(TypedDict):
    steps_per_second: float
    loss: float
    policy_loss: float
    wdl_loss: float
    learning_rate: float


class GateEvent(TypedDict):
    checkpoint: str
    wins: int
    draws: int
    losses: int
    decision: str


class FaultEvent(TypedDict):
    seconds_ago: float
    text: str


class StatusFigures(TypedDict):
    """State of a run; rates are of the last minutes before its last event, which happened ``seconds_ago``.

    ``elo`` is that of the best network above the anchor met last. ``in_flight`` counts requested shards, ``refused``
    shards that were too old (``replay.most_behind``). ``dashboard`` is the address of Ray's dashboard, if it runs.
    """

    run: str
    seconds_ago: float | None
    minutes: float
    minutes_limit: float | None
    iteration: int
    best: str
    elo: float | None
    promotions: int
    steps: int
    games: int
    samples: int
    window: int
    in_flight: int
    refused: int
    dashboard: str | None
    machines: list[MachineFigures]
    learner: LearnerFigures | None
    gates: list[GateEvent]
    faults: list[FaultEvent]


def read_status(run: RunFolder, rate_seconds: float) -> StatusFigures:
    """Reads the state of a run; raises ``RunError`` or ``StorageError`` if it cannot be read.

    Args:
        rate_seconds: seconds at the end of the log over which rates are averaged.
    """
    state, events, ratings = run.read_state(), last_events(run.log_path), Ratings(run.elo_path).table()
    try:
        return _status(run, state, ratings, events, rate_seconds)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise RunError(f"{run.log_path} has an event that this program did not write ({error!r})") from error


def _status(
    run: RunFolder, state: RunState, ratings: Sequence[EloRating], events: Sequence[Event], rate_seconds: float
) -> StatusFigures:
    now = time.time()
    last = events[-1]["time"] if events else None
    begun = max((place for place, event in enumerate(events) if event["event"] == "start"), default=0)
    present = events[begun:]  # of the last process: before it there was a pause, and some steps are made again
    recent = [event for event in present if event["time"] >= present[-1]["time"] - rate_seconds]
    plays, learnt = _of(recent, "play"), _of(recent, "learn")
    ended = events[-1]["time"] if events else 0.0
    latest = (_of(events, "play") or [{}])[-1]
    return {
        "run": str(run.path),
        "seconds_ago": None if last is None else round(now - last, 1),
        "minutes": round(state.minutes, 2),
        "minutes_limit": state.minutes_limit,
        "iteration": state.iteration,
        "best": state.best,
        "elo": next((round(line.rating, 1) for line in ratings if line.player == state.best), None),
        "promotions": len(state.promotions),
        "steps": max((event["steps"] for event in present if "steps" in event), default=0),
        "games": latest.get("total_games", 0),
        "samples": latest.get("total_samples", 0),
        "window": latest.get("window", 0),
        "in_flight": 0 if present and present[-1]["event"] == "end" else latest.get("in_flight", 0),
        "refused": latest.get("refused", 0),
        "dashboard": (_of(events, "start") or [{}])[-1].get("dashboard"),
        "machines": _machines(plays, ended),
        "learner": _learner(learnt),
        "gates": [{key: event[key] for key in GateEvent.__annotations__} for event in _of(events, "gate")[-_SHOWN:]],  # type: ignore[misc]
        "faults": [
            {"seconds_ago": round(now - event["time"], 1), "text": event["text"]}
            for event in _of(events, "fault")[-_SHOWN:]
        ],
    }


def last_events(path: Path) -> list[Event]:
    """The last events of a log, oldest first; none if there is no log. Other lines are skipped.

    Raises ``StorageError`` if the log cannot be read.
    """
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read().splitlines()[1 if size > _TAIL_BYTES else 0 :]
            if size > _TAIL_BYTES:  # with many actors, that is minutes
                lines = [*_rare_lines(path).before(size - _TAIL_BYTES, file), *lines]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot_read(path, error) from error
    events: list[Event] = []
    for line in lines:
        try:
            event = json.loads(line, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError):  # cut short by a kill, or something else
            continue
        if isinstance(event, dict) and "event" in event and _is_time(event.get("time")):
            events.append(event)
    return events


def _finite(text: str) -> float:
    """A number of JSON; raises ``ValueError`` for one that is too large, or is none: JSON cannot show it again."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not finite")
    return number


class _RareLines:
    """The latest lines of starts, gates and faults in a log, as many as are shown; each call reads what is new."""

    def __init__(self) -> None:
        self._read = 0  # bytes
        self._found: dict[bytes, deque[tuple[int, bytes]]] = {
            kind: deque(maxlen=_SHOWN) for kind in (b"start", b"gate", b"fault")
        }

    def before(self, end: int, file: BinaryIO) -> list[bytes]:
        """Those that begin before the byte ``end`` of the log."""
        if end < self._read:  # it is another log
            self._read = 0
            for found in self._found.values():
                found.clear()
        file.seek(self._read)
        for line in file:
            if self._read >= end:
                break
            for kind, found in self._found.items():
                if b'"event": "%b"' % kind in line[:80]:
                    found.append((self._read, line))
            self._read += len(line)
        return [line for _, line in sorted(place for found in self._found.values() for place in found)]


_rare_lines = cache(lambda path: _RareLines())  # of each log


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < _LATEST


def _of(events: Sequence[Event], kind: str) -> list[Event]:
    return [event for event in events if event["event"] == kind]


def _machines(plays: Sequence[Event], ended: float) -> list[MachineFigures]:
    """Figures of each machine, by name. The first shard marks the start of the time and is not counted itself.

    Args:
        ended: time of the last event, which ends the time of all: one that plays no more gets slower.
    """
    found: list[MachineFigures] = []
    for machine in sorted({event.get("machine", "") for event in plays}):
        own = [event for event in plays if event.get("machine", "") == machine]
        span = ended - own[0]["time"]
        counted = own[1:]
        busy = [event["gpu_busy"] for event in own if event.get("gpu_busy") is not None]

        def rate(key: str, span: float = span, counted: Sequence[Event] = counted) -> float:
            return round(sum(event[key] for event in counted) / span, 2) if span > 0 else 0.0

        found.append(
            {
                "machine": machine,
                "actors": len({event["actor"] for event in own}),
                "games_per_second": rate("games"),
                "samples_per_second": rate("samples"),
                "evaluations_per_second": rate("evaluations"),
                "gpu_busy": round(fmean(busy), 1) if busy else None,
                "behind": max(event.get("behind", 0) for event in own),
            }
        )
    return found


def _learner(learnt: Sequence[Event]) -> LearnerFigures | None:
    if not learnt:
        return None
    first, last = learnt[0], learnt[-1]
    span = last["time"] - first["time"]
    return {
        "steps_per_second": round((last["steps"] - first["steps"]) / span, 2) if span > 0 else 0.0,
        "loss": last["loss"],
        "policy_loss": last["policy_loss"],
        "wdl_loss": last["wdl_loss"],
        "learning_rate": last["learning_rate"],
    }
