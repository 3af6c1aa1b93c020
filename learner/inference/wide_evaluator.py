"""The wide network as the search's evaluator, by kernels of our own."""

from collections.abc import Callable

import numpy as np
from torch import Tensor

from engine.bitboard import BIT_OF_SQUARE, NUM_SQUARES
from engine.encoding import NUM_POLICY
from engine.search.state import SearchState, Settings
from engine.search.step_loop import StepCounts
from engine.tablebase.probing import Tables

from ..network_base import Network
from ..wide import NUM_PHASES, NUM_PIECES, PHASES, WideNetwork
from .evaluator import BackendError, NetworkEvaluator
from .lanes import WIDTH
from .numba_evaluator import blocked, filled, padded
from .tiles import BLOCK, ROWS
from .wide_kernels import LOGITS_PER_PASS, STRIP, WideBuffers, WideWeights, evaluate_wide, search_wide
from .winograd import filled_rows

LARGEST_BATCH = 64
_MOST_PIECES = 32


class WideEvaluator(NetworkEvaluator):
    """Evaluates with a wide network, in float32: the ``engine.search.CompiledEvaluator`` for CPUs.

    Raises:
        BackendError: the network is of another family.
    """

    def __init__(self, network: Network) -> None:
        if not isinstance(network, WideNetwork) or network.config.units % STRIP:
            raise BackendError(f"these kernels compute wide networks with multiples of {STRIP} units")
        super().__init__(network, range(1, LARGEST_BATCH + 1))

    @property
    def backend(self) -> str:
        """See ``NetworkEvaluator.backend``."""
        return "numba"

    def _load(self, folded: Network) -> None:
        assert isinstance(folded, WideNetwork)
        self._weights = pack_wide(folded)
        self._buffers = _room_for(self._weights, LARGEST_BATCH)

    def _evaluate_part(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(positions)
        policy_logits, wdl_logits = np.empty((n, NUM_POLICY), np.float32), np.empty((n, 3), np.float32)
        evaluate_wide(positions, self._weights, self._buffers, policy_logits, wdl_logits)
        return policy_logits, wdl_logits

    def search(self, state: SearchState, settings: Settings, tables: Tables, steps: int) -> StepCounts:
        """See ``CompiledEvaluator.search``. Threads that share the evaluator take turns."""
        with self._lock:
            counts = StepCounts(*search_wide(state, settings, tables, self._weights, self._buffers, steps))
        self.asked += counts.judged
        return counts


def pack_wide(network: WideNetwork) -> WideWeights:
    """The weights of a network on the CPU as the kernels read them."""
    phases = [phase.state_dict() for phase in network.phases]

    def joined(name: str, pack: Callable[[Tensor], np.ndarray]) -> np.ndarray:
        return np.concatenate([pack(phase[name]) for phase in phases])

    return WideWeights(
        phases=PHASES,
        pieces=joined("wide.weight", _pieces),
        counter=joined("wide.weight", lambda weight: _numbers(weight[:, NUM_PIECES])),
        bias=joined("wide.bias", _numbers),
        policy=_numbers(network.policy.weight).ravel(),
        policy_bias=_numbers(network.policy.bias),
        hidden=joined("hidden.weight", _matrix),
        hidden_bias=joined("hidden.bias", _numbers),
        wdl=joined("wdl.weight", _matrix),
        wdl_bias=joined("wdl.bias", lambda bias: padded(_numbers(bias), BLOCK)),
    )


def _numbers(tensor: Tensor) -> np.ndarray:
    numbers: np.ndarray = tensor.detach().numpy().astype(np.float32)
    return numbers


def _pieces(weight: Tensor) -> np.ndarray:
    by_square = _numbers(weight).T[:NUM_PIECES].reshape(-1, NUM_SQUARES, len(weight))
    by_bit = np.empty_like(by_square)
    by_bit[:, BIT_OF_SQUARE] = by_square
    return by_bit.ravel()


def _matrix(weight: Tensor) -> np.ndarray:
    numbers = _numbers(weight).T
    return blocked(padded(numbers, len(numbers), filled(numbers.shape[1])))


def _room_for(weights: WideWeights, positions: int) -> WideBuffers:
    rows = filled_rows(positions) + NUM_PHASES * ROWS
    units, hidden = weights.bias.size // NUM_PHASES, weights.hidden_bias.size // NUM_PHASES
    return WideBuffers(
        ones=np.ones(BLOCK, np.float32),
        places=np.zeros(positions, np.int64),
        ends=np.zeros(NUM_PHASES, np.int64),
        rows=np.zeros(_MOST_PIECES, np.int64),
        hops=np.zeros(NUM_POLICY + LOGITS_PER_PASS, np.int64),
        is_wanted=np.zeros(NUM_POLICY, np.bool_),
        sums=np.zeros(LOGITS_PER_PASS * WIDTH, np.float32),
        units=np.zeros(rows * units, np.float32),
        hidden=np.zeros(rows * hidden, np.float32),
        wdl=np.zeros(rows * BLOCK, np.float32),
    )
