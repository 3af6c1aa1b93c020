"""Inference by PyTorch, on the CPU or a CUDA device: the backend that is always there."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.encoding import NUM_POLICY

from ..network import Network, Precision, choose_dtype, planes_on
from .cuda_graphs import GraphedForward, capture_cuda_graph
from .evaluator import CPU_BUCKETS, CUDA_BUCKETS, NetworkEvaluator


class TorchEvaluator(NetworkEvaluator):
    """Evaluates with torch. The caller sets torch's threads.

    On a CUDA device every bucket is a CUDA graph: one launch instead of some fifty.

    Args:
        network, batch_buckets: as for ``NetworkEvaluator``.
        device: where to evaluate.
        precision: "auto" is bf16 where the device multiplies it in hardware, else float32.
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
        self._on_cuda = self.device.type == "cuda"
        self._layout = network.layout(self.device, self.dtype)
        self._compile = compile
        self._folded: Network | None = None
        self._forward: Callable[..., Any]
        capture = partial(capture_cuda_graph, self.device)
        self._graphs = GraphedForward(self._outputs, self.device, capture) if self._on_cuda else None
        super().__init__(network, batch_buckets or (CUDA_BUCKETS if self._on_cuda else CPU_BUCKETS))
        self._input = torch.zeros((int(self._buckets[-1]), 4), dtype=torch.int32)

    @property
    def backend(self) -> str:
        """See ``NetworkEvaluator.backend``; with bf16 it is ``torch``."""
        return "torch-float32" if self.dtype == torch.float32 else "torch"

    def _load(self, folded: Network) -> None:
        folded = folded.to(self.device, self.dtype)
        folded.lay_out(self._layout)
        if self._folded is not None:  # what has been compiled or captured reads these tensors
            self._folded.load_state_dict(folded.state_dict())
        else:
            self._folded = folded
            self._forward = torch.compile(folded, dynamic=False) if self._compile else folded
        if self._on_cuda:
            torch.cuda.current_stream(self.device).synchronize()

    @torch.inference_mode()
    def _evaluate_part(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n, size = len(positions), self._bucket(len(positions))
        words = positions.view(np.int32)
        if self._graphs is not None:
            outputs = self._graphs(words, size)
        else:
            self._input.numpy()[:n] = words
            outputs = self._outputs(self._input[:size])[:n]
        both = outputs.numpy()
        return both[:, :NUM_POLICY], both[:, NUM_POLICY:]

    def _outputs(self, positions: Tensor) -> Tensor:
        """Policy and win/draw/loss logits side by side, float32 [N, 131], of positions int32 [N, 4], where they are."""
        planes = planes_on(self.device, positions).to(self.dtype).contiguous(memory_format=self._layout)
        return torch.cat(self._forward(planes), 1).float()
