"""The residual family: a trunk of convolutions with a policy and a win/draw/loss head. For GPUs.

The trunk is a stem and residual blocks of two convolutions with batch norm (He et al. 2016; Silver et al. 2018); the
second norm of a block starts at zero, so that a fresh network is shallow. What goes in and out is written down in
``engine.encoding``: planes [N, 6, 8, 4] in, policy logits [N, 128] and win/draw/loss logits [N, 3] for the side to move
out.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils import convert_conv2d_weight_memory_format
from torch.nn.utils.fusion import fuse_conv_bn_eval

from engine.bitboard import NUM_DIRECTIONS, NUM_SQUARES
from engine.encoding import NUM_PLANES

from .network_base import COLUMNS, ROWS, FamilyConfig, Network

DARK_SQUARES = [8 * row + 2 * k + (1 - row % 2) for row in range(ROWS) for k in range(COLUMNS)]
"""Place on the 8×8 board, row by row, of the squares 0-31, seen from the side to move."""

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": partial(nn.ReLU, inplace=True),
    "leaky_relu": partial(nn.LeakyReLU, inplace=True),
    "mish": nn.Mish,
    "silu": nn.SiLU,
}


class ResidualConfig(FamilyConfig, frozen=True, extra="forbid", allow_inf_nan=False):
    """Size and shape of a ``ResidualNetwork``.

    Attributes:
        blocks, channels: of the residual trunk.
        board: the planes as they are ("8x4", dark squares only) or spread over the whole board ("8x8").
        kernel_size: of the trunk's convolutions.
        policy_channels: channels of the policy head between trunk and logits.
        wdl_channels, wdl_hidden: channels per square and hidden units of the win/draw/loss head.
    """

    family: Literal["residual"] = "residual"
    blocks: int = Field(ge=1, le=60)
    channels: int = Field(ge=4, le=512)
    board: Literal["8x4", "8x8"] = "8x4"
    kernel_size: int = Field(default=3, ge=1, le=7)
    activation: Literal["relu", "leaky_relu", "mish", "silu"] = "relu"
    policy_channels: int = Field(default=32, ge=1, le=512)
    wdl_channels: int = Field(default=8, ge=1, le=128)
    wdl_hidden: int = Field(default=64, ge=1, le=1024)

    @property
    def size(self) -> str:
        return f"{self.blocks} blocks of {self.channels} channels"


SIZES = {
    "tiny": ResidualConfig(blocks=1, channels=16, policy_channels=16, wdl_channels=4, wdl_hidden=16),
    "2x32": ResidualConfig(blocks=2, channels=32),
    "3x32": ResidualConfig(blocks=3, channels=32),
    "4x48": ResidualConfig(blocks=4, channels=48),
    "5x64": ResidualConfig(blocks=5, channels=64),
    "6x96": ResidualConfig(blocks=6, channels=96, wdl_hidden=128),
    "10x128": ResidualConfig(blocks=10, channels=128, policy_channels=64, wdl_hidden=128),
}
"""Named sizes, blocks x channels; "tiny" is for tests."""


def _has_fused(x: Tensor) -> bool:
    """Whether cuDNN has convolution, bias, sum and ReLU as one kernel for these inputs."""
    return x.is_cuda and x.dtype == torch.bfloat16 and torch.version.cuda is not None  # AMD's devices say cuda, too


class ConvUnit(nn.Module):
    """Convolution, batch norm and activation; ``skip`` is added before the activation. The board keeps its size."""

    def __init__(self, inputs: int, outputs: int, kernel_size: int, activation: str) -> None:
        super().__init__()
        # An even kernel looks one square further forward than back.
        before, after = (kernel_size - 1) // 2, kernel_size // 2
        self.pad = nn.Identity() if before == after else nn.ZeroPad2d((before, after, before, after))
        self.conv = nn.Conv2d(inputs, outputs, kernel_size, padding=before if before == after else 0, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(outputs)
        self.activation = _ACTIVATIONS[activation]()

    def forward(self, x: Tensor, skip: Tensor | None = None) -> Tensor:
        if self.is_folded and isinstance(self.activation, nn.ReLU) and _has_fused(x):
            return self._fused(self.pad(x), skip)
        y = self.norm(self.conv(self.pad(x)))
        return self.activation(y if skip is None else y.add_(skip))

    def _fused(self, x: Tensor, skip: Tensor | None) -> Tensor:
        """The same in one kernel: on an H200 the passes of a ``10x128`` took half the time or less."""
        conv = self.conv
        assert isinstance(conv.padding, tuple)
        how = conv.stride, conv.padding, conv.dilation, conv.groups
        if skip is None:
            return torch.cudnn_convolution_relu(x, conv.weight, conv.bias, *how)
        return torch.cudnn_convolution_add_relu(x, conv.weight, skip, 1.0, conv.bias, *how)

    @property
    def is_folded(self) -> bool:
        return isinstance(self.norm, nn.Identity)

    def fold(self) -> None:
        """Moves the batch norm into the convolution's weights and bias; for inference only."""
        assert isinstance(self.norm, nn.BatchNorm2d)
        self.conv = fuse_conv_bn_eval(self.conv, self.norm)
        self.norm = nn.Identity()


class Block(nn.Module):
    """Residual block of two ``ConvUnit``."""

    def __init__(self, channels: int, kernel_size: int, activation: str) -> None:
        super().__init__()
        self.first = ConvUnit(channels, channels, kernel_size, activation)
        self.second = ConvUnit(channels, channels, kernel_size, activation)
        assert isinstance(self.second.norm, nn.BatchNorm2d)
        nn.init.zeros_(self.second.norm.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x), skip=x)


class PolicyHead(nn.Module):
    """Trunk [N, C, 8, 4] → logits [N, 128]; plane d, square s of the last convolution is ``logit[32 * d + s]``."""

    def __init__(self, config: ResidualConfig) -> None:
        super().__init__()
        self.unit = ConvUnit(config.channels, config.policy_channels, 1, config.activation)
        self.logits = nn.Conv2d(config.policy_channels, NUM_DIRECTIONS, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(self.unit(x)).flatten(1)


class WdlHead(nn.Module):
    """Trunk [N, C, 8, 4] → logits [N, 3] of win, draw, loss, from a few features per square and the trunk's mean."""

    def __init__(self, config: ResidualConfig) -> None:
        super().__init__()
        self.unit = ConvUnit(config.channels, config.wdl_channels, 1, config.activation)
        self.hidden = nn.Linear(config.wdl_channels * NUM_SQUARES + config.channels, config.wdl_hidden)
        self.activation = _ACTIVATIONS[config.activation]()
        self.logits = nn.Linear(config.wdl_hidden, 3)

    def forward(self, x: Tensor) -> Tensor:
        features = torch.cat([self.unit(x).flatten(1), x.mean((2, 3))], 1)
        return self.logits(self.activation(self.hidden(features)))


class ResidualNetwork(Network):
    dark_squares: Tensor
    config: ResidualConfig

    def __init__(self, config: ResidualConfig) -> None:
        super().__init__()
        self.config = config
        shape = (config.kernel_size, config.activation)
        self.stem = ConvUnit(NUM_PLANES, config.channels, *shape)
        self.blocks = nn.Sequential(*(Block(config.channels, *shape) for _ in range(config.blocks)))
        self.policy_head = PolicyHead(config)
        self.wdl_head = WdlHead(config)
        self.register_buffer("dark_squares", torch.tensor(DARK_SQUARES), persistent=False)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        x = planes if self.config.board == "8x4" else self._spread(planes)
        x = self.blocks(self.stem(x))
        if self.config.board == "8x8":
            x = x.flatten(2)[:, :, self.dark_squares].unflatten(2, (ROWS, COLUMNS))
        return self.policy_head(x), self.wdl_head(x)

    def _spread(self, planes: Tensor) -> Tensor:
        """The 32 squares at their places on the 8×8 board [N, 6, 8, 8]; light squares are zero."""
        board = planes.new_zeros(*planes.shape[:2], 64)
        board[:, :, self.dark_squares] = planes.flatten(2)
        return board.unflatten(2, (8, 8))

    def policy_parts(self) -> list[nn.Module]:
        return [self.policy_head]

    def body_parts(self) -> list[nn.Module]:
        return [self.stem, self.blocks]

    def folded(self) -> "ResidualNetwork":
        network = super().folded()
        assert isinstance(network, ResidualNetwork)
        for module in network.modules():
            if isinstance(module, ConvUnit):
                module.fold()
        return network

    def layout(self, device: torch.device, dtype: torch.dtype) -> torch.memory_format:
        """See ``Network.layout``.

        Channels last, except for bf16 on the CPU (oneDNN 3.12) unless the channels fill its blocks of 64: with 48
        channels, channels last is a quarter slower.
        """
        if device.type == "cpu" and dtype == torch.bfloat16 and self.config.channels % 64:
            return torch.contiguous_format
        return torch.channels_last

    def lay_out(self, layout: torch.memory_format) -> None:
        convert_conv2d_weight_memory_format(self, layout)
