"""What all families of networks have in common: inputs and outputs, weights, and the device.

``engine.encoding`` describes inputs and outputs.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from pydantic import BaseModel
from torch import Tensor, nn

from engine.bitboard import BIT_OF_SQUARE, NUM_SQUARES
from engine.encoding import REVERSIBLE_SCALE, encode_planes

if TYPE_CHECKING:
    from .network import NetworkConfig

ROWS, COLUMNS = 8, 4
Precision = Literal["auto", "float32", "bf16"]


class NetworkError(ValueError):
    """A network that cannot be made or answers in wrong shapes; weights that do not fit, or are not finite."""


class FamilyConfig(BaseModel, frozen=True, extra="forbid"):
    """Configuration of a network: its size and shape. Each family has a class of its own.

    Attributes:
        family: name of the family; a subclass gives it as the default.
    """

    family: str

    @property
    def size(self) -> str:
        """The size in words."""
        return ", ".join(f"{name} {value}" for name, value in self if name != "family")


class Network(nn.Module, ABC):
    """Planes [N, 6, 8, 4] → policy logits [N, 128] and win/draw/loss logits [N, 3], in the type of the weights.

    All is seen by the side to move.

    Attributes:
        config: size and shape.
    """

    config: "NetworkConfig"

    @abstractmethod
    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]: ...

    def policy_parts(self) -> list[nn.Module]:
        """Modules that only the policy needs; they are left out of a training for win, draw and loss alone."""
        return []

    def body_parts(self) -> list[nn.Module]:
        """Modules that both heads need, to train the head for win, draw and loss alone (``--freeze-body``).

        Raises:
            NetworkError: the family does not name them.
        """
        raise NetworkError(f"{type(self).__name__} does not name its body_parts, so its head is not trained alone")

    def folded(self) -> Self:
        """A copy for inference, without gradients: norms are part of the layers before them."""
        return copy.deepcopy(self).eval().requires_grad_(False)

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Copies the weights and batch-norm statistics of ``weights``, a ``state_dict``.

        Raises:
            NetworkError: a tensor is missing, unknown, of another shape or not finite; nothing has been changed then.
        """
        check_tensors(weights, self.state_dict())
        self.load_state_dict(weights)

    def dtype(self, device: torch.device, precision: Precision) -> torch.dtype:
        """The type to compute in; "auto" is bf16 where the device multiplies it in hardware."""
        use_bf16 = precision == "bf16" or (precision == "auto" and has_bf16(device))
        return torch.bfloat16 if use_bf16 else torch.float32

    def layout(self, device: torch.device, dtype: torch.dtype) -> torch.memory_format:
        """The faster memory order of planes and activations."""
        return torch.contiguous_format

    def lay_out(self, layout: torch.memory_format) -> None:
        """Brings the weights into a memory order."""


def check_tensors(found: Mapping[str, Any], expected: Mapping[str, Tensor]) -> None:
    """Raises ``NetworkError`` unless ``found`` has the names and shapes of ``expected`` and finite numbers only."""
    for name in [*expected, *found]:
        if name not in found:
            raise NetworkError(f"the weights lack {name!r}: they belong to another network")
        if name not in expected:
            raise NetworkError(f"the weights have an unknown {name!r}: they belong to another network")
        value = found[name]
        if not isinstance(value, Tensor) or value.shape != expected[name].shape:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise NetworkError(f"{name!r} is {shape}, not {tuple(expected[name].shape)}: another network's weights")
        if not value.isfinite().all():
            raise NetworkError(f"{name!r} holds numbers that are not finite: the training that made it diverged")


@cache
def _square_tables(device: torch.device) -> tuple[Tensor, Tensor]:
    """Bit of every square [32], and one on odd rows [32], on ``device``."""
    bits = torch.from_numpy(BIT_OF_SQUARE).to(device, torch.int32)
    return bits, torch.arange(NUM_SQUARES, device=device).div(COLUMNS, rounding_mode="floor") % 2


def planes_from_positions(positions: Tensor) -> Tensor:
    """Planes [N, 6, 8, 4] float32, made where the positions are, equal to ``engine.encoding.encode_planes``.

    Args:
        positions: [N, 4] int32 (the bits of the uint32 words) or int64, on any device.
    """
    bits, odd_rows = _square_tables(positions.device)
    own, opp, kings = ((positions[:, word, None] >> bits) & 1 for word in range(3))
    counter = positions[:, 3, None].float() / REVERSIBLE_SCALE
    men = 1 - kings
    pieces = torch.stack([own * men, own * kings, opp * men, opp * kings], 1).float()
    rest = torch.stack([counter.expand(-1, NUM_SQUARES), odd_rows.float().expand(len(positions), -1)], 1)
    return torch.cat([pieces, rest], 1).unflatten(2, (ROWS, COLUMNS))


def planes_on(device: torch.device, positions: Tensor) -> Tensor:
    """Planes [N, 6, 8, 4] float32 on ``device`` of positions [N, 4] int32 in main memory.

    On the CPU the compiled encoder is faster; elsewhere the 16 bytes of a position travel, not its 768 bytes of planes.
    """
    if device.type == "cpu":
        return torch.from_numpy(encode_planes(positions.numpy().view("uint32")))
    return planes_from_positions(positions.to(device, non_blocking=True))


def has_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 in hardware; emulated, it is slower than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type == "cpu" and any(getattr(torch.cpu, probe, bool)() for probe in probes)
