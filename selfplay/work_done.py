"""How busy a run's actors and learner are, and how much self-play makes: what a process counts from its start on."""

import time
from typing import TypedDict

from .actor import PlayStats
from .replay import ReplayBuffer


class WorkFigures(TypedDict):
    """Shares of this process's time, and rates of all of it.

    ``actors`` is how many were at work, on the average. ``actors_busy`` and ``learner_busy`` are shares of this
    process's time: of playing, on the average of these actors, and of training steps. ``cores_used`` is how many
    processors they worked on, on the average. The rates are those of self-play over all of this process's time, but for
    that of an actor, which is by its processor's time.
    """

    actors: float
    actors_busy: float
    learner_busy: float
    cores_used: float
    evaluations_per_second: float
    actor_evaluations_per_second: float
    games_per_second: float
    samples_per_second: float


class WorkDone:
    """Counts in the learner's thread.

    Args:
        began: when the process's part in the run began, by ``time.monotonic``.

    Attributes:
        in_flight: shards that have been asked for, as of the last ``at_work``.
    """

    def __init__(self, replay: ReplayBuffer, began: float) -> None:
        self._replay = replay
        self._games_before, self._samples_before = replay.total_games, replay.total_samples
        self._began = self._counted = began
        self._thread_before = time.thread_time()
        self._playing_s = self._learning_s = self._actors_s = self._staffed_s = 0.0
        self._size = self.in_flight = self._evaluations = 0

    def at_work(self, size: int, in_flight: int) -> None:
        """Notes that ``size`` actors are at work now, with ``in_flight`` shards asked for."""
        self._size, self.in_flight = size, in_flight
        self._count()

    def played(self, stats: PlayStats) -> None:
        self._playing_s += stats.seconds
        self._actors_s += stats.processor_seconds
        self._evaluations += stats.evaluations

    def learnt(self, seconds: float) -> None:
        self._learning_s += seconds

    def figures(self) -> WorkFigures:
        self._count()
        elapsed = max(time.monotonic() - self._began, 1e-9)
        return {
            "actors": round(self._staffed_s / elapsed, 2),
            "actors_busy": round(min(1.0, self._playing_s / max(self._staffed_s, 1e-9)), 3),
            "learner_busy": round(self._learning_s / elapsed, 3),
            "cores_used": round((self._actors_s + time.thread_time() - self._thread_before) / elapsed, 3),
            "evaluations_per_second": round(self._evaluations / elapsed, 1),
            "actor_evaluations_per_second": round(self._evaluations / max(self._actors_s, 1e-9), 1),
            "games_per_second": round((self._replay.total_games - self._games_before) / elapsed, 3),
            "samples_per_second": round((self._replay.total_samples - self._samples_before) / elapsed, 1),
        }

    def _count(self) -> None:
        now = time.monotonic()
        self._staffed_s += self._size * (now - self._counted)
        self._counted = now
