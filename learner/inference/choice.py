"""The choice of a backend, by name or by measurement."""

import threading
from dataclasses import dataclass

from ..network import Network, NetworkConfig, WideNetwork
from .backends import ROUNDED_ENDINGS, BackendName, backend_name, open_backend
from .evaluator import BackendError, NetworkEvaluator
from .judged import JudgedEvaluator
from .measuring import LARGEST_BATCH, Rates, measured_rates
from .wide_evaluator import WideEvaluator


@dataclass(frozen=True)
class Choice:
    """What a measurement came to.

    Attributes:
        name: of the fastest backend.
        fallback: of the fastest that does not round to integers; ``numba`` where ``numba-int16`` is the fastest.
        rates: backend → positions per second, of all that could be measured.
    """

    name: BackendName
    fallback: BackendName
    rates: Rates


_CHOICES: dict[tuple[NetworkConfig, int, int], Choice] = {}
_CHOOSING = threading.Lock()


def choose_backend(network: Network, batch: int = 1, threads: int = 1) -> Choice:
    """The backend that is fastest here, on the CPU, of those that are installed.

    The first call on a machine for a size of network and batch measures, for a second or two (``measuring``).
    """
    key = network.config, min(batch, LARGEST_BATCH), threads
    with _CHOOSING:
        if key not in _CHOICES:
            rates = measured_rates(network, batch, threads)
            exact = [name for name in rates if not name.endswith(ROUNDED_ENDINGS)]
            fastest, fallback = (backend_name(max(names, key=rates.__getitem__)) for names in (rates, exact))
            _CHOICES[key] = Choice(fastest, "numba" if fastest == "numba-int16" else fallback, rates)
        return _CHOICES[key]


def make_evaluator(
    network: Network, backend: str = "auto", device: str = "cpu", batch: int = 1, threads: int = 1
) -> NetworkEvaluator:
    """An evaluator by the name of its backend.

    Args:
        backend: a ``BackendName``. ``auto`` is the fastest that was measured on the CPU, and torch on any other
            device. Integers must be true enough to the network (``Fidelity.acceptable``), else the fastest of the
            others is used; where that shows at an update only, the same backend in float32.
        device: of torch; the runtimes compute on the CPU.
        batch: how many positions a call will have, for ``auto``.
        threads: of one evaluation in a runtime; those of torch are set by the caller.

    Raises:
        BackendError: no such backend, or it is not installed; ``auto`` makes do with what there is.
    """
    name = backend_name(backend)
    if isinstance(network, WideNetwork):
        on_cpu = device == "cpu" and name in ("auto", "numba", "numba-int16")
        return WideEvaluator(network) if on_cpu else open_backend(network, name if "torch" in name else "torch", device)
    if name != "auto":
        return open_backend(network, name, device, threads)
    if device != "cpu":
        return open_backend(network, "torch", device)
    from .numba_evaluator import NumbaEvaluator

    try:
        return NumbaEvaluator(network, "int16", bounded=True)
    except BackendError:
        return open_backend(network, "torch", device)
