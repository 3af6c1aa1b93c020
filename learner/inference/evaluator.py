"""What all inference backends have in common: a network as the search's evaluator, numpy in and numpy out."""

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from engine.encoding import NUM_POLICY

from ..network import Network, NetworkConfig

CPU_BUCKETS = (1, 2, 4, *range(8, 129, 8))
CUDA_BUCKETS = (1, 8, 32, 64, 128, 256, *range(512, 4097, 512), 6144, 8192)


class BackendError(ValueError):
    """A backend that does not exist or cannot run here, or a package that is missing; the message says what to do."""


class NetworkEvaluator(ABC):
    """Evaluates positions with a network: the ``engine.search.Evaluator`` that the search asks.

    Threads that share an evaluator take turns.

    Args:
        network: copied; change what is evaluated by ``update``.
        batch_buckets: batches are filled up to the next of these sizes, and cut into pieces of the largest, so that
            only shapes that are known to the libraries beneath are computed.

    Attributes:
        asked: positions evaluated so far.
        device: where the network is computed.

    Raises:
        ValueError: buckets that are not positive.
    """

    device = torch.device("cpu")

    def __init__(self, network: Network, batch_buckets: Sequence[int] = CPU_BUCKETS) -> None:
        if min(batch_buckets) < 1:
            raise ValueError(f"batch buckets {list(batch_buckets)} are not all positive")
        self._buckets = np.array(sorted(set(batch_buckets)))
        # A copy, not ``make_network``: that knows only the families of this package.
        self._network = copy.deepcopy(network).eval().to("cpu", torch.float32)
        self._network.lay_out(torch.contiguous_format)
        self._lock = threading.Lock()
        self.asked = 0
        self.update(network)

    def update(self, weights: Network | Mapping[str, Tensor]) -> None:
        """Evaluates with other weights from now on.

        Args:
            weights: a network of the same configuration, or its ``state_dict``.

        Raises:
            NetworkError: the weights do not fit; the old ones are still in use then.
        """
        with self._lock:
            self._network.set_weights(weights.state_dict() if isinstance(weights, Network) else weights)
            self._load(self._network.folded())

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evaluates a batch of positions.

        Args:
            positions: [N, 4] uint32 (``engine.encoding``).

        Returns:
            policy_logits [N, 128] and wdl_logits [N, 3] for the side to move, float32.

        Raises:
            ValueError: positions of another type or shape.
        """
        n = len(positions)
        if positions.dtype != np.uint32 or positions.shape != (n, 4):
            raise ValueError(f"positions are {positions.dtype} {list(positions.shape)}, not uint32 [N, 4]")
        with self._lock:
            self.asked += n
            return self._evaluate_all(positions)

    def _evaluate_all(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``evaluate``; the caller holds the lock."""
        n = len(positions)
        policy_logits, wdl_logits = np.empty((n, NUM_POLICY), np.float32), np.empty((n, 3), np.float32)
        largest = int(self._buckets[-1])
        for start in range(0, n, largest):
            part = slice(start, start + largest)
            self._evaluate_part(np.ascontiguousarray(positions[part]), policy_logits[part], wdl_logits[part])
        return policy_logits, wdl_logits

    @property
    def config(self) -> NetworkConfig:
        """Configuration of the network."""
        return self._network.config

    @property
    @abstractmethod
    def backend(self) -> str:
        """Name of the backend and precision in use (``backends.BackendName``)."""

    def _bucket(self, n: int) -> int:
        """The smallest bucket that holds ``n`` positions."""
        return int(self._buckets[np.searchsorted(self._buckets, n)])

    @abstractmethod
    def _load(self, folded: Network) -> None:
        """Takes over the weights of a folded float32 network on the CPU (``Network.folded``)."""

    @abstractmethod
    def _evaluate_part(self, positions: np.ndarray, policy_logits: np.ndarray, wdl_logits: np.ndarray) -> None:
        """``evaluate`` for 1 to as many positions as the largest bucket, into arrays of as many rows."""
