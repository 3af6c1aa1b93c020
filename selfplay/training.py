"""The outer loop: self-play fills the replay window, the learner draws from it, candidates go through the gate."""

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from engine.files import atomic_write
from engine.interrupts import interrupt_held
from engine.players import make_simple_player, parse_player
from engine.players.base import Player
from engine.players.search_player import SearchPlayer
from engine.players.spec import NetworkSpec
from learner.checkpoint import CheckpointError, load_checkpoint, read_info, save_checkpoint
from learner.inference import make_evaluator
from learner.network import Network, NetworkConfig, make_network
from learner.student import STUDENT_FOLDER
from learner.teacher import Teacher
from learner.trainer import Trainer, TrainerConfig

from .config import RunConfig
from .elo import PairingResult, TallyFigures
from .exam import EndgameExam
from .figures import ratings_image
from .gate import Gate, GateFigures
from .gate_games import GateGames
from .match import Running, play_match
from .match_record import MatchGame, MatchResult
from .mirror import Mirror
from .openings import make_openings
from .players import network_player
from .pool import Source, ThreadPool
from .ratings import Ratings
from .replay import ReplayBuffer, to_training_batch
from .run_folder import Promotion, RunError, RunFolder, faults_logged
from .shards import ShardInfo
from .threads import choose_device, use_single_thread
from .work_done import WorkDone, WorkFigures
from .worker import Played, Weights

_LOG_STEPS = 50
_WAIT_SECONDS = 0.2


class Listener(Protocol):
    """Hears what happens in a run: a progress display, or nobody."""

    def __call__(self, event: str, figures: Mapping[str, Any]) -> None:
        """Called with ``begin``, ``play``, ``learn``, ``gate``, ``anchor``, ``wait`` or ``end`` and figures to show."""


def samples_to_draw(config: RunConfig, total_samples: int, steps: int) -> float:
    """Training samples that may still be drawn: of each new sample ``reuse``; a step takes its batch.

    The balance follows from what is on disk, so it survives a kill.
    """
    return config.loop.reuse * total_samples - steps * config.trainer.batch_size


class TrainingFigures(WorkFigures):
    """Where a run stands."""

    run: str
    iterations: int
    games: int
    samples: int
    promotions: int
    minutes: float
    steps: int
    best: str


class Training:
    """One process's part in a run: learner, gate and the pool of actors.

    Args:
        folder: the run, locked by the caller.
        listener: told of every event.

    Raises:
        ValueError: the run's files do not fit (``RunError``, ``CheckpointError``, ``TrainingError``, ...).
    """

    def __init__(self, folder: RunFolder, config: RunConfig, listener: Listener) -> None:
        use_single_thread()
        self.folder = folder
        self.config = config
        self._listen = listener
        self._device = choose_device(config.device)
        self.state = folder.read_state()
        self._minutes_before = self.state.minutes
        self._started = self._saved = time.monotonic()
        self.replay = ReplayBuffer(folder.shards, config.replay)
        self._mirror = Mirror(config.mirror) if config.mirror else None
        if self._mirror is not None:
            self._mirror.check(folder)
        self.trainer = self._make_trainer()
        self.student = self._make_student()
        self._teacher = self._make_teacher()
        self._steps_judged = folder.steps_of(self.state.iteration)
        self.ratings = Ratings(folder.elo_path)
        self._best = load_checkpoint(folder.checkpoint(self.state.best))
        names = ["000000", *(promotion.checkpoint for promotion in self.state.promotions)]
        self._promoted = [read_info(folder.checkpoint(name)).digest for name in names]
        self._writer: Any = None
        self._gate_seconds = 0.0
        self._work = WorkDone(self.replay, self._started)
        self._exam: EndgameExam | None = None
        self._player = self._searcher(self._best.network, "best")

    def _make_trainer(self) -> Trainer:
        first = self.folder.checkpoint("000000")
        if not first.exists():
            if self.config.init is not None:
                raise RunError(f"{first} is missing: begin the run anew, with --init and another folder")
            save_checkpoint(first, self._fresh(self.config.network), {"steps": 0})
        return self._trainer_of(load_checkpoint(first).network, self.config.trainer, self.folder.trainer_path)

    def _make_student(self) -> Trainer | None:
        config = self.config.student
        if config is None:
            return None
        return self._trainer_of(self._fresh(config.network), config.trainer, self.folder.student_path)

    def _fresh(self, config: NetworkConfig) -> Network:
        torch.manual_seed(self.config.seed)
        return make_network(config)

    def _trainer_of(self, network: Network, config: TrainerConfig, path: Path) -> Trainer:
        """A trainer of the network as it is, or where the file says that it stands."""
        trainer = Trainer(network, config, self._device)
        if path.exists():
            try:
                trainer.load(path)
            except CheckpointError as error:
                best = self.folder.checkpoint(self.state.best)
                raise RunError(f"{error}; else begin a new run with --init {best}") from error
        elif self.state.iteration > 0:
            raise RunError(f"{path} is missing: the learner cannot go on where it was")
        return trainer

    def _make_teacher(self) -> Teacher | None:
        config = self.config.teacher
        if config is None:
            return None
        network, backend = load_checkpoint(self.folder.teacher).network, self.config.selfplay.backend
        return Teacher(make_evaluator(network, backend, self._device), config.policy_weight, config.value_weight)

    def _searcher(self, network: Network, name: str) -> SearchPlayer:
        backend, search = self.config.selfplay.backend, self.config.match_search
        return network_player(network, name, search, device=self._device, backend=backend)

    @property
    def minutes(self) -> float:
        """Time used by the run so far, earlier processes included."""
        return self._minutes_before + (time.monotonic() - self._started) / 60

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
        """Trains until the run is over; its copy elsewhere is then what its folder is, however it has ended."""
        try:
            return self._run()
        finally:
            if self._mirror is not None:
                self._mirror.push(self.folder, wait=True)

    def _run(self) -> TrainingFigures:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self.folder.tensorboard))
        pool = make_pool(self.config, self.replay)
        self.folder.log("start", minutes=round(self.minutes, 3), steps=self.trainer.steps, dashboard=pool.dashboard)
        self._listen("begin", self.summary())
        with ExitStack() as closing:  # each of these, though another fails
            closing.enter_context(faults_logged(self.folder))
            closing.callback(self._writer.close)
            closing.callback(lambda: self._take_in(pool.close()))
            closing.callback(self._save)
            pool.set_weights(Weights.of(self._best.network, self._best.info.digest))
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
        """Where the run stands now."""
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
        minutes = {"000000": 0.0} | {made.checkpoint: made.minutes for made in self.state.promotions}
        title = f"preset {self.config.preset}: {self.replay.total_games} games in {self.minutes:.3g} minutes"
        image = ratings_image(self.ratings.table(), self.ratings.reference, minutes, title)
        atomic_write(self.folder.figure_path, image)

    def _loop(self, pool: Source) -> None:
        loop, batch_size = self.config.loop, self.config.trainer.batch_size
        while not self._over():
            to_draw = samples_to_draw(self.config, self.replay.total_samples, self.trainer.steps)
            last_call = self._out_of_time(reserve_seconds=self._gate_seconds)
            if self._is_due(to_draw) or last_call:
                if self.trainer.steps > self._steps_judged:
                    self._judge_candidate(pool)
                if last_call:
                    return
                continue
            enough_games = self._games_due() <= 0
            enough = enough_games or self.replay.total_samples >= loop.samples_before_training
            may_train = to_draw >= batch_size and enough
            if loop.deterministic:
                if not may_train:
                    self._collect_one(pool)
            else:
                if not (enough_games and may_train):
                    pool.refill()
                self._collect(pool, 0.0 if may_train else _WAIT_SECONDS)
            if may_train:
                self._train_step()
            else:
                self._listen("wait", {"samples": self.replay.total_samples})
            if time.monotonic() - self._saved > loop.save_seconds:
                self._save()

    def _games_due(self, ahead: int = 0) -> float:
        """Games that self-play owes to this iteration and so many ``ahead``; without end if iterations have none."""
        games = self.config.loop.games_per_iteration
        return math.inf if games is None else (self.state.iteration + 1 + ahead) * games - self.replay.total_games

    def _is_due(self, to_draw: float) -> bool:
        """Whether it is time for the next candidate."""
        loop = self.config.loop
        if self.trainer.steps == self._steps_judged:
            return False
        if loop.games_per_iteration is None:
            return self.trainer.steps >= (self.state.iteration + 1) * loop.steps_per_iteration
        return self._games_due() <= 0 and to_draw < self.config.trainer.batch_size

    def _collect_one(self, pool: Source) -> None:
        """Asks for one shard and waits for it: what is played does not depend on how fast the learner is."""
        pool.refill(in_flight=1)
        shards = self.replay.next_number
        while self.replay.next_number == shards:
            self._collect(pool, _WAIT_SECONDS)

    def _collect(self, pool: Source, timeout: float) -> None:
        self._take_in(pool.collect(timeout))
        self._work.at_work(pool.size, pool.in_flight)

    def _take_in(self, played: list[Played]) -> None:
        for result in played:
            shard, stats = self.replay.store(result.shard, self._behind), result.stats
            self._work.played(stats)
            figures = {
                "actor": result.actor,
                "machine": result.machine,
                "behind": self._behind(shard) if shard else 0,
                "in_flight": self._work.in_flight,
                "refused": self.replay.refused,
                "games": stats.games,
                "samples": stats.samples,
                "evaluations": stats.evaluations,
                "seconds": round(stats.seconds, 3),
                "processor_seconds": round(stats.processor_seconds, 3),
                "gpu_busy": result.gpu_busy,
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
                self._writer.add_scalar("selfplay/evaluations_per_second", rate, self.replay.total_samples)

    def _behind(self, shard: ShardInfo) -> int:
        """How many networks have been promoted since the newest of those with which its games were played."""
        known = [self._promoted.index(network) for network in shard.networks if network in self._promoted]
        return len(self._promoted) - 1 - max(known) if known else 0

    def _train_step(self) -> None:
        trainer, config, began = self.trainer, self.config.trainer, time.monotonic()
        # A step's samples follow from its number, so a resumed run draws what it would have drawn.
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
                self._writer.add_scalar(f"learner/{key}", value, trainer.steps)
            self._listen("learn", {**figures, **self.summary()})

    def _save(self) -> None:
        self.trainer.save(self.folder.trainer_path)
        if self.student is not None:
            self.student.save(self.folder.student_path)
        self.state = self.state.model_copy(update={"minutes": self.minutes})
        self.folder.write_state(self.state)
        self._saved = time.monotonic()
        if self._mirror is not None:
            self._mirror.push(self.folder)

    def _judge_candidate(self, pool: Source) -> None:
        """Makes a checkpoint of the learner's average, lets it play the best, and promotes or keeps."""
        started = time.monotonic()
        self._save()
        iteration = self.state.iteration + 1
        name = f"{iteration:06d}"
        figures = {"steps": self.trainer.steps, "minutes": round(self.minutes, 3), **self._data_figures()}
        network = self.trainer.ema_network
        info = save_checkpoint(self.folder.checkpoint(name), network, figures, self._best.info.digest)
        if self.student is not None:
            student = self.folder.checkpoint(name) / STUDENT_FOLDER
            save_checkpoint(student, self.student.ema_network, figures, info.digest)
        self._steps_judged = self.trainer.steps
        candidate = self._searcher(network, name)
        report = self._play_gate(candidate, info.digest, iteration, pool)
        self.ratings.add(_pairing(name, self.state.best, report))
        promotions = self.state.promotions
        if report["decision"] == "promote":
            promotion = Promotion(
                checkpoint=name, iteration=iteration, steps=self.trainer.steps, minutes=round(self.minutes, 3)
            )
            promotions = (*promotions, promotion)
            self._best = load_checkpoint(self.folder.checkpoint(name))
            self._player = self._searcher(self._best.network, name)
            pool.set_weights(Weights.of(self._best.network, info.digest))
            self._promoted.append(info.digest)
            self._examine(name)
            self._rate(name, pool)
        self.ratings.save()
        best = promotions[-1].checkpoint if promotions else self.state.best
        self.state = self.state.model_copy(
            update={"iteration": iteration, "best": best, "promotions": promotions, "minutes": self.minutes}
        )
        self.folder.write_state(self.state)
        self.folder.gate_path.unlink(missing_ok=True)
        self.folder.log("gate", checkpoint=name, steps=self.trainer.steps, **report)
        if report["elo"] is not None:
            self._writer.add_scalar("gate/elo", report["elo"], self.trainer.steps)
        self._drop_old_candidates()
        self._gate_seconds = time.monotonic() - started
        self._listen("gate", {"checkpoint": name, **report, **self.summary()})

    def _data_figures(self) -> dict[str, int]:
        return {"games": self.replay.total_games, "samples": self.replay.total_samples}

    def _play_gate(self, candidate: SearchPlayer, digest: str, iteration: int, pool: Source) -> GateFigures:
        gate, most, seed = Gate(self.config.gate), self.config.gate.max_games, self.config.seed + iteration
        networks = digest, self._best.info.digest
        games = GateGames(self.folder.gate_path, networks, make_openings("ballots", (most + 1) // 2, seed))
        self._match(
            candidate, self._player, most, seed, pool, lambda game: gate.add_game(game.score) is not None, games
        )
        return gate.report()

    def _examine(self, name: str) -> None:
        """Asks the promoted network's WDL head about endgames."""
        if self.config.loop.exam_positions == 0:
            return
        self._exam = self._exam or EndgameExam(self.config.loop.exam_positions)
        accuracy = self._exam.accuracy(self.folder.checkpoint(name))
        self.ratings.endgames[name] = round(accuracy, 5)
        self.folder.log("exam", checkpoint=name, accuracy=accuracy)
        self._writer.add_scalar("exam/endgame_accuracy", accuracy, self.trainer.steps)

    def _rate(self, name: str, pool: Source) -> None:
        """Plays the promoted network against the anchors."""
        games = self.config.loop.anchor_games
        for number, text in enumerate(self.config.loop.anchors if games else ()):
            spec = parse_player(text)
            assert not isinstance(spec, NetworkSpec), "the configuration has been checked"
            anchor, seed = make_simple_player(spec), self.config.seed + number
            report = self._match(self._player, anchor, games, seed, pool).summary()
            self.ratings.add(_pairing(name, text, report))
            self.folder.log("anchor", checkpoint=name, anchor=text, **report)
            self._listen("anchor", {"checkpoint": name, "anchor": text, **report, **self.summary()})

    def _match(
        self,
        player_a: Player,
        player_b: Player,
        games: int,
        seed: int,
        pool: Source,
        on_game: Callable[[MatchGame], bool] | None = None,
        kept: GateGames | None = None,
    ) -> MatchResult:
        """A match from ballots; meanwhile finished shards are taken in, so that no actor stands still."""

        def on_round(running: Sequence[Running]) -> None:
            if kept is not None:
                kept.note(running)
            self._collect(pool, 0.0)
            if self._games_due(ahead=1) > 0 and not self.config.loop.deterministic:
                pool.refill()

        return play_match(
            player_a,
            player_b,
            make_openings("ballots", (games + 1) // 2, seed),
            games,
            seed=seed,
            max_plies=self.config.selfplay.max_plies,
            on_game=on_game,
            on_round=on_round,
            boards={} if kept is None else kept.boards(),
        )

    def _drop_old_candidates(self) -> None:
        kept = {promotion.checkpoint for promotion in self.state.promotions} | {"000000"}
        others = sorted(path for path in self.folder.checkpoints.glob("[0-9]*") if path.name not in kept)
        for path in others[: -self.config.loop.keep_checkpoints]:
            doomed = path.rename(path.with_name(f".{path.name}.old"))  # a kill in between leaves no half checkpoint
            shutil.rmtree(doomed, ignore_errors=True)


def _pairing(player_a: str, player_b: str, report: TallyFigures) -> PairingResult:
    return PairingResult(player_a, player_b, report["wins"], report["draws"], report["losses"])


def make_pool(config: RunConfig, replay: ReplayBuffer) -> Source:
    """The pool that the configuration names.

    Raises:
        ClusterError: Ray is not installed or cannot be started, or the cluster cannot be joined.
    """
    start = replay.next_number
    if config.pool == "threads":
        return ThreadPool(config, start)
    if config.pool == "local":
        from .process_pool import ProcessPool

        return ProcessPool(config, start)
    from .ray_process import RayProcess

    return RayProcess(config, start)
