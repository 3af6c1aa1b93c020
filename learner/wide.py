"""The wide family: one wide layer over the pieces for each phase of the game. For CPUs, and for games by time.

The wide layer is that of NNUE (Nasu 2018): it adds up the weights of the pieces on the board, so that a position is
judged in some two microseconds. Each phase of the game (``PHASES``) has layers of its own, all but the policy's: that
costs memory, hardly time. Where the configuration says ``neighbours``, there are weights also for each piece together
with what stands on the squares next to it, so that the layer sees what is attacked, guarded, blocked or free to move.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import embedding, embedding_bag, pad, relu

from engine.bitboard import BIT_OF_SQUARE, NUM_DIRECTIONS, NUM_SQUARES, SQUARE_OF_BIT, step
from engine.encoding import NUM_POLICY

from .network_base import FamilyConfig, Network, Precision

NUM_PIECES = 4 * NUM_SQUARES
"""Inputs that are pieces: own men, own kings, the opponent's men and kings on each square."""
KINGS = np.flatnonzero(np.repeat([False, True, False, True], NUM_SQUARES))
"""Which inputs are kings."""
_SPREAD = 0.15  # standard deviation of the pieces' first weights: several pieces share a unit
_ENDS = ((20, 16, 12), (12, 9, 7))
"""Fewest pieces of the first three of four phases, without kings and with any."""
NUM_PHASES = 8
SHOT_VISITS = 32
"""``SearchConfig.shot_visits`` of searches with such a network: a search for shots costs several judgements."""


def _numbers() -> np.ndarray:
    pieces = np.arange(NUM_SQUARES + 1)
    numbers = [4 * kings + sum((pieces < end).astype(np.uint8) for end in ends) for kings, ends in enumerate(_ENDS)]
    return np.stack(numbers, 1).astype(np.uint8)


PHASES = _numbers()
"""uint8 [33, 2]: the phase of positions by the number of their pieces, and by whether there are kings."""


def _next_squares() -> np.ndarray:
    squares = np.full((NUM_SQUARES, NUM_DIRECTIONS), NUM_SQUARES)
    for square, bit in enumerate(BIT_OF_SQUARE.tolist()):
        for direction in range(NUM_DIRECTIONS):
            reached = int(step(1 << bit, direction))
            if reached:
                squares[square, direction] = SQUARE_OF_BIT[reached.bit_length() - 1]
    return squares


NEXT_SQUARES = _next_squares()
"""int64 [32, 4]: the square one step on in each direction; 32 where the board ends."""
_INSIDE = NEXT_SQUARES < NUM_SQUARES
STATE_STEPS = np.where(_INSIDE, 3 ** np.cumsum(_INSIDE, 1) // 3, 0)
"""int64 [32, 4]: what a square's state counts for each next square: this with an own piece there, twice with the
opponent's."""
STATE_BEGINS = np.cumsum([0, *(3 ** _INSIDE.sum(1))])
"""int64 [33]: number of the first state of each square, empty all around, and of all states."""
NUM_NEIGHBOUR_ROWS = 4 * int(STATE_BEGINS[-1])
"""Rows of weights of pieces and what is next to them: all states of own men, then of own kings, the opponent's men and
kings."""


class WideConfig(FamilyConfig, frozen=True, extra="forbid"):
    """Size of a ``WideNetwork``.

    Attributes:
        units: of each wide layer, a multiple of 32.
        hidden: units between them and win, draw and loss, a multiple of 16.
        neighbours: whether there are weights for pieces and what is next to them; networks of old have none.
    """

    family: Literal["wide"] = "wide"
    units: int = Field(default=512, ge=32, le=4096, multiple_of=32)
    hidden: int = Field(default=32, ge=16, le=256, multiple_of=16)
    neighbours: bool = False

    @property
    def size(self) -> str:
        seen = ", with neighbours" if self.neighbours else ""
        return f"{self.units} units for each of {NUM_PHASES} phases of the game{seen}"


SIZES = {"wide32": WideConfig(units=32, hidden=16, neighbours=True)} | {
    f"wide{units}": WideConfig(units=units, neighbours=True) for units in (128, 256, 512, 1024)
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

    def forward(self, x: Tensor, around: Tensor | None) -> tuple[Tensor, Tensor]:
        """``around``: what ``Neighbours`` add to the units, if there are any."""
        sums = self.wide(x)
        units = relu(sums if around is None else sums + around)
        return units, self.wdl(relu(self.hidden(units)))


class Neighbours(nn.Module):
    """Pieces [N, 128] → what the weights of pieces and what is next to them add up to, [N, units]."""

    _next: Tensor
    _steps: Tensor
    _begins: Tensor

    def __init__(self, units: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.zeros(NUM_NEIGHBOUR_ROWS + 1, units))  # the last adds nothing
        for name, numbers in (("_next", NEXT_SQUARES), ("_steps", STATE_STEPS), ("_begins", STATE_BEGINS)):
            self.register_buffer(name, torch.from_numpy(numbers), persistent=False)

    def forward(self, pieces: Tensor) -> Tensor:
        kinds = pieces.unflatten(1, (4, NUM_SQUARES)).long()
        occupied = pad(kinds[:, :2].sum(1) + 2 * kinds[:, 2:].sum(1), (0, 1))  # 1: own, 2: the opponent's
        states = self._begins[:-1] + (occupied[:, self._next] * self._steps).sum(2)
        kind = (kinds * torch.arange(4, device=kinds.device)[:, None]).sum(1)
        rows = torch.where(occupied[:, :-1] > 0, kind * self._begins[-1] + states, NUM_NEIGHBOUR_ROWS)
        if torch.compiler.is_compiling():
            return (embedding(rows, self.rows) * (rows < NUM_NEIGHBOUR_ROWS)[:, :, None]).sum(1)
        return embedding_bag(rows, self.rows, mode="sum", padding_idx=NUM_NEIGHBOUR_ROWS)


class WideNetwork(Network):
    config: WideConfig

    _numbers: Tensor
    _kings: Tensor

    def __init__(self, config: WideConfig) -> None:
        super().__init__()
        self.config = config
        self.phases = nn.ModuleList(Phase(config) for _ in range(NUM_PHASES))
        self.neighbours = Neighbours(config.units) if config.neighbours else None
        self.policy = nn.Linear(config.units, NUM_POLICY)
        self.register_buffer("_numbers", torch.from_numpy(PHASES).long(), persistent=False)
        self.register_buffer("_kings", torch.from_numpy(KINGS), persistent=False)
        for phase in self.phases:  # all begin alike: what one has learnt of the policy is of use to the others
            phase.load_state_dict(self.phases[0].state_dict())

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        x = planes.flatten(1)[:, : NUM_PIECES + 1]  # the plane of reversible plies is one number
        numbers = self._phases_of(x)
        around = None if self.neighbours is None else self.neighbours(x[:, :NUM_PIECES])
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return self._by_every_phase(x, around, numbers)
        order = numbers.argsort()
        sizes = numbers.bincount(minlength=NUM_PHASES).tolist()
        parts = x[order].split(sizes)
        sums = [None] * NUM_PHASES if around is None else around[order].split(sizes)
        judged = (phase(*of_phase) for phase, *of_phase in zip(self.phases, parts, sums, strict=True))
        units, wdl = zip(*judged, strict=True)
        places = order.argsort()
        return self.policy(torch.cat(units))[places], torch.cat(wdl)[places]

    def _by_every_phase(self, x: Tensor, around: Tensor | None, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """The same without sorting positions by their phase, which a graph of fixed steps cannot do."""
        units, wdl = zip(*(phase(x, around) for phase in self.phases), strict=True)
        return self.policy(_chosen(units, numbers)), _chosen(wdl, numbers)

    def dtype(self, device: torch.device, precision: Precision) -> torch.dtype:
        """See ``Network.dtype``. On a CPU bf16 costs these layers twice the time: they are small."""
        is_slow = precision == "auto" and device.type == "cpu"
        return super().dtype(device, "float32" if is_slow else precision)

    def policy_parts(self) -> list[nn.Module]:
        return [self.policy]

    def body_parts(self) -> list[nn.Module]:
        around = [] if self.neighbours is None else [self.neighbours]
        return [*around, *(phase.wide for phase in self.phases if isinstance(phase, Phase))]

    def _phases_of(self, x: Tensor) -> Tensor:
        pieces = x[:, :NUM_PIECES].bool()
        return self._numbers[pieces.sum(1), pieces[:, self._kings].any(1).long()]


def _chosen(by_phase: Sequence[Tensor], numbers: Tensor) -> Tensor:
    """Selects each position's phase: [N, K] for every phase → [N, K]."""
    stacked = torch.stack(list(by_phase), 1)
    return stacked.gather(1, numbers[:, None, None].expand(-1, 1, stacked.shape[2])).squeeze(1)
