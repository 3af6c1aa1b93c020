"""Inference by our own kernels (``winograd``): needs no other package, and any batch size is as good as another."""

import numpy as np
from torch import Tensor, nn

from engine.bitboard import NUM_SQUARES
from engine.encoding import NUM_POLICY

from ..network import ConvUnit, Network
from .evaluator import BackendError, NetworkEvaluator
from .lanes import BLOCK, WIDTH
from .winograd import LINES, PATCHES, POINTS, Buffers, Weights, filled_rows, forward

LARGEST_BATCH = 16  # weights are read once for so many positions, and what lies between two layers stays in the cache
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


class NumbaEvaluator(NetworkEvaluator):
    """Evaluates in float32 on one core, for networks of 3 by 3 convolutions over the dark squares.

    Args:
        network: as for ``NetworkEvaluator``.

    Raises:
        BackendError: a network of another kind.
    """

    def __init__(self, network: Network) -> None:
        config = network.config
        if config.board != "8x4" or config.kernel_size != _KERNEL or config.activation not in ("relu", "leaky_relu"):
            raise BackendError(
                "backend numba computes 3x3 convolutions over 8x4 squares with relu or leaky_relu, not "
                f"{config.kernel_size}x{config.kernel_size} over {config.board} with {config.activation}"
            )
        super().__init__(network, range(1, LARGEST_BATCH + 1))
        self.evaluate(np.zeros((1, 4), np.uint32))  # compiles, or loads what has been compiled before

    @property
    def backend(self) -> str:
        """See ``NetworkEvaluator.backend``."""
        return "numba"

    def _load(self, folded: Network) -> None:
        self._weights = pack(folded)
        self._buffers = _room_for(self._weights, filled(folded.config.channels), LARGEST_BATCH)

    def _evaluate_part(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(positions)
        policy_logits, wdl_logits = np.empty((n, NUM_POLICY), np.float32), np.empty((n, 3), np.float32)
        forward(positions, self._weights, self._buffers, policy_logits, wdl_logits)
        return policy_logits, wdl_logits


def pack(folded: Network) -> Weights:
    """The weights of a folded float32 network on the CPU (``Network.folded``) as the kernels read them."""
    channels = filled(folded.config.channels)
    stem = folded.stem
    units = [unit for unit in folded.blocks.modules() if isinstance(unit, ConvUnit)]
    trunk = [points_of(unit.conv, channels, channels) for unit in units]
    policy, wdl = folded.policy_head, folded.wdl_head
    slope = stem.activation.negative_slope if isinstance(stem.activation, nn.LeakyReLU) else 0.0
    return Weights(
        slope=np.float32(slope),
        filters=np.concatenate([points_of(stem.conv, WIDTH, channels), *trunk]),
        biases=np.concatenate([_bias(unit.conv.bias) for unit in (stem, *units)]),
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
    """The 36 matrices [inputs, outputs] of a convolution, one after the other, each ``blocked``."""
    filters = _numbers(conv.weight).astype(np.float64)
    points = np.einsum("ar,oirs,bs->abio", _FILTER_POINTS, filters, _FILTER_POINTS)
    matrices = points.reshape(POINTS, conv.in_channels, conv.out_channels)
    return np.concatenate([blocked(matrix) for matrix in _padded(matrices, POINTS, inputs, outputs)])


def blocked(matrix: np.ndarray) -> np.ndarray:
    """A matrix [depth, width] as flat float32: its columns in groups of ``BLOCK``, row after row of each."""
    groups = matrix.reshape(len(matrix), -1, BLOCK).transpose(1, 0, 2)
    return np.ascontiguousarray(groups, np.float32).ravel()


def _matrix(weight: Tensor, depth: int) -> np.ndarray:
    """A linear layer or convolution of 1 by 1 as matrix [inputs, outputs], filled up and blocked."""
    numbers = _numbers(weight)
    return blocked(_padded(numbers.reshape(numbers.shape[:2]).T, depth, filled(len(numbers))))


def _hidden_matrix(weight: Tensor, per_square: int, channels: int) -> np.ndarray:
    """The layer behind the win/draw/loss head's features: those of each square, square by square, and the means."""
    numbers, split = _numbers(weight), per_square * NUM_SQUARES
    units = filled(len(numbers))
    squares = numbers[:, :split].reshape(-1, per_square, NUM_SQUARES).transpose(2, 1, 0)
    squares_filled = _padded(squares, NUM_SQUARES, filled(per_square), units).reshape(-1, units)
    return blocked(np.concatenate([squares_filled, _padded(numbers[:, split:].T, channels, units)]))


def _bias(bias: Tensor | None) -> np.ndarray:
    numbers = _numbers(bias)
    return _padded(numbers, filled(len(numbers)))


def _numbers(weight: Tensor | None) -> np.ndarray:
    assert weight is not None  # folding gives every convolution a bias
    return weight.detach().numpy()


def filled(channels: int) -> int:
    """The next number of channels that makes whole blocks."""
    return -(-channels // BLOCK) * BLOCK


def _padded(array: np.ndarray, *shape: int) -> np.ndarray:
    """The array with zeros behind it along each axis."""
    behind = [(0, wanted - size) for wanted, size in zip(shape, array.shape, strict=True)]
    return np.pad(array, behind)


def _room_for(weights: Weights, channels: int, positions: int) -> Buffers:
    """Zeros: what no position fills is computed along and must not be what slows a processor down."""
    widest = max(channels, weights.policy_bias.size, weights.wdl_bias.size)
    squares, rows = positions * NUM_SQUARES, filled_rows(positions)
    sizes = {
        "zeros": channels,
        "planes": squares * WIDTH,
        "x": squares * channels,
        "y": squares * widest,
        "z": squares * BLOCK,
        "points_in": POINTS * filled_rows(PATCHES * positions) * channels,
        "points_out": POINTS * filled_rows(PATCHES * positions) * channels,
        "lines": LINES,
        "features": rows * (NUM_SQUARES * weights.wdl_bias.size + channels),
        "hidden": rows * weights.hidden_bias.size,
        "logits": rows * BLOCK,
    }
    return Buffers(**{name: np.zeros(size, np.float32) for name, size in sizes.items()})
