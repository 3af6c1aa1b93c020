"""How fast each backend is on this machine: measured once for a size of network and batch, then remembered.

What was measured is kept in a file of the user's cache folder. So a command starts without measuring, and two commands
with the same seed use the same backend and play the same games.
"""

import hashlib
import logging
import math
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import platformdirs
import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from engine.files import StorageError, atomic_write, make_folder
from engine.version import installed_version

from ..network import Network, has_bf16
from .backends import RUNTIMES, open_backend
from .calibration import random_positions
from .evaluator import BackendError, NetworkEvaluator

LARGEST_BATCH = 64  # that is measured; beyond it, speeds hardly change
_ROUNDS = 3
_ROUND_SECONDS = 0.03  # of one backend
_FILLED = (1.0, 0.5, 0.875, 0.625, 0.75)  # shares of the batch that calls ask for, one after the other
_LOG = logging.getLogger(__name__)

Rates = dict[str, float]
"""Backend → positions per second."""


class _Measured(BaseModel):
    """Contents of the file: what was measured under which circumstances (``_circumstances``)."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    schema_version: Literal[1] = 1
    rates: dict[str, Rates] = {}


def measured_rates(network: Network, batch: int, threads: int = 1) -> Rates:
    """``measure_rates``, remembered for this machine, these versions, and this size of network and batch."""
    path = platformdirs.user_cache_path("crownhead", appauthor=False) / "backends.json"
    key = _circumstances(network, batch, threads)
    known = _read(path)
    if key not in known.rates:
        known.rates[key] = measure_rates(network, batch, threads)
        try:
            make_folder(path.parent)
            atomic_write(path, known.model_dump_json(indent=1).encode())
        except StorageError as error:
            _LOG.info("the speeds of the backends are not remembered: %s", error)
    return known.rates[key]


def measure_rates(network: Network, batch: int, threads: int = 1) -> Rates:
    """Positions per second of every backend that is installed, on the CPU, in batches of up to this size.

    The sizes of the calls differ, as a search's do: a runtime may be fast as long as all are alike, and slow else. The
    backends take turns, and the best round of each counts: other work on the machine slows rounds, it speeds none. What
    is not half as fast as the best takes no further turns.
    """
    evaluators = _candidates(network, threads)
    positions = random_positions(LARGEST_BATCH)
    largest = min(batch, LARGEST_BATCH)
    batches = [positions[: math.ceil(share * largest)] for share in _FILLED]
    rates = dict.fromkeys(evaluators, 0.0)
    for evaluator in evaluators.values():
        for asked in batches:
            evaluator.evaluate(asked)  # allocates, and compiles for this size
    for _ in range(_ROUNDS):
        best = max(rates.values())
        for name, evaluator in evaluators.items():
            if rates[name] >= best / 2:
                rates[name] = max(rates[name], _rate(evaluator, batches))
    return rates


def _candidates(network: Network, threads: int) -> dict[str, NetworkEvaluator]:
    """An evaluator of every backend that is installed and can compute this network.

    ``numba`` is not among them: compiling takes seconds, and ``numba-int16`` is the faster of the two.
    """
    evaluators = {"torch": open_backend(network, "torch")}
    for name in ("numba-int16", *RUNTIMES):
        if name == "openvino-bf16" and not has_bf16(torch.device("cpu")):
            continue
        try:
            evaluators[name] = open_backend(network, name, threads=threads)
        except BackendError:
            continue
    return evaluators


def _rate(evaluator: NetworkEvaluator, batches: Sequence[np.ndarray]) -> float:
    """Positions per second of one round."""
    start, done = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < _ROUND_SECONDS or done == 0:
        for positions in batches:
            evaluator.evaluate(positions)
            done += len(positions)
    return done / elapsed


def _circumstances(network: Network, batch: int, threads: int) -> str:
    """What the rates depend on, as a digest."""
    facts = [
        network.config.model_dump_json(),
        f"batches up to {min(batch, LARGEST_BATCH)}, {threads} threads, torch with {torch.get_num_threads()}",
        f"{platform.node()}, {os.cpu_count()} x {platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        *(
            f"{package} {installed_version(package)}"
            for package in ("crownhead", "torch", "numba", "onnx", "onnxruntime", "openvino")
        ),
    ]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _read(path: Path) -> _Measured:
    """What is in the file; nothing if it is not there, or not whole."""
    try:
        return _Measured.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return _Measured()
    except (OSError, ValidationError) as error:
        _LOG.warning("%s is not used: %s", path, " ".join(str(error).split()))
        return _Measured()
