"""Inference by PyTorch, on the CPU or a CUDA device: the backend that is always there.

A small network's pass is some fifty kernels of microseconds each; launched one by one from Python they take longer to
launch than to run. So a CUDA graph is recorded for each batch size, then launched as a whole. A graph reads and writes
fixed memory: positions are copied in and results out.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.encoding import NUM_POLICY

from ..network_base import Network, Precision, planes_on
from .evaluator import CPU_BUCKETS, CUDA_BUCKETS, NetworkEvaluator

Run = Callable[[], None]
Capture = Callable[[Run], Run]
"""Records what a function does and returns a function that does it again."""

_WARM_UP_RUNS = 3  # cuDNN measures its algorithms and libraries allocate their workspaces; neither may be recorded
_CAPTURING = threading.Lock()


class _Bucket(NamedTuple):
    """A recorded pass and the memory it uses: host and device for positions int32 and outputs float32."""

    host_positions: Tensor
    positions: Tensor
    outputs: Tensor
    host_outputs: Tensor
    replay: Run


class GraphedForward:
    """Runs a forward pass on a device, each batch size recorded when it is first asked for.

    Args:
        forward: positions int32 [size, 4] on the device → outputs float32 [size, K] there. It must read its weights
            from the same memory in every call.
        device: a CUDA device; any other works without overlap, with a ``capture`` of its own.
        capture: records a run.
    """

    def __init__(self, forward: Callable[[Tensor], Tensor], device: torch.device, capture: Capture) -> None:
        self._forward = forward
        self._device = device
        self._capture = capture
        self._buckets: dict[int, _Bucket] = {}
        # A stream of its own: evaluators of several threads, and a learner beside them, do not wait for each other.
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self, positions: np.ndarray, size: int) -> Tensor:
        """Outputs float32 [N, K] in host memory, reused by the next call.

        Args:
            positions: int32 [N, 4].
            size: the batch size to run with, at least N.
        """
        bucket = self._buckets.get(size) or self._record(size)
        n = len(positions)
        bucket.host_positions.numpy()[:n] = positions
        with torch.cuda.stream(self._stream):
            bucket.positions.copy_(bucket.host_positions, non_blocking=True)
            bucket.replay()
            bucket.host_outputs.copy_(bucket.outputs, non_blocking=True)
        if self._stream is not None:
            self._stream.synchronize()
        return bucket.host_outputs[:n]

    def _record(self, size: int) -> _Bucket:
        pinned = self._device.type == "cuda"
        positions = torch.zeros((size, 4), dtype=torch.int32, device=self._device)
        width = self._forward(positions).shape[1]
        outputs = torch.empty((size, width), device=self._device)

        def run() -> None:
            outputs.copy_(self._forward(positions))

        bucket = _Bucket(
            host_positions=torch.zeros((size, 4), dtype=torch.int32, pin_memory=pinned),
            positions=positions,
            outputs=outputs,
            host_outputs=torch.empty((size, width), pin_memory=pinned),
            replay=self._capture(run),
        )
        self._buckets[size] = bucket
        return bucket


def capture_cuda_graph(device: torch.device, run: Run) -> Run:
    """Records ``run`` as a CUDA graph; other threads may use the device meanwhile."""
    with _CAPTURING, torch.cuda.device(device), torch.backends.cudnn.flags(enabled=True, benchmark=True):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_RUNS):
                run()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            run()
    return graph.replay


class TorchEvaluator(NetworkEvaluator):
    """Evaluates with torch. The caller sets torch's threads.

    On a CUDA device every bucket is a CUDA graph: one launch instead of some fifty.

    Args:
        network, batch_buckets: as for ``NetworkEvaluator``.
        device: where to evaluate.
        precision: "auto" is bf16 where the device multiplies it in hardware, else float32.
    """

    def __init__(
        self,
        network: Network,
        device: torch.device | str = "cpu",
        precision: Precision = "auto",
        batch_buckets: Sequence[int] | None = None,
    ) -> None:
        self.device = torch.device(device)
        self.dtype = network.dtype(self.device, precision)
        self._on_cuda = self.device.type == "cuda"
        self._layout = network.layout(self.device, self.dtype)
        self._folded: Network | None = None
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
        if self._folded is None:
            self._folded = folded
        else:  # what has been captured reads these tensors
            self._folded.load_state_dict(folded.state_dict())
        if self._on_cuda:
            torch.cuda.current_stream(self.device).synchronize()

    @torch.inference_mode()
    def _evaluate_part(self, positions: np.ndarray, policy_logits: np.ndarray, wdl_logits: np.ndarray) -> None:
        n, size = len(positions), self._bucket(len(positions))
        words = positions.view(np.int32)
        if self._graphs is not None:
            outputs = self._graphs(words, size)
        else:
            self._input.numpy()[:n] = words
            outputs = self._outputs(self._input[:size])[:n]
        both = outputs.numpy()
        if both.shape != (n, NUM_POLICY + 3):
            raise ValueError(f"the network answers with {both.shape[1]} numbers, not {NUM_POLICY} policy logits and 3")
        policy_logits[:], wdl_logits[:] = both[:, :NUM_POLICY], both[:, NUM_POLICY:]

    def _outputs(self, positions: Tensor) -> Tensor:
        """Policy and win/draw/loss logits side by side, float32 [N, 131], of positions int32 [N, 4], where they are."""
        assert self._folded is not None
        planes = planes_on(self.device, positions).to(self.dtype).contiguous(memory_format=self._layout)
        return torch.cat(self._folded(planes), 1).float()
