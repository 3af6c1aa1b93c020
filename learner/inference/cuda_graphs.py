"""CUDA graphs of a forward pass, one for each batch size: recorded once, then launched as a whole.

A small network's pass is some fifty kernels of microseconds each; launched one by one from Python they take longer to
launch than to run. A graph reads and writes fixed memory, so positions are copied in and results out.
"""

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

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
