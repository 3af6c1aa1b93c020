"""What a pool runs once per actor: games with the networks it is sent, packed as shards. No Ray in sight."""

import socket
from dataclasses import dataclass

import safetensors.torch

from learner.inference import NetworkEvaluator, make_evaluator
from learner.network import Network, NetworkConfig, make_network

from .actor import Actor, PlayStats
from .config import RunConfig
from .endgame import KnowledgeFactory
from .shards import pack_shard
from .shared_evaluator import SharedEvaluator
from .threads import choose_device, spread_over_gpus, use_single_thread


@dataclass(frozen=True)
class Weights:
    """A network on its way to the actors: the bytes of a safetensors file, and a digest for the game records."""

    config: NetworkConfig
    data: bytes
    digest: str

    @staticmethod
    def of(network: Network, digest: str) -> "Weights":
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
        return Weights(network.config, safetensors.torch.save(tensors), digest)


@dataclass(frozen=True)
class Played:
    """What a worker has played: the bytes of a shard, which are the learner's to write, and on which machine."""

    actor: int
    machine: str
    shard: bytes
    stats: PlayStats


class Worker:
    """Plays with the weights it is sent.

    Games in play go on from request to request with the same kind of network: a teacher's games are not the run's own.

    Args:
        seed: of its games; another one after a restart, so that no game is played twice.
    """

    def __init__(self, config: RunConfig, actor: int, seed: int, knowledge: KnowledgeFactory | None = None) -> None:
        use_single_thread()
        self._make_knowledge = knowledge
        self._config = config
        self._number = actor
        self._seed = seed
        self._actors: dict[bool, tuple[Actor, NetworkEvaluator]] = {}  # by whether they are the teacher's
        self._stopping = False

    def play(self, weights: Weights) -> Played | None:
        """Plays until there is enough for a shard; None if stopped before a game ended."""
        actor = self._prepare(weights)
        records, stats = actor.play(self._config.selfplay.positions_per_shard)
        return Played(self._number, socket.gethostname(), pack_shard(records), stats) if records else None

    def stop(self) -> None:
        """Makes ``play``, in another thread, return soon."""
        self._stopping = True
        for actor, _ in list(self._actors.values()):
            actor.stop()

    def _prepare(self, weights: Weights) -> Actor:
        teacher = self._config.teacher
        teaches = teacher is not None and weights.digest == teacher.digest
        if teaches not in self._actors:
            self._actors[teaches] = self._new_actor(weights, teaches)
        actor, evaluator = self._actors[teaches]
        if actor.network != weights.digest:
            evaluator.update(safetensors.torch.load(weights.data))
            actor.network = weights.digest
        if self._stopping:
            actor.stop()
        return actor

    def _new_actor(self, weights: Weights, teaches: bool) -> tuple[Actor, NetworkEvaluator]:
        config = self._config
        network = make_network(weights.config).eval()
        network.set_weights(safetensors.torch.load(weights.data))
        device, settings = choose_device(config.device), config.selfplay
        evaluator: NetworkEvaluator
        if settings.evaluator == "shared":
            evaluator = SharedEvaluator(network, settings.backend, spread_over_gpus(device, self._number))
        else:
            evaluator = make_evaluator(network, settings.backend, device)
        knowledge = self._make_knowledge(config) if self._make_knowledge else None
        seed = self._seed + (1 << 32 if teaches else 0)
        return Actor(settings, config.search, evaluator, seed, weights.digest, knowledge), evaluator
