"""The outer loop: self-play fills the replay window, the learner trains on it, candidates play at the gate."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.files import atomic_write
from engine.interrupts import interrupt_held
from learner.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from learner.inference import make_evaluator
from learner.network import Network, NetworkConfig, make_network
from learner.report import missing_packages
from learner.teacher import Teacher
from learner.trainer import Trainer, TrainerConfig, TrainingError

from ..actors.pool import REQUESTS_IN_FLIGHT, Result, Source, ThreadPool
from ..actors.pool_match import MatchPlayed
from ..actors.weights import Weights
from ..actors.worker import Played
from ..games.replay import ReplayBuffer, to_training_batch
from ..machines.threads import choose_device, use_single_thread
from ..rating.ratings import Ratings
from ..run.config import RunConfig
from ..run.curves import Curves
from ..run.figures import ratings_image
from ..run.folder import RunError, RunFolder, RunState, faults_logged
from ..run.mirror import Mirror
from .judge import Judge
from .work_done import WorkDone, WorkFigures

_LOG_STEPS = 50
_WAIT_SECONDS = 0.2
_LOG = logging.getLogger(__name__)


Listener = Callable[[str, Mapping[str, Any]], None]
"""Called with an event (``begin``, ``play``, ``learn``, ``gate``, ``anchor``, ``wait`` or ``end``) and its figures."""


def samples_to_draw(config: RunConfig, total_samples: int, steps: int) -> float:
    """Number of training samples that may still be drawn: ``reuse`` times ``total_samples``, less those of all steps.

    It follows from what is on disk, so it survives a kill.
    """
    return config.loop.reuse * total_samples - steps * config.trainer.batch_size


class TrainingFigures(WorkFigures):
    """State of a run, and how busy this process's actors and learner are."""

    run: str
    iterations: int
    games: int
    samples: int
    promotions: int
    minutes: float
    steps: int
    best: str


class Training:
    """A run in training in this process: learner, gate and the pool of actors.

    Args:
        folder: folder of the run, locked by the caller.
        listener: called with every event.

    Raises:
        ValueError: the run's files do not fit (``RunError``, ``CheckpointError``, ``TrainingError``, ...).
    """

    def __init__(self, folder: RunFolder, config: RunConfig, listener: Listener) -> None:
        use_single_thread()
        self.folder = folder
        self.config = config
        self._listen = listener
        self._device = choose_device(config.device)
        self._saved = time.monotonic()
        self._began: float | None = None  # when the time began to count
        self.replay = ReplayBuffer(folder.shards, config.replay)
        self._mirror = Mirror(config.mirror) if config.mirror else None
        if self._mirror is not None:
            self._mirror.check(folder)
        self._make_first(folder.checkpoint("000000"))
        self._judge = Judge(folder, config, self._tell)
        self._minutes_before = self.state.minutes
        self.trainer = self._make_trainer()
        self.student = self._make_student()
        self._teacher = self._make_teacher()

    @property
    def state(self) -> RunState:
        """Iteration, best network, promotions, and the time used when the state was last written."""
        return self._judge.state

    @property
    def ratings(self) -> Ratings:
        """Results of all matches."""
        return self._judge.ratings

    def _make_first(self, folder: Path) -> None:
        """Saves the first checkpoint with random weights, unless it exists."""
        if folder.exists():
            return
        if self.config.init is not None:
            raise RunError(f"{folder} is missing: begin a new run with --init in another folder")
        save_checkpoint(folder, self._fresh(self.config.network), {"steps": 0})

    def _make_trainer(self) -> Trainer:
        first = load_checkpoint(self.folder.checkpoint("000000"))
        return self._trainer_of(first.network, self.config.trainer, self.folder.trainer_path)

    def _make_student(self) -> Trainer | None:
        config = self.config.student
        if config is None:
            return None
        return self._trainer_of(self._fresh(config.network), config.trainer, self.folder.student_path)

    def _fresh(self, config: NetworkConfig) -> Network:
        torch.manual_seed(self.config.seed)
        return make_network(config)

    def _trainer_of(self, network: Network, config: TrainerConfig, path: Path) -> Trainer:
        """A trainer of the network, in the state saved in the file ``path`` if it exists."""
        trainer = Trainer(network, config, self._device)
        if path.exists():
            try:
                trainer.load(path)
            except CheckpointError as error:
                best = self.folder.checkpoint(self.state.best)
                raise RunError(f"{error}; or begin a new run with --init {best}") from error
        elif self.state.iteration > 0:
            raise RunError(f"{path} is missing: the learner cannot continue from where it was")
        return trainer

    def _make_teacher(self) -> Teacher | None:
        config = self.config.teacher
        if config is None:
            return None
        network, backend = load_checkpoint(self.folder.teacher).network, self.config.selfplay.backend
        return Teacher(make_evaluator(network, backend, self._device), config.policy_weight, config.value_weight)

    @property
    def minutes(self) -> float:
        """Minutes used by the run so far, with those of earlier processes.

        Each process counts from its first games or training step on: starting and compiling are left out.
        """
        return self._minutes_before + (time.monotonic() - self._began if self._began is not None else 0.0) / 60

    def _count_time(self) -> None:
        """From now on, if it was not before, ``minutes`` grow."""
        if self._began is None:
            self._began = time.monotonic()

    def _out_of_time(self, reserve_seconds: float = 0.0) -> bool:
        limit = self.state.minutes_limit
        return limit is not None and self.minutes + reserve_seconds / 60 >= limit

    def _time_used(self) -> float:
        limit = self.state.minutes_limit
        return self.minutes / limit if limit else 0.0

    def _over(self) -> bool:
        most = self.config.loop.max_iterations
        return most is not None and self.state.iteration >= most

    def run(self) -> TrainingFigures:
        """Trains until the run is over; at the end, also after an error, the copy (``mirror``) is updated."""
        pool = make_pool(self.config, self.replay)  # without one the run has not begun, and there is nothing to copy
        try:
            return self._run(pool)
        finally:
            if self._mirror is not None:
                self._mirror.push(self.folder, wait=True)

    def _run(self, pool: Source) -> TrainingFigures:
        self._curves = Curves(self.folder.tensorboard)
        self._work = WorkDone(self.replay)
        self.folder.log("start", minutes=round(self.minutes, 3), steps=self.trainer.steps, dashboard=pool.dashboard)
        self._listen("begin", self.summary())
        with ExitStack() as closing:  # runs all of these even if one fails
            closing.enter_context(faults_logged(self.folder))
            closing.callback(self._curves.close)
            closing.callback(lambda: self._take_in(pool.close()))
            closing.callback(self._save)
            if self._judge.opponent is not None:
                pool.set_opponent(self._judge.opponent)
            self._judge.resume(pool)
            if self.config.teacher is not None:
                network = load_checkpoint(self.folder.teacher).network
                pool.set_teacher(Weights.of(network, self.config.teacher.digest), self.config.teacher.plays)
            self._loop(pool)
        self._draw()
        summary = self.summary()
        self.folder.log("end", **summary)
        self._listen("end", summary)
        return summary

    def summary(self) -> TrainingFigures:
        """Present state of the run."""
        return {
            "run": str(self.folder.path),
            "iterations": self.state.iteration,
            "games": self.replay.total_games,
            "samples": self.replay.total_samples,
            "promotions": len(self.state.promotions),
            "minutes": round(self.minutes, 3),
            "steps": self.trainer.steps,
            "best": self.state.best,
            **self._work.figures(),
        }

    def _draw(self) -> None:
        """Draws the picture of the ratings if matplotlib is installed."""
        if missing_packages(("matplotlib",)):
            return
        minutes = {"000000": 0.0} | {made.checkpoint: made.minutes for made in self.state.promotions}
        minutes_used = f"{self.minutes:.3g}" if self.minutes < 1000 else f"{self.minutes:.0f}"
        title = f"preset {self.config.preset}: {self.replay.total_games} games in {minutes_used} minutes"
        image = ratings_image(self.ratings.table(), self.ratings.reference, minutes, title)
        atomic_write(self.folder.figure_path, image)

    def _loop(self, pool: Source) -> None:
        while True:
            self._judge.proceed(pool, self.minutes)
            ending = self._over() or self._out_of_time(reserve_seconds=self._judge.seconds)
            to_draw = samples_to_draw(self.config, self.replay.total_samples, self.trainer.steps)
            if not self._judge.is_playing:
                has_learnt = self.trainer.steps > self._judge.steps
                if has_learnt and not self._over() and (ending or self._is_due(to_draw)):
                    self._begin_gate(pool)
                    continue
                if ending:
                    return
            self._play_and_learn(pool, to_draw, ending)
            if time.monotonic() - self._saved > self.config.loop.save_seconds:
                self._save()

    def _play_and_learn(self, pool: Source, to_draw: float, ending: bool) -> None:
        """Collects results, requests more, and makes a training step if there are enough samples."""
        loop, judging = self.config.loop, self._judge.is_playing
        in_turn = loop.deterministic or loop.games_per_iteration is not None
        enough_games = self._games_due(ahead=int(judging)) <= 0
        enough = enough_games or self.replay.total_samples >= loop.samples_before_training
        may_train = to_draw >= self.config.trainer.batch_size and enough and not (judging and (in_turn or ending))
        if not loop.deterministic:
            wanted = not ending and not (enough_games and (judging or may_train))
            pool.refill(REQUESTS_IN_FLIGHT if wanted else 0)
            self._collect(pool, 0.0 if may_train else _WAIT_SECONDS)
        elif judging:
            pool.refill(0)
            self._collect(pool, _WAIT_SECONDS)
        elif not may_train:
            self._collect_one(pool)
        if may_train:
            self._train_step()
        else:
            self._listen("wait", {"samples": self.replay.total_samples})

    def _games_due(self, ahead: int = 0) -> float:
        """Games still to play in this iteration and in ``ahead`` more; infinite without ``games_per_iteration``."""
        games = self.config.loop.games_per_iteration
        return math.inf if games is None else (self.state.iteration + 1 + ahead) * games - self.replay.total_games

    def _is_due(self, to_draw: float) -> bool:
        """Whether it is time for the next candidate."""
        loop = self.config.loop
        if loop.games_per_iteration is None:
            # From the last candidate on, too: one that the end of the time made early must not put off all later ones.
            done = min(self.state.iteration * loop.steps_per_iteration, self._judge.steps)
            return self.trainer.steps >= done + loop.steps_per_iteration
        return self._games_due() <= 0 and to_draw < self.config.trainer.batch_size

    def _collect_one(self, pool: Source) -> None:
        """Requests one shard and waits for it, so that games do not depend on the learner's speed."""
        shards = self.replay.next_number
        while self.replay.next_number == shards:
            pool.refill(in_flight=1)  # again and again: it also starts actors that have died
            self._collect(pool, _WAIT_SECONDS)

    def _collect(self, pool: Source, timeout: float) -> None:
        self._take_in(pool.collect(timeout))
        self._work.at_work(pool.size, pool.in_flight)

    def _take_in(self, results: list[Result]) -> None:
        if results:
            self._count_time()
        with interrupt_held():  # the pool has handed them over: an interrupt would lose those that are left
            for result in results:
                if isinstance(result, MatchPlayed):
                    self._judge.take_in(result)
                else:
                    self._take_in_shard(result)

    def _take_in_shard(self, played: Played) -> None:
        shard, stats = self.replay.store(played.shard, self._judge.behind), played.stats
        self._work.played(stats)
        figures = {
            "actor": played.actor,
            "machine": played.machine,
            "behind": self._judge.behind(shard) if shard else 0,
            "in_flight": self._work.in_flight,
            "refused": self.replay.refused,
            "games": stats.games,
            "samples": stats.samples,
            "evaluations": stats.evaluations,
            "seconds": round(stats.seconds, 3),
            "processor_seconds": round(stats.processor_seconds, 3),
            "gpu_busy": played.gpu_busy,
            "resign_checks": stats.resign_checks,
            "resign_false": stats.resign_false,
            "window": self.replay.window_samples,
            "total_games": self.replay.total_games,
            "total_samples": self.replay.total_samples,
        }
        self.folder.log("play", **figures)
        self._listen("play", {**figures, **self.summary()})
        if stats.seconds > 0:
            rate = stats.evaluations / stats.seconds
            self._curves.add("selfplay/evaluations_per_second_of_an_actor", rate, self.replay.total_samples)

    def _train_step(self) -> None:
        self._count_time()
        trainer, config, began = self.trainer, self.config.trainer, time.monotonic()
        # The number of a step seeds its samples, so a resumed run draws the same ones.
        rng = np.random.default_rng([self.config.seed, trainer.steps])
        samples = self.replay.sample(config.batch_size, rng)
        batch = to_training_batch(samples, config.wdl_search_weight)
        if self._teacher is not None:
            batch = self._teacher.mixed(batch)
        with interrupt_held():  # half a step must not be saved
            figures = trainer.step(batch, self._time_used())
            if self.student is not None:
                learnt = self.student.step(batch, self._time_used())
                figures |= {f"student_{key}": learnt[key] for key in ("policy_loss", "wdl_loss")}
        self._work.learnt(time.monotonic() - began)
        if trainer.steps % _LOG_STEPS == 0:
            self.folder.log("learn", steps=trainer.steps, **{key: round(value, 5) for key, value in figures.items()})
            for key, value in figures.items():
                self._curves.add(f"learner/{key}", value, trainer.steps)
            self._listen("learn", {**figures, **self.summary()})

    def _save(self) -> None:
        trainers = (self.trainer, self.folder.trainer_path), (self.student, self.folder.student_path)
        for trainer, path in trainers:
            try:
                if trainer is not None:
                    trainer.save(path)
            except TrainingError as error:  # the state before, which can be loaded, stays; the next step says why
                _LOG.warning("%s", error)
        self._judge.save(self.minutes)
        self._saved = time.monotonic()
        if self._mirror is not None:
            self._mirror.push(self.folder)

    def _begin_gate(self, pool: Source) -> None:
        """Makes a candidate of the learner's averaged weights and lets it play the best network."""
        self._save()
        figures = {
            "steps": self.trainer.steps,
            "minutes": round(self.minutes, 3),
            "games": self.replay.total_games,
            "samples": self.replay.total_samples,
        }
        student = self.student.ema_network if self.student is not None else None
        self._judge.begin(pool, self.trainer.ema_network, student, figures)

    def _tell(self, event: str, figures: Mapping[str, Any]) -> None:
        """Logs and shows a report of the judge."""
        self.folder.log(event, **figures)
        if event == "exam":
            self._curves.add("exam/endgame_accuracy", figures["accuracy"], self._judge.steps)
            return
        if event == "gate" and figures["elo"] is not None:
            self._curves.add("gate/elo", figures["elo"], figures["steps"])
        self._listen(event, {**figures, **self.summary()})


def make_pool(config: RunConfig, replay: ReplayBuffer) -> Source:
    """Makes the pool that the configuration names.

    Raises:
        ClusterError: Ray is not installed or cannot be started, or the cluster cannot be joined.
    """
    start = replay.next_number << 20  # beyond all starts of actors in earlier processes of the run
    if config.pool == "threads":
        return ThreadPool(config, start)
    if config.pool == "local":
        from ..actors.process_pool import ProcessPool

        return ProcessPool(config, start)
    from ..actors.ray_process import RayProcess

    return RayProcess(config, start)
