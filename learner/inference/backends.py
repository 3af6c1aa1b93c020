"""The inference backends by their names, and the rule by which ``auto`` chooses one."""

from engine.players.spec import BackendName, one_of

from ..network import Network, NetworkConfig, ResidualNetwork, WideNetwork, maker_of
from ..wide import WideConfig
from .evaluator import BackendError, NetworkEvaluator
from .numba_evaluator import NumbaEvaluator, can_compute, check_config
from .torch_evaluator import TorchEvaluator
from .wide_evaluator import WideEvaluator

KERNELS = ("numba", "numba-int16")
_COMPUTED = (ResidualNetwork, WideNetwork)  # not their subclasses, which may compute anything


def make_evaluator(network: Network, backend: str = "auto", device: str = "cpu") -> NetworkEvaluator:
    """An evaluator by the name of its backend.

    Args:
        backend: a ``BackendName``. ``auto`` is, on the CPU and for wide networks everywhere, our own kernels for the
            networks that they can compute, in 16-bit integers where these do not stray too far (``NumbaEvaluator``);
            else it is torch. Wide networks are computed in 16-bit integers whichever kernels are named.
        device: of torch; the kernels compute on the CPU.

    Raises:
        BackendError: no such backend, or it cannot compute this network.
    """
    name: BackendName = one_of(backend, BackendName, "backend", BackendError)
    check_backend(network.config, name)
    known = type(network) in _COMPUTED
    if name in KERNELS and not known:
        raise BackendError(f"backend {name} knows no {type(network).__name__}: choose auto or torch")
    if not known or not uses_kernels(network.config, name, device):
        return TorchEvaluator(network, device, "float32" if name == "torch-float32" else "auto")
    if isinstance(network, WideNetwork):
        return WideEvaluator(network)
    return NumbaEvaluator(network, "float32" if name == "numba" else "int16", bounded=name == "auto")


def check_backend(config: NetworkConfig, backend: str) -> None:
    """Raises ``BackendError`` where ``make_evaluator`` would for every network of this configuration."""
    if backend == "student":
        raise BackendError("backend student is for players whose folder has a student beside the network")
    if backend not in KERNELS:
        return
    if maker_of(config) not in _COMPUTED:
        raise BackendError(f"backend {backend} knows no networks of the family {config.family}: choose auto or torch")
    if not isinstance(config, WideConfig):
        check_config(config)


def uses_kernels(config: NetworkConfig, backend: str, device: str) -> bool:
    """Whether ``make_evaluator`` chooses our own kernels, which compute on the CPU."""
    if backend == "auto":
        return isinstance(config, WideConfig) or (device == "cpu" and can_compute(config))
    return backend in KERNELS
