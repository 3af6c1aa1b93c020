"""A small network for the board, taught by what a large one found in long searches (knowledge distillation).

A residual network judges a position well and slowly. What a search with it says of a position is better still, and a
network of one wide layer over the pieces, ten times as fast, learns that nearly as well (Hinton et al. 2015; the
wide layer is that of NNUE, Nasu 2018). Searches of a tenth of a second then look at ten times as many positions.
Each phase of the game (``phases``) has layers of its own, all but the policy's: that costs memory, hardly time.

What goes in and out is as for ``network.Network``: planes [N, 6, 8, 4] in, policy logits [N, 128] and win/draw/loss
logits [N, 3] for the side to move out.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn.functional import relu

from engine.bitboard import NUM_SQUARES
from engine.encoding import NUM_POLICY
from engine.version import installed_version

from .checkpoint import CheckpointError, checked_fields, read_tensors, write_tensors
from .network import NetworkError, check_tensors
from .phases import NUM_PHASES, PHASES

STUDENT_FILE = "student.safetensors"
SCHEMA_VERSION: Literal[2] = 2
NUM_PIECES = 4 * NUM_SQUARES
"""Inputs that are pieces: own men, own kings, the opponent's men and kings on each square."""
_KINGS = np.repeat([False, True, False, True], NUM_SQUARES)
_SPREAD = 0.15  # of the first weights from pieces: some are on at once, each with about the same part in a unit


class StudentConfig(BaseModel):
    """Size of a ``Student``.

    Attributes:
        units: of each wide layer, a multiple of 32.
        hidden: units between them and win, draw and loss, a multiple of 16.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    units: int = Field(default=512, ge=32, le=4096, multiple_of=32)
    hidden: int = Field(default=32, ge=16, le=256, multiple_of=16)


class StudentInfo(BaseModel):
    """What a student's file says of it.

    Attributes:
        teacher: digest of the checkpoint that it was taught by.
        figures: of its training.
        crownhead: version of the program that wrote it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[2] = SCHEMA_VERSION
    student: StudentConfig
    teacher: str
    figures: dict[str, float]
    crownhead: str


class Phase(nn.Module):
    """Inputs [N, 129] of positions of one phase → units [N, units] for the policy, and win/draw/loss logits [N, 3]."""

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.wide = nn.Linear(NUM_PIECES + 1, config.units)  # the pieces and the reversible plies
        self.hidden = nn.Linear(config.units, config.hidden)
        self.wdl = nn.Linear(config.hidden, 3)
        nn.init.normal_(self.wide.weight, std=_SPREAD)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        units = relu(self.wide(x))
        return units, self.wdl(relu(self.hidden(units)))


class Student(nn.Module):
    """Planes [N, 6, 8, 4] → policy logits [N, 128] and win/draw/loss logits [N, 3]."""

    _numbers: Tensor
    _kings: Tensor

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.config = config
        self.phases = nn.ModuleList(Phase(config) for _ in range(NUM_PHASES))
        self.policy = nn.Linear(config.units, NUM_POLICY)
        self.register_buffer("_numbers", torch.from_numpy(PHASES).long(), persistent=False)
        self.register_buffer("_kings", torch.from_numpy(_KINGS), persistent=False)
        for phase in self.phases:  # all begin alike: what one has learnt of the policy is of use to the others
            phase.load_state_dict(self.phases[0].state_dict())

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        x = planes.flatten(1)[:, : NUM_PIECES + 1]  # the plane of reversible plies is one number
        numbers = self._phases_of(x)
        order = numbers.argsort()
        parts = x[order].split(numbers.bincount(minlength=NUM_PHASES).tolist())
        units, wdl = zip(*(phase(part) for phase, part in zip(self.phases, parts, strict=True)), strict=True)
        places = order.argsort()
        return self.policy(torch.cat(units))[places], torch.cat(wdl)[places]

    def _phases_of(self, x: Tensor) -> Tensor:
        pieces = x[:, :NUM_PIECES].bool()
        return self._numbers[pieces.sum(1), pieces[:, self._kings].any(1).long()]


def save_student(folder: Path | str, student: Student, teacher: str, figures: dict[str, float] | None = None) -> Path:
    """Writes a student into the folder of its teacher's checkpoint and returns its path; an older one is replaced.

    Args:
        teacher: digest of that checkpoint.

    Raises:
        CheckpointError: it cannot be written, or has weights that are no numbers; what was there is still there.
    """
    path, tensors = Path(folder) / STUDENT_FILE, dict(student.state_dict())
    info = StudentInfo(student=student.config, teacher=teacher, figures=figures or {}, crownhead=installed_version())
    try:
        check_tensors(tensors, tensors)
    except NetworkError as error:
        raise CheckpointError(f"{path}: {error}") from error
    write_tensors(path, tensors, info.model_dump(mode="json"))
    return path


def load_student(folder: Path | str, teacher: str) -> tuple[Student, StudentInfo] | None:
    """The student that lies in the folder of a checkpoint, in evaluation mode on the CPU; None if there is none.

    Args:
        teacher: digest of that checkpoint.

    Raises:
        CheckpointError: it cannot be read, is damaged, or was taught by another network.
    """
    path = Path(folder) / STUDENT_FILE
    if not path.is_file():
        return None
    tensors, fields = read_tensors(path)
    info = checked_fields(path, fields, StudentInfo, SCHEMA_VERSION)
    if info.teacher != teacher:
        raise CheckpointError(f"{path}: taught by another network than the one beside it; remove it, or teach it anew")
    student = Student(info.student).eval()
    try:
        check_tensors(tensors, student.state_dict())
    except NetworkError as error:
        raise CheckpointError(f"{path}: {error}") from error
    student.load_state_dict(tensors)
    return student.requires_grad_(False), info
