"""The wide network as the search's evaluator, by own kernels."""

import numpy as np
from torch import Tensor

from engine.bitboard import BIT_OF_SQUARE, NUM_SQUARES, SQUARE_OF_BIT
from engine.encoding import NUM_POLICY, REVERSIBLE_SCALE
from engine.fen import MAX_PIECES
from engine.search.state import SearchState, Settings
from engine.search.step_loop import StepCounts
from engine.tablebase.probing import Tables

from ..network_base import Network
from ..wide import (
    NUM_NEIGHBOUR_ROWS,
    NUM_PHASES,
    NUM_PIECES,
    PHASES,
    STATE_BEGINS,
    STATE_STEPS,
    Neighbours,
    WideNetwork,
)
from .evaluator import BackendError, NetworkEvaluator
from .lanes import LARGEST_SHORT, WIDTH
from .numba_evaluator import padded, paired, steps_of
from .shorts import DOTS, OUTPUTS, STRIP
from .wide_kernels import BEGINNINGS, PHASE_ROWS, WideBuffers, WideWeights, evaluate_wide, search_wide

LARGEST_BATCH = 64
_MOST_PIECES = 2 * MAX_PIECES
_STATES = np.column_stack([STATE_BEGINS[:-1], STATE_STEPS])[SQUARE_OF_BIT]


class WideEvaluator(NetworkEvaluator):
    """Evaluates with a wide network, in 16-bit integers: the ``engine.search.CompiledEvaluator`` for CPUs.

    The weights from pieces are rounded with one step for each unit of the wide layer, those behind it with one for
    every output, such that no sum can be too large.

    Raises:
        BackendError: the network is of another family.
    """

    def __init__(self, network: Network) -> None:
        if not isinstance(network, WideNetwork):
            raise BackendError("these kernels compute wide networks")
        super().__init__(network, range(1, LARGEST_BATCH + 1))

    @property
    def backend(self) -> str:
        return "numba-int16"

    def _load(self, folded: Network) -> None:
        assert isinstance(folded, WideNetwork)
        self._weights = pack_wide(folded)
        self._buffers = room_for(self._weights, 1)

    def _evaluate_part(self, positions: np.ndarray, policy_logits: np.ndarray, wdl_logits: np.ndarray) -> None:
        evaluate_wide(positions, self._weights, self._buffers, policy_logits, wdl_logits)

    def search(self, state: SearchState, settings: Settings, tables: Tables, steps: int) -> StepCounts:
        """See ``CompiledEvaluator.search``. Threads that share the evaluator take turns."""
        with self._lock:
            counts = StepCounts(*search_wide(state, settings, tables, self._weights, self._buffers, steps))
            self.asked += counts.judged
        return counts


def pack_wide(network: WideNetwork) -> WideWeights:
    """The weights of a network on the CPU as the kernels read them; units are filled up to whole strips."""
    phases = [{name: _numbers(tensor) for name, tensor in phase.state_dict().items()} for phase in network.phases]
    units = -(-network.config.units // STRIP) * STRIP
    rows = np.stack([_rows(phase["wide.weight"], phase["wide.bias"], units) for phase in phases])
    states = _neighbour_rows(network.neighbours, units)
    bounds = np.stack([_bounds(of_phase, states) for of_phase in rows]).max(0) + np.finfo(np.float32).tiny
    gains = (LARGEST_SHORT - 2 * _MOST_PIECES) / bounds  # rounding may add half a step for each row
    outputs = -(-network.config.hidden // OUTPUTS) * OUTPUTS
    hidden = np.stack([padded(phase["hidden.weight"].T, units, outputs) for phase in phases]) / gains[:, None]
    hidden_steps = steps_of(hidden)
    policy = padded(_numbers(network.policy.weight).T, units, NUM_POLICY) / gains[:, None]
    policy_steps = steps_of(policy[None])[0]
    return WideWeights(
        phases=PHASES,
        states=_STATES,
        rows=np.rint(np.concatenate([*rows, states]) * gains).astype(np.int16).ravel(),
        policy=np.rint(policy / policy_steps).astype(np.int16).T.ravel(),
        policy_scale=policy_steps.astype(np.float32),
        policy_bias=_numbers(network.policy.bias),
        hidden=np.concatenate([paired(matrix, OUTPUTS) for matrix in hidden / hidden_steps[:, None]]),
        hidden_scale=hidden_steps.astype(np.float32).ravel(),
        hidden_bias=np.concatenate([padded(phase["hidden.bias"], outputs) for phase in phases]),
        wdl=np.concatenate([padded(phase["wdl.weight"], 3, outputs).ravel() for phase in phases]),
        wdl_bias=np.concatenate([phase["wdl.bias"] for phase in phases]),
    )


def _numbers(tensor: Tensor) -> np.ndarray:
    numbers: np.ndarray = tensor.detach().numpy().astype(np.float32)
    return numbers


def _rows(weight: np.ndarray, bias: np.ndarray, units: int) -> np.ndarray:
    """The rows of a phase, [PHASE_ROWS, units], before they are rounded."""
    counted = np.arange(BEGINNINGS)[:, None] / REVERSIBLE_SCALE * weight[:, NUM_PIECES] + bias
    by_square = weight.T[:NUM_PIECES].reshape(-1, NUM_SQUARES, len(weight))
    by_bit = np.empty_like(by_square)
    by_bit[:, BIT_OF_SQUARE] = by_square
    return padded(np.concatenate([counted, by_bit.reshape(NUM_PIECES, -1)]), PHASE_ROWS, units).astype(np.float64)


def _neighbour_rows(neighbours: Neighbours | None, units: int) -> np.ndarray:
    """The rows of pieces and what is next to them, [``NUM_NEIGHBOUR_ROWS`` or 0, units]."""
    if neighbours is None:
        return np.zeros((0, units))
    return padded(_numbers(neighbours.rows)[:-1], NUM_NEIGHBOUR_ROWS, units).astype(np.float64)


def _bounds(rows: np.ndarray, states: np.ndarray) -> np.ndarray:
    """More than any position's sums of a phase's rows and neighbours', and than what sums go through: [units]."""
    pieces = np.abs(rows[BEGINNINGS:]).reshape(4, NUM_SQUARES, -1)
    if len(states):
        of_square = np.abs(states).reshape(4, -1, states.shape[1])
        pieces[:, BIT_OF_SQUARE] += np.maximum.reduceat(of_square, STATE_BEGINS[:-1], 1)
    kinds = pieces.reshape(2, 2, NUM_SQUARES, -1).max(1)  # a square has a man or a king
    most = np.sort(kinds, 1)[:, -MAX_PIECES:].sum((0, 1))
    bounds: np.ndarray = np.abs(rows[:BEGINNINGS]).max(0) + most
    return bounds


def room_for(weights: WideWeights, positions: int) -> WideBuffers:
    """Buffers with the sums of ``positions`` positions."""
    units, hidden = weights.policy.size // NUM_POLICY, weights.hidden_bias.size // NUM_PHASES
    return WideBuffers(
        rows=np.zeros(2 * (1 + 2 * _MOST_PIECES), np.int64),
        hops=np.zeros(NUM_POLICY + DOTS, np.int64),
        begins=np.zeros(NUM_POLICY + DOTS, np.int64),
        is_wanted=np.zeros(NUM_POLICY, np.bool_),
        products=np.zeros(OUTPUTS, np.float32),
        hidden=np.zeros(hidden, np.float32),
        wdl=np.zeros(3 * WIDTH, np.float32),
        sums=np.zeros(positions * units, np.int16),
    )
