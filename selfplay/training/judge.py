"""Decides which network of a run is the best: candidates play it at the gate, promoted networks play anchors.

The actors play these matches before games of self-play; the learner trains meanwhile.
"""

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from learner.checkpoint import load_checkpoint, read_info, save_checkpoint
from learner.network import Network
from learner.student import STUDENT_FOLDER

from ..actors.pool import Source
from ..actors.pool_match import MatchPlayed, PoolMatch
from ..actors.weights import Weights
from ..games.shards import ShardInfo
from ..rating.elo import PairingResult, TallyFigures
from ..rating.gate import Gate
from ..rating.ratings import OPPONENT, Ratings
from ..run.config import RunConfig
from ..run.folder import Promotion, RunFolder
from .exam import exam_accuracy
from .open_match import OpenMatch


class Judge:
    """Holds a run's state and ratings, and the match in play.

    Args:
        tell: called with ``exam``, ``gate`` or ``anchor`` and the figures after each of them.

    Attributes:
        steps: training steps of the candidate judged now or last.
        opponent: the network that all games are against, and the matches of candidates, too; None: there is none.
        seconds: seconds from the start of the last gate to the end of the last match, with an anchor or at the gate.

    Raises:
        RunError, RatingsError, CheckpointError: the run's files cannot be read.
    """

    def __init__(self, folder: RunFolder, config: RunConfig, tell: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._folder, self._config, self._tell = folder, config, tell
        self.state = folder.read_state()
        self.ratings = Ratings(folder.elo_path)
        self.steps = folder.steps_of(self.state.iteration)
        self.seconds = 0.0
        names = ["000000", *(promotion.checkpoint for promotion in self.state.promotions)]
        self._promoted = [read_info(folder.checkpoint(name)).digest for name in names]
        self._best = self._weights(self.state.best)
        self.opponent = None if config.opponent is None else _weights_in(folder.opponent)
        self._gate: Gate | None = None
        self._open: OpenMatch | None = None
        self._matches, self._began = 0, time.monotonic()

    @property
    def is_playing(self) -> bool:
        """Whether a match is being played."""
        return self._open is not None

    def behind(self, shard: ShardInfo) -> int:
        """Number of promotions since the newest network that played games of the shard; 0 for the teacher's games."""
        teacher = self._config.teacher
        if teacher is not None and teacher.digest in shard.networks:  # the run may have begun with the same network
            return 0
        known = [self._promoted.index(network) for network in shard.networks if network in self._promoted]
        return len(self._promoted) - 1 - max(known) if known else 0

    def resume(self, pool: Source) -> None:
        """Gives the actors the best network, and continues the gate if the run was stopped during one."""
        pool.set_weights(self._best)
        if self._folder.gate_path.exists() and self._folder.checkpoint(self._candidate).exists():
            self._open_gate(pool)

    @property
    def _candidate(self) -> str:
        return f"{self.state.iteration + 1:06d}"

    @property
    def _defender(self) -> str:
        """Name of the network that candidates play against."""
        return self.state.best if self.opponent is None else OPPONENT

    def begin(self, pool: Source, network: Network, student: Network | None, figures: Mapping[str, Any]) -> None:
        """Saves a candidate as a checkpoint and opens the gate.

        Args:
            figures: figures of the checkpoint, among them ``steps``.
        """
        folder = self._folder.checkpoint(self._candidate)
        # A kill may have left the file of the gate before: with it, a resumed run would take this candidate for whole.
        self._folder.gate_path.unlink(missing_ok=True)
        info = save_checkpoint(folder, network, dict(figures), self._best.digest)
        if student is not None:
            save_checkpoint(folder / STUDENT_FOLDER, student, dict(figures), info.digest)
        self._open_gate(pool)

    def save(self, minutes: float) -> None:
        """Writes the state; ``minutes`` is the time that the run has used. Raises ``StorageError``."""
        self.state = self.state.model_copy(update={"minutes": minutes})
        self._folder.write_state(self.state)

    def take_in(self, played: MatchPlayed) -> None:
        """Counts match games that actors have played; raises ``StorageError``."""
        if self._open is not None:
            self._open.take_in(played)

    def proceed(self, pool: Source, minutes: float) -> None:
        """After the end of a match, decides on the promotion or saves ratings, and opens the next match with an anchor.

        Args:
            minutes: time that the run has used.
        """
        if self._open is not None and self._open.over:
            match, self._open = self._open, None
            pool.set_match(None)
            if self._gate is not None:
                self._pass_or_keep(self._gate, pool, minutes)
            else:
                self._rate(match)
            self._gate, self.seconds = None, time.monotonic() - self._began
        if self._open is None and (anchors := self._anchors_due()):
            self._open_anchor(pool, anchors[0])

    def _weights(self, name: str) -> Weights:
        return _weights_in(self._folder.checkpoint(name))

    def _open_gate(self, pool: Source) -> None:
        name, config = self._candidate, self._config.gate
        self.steps, self._began = self._folder.steps_of(self.state.iteration + 1), time.monotonic()
        self._gate = gate = Gate(config)
        networks = self._weights(name), self.opponent or self._best
        seed = self._config.seed + self.state.iteration + 1
        match = PoolMatch(self._next_number(), (name, self._defender), networks, None, seed, config.max_games)
        search = self._config.match_search
        opened = OpenMatch(match, lambda game: gate.add_game(game.score) is not None, self._folder.gate_path, search)
        self._play(pool, match, opened)

    def _open_anchor(self, pool: Source, anchor: str) -> None:
        best, loop = self.state.best, self._config.loop
        seed = self._config.seed + loop.anchors.index(anchor)
        match = PoolMatch(self._next_number(), (best, anchor), (self._best,), anchor, seed, loop.anchor_games)
        opened = OpenMatch(match, path=self._folder.anchor_path, search=self._config.match_search)
        self._play(pool, match, opened)

    def _next_number(self) -> int:
        self._matches += 1
        return self._matches

    def _play(self, pool: Source, match: PoolMatch, opened: OpenMatch) -> None:
        self._open = opened
        pool.set_match(replace(match, over=frozenset(game.index for game in opened.known)))

    def _anchors_due(self) -> list[str]:
        """Anchors that the best network has not met yet; the first network, with random weights, meets none."""
        best, loop = self.state.best, self._config.loop
        if not self.state.promotions or loop.anchor_games == 0:
            return []
        met = {result.player_b for result in self.ratings.results if result.player_a == best}
        return [anchor for anchor in loop.anchors if anchor not in met]

    def _pass_or_keep(self, gate: Gate, pool: Source, minutes: float) -> None:
        name, report, state = self._candidate, gate.report(), self.state
        self.ratings.add(_pairing(name, self._defender, report))
        if gate.decision == "promote":
            self._best = self._weights(name)
            pool.set_weights(self._best)
            self._promoted.append(self._best.digest)
            self._examine(name)
            made = Promotion(
                checkpoint=name, iteration=state.iteration + 1, steps=self.steps, minutes=round(minutes, 3)
            )
            state = state.model_copy(update={"best": name, "promotions": (*state.promotions, made)})
        self.ratings.save()
        self.state = state.model_copy(update={"iteration": state.iteration + 1})
        self.save(minutes)
        self._folder.gate_path.unlink(missing_ok=True)
        self._drop_old_candidates()
        self._tell("gate", {"checkpoint": name, "steps": self.steps, **report})

    def _examine(self, name: str) -> None:
        """Measures the endgame accuracy of the promoted network's win/draw/loss head."""
        positions = self._config.loop.exam_positions
        if positions == 0:
            return
        accuracy = exam_accuracy(self._folder.checkpoint(name), positions)
        self.ratings.endgames[name] = round(accuracy, 5)
        self._tell("exam", {"checkpoint": name, "accuracy": accuracy})

    def _rate(self, met: OpenMatch) -> None:
        (name, anchor), report = met.match.names, met.result.summary()
        self.ratings.add(_pairing(name, anchor, report))
        self.ratings.save()
        self._folder.anchor_path.unlink(missing_ok=True)
        self._tell("anchor", {"checkpoint": name, "anchor": anchor, **report})

    def _drop_old_candidates(self) -> None:
        kept = {promotion.checkpoint for promotion in self.state.promotions} | {"000000"}
        candidates = (path for path in self._folder.checkpoints.iterdir() if path.name.isdecimal())  # not a user's copy
        others = sorted(path for path in candidates if path.name not in kept)
        for left in self._folder.checkpoints.glob(".*.old"):  # by a kill
            shutil.rmtree(left, ignore_errors=True)
        for path in others[: -self._config.loop.keep_checkpoints]:
            doomed = path.rename(path.with_name(f".{path.name}.old"))  # so a kill leaves no half checkpoint
            shutil.rmtree(doomed, ignore_errors=True)


def _weights_in(folder: Path) -> Weights:
    checkpoint = load_checkpoint(folder)
    return Weights.of(checkpoint.network, checkpoint.info.digest)


def _pairing(player_a: str, player_b: str, report: TallyFigures) -> PairingResult:
    return PairingResult(player_a, player_b, report["wins"], report["draws"], report["losses"])
