"""What a pool runs once per actor: an ``Actor`` with its network, writing shards. Plain class, no Ray in sight."""

from dataclasses import dataclass
from pathlib import Path

import safetensors.torch

from learner.inference import NetworkEvaluator, make_evaluator
from learner.network import Network

from .actor import Actor, PlayStats
from .config import RunConfig
from .endgame import KnowledgeFactory
from .shards import ShardInfo, write_shard
from .threads import choose_device, use_single_thread


@dataclass(frozen=True)
class Weights:
    """Weights on their way to the actors.

    Attributes:
        data: a safetensors file's bytes.
        digest: names them in the game records.
    """

    data: bytes
    digest: str

    @staticmethod
    def of(network: Network, digest: str) -> "Weights":
        """The weights of a network."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
        return Weights(safetensors.torch.save(tensors), digest)


@dataclass(frozen=True)
class Played:
    """What a worker reports of a shard it has written."""

    actor: int
    shard: ShardInfo
    stats: PlayStats


class Worker:
    """Plays with the weights it is sent and writes what it played.

    Args:
        actor: number of the actor.
        seed: of its games; another one after a restart, so that no game is played twice.
        knowledge: makes what the actor knows of endgames, from the configuration and the network's evaluator, once.
    """

    def __init__(self, config: RunConfig, actor: int, seed: int, knowledge: KnowledgeFactory | None = None) -> None:
        use_single_thread()
        self._make_knowledge = knowledge
        self._config = config
        self._number = actor
        self._seed = seed
        self._network = Network(config.network).eval()
        self._evaluator: NetworkEvaluator | None = None
        self._actor: Actor | None = None
        self._stopping = False

    def play(self, path: str | Path, weights: Weights) -> Played | None:
        """Plays until there is enough for a shard and writes it to ``path``; None if stopped before a game ended.

        Raises:
            StorageError: the shard cannot be written.
        """
        actor = self._prepare(weights)
        records, stats = actor.play(self._config.selfplay.positions_per_shard)
        return Played(self._number, write_shard(path, records), stats) if records else None

    def stop(self) -> None:
        """Makes ``play``, in another thread, return soon."""
        self._stopping = True
        if self._actor is not None:
            self._actor.stop()

    def _prepare(self, weights: Weights) -> Actor:
        if self._actor is None or self._actor.network != weights.digest:
            self._network.set_weights(safetensors.torch.load(weights.data))
            if self._evaluator is None:
                settings = self._config.selfplay
                device = choose_device(self._config.device)
                self._evaluator = make_evaluator(self._network, settings.backend, device)
            else:
                self._evaluator.update(self._network)
        if self._actor is None:
            assert self._evaluator is not None
            config = self._config
            knowledge = self._make_knowledge(config, self._evaluator) if self._make_knowledge else None
            self._actor = Actor(config.selfplay, config.search, self._evaluator, self._seed, weights.digest, knowledge)
        self._actor.network = weights.digest
        if self._stopping:
            self._actor.stop()
        return self._actor
