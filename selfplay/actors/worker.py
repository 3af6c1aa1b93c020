"""The worker of an actor in a pool: plays self-play with the networks it receives, packed as shards, and match games.

It does not depend on Ray.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass

import safetensors.torch

from engine.game import check_game
from engine.players.base import Player
from engine.players.simple import make_simple_player
from engine.players.spec import NetworkSpec, parse_player
from learner.inference import NetworkEvaluator, make_evaluator
from learner.network import Network

from ..games.openings import MatchError
from ..games.shards import pack_shard
from ..knowledge import endgame_knowledge
from ..machines.threads import choose_device, gpu_busy, num_cores, spread_over_gpus, use_single_thread
from ..matches.match import play_games, seed_players
from ..matches.record import FORFEIT
from ..players import evaluator_player
from ..run.config import RunConfig
from .actor import Actor, PlayStats
from .adversary import Adversary
from .pool_match import MatchPart, MatchPlayed, PoolMatch
from .shared_evaluator import LANES, SharedEvaluator, shares_evaluator
from .weights import Weights


def actors_here(config: RunConfig) -> int:
    """Number of actors on this machine: ``selfplay.actors``; for ``auto`` one per core.

    With shared evaluators on GPUs ``auto`` gives three for two cores: some actors search while others wait.
    """
    settings = config.selfplay
    if settings.actors != "auto":
        return settings.actors
    device = choose_device(config.device)
    waiting = shares_evaluator(settings.evaluator, config.network, settings.backend, device) and device != "cpu"
    return num_cores() * 3 // 2 if waiting else num_cores()


class _StoppedError(Exception):
    """The worker was stopped in the games of a match."""


@dataclass(frozen=True)
class Played:
    """A shard that a worker has played.

    Attributes:
        machine: host name of the worker.
        shard: bytes of the shard, which the learner writes to disk.
        gpu_busy: utilisation of the worker's GPU at the end, in percent; None without a GPU.
    """

    actor: int
    machine: str
    shard: bytes
    stats: PlayStats
    gpu_busy: int | None = None


class Worker:
    """Plays with the weights of each request.

    Unfinished games continue in the next request with the same kind of network: games of the teacher are separate from
    those of the run's own networks.

    Args:
        actor: number of the actor.
        seed: seed of its games; it must differ after a restart, so that no game is played twice.
    """

    def __init__(self, config: RunConfig, actor: int, seed: int) -> None:
        check_game("the run", config.game)
        use_single_thread()
        self._config = config
        self._number = actor
        self._seed = seed
        self._actors: dict[bool, tuple[Actor, NetworkEvaluator]] = {}  # key: whether the teacher plays
        self._players: dict[str, Player] = {}  # players of matches, by the digests of their networks
        self._stopping = False

    def play(self, weights: Weights, opponent: Weights | None = None) -> Played | None:
        """Plays until there are enough samples for a shard; None if it was stopped before a game ended.

        Args:
            opponent: the network of ``RunConfig.opponent``; it stays the same.
        """
        actor, evaluator = self._prepare(weights, opponent)
        records, stats = actor.play(self._config.selfplay.positions_per_shard)
        if not records:
            return None
        return Played(self._number, socket.gethostname(), pack_shard(records), stats, gpu_busy(str(evaluator.device)))

    def play_match(self, part: MatchPart, *networks: Weights) -> MatchPlayed | None:
        """Plays games of a match with the networks of ``PoolMatch``; None if it was stopped before all were over.

        Raises:
            MatchError: a player has failed: such a game says nothing about its strength.
        """
        players = self._match_players(part.match, networks)
        seed_players(*players, part.match.seed, part.games[0])
        limit = self._config.selfplay.max_plies
        games = play_games(*players, part.starts(), concurrency=len(part.games), max_plies=limit, on_round=self._go_on)
        try:
            played = tuple(games)
        except _StoppedError:
            return None
        if failed := next((game for game in played if game.termination == FORFEIT), None):
            raise MatchError(f"a game of a match cannot be played: {failed.error}")
        return MatchPlayed(part.match.number, played)

    def _go_on(self) -> None:
        if self._stopping:
            raise _StoppedError

    def _match_players(self, match: PoolMatch, networks: Sequence[Weights]) -> tuple[Player, Player]:
        """The players of a match; only players of the previous call are reused, others are dropped."""
        kept, self._players = self._players, {}
        for name, weights in zip(match.names, networks, strict=False):
            player = kept.get(weights.digest)
            if player is None:
                evaluator = self._new_evaluator(weights.network())
                player = evaluator_player(name, evaluator, self._config.match_search)
            self._players[weights.digest] = player
        first, *others = (self._players[weights.digest] for weights in networks)
        if match.anchor is None:
            return first, others[0]
        spec = parse_player(match.anchor)
        assert not isinstance(spec, NetworkSpec), "the configuration has been checked"
        return first, make_simple_player(spec)

    def stop(self) -> None:
        """Makes ``play`` and ``play_match`` return soon; called from another thread."""
        self._stopping = True
        for actor, _ in list(self._actors.values()):
            actor.stop()

    def _prepare(self, weights: Weights, opponent: Weights | None) -> tuple[Actor, NetworkEvaluator]:
        teacher = self._config.teacher
        teaches = teacher is not None and weights.digest == teacher.digest
        if teaches not in self._actors:
            self._actors[teaches] = self._new_actor(weights, teaches, opponent)
        actor, evaluator = self._actors[teaches]
        if actor.network != weights.digest:
            evaluator.update(safetensors.torch.load(weights.data))
            actor.network = weights.digest
        if self._stopping:
            actor.stop()
        return actor, evaluator

    def _new_actor(self, weights: Weights, teaches: bool, opponent: Weights | None) -> tuple[Actor, NetworkEvaluator]:
        evaluator = self._new_evaluator(weights.network())
        seed = self._seed + (1 << 32 if teaches else 0)
        settings, search, knowledge = self._config.selfplay, self._config.search, endgame_knowledge(self._config)
        common = settings, search, evaluator, seed, weights.digest, knowledge
        if opponent is None:
            return Actor(*common), evaluator
        against = self._new_evaluator(opponent.network())
        return Adversary(*common, opponent=against, opponent_search=self._config.match_search), evaluator

    def _new_evaluator(self, network: Network) -> NetworkEvaluator:
        backend = self._config.selfplay.backend
        device, turn = spread_over_gpus(choose_device(self._config.device), self._number)
        if shares_evaluator(self._config.selfplay.evaluator, network.config, backend, device):
            return SharedEvaluator(network, backend, device, turn % LANES)
        return make_evaluator(network, backend, device)
