"""A network as an ONNX graph, written node by node: in float32, or in int8 as QuantizeLinear/DequantizeLinear pairs.

**Input** ``planes`` float32 [batch, 6, 8, 4], **outputs** ``policy_logits`` float32 [batch, 128] and ``wdl_logits``
float32 [batch, 3]; their meaning (``INTERFACE``) is part of every file.

**Int8** is what the trunk's convolutions compute with (more than 99 % of the arithmetic): weights with a scale for each
output channel, activations with one scale, unsigned, zero represented exactly (Jacob et al. 2018). Planes are exact:
one is 240, the counter of plane 4 goes by threes. The heads stay in float32: in int8 they would be a few per cent
faster and a tenth less true.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from torch import nn

from engine.encoding import NUM_PLANES, NUM_POLICY

from ..network_base import COLUMNS, ROWS, Network
from ..residual import DARK_SQUARES, Block, ConvUnit, ResidualNetwork
from ..wide import KINGS, NUM_PIECES, PHASES, WideNetwork
from .calibration import Ranges
from .evaluator import BackendError

INPUT, POLICY, WDL = "planes", "policy_logits", "wdl_logits"
INTERFACE = {
    INPUT: (
        "float32 [batch, 6, 8, 4], seen by the side to move: own men, own kings, opponent's men, opponent's kings (1 "
        "or 0), plies since the last capture or man's move / 80, one on odd rows. Square s = 4 * row + k is PDN square "
        "s + 1 with Black and 32 - s with White to move; rows count from the side's own home row, 0 to 7; the square's "
        "column is 2 * k + 1 on even and 2 * k on odd rows"
    ),
    POLICY: (
        "float32 [batch, 128]: 32 * d + s is one hop, a step or a single jump, from square s in direction d, which "
        "adds to (row, column) for d = 0: (+1, +1), 1: (+1, -1), 2: (-1, -1), 3: (-1, +1), twice that for a jump. A "
        "move's logit is the sum over its hops; softmax over the legal moves gives their probabilities"
    ),
    WDL: "float32 [batch, 3]: softmax gives the probabilities of win, draw and loss for the side to move",
}
_PLANES_SCALE = 1 / 240
_OPSET, _IR_VERSION = 19, 9
_ACTIVATIONS: dict[type[nn.Module], tuple[str, dict[str, Any]]] = {
    nn.ReLU: ("Relu", {}),
    nn.LeakyReLU: ("LeakyRelu", {"alpha": nn.LeakyReLU().negative_slope}),
    nn.Mish: ("Mish", {}),
}


def import_onnx() -> Any:
    """The ``onnx`` package.

    Raises:
        BackendError: it is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise BackendError(f"ONNX graphs need onnx (pip install 'crownhead[export]'): {error}") from error
    return onnx


def onnx_model(folded: Network, ranges: Ranges | None = None, metadata: Mapping[str, str] | None = None) -> bytes:
    """The ONNX file of a network.

    Args:
        folded: a folded float32 network on the CPU (``Network.folded``).
        ranges: of its activations, for int8; None for float32.
        metadata: entries of the file's metadata, beside the network's configuration.

    Raises:
        BackendError: onnx is not installed.
    """
    return _Writer(folded, ranges).write(metadata or {})


class _Tensor:
    """A value of the graph; ``scale`` is its quantisation step, None in float32."""

    def __init__(self, name: str, scale: np.float32 | None = None) -> None:
        self.name, self.scale = name, scale


class _Writer:
    """Collects the nodes and constants of one graph."""

    def __init__(self, network: Network, ranges: Ranges | None) -> None:
        self._onnx = import_onnx()
        self._network = network
        self._ranges = ranges
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def write(self, metadata: Mapping[str, str]) -> bytes:
        helper, float_type = self._onnx.helper, self._onnx.TensorProto.FLOAT
        self._add_network()
        shapes = {INPUT: [NUM_PLANES, ROWS, COLUMNS], POLICY: [NUM_POLICY], WDL: [3]}
        values = {
            name: helper.make_tensor_value_info(name, float_type, ["batch", *shape], INTERFACE[name])
            for name, shape in shapes.items()
        }
        graph = helper.make_graph(
            self._nodes, "crownhead", [values[INPUT]], [values[POLICY], values[WDL]], self._constants
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="crownhead",
            doc_string="English draughts. " + " ".join(f"{name}: {text}." for name, text in INTERFACE.items()),
        )
        helper.set_model_props(model, {"network": json.dumps(self._network.config.model_dump()), **metadata})
        return model.SerializeToString()

    def _constant(self, value: np.ndarray | np.generic) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def _node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        output = output or f"{operator}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def _add_network(self) -> None:
        if isinstance(self._network, WideNetwork):
            self._add_wide(self._network)
        elif isinstance(self._network, ResidualNetwork):
            self._add_residual(self._network)

    def _add_wide(self, network: WideNetwork) -> None:
        """Every phase's layers for every position, of which those of its phase are taken."""
        squares = self._node("Flatten", INPUT)
        x = self._gather(squares, range(NUM_PIECES + 1))
        pieces = self._node("ReduceSum", self._gather(squares, range(NUM_PIECES)), self._axis(1), keepdims=0)
        kings = self._node("ReduceMax", self._gather(squares, np.flatnonzero(KINGS)), self._axis(1), keepdims=0)
        doubled = self._node("Add", self._node("Add", pieces, pieces), kings)
        row = self._node("Cast", doubled, to=self._onnx.TensorProto.INT64)
        phase = self._node("Gather", self._constant(PHASES.ravel().astype(np.int64)), row)
        place = self._node("Unsqueeze", phase, self._axis(1))
        units = self._node("Relu", self._layers(self._node("Unsqueeze", x, self._axis(0)), network, "wide"))
        hidden = self._node("Relu", self._layers(units, network, "hidden"))
        self._of_phase(self._layers(hidden, network, "wdl"), place, WDL)
        self._linear(self._of_phase(units, place, None), network.policy, output=POLICY)

    def _layers(self, x: str, network: WideNetwork, name: str) -> str:
        """One layer of every phase: [phases, batch, outputs]."""
        layers = [getattr(phase, name) for phase in network.phases]
        weight = self._constant(np.stack([layer.weight.numpy().T for layer in layers]))
        bias = self._constant(np.stack([layer.bias.numpy()[None] for layer in layers]))
        return self._node("Add", self._node("MatMul", x, weight), bias)

    def _of_phase(self, x: str, place: str, output: str | None) -> str:
        """Of [phases, batch, outputs] the rows of each position's phase: [batch, outputs]."""
        by_position = self._node("Transpose", x, perm=[1, 0, 2])
        return self._node("GatherND", by_position, place, output=output, batch_dims=1)

    def _axis(self, axis: int) -> str:
        return self._constant(np.array([axis], np.int64))

    def _gather(self, x: str, columns: Iterable[int]) -> str:
        return self._node("Gather", x, self._constant(np.array(list(columns), np.int64)), axis=1)

    def _add_residual(self, network: ResidualNetwork) -> None:
        full_board = network.config.board == "8x8"
        x = self._quantised(INPUT, 0.0, 255 * _PLANES_SCALE) if self._ranges is not None else _Tensor(INPUT)
        x = self._spread(x) if full_board else x
        x = self._output_of("stem", self._unit(x, network.stem))
        for number, block in enumerate(network.blocks):
            assert isinstance(block, Block)
            y = self._output_of(f"blocks.{number}.first", self._unit(x, block.first))
            # The sum's other term is quantised too, so that a runtime may add in int8.
            y = self._output_of(f"blocks.{number}.second.conv", self._convolution(y, block.second))
            total = self._node("Add", y.name, x.name)
            x = self._output_of(f"blocks.{number}.second", self._activation(total, block.second.activation))
        self._add_heads(network, self._gathered(x.name, DARK_SQUARES, (ROWS, COLUMNS)) if full_board else x.name)

    def _add_heads(self, network: ResidualNetwork, trunk: str) -> None:
        policy, wdl = network.policy_head, network.wdl_head
        logits = self._plain_convolution(self._unit(_Tensor(trunk), policy.unit), policy.logits)
        self._node("Flatten", logits, output=POLICY)
        features = self._node("Flatten", self._unit(_Tensor(trunk), wdl.unit))
        mean = self._node("ReduceMean", trunk, self._constant(np.array([2, 3], np.int64)), keepdims=0)
        hidden = self._linear(self._node("Concat", features, mean, axis=1), wdl.hidden)
        self._linear(self._activation(hidden, wdl.activation), wdl.logits, output=WDL)

    def _linear(self, x: str, layer: nn.Linear, output: str | None = None) -> str:
        weight, bias = (self._constant(tensor.numpy()) for tensor in (layer.weight, layer.bias))
        return self._node("Gemm", x, weight, bias, output=output, transB=1)

    def _plain_convolution(self, x: str, layer: nn.Conv2d) -> str:
        assert layer.bias is not None
        weight, bias = (self._constant(tensor.numpy()) for tensor in (layer.weight, layer.bias))
        return self._node("Conv", x, weight, bias, kernel_shape=list(layer.kernel_size))

    def _unit(self, x: _Tensor, unit: ConvUnit) -> str:
        return self._activation(self._convolution(x, unit), unit.activation)

    def _convolution(self, x: _Tensor, unit: ConvUnit) -> str:
        """A unit's convolution, its norm folded into it; in int8 if its input is."""
        kernel_size = unit.conv.kernel_size[0]
        before, after = (kernel_size - 1) // 2, kernel_size // 2
        assert unit.conv.bias is not None, "the network has been folded"
        values, biases = unit.conv.weight.numpy(), unit.conv.bias.numpy()
        if x.scale is None:
            weight, bias = self._constant(values), self._constant(biases)
        else:
            scales = np.maximum(np.abs(values).max((1, 2, 3)), np.float32(1e-8)) / np.float32(127)
            rounded = np.rint(values / scales[:, None, None, None]).astype(np.int8)
            weight = self._dequantised(rounded, scales)
            step = scales * x.scale
            largest = 2**31 - 128  # that float32 holds
            bias = self._dequantised(np.clip(np.rint(biases / step), -largest, largest).astype(np.int32), step)
        pads = [before, before, after, after]
        return self._node("Conv", x.name, weight, bias, kernel_shape=[kernel_size, kernel_size], pads=pads)

    def _dequantised(self, values: np.ndarray, scales: np.ndarray) -> str:
        """A constant of integers with a scale for each entry of the first dimension."""
        zeros = np.zeros(len(scales), values.dtype)
        parts = (self._constant(part) for part in (values, scales.astype(np.float32), zeros))
        return self._node("DequantizeLinear", *parts, axis=0)

    def _output_of(self, module: str, x: str) -> _Tensor:
        """What a module puts out, quantised by its range if the graph is."""
        return _Tensor(x) if self._ranges is None else self._quantised(x, *self._ranges[module])

    def _quantised(self, x: str, low: float, high: float) -> _Tensor:
        """Rounded to 256 steps between ``low`` and ``high``; zero is one of them."""
        low, high = min(low, 0.0), max(high, 0.0, low + 1e-6)
        scale = np.float32((high - low) / 255)
        zero = np.uint8(round(-low / float(scale)))
        parts = self._constant(scale), self._constant(zero)
        return _Tensor(self._node("DequantizeLinear", self._node("QuantizeLinear", x, *parts), *parts), scale)

    def _activation(self, x: str, module: nn.Module) -> str:
        if isinstance(module, nn.SiLU):
            return self._node("Mul", x, self._node("Sigmoid", x))
        operator, attributes = _ACTIVATIONS[type(module)]
        return self._node(operator, x, **attributes)

    def _spread(self, x: _Tensor) -> _Tensor:
        """The 32 squares at their places on the 8×8 board; light squares take a 33rd value, zero."""
        squares = self._reshaped(x.name, (ROWS * COLUMNS,))
        pads = self._constant(np.array([0, 0, 0, 0, 0, 1], np.int64))
        padded = self._node("Pad", squares, pads, self._constant(np.float32(0)))
        places = [ROWS * COLUMNS] * 64
        for square, place in enumerate(DARK_SQUARES):
            places[place] = square
        spread = self._node("Gather", padded, self._constant(np.array(places, np.int64)), axis=2)
        return _Tensor(self._reshaped(spread, (8, 8)), x.scale)

    def _gathered(self, x: str, places: list[int], shape: tuple[int, int]) -> str:
        """Squares of the 8×8 board, as a board of their own."""
        gathered = self._node("Gather", self._reshaped(x, (64,)), self._constant(np.array(places, np.int64)), axis=2)
        return self._reshaped(gathered, shape)

    def _reshaped(self, x: str, squares: tuple[int, ...]) -> str:
        """[batch, channels, *squares] with the same numbers."""
        return self._node("Reshape", x, self._constant(np.array([0, 0, *squares], np.int64)))
