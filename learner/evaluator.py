"""Batched inference: a network as the search's evaluator, numpy in and numpy out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import convert_conv2d_weight_memory_format

from engine.encoding import NUM_POLICY

from .network import Network, Precision, choose_dtype, choose_layout, planes_on

CPU_BUCKETS = (1, 2, 4, *range(8, 129, 8))
CUDA_BUCKETS = (1, 8, 32, 64, 128, 256, 512, 1024, 2048)


class NetworkEvaluator:
    """Evaluates positions with a network: the evaluator that the search asks. The caller sets torch's threads.

    Args:
        network: copied; change what is evaluated by ``update``.
        device: where to evaluate.
        precision: "auto" is bf16 where the device multiplies it in hardware, else float32.
        batch_buckets: batches are filled up to the next of these sizes, and cut into pieces of the largest, so that
            only shapes that are known to the libraries beneath are computed.
        compile: use ``torch.compile``; the first call with each bucket takes seconds to minutes then.
    """

    def __init__(
        self,
        network: Network,
        device: torch.device | str = "cpu",
        precision: Precision = "auto",
        batch_buckets: Sequence[int] | None = None,
        compile: bool = False,
    ) -> None:
        self.device = torch.device(device)
        self.dtype = choose_dtype(self.device, precision)
        buckets = batch_buckets or (CPU_BUCKETS if self.device.type == "cpu" else CUDA_BUCKETS)
        if min(buckets) < 1:
            raise ValueError(f"batch buckets {list(buckets)} are not all positive")
        self._buckets = np.array(sorted(set(buckets)))
        pinned = self.device.type == "cuda"
        self._input = torch.zeros((int(self._buckets[-1]), 4), dtype=torch.int32, pin_memory=pinned)
        self._network = Network(network.config).eval()
        self._layout = choose_layout(self.device, self.dtype, network.config.channels)
        self._compile = compile
        self._folded: Network | None = None
        self.update(network)

    def update(self, weights: Network | Mapping[str, Tensor]) -> None:
        """Evaluates with other weights from now on.

        Args:
            weights: a network of the same configuration, or its ``state_dict``.

        Raises:
            NetworkError: the weights do not fit; the old ones are still in use then.
        """
        self._network.set_weights(weights.state_dict() if isinstance(weights, Network) else weights)
        folded = self._network.folded().to(self.device, self.dtype)
        convert_conv2d_weight_memory_format(folded, self._layout)
        if self._compile and self._folded is not None:  # what has been compiled stays
            self._folded.load_state_dict(folded.state_dict())
        else:
            self._folded = folded
            self._forward: Callable[..., Any] = torch.compile(folded, dynamic=False) if self._compile else folded

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
        outputs = np.empty((n, NUM_POLICY + 3), np.float32)
        largest = int(self._buckets[-1])
        for start in range(0, n, largest):
            part = positions[start : start + largest]
            outputs[start : start + largest] = self._evaluate_part(part)
        return np.ascontiguousarray(outputs[:, :NUM_POLICY]), np.ascontiguousarray(outputs[:, NUM_POLICY:])

    @torch.inference_mode()
    def _evaluate_part(self, positions: np.ndarray) -> np.ndarray:
        """Policy and win/draw/loss logits side by side [N, 131] of at most as many positions as the largest bucket."""
        n = len(positions)
        size = int(self._buckets[np.searchsorted(self._buckets, n)])
        self._input[:n] = torch.from_numpy(np.ascontiguousarray(positions).view(np.int32))
        planes = planes_on(self.device, self._input[:size])
        planes = planes.to(self.dtype).contiguous(memory_format=self._layout)
        outputs = torch.cat(self._forward(planes), 1)
        return outputs[:n].float().cpu().numpy()
