"""Measures how busy a run's actors and learner are and how fast self-play is, since the start of this process."""

import time
from typing import TypedDict

from ..actors.actor import PlayStats
from ..games.replay import ReplayBuffer


class WorkFigures(TypedDict):
    """How busy actors and learner are, and rates of self-play, since the pool of this process was made.

    ``actors`` is the mean number of running actors. ``actors_busy`` is the fraction of their time in which they play
    for samples, ``learner_busy`` the fraction of time spent on training steps. ``cores_used`` is the processor time of
    these games and of the learner per second; games of gates and with anchors count in neither. Rates are per second of
    wall time; ``actor_evaluations_per_second`` is per second of an actor's processor time.
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
    """Counts the work of actors and learner, from its making on; for use in the learner's thread.

    Attributes:
        in_flight: number of requested shards at the last ``at_work``.
    """

    def __init__(self, replay: ReplayBuffer) -> None:
        self._replay = replay
        self._games_before, self._samples_before = replay.total_games, replay.total_samples
        self._began = self._counted = time.monotonic()
        self._thread_before = time.thread_time()
        self._playing_s = self._learning_s = self._actors_s = self._staffed_s = 0.0
        self._size = self.in_flight = self._evaluations = 0

    def at_work(self, size: int, in_flight: int) -> None:
        """Notes that ``size`` actors are running now, with ``in_flight`` shards requested."""
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
