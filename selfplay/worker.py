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
from .shared_evaluator import LANES, SharedEvaluator, shares_evaluator
from .threads import choose_device, gpu_busy, spread_over_gpus, use_single_thread


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
    """What a worker has played.

    Attributes:
        machine: on which it plays.
        shard: bytes, which are the learner's to write.
        gpu_busy: how busy its GPU was when it was done, in percent; None without one.
    """

    actor: int
    machine: str
    shard: bytes
    stats: PlayStats
    gpu_busy: int | None = None


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
        actor, evaluator = self._prepare(weights)
        records, stats = actor.play(self._config.selfplay.positions_per_shard)
        if not records:
            return None
        return Played(self._number, socket.gethostname(), pack_shard(records), stats, gpu_busy(str(evaluator.device)))

    def stop(self) -> None:
        """Makes ``play``, in another thread, return soon."""
        self._stopping = True
        for actor, _ in list(self._actors.values()):
            actor.stop()

    def _prepare(self, weights: Weights) -> tuple[Actor, NetworkEvaluator]:
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
        return actor, evaluator

    def _new_actor(self, weights: Weights, teaches: bool) -> tuple[Actor, NetworkEvaluator]:
        config = self._config
        network = make_network(weights.config).eval()
        network.set_weights(safetensors.torch.load(weights.data))
        settings, backend = config.selfplay, config.selfplay.backend
        device, turn = spread_over_gpus(choose_device(config.device), self._number)
        evaluator: NetworkEvaluator
        if shares_evaluator(settings.evaluator, network, backend, device):
            evaluator = SharedEvaluator(network, backend, device, turn % LANES)
        else:
            evaluator = make_evaluator(network, backend, device)
        knowledge = self._make_knowledge(config) if self._make_knowledge else None
        seed = self._seed + (1 << 32 if teaches else 0)
        return Actor(settings, config.search, evaluator, seed, weights.digest, knowledge), evaluator
