"""The wide family: one wide layer over the pieces for each phase of the game. For CPUs, and for games by time.

The wide layer is that of NNUE (Nasu 2018): it adds up the weights of the pieces on the board, so that a position is
judged in some two microseconds. Each phase of the game (``PHASES``) has layers of its own, all but the policy's: that
costs memory, hardly time.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn
from torch.nn.functional import relu

from engine.bitboard import NUM_SQUARES
from engine.encoding import NUM_POLICY

from .network_base import Network

NUM_PIECES = 4 * NUM_SQUARES
"""Inputs that are pieces: own men, own kings, the opponent's men and kings on each square."""
KINGS = np.repeat([False, True, False, True], NUM_SQUARES)
"""bool [NUM_PIECES]: the inputs that are kings."""
_SPREAD = 0.15  # of the first weights from pieces: some are on at once, each with about the same part in a unit
_ENDS = ((20, 16, 12), (12, 9, 7))
"""Fewest pieces of the first three of four phases, without kings and with any."""
NUM_PHASES = 8


def _numbers() -> np.ndarray:
    pieces = np.arange(NUM_SQUARES + 1)
    numbers = [4 * kings + sum((pieces < end).astype(np.uint8) for end in ends) for kings, ends in enumerate(_ENDS)]
    return np.stack(numbers, 1).astype(np.uint8)


PHASES = _numbers()
"""uint8 [33, 2]: the phase of positions by the number of their pieces, and by whether there are kings."""


class WideConfig(BaseModel, frozen=True, extra="forbid"):
    """Size of a ``WideNetwork``.

    Attributes:
        units: of each wide layer, a multiple of 32.
        hidden: units between them and win, draw and loss, a multiple of 16.
    """

    family: Literal["wide"] = "wide"
    units: int = Field(default=512, ge=32, le=4096, multiple_of=32)
    hidden: int = Field(default=32, ge=16, le=256, multiple_of=16)

    @property
    def size(self) -> str:
        return f"{self.units} units for each of {NUM_PHASES} phases of the game"


SIZES = {
    "wide32": WideConfig(units=32, hidden=16),
    "wide128": WideConfig(units=128),
    "wide256": WideConfig(units=256),
    "wide512": WideConfig(units=512),
    "wide1024": WideConfig(units=1024),
}
"""Named sizes, by the units of the wide layer; "wide32" is for tests."""


class Phase(nn.Module):
    """Inputs [N, 129] of positions of one phase → units [N, units] for the policy, and win/draw/loss logits [N, 3]."""

    def __init__(self, config: WideConfig) -> None:
        super().__init__()
        self.wide = nn.Linear(NUM_PIECES + 1, config.units)  # the pieces and the reversible plies
        self.hidden = nn.Linear(config.units, config.hidden)
        self.wdl = nn.Linear(config.hidden, 3)
        nn.init.normal_(self.wide.weight, std=_SPREAD)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        units = relu(self.wide(x))
        return units, self.wdl(relu(self.hidden(units)))


class WideNetwork(Network):
    config: WideConfig

    _numbers: Tensor
    _kings: Tensor

    def __init__(self, config: WideConfig) -> None:
        super().__init__()
        self.config = config
        self.phases = nn.ModuleList(Phase(config) for _ in range(NUM_PHASES))
        self.policy = nn.Linear(config.units, NUM_POLICY)
        self.register_buffer("_numbers", torch.from_numpy(PHASES).long(), persistent=False)
        self.register_buffer("_kings", torch.from_numpy(KINGS), persistent=False)
        for phase in self.phases:  # all begin alike: what one has learnt of the policy is of use to the others
            phase.load_state_dict(self.phases[0].state_dict())

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        x = planes.flatten(1)[:, : NUM_PIECES + 1]  # the plane of reversible plies is one number
        numbers = self._phases_of(x)
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return self._by_every_phase(x, numbers)
        order = numbers.argsort()
        parts = x[order].split(numbers.bincount(minlength=NUM_PHASES).tolist())
        units, wdl = zip(*(phase(part) for phase, part in zip(self.phases, parts, strict=True)), strict=True)
        places = order.argsort()
        return self.policy(torch.cat(units))[places], torch.cat(wdl)[places]

    def _by_every_phase(self, x: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """The same without sorting positions by their phase, which a graph of fixed steps cannot do."""
        units, wdl = zip(*(phase(x) for phase in self.phases), strict=True)
        return self.policy(_chosen(units, numbers)), _chosen(wdl, numbers)

    def policy_parts(self) -> list[nn.Module]:
        return [self.policy]

    def body_parts(self) -> list[nn.Module]:
        return [phase.wide for phase in self.phases if isinstance(phase, Phase)]

    def _phases_of(self, x: Tensor) -> Tensor:
        pieces = x[:, :NUM_PIECES].bool()
        return self._numbers[pieces.sum(1), pieces[:, self._kings].any(1).long()]


def _chosen(by_phase: Sequence[Tensor], numbers: Tensor) -> Tensor:
    """Of [N, K] for every phase, the rows of each position's phase: [N, K]."""
    stacked = torch.stack(list(by_phase), 1)
    return stacked.gather(1, numbers[:, None, None].expand(-1, 1, stacked.shape[2])).squeeze(1)
