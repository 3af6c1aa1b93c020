"""Inference by own kernels (``winograd``): it needs no other package and has no preferred batch size."""

import copy
import logging
from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from engine.bitboard import NUM_SQUARES
from engine.encoding import encode_planes
from engine.search.state import SearchState, Settings
from engine.search.step_loop import StepCounts
from engine.tablebase.probing import Tables

from ..network import Network, NetworkConfig, ResidualConfig
from ..residual import ConvUnit, ResidualNetwork
from .calibration import CALIBRATION_POSITIONS, random_positions
from .evaluator import BackendError, NetworkEvaluator
from .fidelity import Answers, Fidelity, compare
from .lanes import LARGEST_SHORT, WIDTH
from .tiles import BLOCK, LARGEST_SUM
from .winograd import (
    LARGEST_BATCH,
    LINES,
    PATCHES,
    POINTS,
    Buffers,
    Weights,
    filled_rows,
    forward_many,
    search_residual,
)

_KERNEL = 3
_FILTER_POINTS = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ]
)
"""Points of a filter of three numbers (Lavin and Gray 2016)."""
_BOARD_POINTS = torch.tensor(
    [
        [4.0, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ]
)
"""Points of six numbers (the same)."""
_HEADROOM = 2.0  # times what the calibration positions need
_LOG = logging.getLogger(__name__)

Precision = Literal["float32", "int16"]


def can_compute(config: NetworkConfig) -> bool:
    """Whether the kernels compute such networks."""
    if not isinstance(config, ResidualConfig):
        return False
    is_plain = config.board == "8x4" and config.kernel_size == _KERNEL
    return is_plain and config.activation in ("relu", "leaky_relu")


def check_config(config: NetworkConfig) -> None:
    """Raises ``BackendError`` if the kernels do not compute such networks."""
    if can_compute(config):
        return
    shape = f"a {config.family} one"
    if isinstance(config, ResidualConfig):
        shape = f"{config.kernel_size}x{config.kernel_size} over {config.board} with {config.activation}"
    raise BackendError(f"backend numba computes 3x3 convolutions over 8x4 squares with relu or leaky_relu, not {shape}")


class NumbaEvaluator(NetworkEvaluator):
    """Evaluates with own kernels, for networks of 3 by 3 convolutions over the dark squares.

    With 16-bit integers the convolutions' points and filters are rounded to them: each convolution's points with one
    step, twice what the calibration positions need, each filter point with a step for every output. The heads stay in
    float32. Integers are judged at every ``update``: the answers to the calibration positions are compared with the
    network's.

    Args:
        network: as for ``NetworkEvaluator``.
        precision: of the convolutions.
        bounded: where integers stray further from the network than ``fidelity`` allows, evaluate in float32 until the
            next update; a warning is logged.
        calibration: positions uint32 [N, 4]; by default ``random_positions``.

    Attributes:
        precision: the one in use; with ``bounded`` it may be float32 where integers were asked for.
        fidelity: of integers with the present weights, on the calibration positions; None if they were not asked for.

    Raises:
        BackendError: a network of another kind.
    """

    def __init__(
        self,
        network: Network,
        precision: Precision = "float32",
        bounded: bool = False,
        calibration: np.ndarray | None = None,
    ) -> None:
        check_config(network.config)
        self._asked: Precision = precision
        self._bounded = bounded
        self._calibration = random_positions(CALIBRATION_POSITIONS) if calibration is None else calibration
        self.precision: Precision = precision
        self.fidelity: Fidelity | None = None
        super().__init__(network, range(1, LARGEST_BATCH + 1))
        self._evaluate_all(np.zeros((1, 4), np.uint32))  # compiles, or loads what has been compiled before

    @property
    def backend(self) -> str:
        return "numba" if self.precision == "float32" else f"numba-{self.precision}"

    def _load(self, folded: Network) -> None:
        assert isinstance(folded, ResidualNetwork)
        self.precision = self._asked
        if self._asked == "float32":
            self._load_weights(pack(folded))
            return
        largest, expected = largest_points(folded, self._calibration)
        self._load_weights(pack(folded, largest))
        self.fidelity = compare(self._calibration, expected, self._evaluate_all(self._calibration))
        if self._bounded and not self.fidelity.acceptable:
            reason = f"{self.precision} strays too far from this network ({self.fidelity}): float32 is used instead"
            _LOG.warning(reason)
            self.precision = "float32"
            self._load_weights(pack(folded))

    def _load_weights(self, weights: Weights) -> None:
        self._weights = weights
        self._buffers = _room_for(weights, LARGEST_BATCH)

    def _evaluate_part(self, positions: np.ndarray, policy_logits: np.ndarray, wdl_logits: np.ndarray) -> None:
        forward_many(positions, (self._weights, self._buffers), policy_logits, wdl_logits)

    def search(self, state: SearchState, settings: Settings, tables: Tables, steps: int) -> StepCounts:
        """See ``CompiledEvaluator.search``. Threads that share the evaluator take turns."""
        with self._lock:
            counts = StepCounts(*search_residual(state, settings, tables, self._weights, self._buffers, steps))
            self.asked += counts.judged
        return counts


def pack(folded: ResidualNetwork, largest: np.ndarray | None = None) -> Weights:
    """The weights of a folded float32 network on the CPU (``Network.folded``) as the kernels read them.

    Args:
        largest: see ``largest_points``, for convolutions in int16; None for float32.
    """
    channels, stem = filled(folded.config.channels), folded.stem
    units = [stem, *(unit for unit in folded.blocks.modules() if isinstance(unit, ConvUnit))]
    points = [points_of(unit.conv, WIDTH if unit is stem else channels, channels) for unit in units]
    gains, steps = np.ones(len(units)), np.ones((len(units), POINTS, channels))
    lay_out = blocked
    if largest is not None:
        gains = LARGEST_SHORT / (_HEADROOM * np.where(largest > 0, largest, 1))  # 0: no position has reached it
        steps = np.stack([steps_of(matrices) for matrices in points])
        lay_out = paired
    scaled = (matrices / step[:, None] for matrices, step in zip(points, steps, strict=True))
    policy, wdl = folded.policy_head, folded.wdl_head
    return Weights(
        slope=np.float32(stem.activation.negative_slope if isinstance(stem.activation, nn.LeakyReLU) else 0.0),
        filters=np.concatenate([lay_out(block) for matrices in scaled for block in blocks_of(matrices)]),
        gains=gains.astype(np.float32),
        scales=(steps / gains[:, None, None]).astype(np.float32).ravel(),
        biases=np.concatenate([_bias(unit.conv.bias) for unit in units]),
        policy=_matrix(policy.unit.conv.weight, channels),
        policy_bias=_bias(policy.unit.conv.bias),
        moves=_matrix(policy.logits.weight, filled(folded.config.policy_channels)),
        moves_bias=_bias(policy.logits.bias),
        wdl=_matrix(wdl.unit.conv.weight, channels),
        wdl_bias=_bias(wdl.unit.conv.bias),
        hidden=_hidden_matrix(wdl.hidden.weight, folded.config.wdl_channels, channels),
        hidden_bias=_bias(wdl.hidden.bias),
        logits=_matrix(wdl.logits.weight, filled(folded.config.wdl_hidden)),
        logits_bias=_bias(wdl.logits.bias),
    )


def points_of(conv: nn.Conv2d, inputs: int, outputs: int) -> np.ndarray:
    """The points of a convolution's filters: float64 [36, inputs, outputs]."""
    filters = _numbers(conv.weight).astype(np.float64)
    points = np.einsum("ar,oirs,bs->abio", _FILTER_POINTS, filters, _FILTER_POINTS)
    return padded(points.reshape(POINTS, conv.in_channels, conv.out_channels), POINTS, inputs, outputs)


def blocks_of(points: np.ndarray) -> Iterator[np.ndarray]:
    """The matrices [inputs, ``BLOCK``] of points [36, inputs, outputs] in the order in which they are used."""
    for first in range(0, points.shape[2], BLOCK):
        yield from points[:, :, first : first + BLOCK]


def steps_of(points: np.ndarray) -> np.ndarray:
    """Steps [36, outputs] of int16 filters [36, inputs, outputs] such that no sum of products is too large."""
    bounds = np.abs(points).max(1) / (LARGEST_SHORT - 1), np.abs(points).sum(1) / (LARGEST_SUM / (LARGEST_SHORT + 1))
    # Rounding may add half a step for each input.
    return np.maximum(*bounds) * (1 + points.shape[1] / LARGEST_SHORT) + np.finfo(np.float32).tiny


@torch.inference_mode()
def largest_points(folded: ResidualNetwork, positions: np.ndarray) -> tuple[np.ndarray, Answers]:
    """The greatest absolute value of a point before each convolution, float64 [convolutions], and the answers."""
    largest: list[float] = []

    def note(_module: nn.Module, inputs: tuple[Tensor]) -> None:
        board = nn.functional.pad(inputs[0], (1, 1, 1, 1)).unfold(2, 6, 4)  # [N, C, patches, 6 columns, 6 rows]
        points = torch.einsum("ar,ncpsr,bs->ncpab", _BOARD_POINTS, board, _BOARD_POINTS)
        largest.append(float(points.abs().max()))

    network = copy.deepcopy(folded)
    for unit in (network.stem, *network.blocks.modules()):
        if isinstance(unit, ConvUnit):
            unit.conv.register_forward_pre_hook(note)
    policy_logits, wdl_logits = (logits.numpy() for logits in network(torch.from_numpy(encode_planes(positions))))
    return np.array(largest), (policy_logits, wdl_logits)


def blocked(matrix: np.ndarray) -> np.ndarray:
    """A matrix [depth, width] as flat float32: its columns in groups of ``BLOCK``, row after row of each."""
    groups = matrix.reshape(len(matrix), -1, BLOCK).transpose(1, 0, 2)
    return np.ascontiguousarray(groups, np.float32).ravel()


def paired(matrix: np.ndarray, columns: int = BLOCK) -> np.ndarray:
    """The same as int16, in groups of ``columns``, two rows at a time: the two numbers of a column side by side."""
    groups = np.rint(matrix).reshape(len(matrix) // 2, 2, -1, columns).transpose(2, 0, 3, 1)
    return np.ascontiguousarray(groups, np.int16).ravel()


def _matrix(weight: Tensor, depth: int) -> np.ndarray:
    """A linear layer or convolution of 1 by 1 as matrix [inputs, outputs], filled up and blocked."""
    numbers = _numbers(weight)
    return blocked(padded(numbers.reshape(numbers.shape[:2]).T, depth, filled(len(numbers))))


def _hidden_matrix(weight: Tensor, per_square: int, channels: int) -> np.ndarray:
    """The layer behind the win/draw/loss head's features: those of each square, square by square, and the means."""
    numbers, split = _numbers(weight), per_square * NUM_SQUARES
    units = filled(len(numbers))
    squares = numbers[:, :split].reshape(-1, per_square, NUM_SQUARES).transpose(2, 1, 0)
    squares_filled = padded(squares, NUM_SQUARES, filled(per_square), units).reshape(-1, units)
    return blocked(np.concatenate([squares_filled, padded(numbers[:, split:].T, channels, units)]))


def _bias(bias: Tensor | None) -> np.ndarray:
    numbers = _numbers(bias)
    return padded(numbers, filled(len(numbers)))


def _numbers(weight: Tensor | None) -> np.ndarray:
    assert weight is not None  # folding gives every convolution a bias
    return weight.detach().numpy()


def filled(channels: int) -> int:
    """The next number of channels that makes whole blocks."""
    return -(-channels // BLOCK) * BLOCK


def padded(array: np.ndarray, *shape: int) -> np.ndarray:
    """The array with zeros behind it along each axis."""
    behind = [(0, wanted - size) for wanted, size in zip(shape, array.shape, strict=True)]
    return np.pad(array, behind)


def _room_for(weights: Weights, positions: int) -> Buffers:
    """Zeros: what no position fills is computed along and must not be what slows a processor down."""
    channels = weights.biases.size // weights.gains.size
    widest = max(channels, weights.policy_bias.size, weights.wdl_bias.size)
    squares, rows = positions * NUM_SQUARES, filled_rows(positions)
    sizes = {
        "zeros": channels,
        "ones": max(widest, weights.hidden_bias.size),
        "planes": squares * WIDTH,
        "x": squares * channels,
        "y": squares * widest,
        "z": squares * BLOCK,
        "points_in": POINTS * filled_rows(PATCHES * positions) * channels,
        "points_out": POINTS * filled_rows(PATCHES * positions) * BLOCK,
        "lines": LINES,
        "features": rows * (NUM_SQUARES * weights.wdl_bias.size + channels),
        "hidden": rows * weights.hidden_bias.size,
        "logits": rows * BLOCK,
    }
    room = Buffers(**{name: np.zeros(size, np.float32) for name, size in sizes.items()})
    room.ones[:] = 1
    return room._replace(points_in=room.points_in.astype(weights.filters.dtype))
