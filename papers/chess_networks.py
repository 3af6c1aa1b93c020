"""Networks that judge chess endgames: Abdalla's, and one with pairs of men like this project's ``PairNetwork``.

Both take positions as int16 [N, 4] men, seen by the side to move (``chess_positions``), and return logits [N, 5] in the
order of ``CLASSES``.
"""

from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor, nn

from learner.endgame.kernels import CEILING
from learner.network_base import has_bf16

from .chess_positions import CLASSES, MOST_MEN, NO_MAN, NUM_KINDS, canonical

_INFERENCE_BATCH = 2048
_NUM_PIECE_SQUARES = 64 * NUM_KINDS
_STEPS = 15  # differences of two files or ranks, -7 to 7
_NUM_PAIRS = NUM_KINDS * (NUM_KINDS + 1) // 2 * _STEPS**2
_PADDING = _NUM_PAIRS + _NUM_PIECE_SQUARES
_MATERIALS = (NUM_KINDS + 1) ** 2


class ChessNetwork(nn.Module):
    """Base class of both networks."""

    @abstractmethod
    def forward(self, men: np.ndarray) -> Tensor: ...

    @property
    def parameter_count(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())

    @torch.no_grad()
    def judge(self, men: np.ndarray) -> np.ndarray:
        """int64 [N]: the most probable class of each position."""
        self.eval()
        parts = [
            self(men[start : start + _INFERENCE_BATCH]).argmax(1).numpy()
            for start in range(0, len(men), _INFERENCE_BATCH)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def planes_of(men: np.ndarray) -> Tensor:
    """float32 [N, 12, 8, 8]: one plane per kind of man; axes are ranks and files, from a1 of the side to move."""
    planes = torch.zeros(len(men), _NUM_PIECE_SQUARES + 1)
    planes.scatter_(1, torch.from_numpy(np.where(men == NO_MAN, _NUM_PIECE_SQUARES, men).astype(np.int64)), 1.0)
    return planes[:, :_NUM_PIECE_SQUARES].unflatten(1, (NUM_KINDS, 8, 8))


class AbdallaNetwork(ChessNetwork):
    """The network of Abdalla 2024: convolutions to 64, 128 and 256 channels, each halving the board, and 512 units.

    The size of the kernels was not published; here it is 3×3, with ReLU. If the processor supports bf16, training uses
    it, with float32 weights.
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = NUM_KINDS
        for outputs in (64, 128, 256):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            inputs = outputs
        layers += [nn.Flatten(), nn.Linear(inputs, 512), nn.ReLU(), nn.Linear(512, len(CLASSES))]
        self.layers = nn.Sequential(*layers)
        self._has_bf16 = has_bf16(torch.device("cpu"))

    def forward(self, men: np.ndarray) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.training and self._has_bf16):
            return self.layers(planes_of(men)).float()


class ManPairNetwork(ChessNetwork):
    """Sums learned vectors of men (by kind and square) and of pairs of men (by kinds and distance).

    As in ``endgame.networks.PairNetwork``, one half of the sum gates the other, each set of men has its own biases in
    two places, and two small layers follow. Chess has 64 squares and draughts 32, so a pair is looked up by the
    distance of its men; their squares come in by the vectors of single men. Mirror images give the same input
    (``chess_positions.canonical``).
    """

    def __init__(self, width: int = 12, experts: int = 64, hidden: int = 32) -> None:
        super().__init__()
        self.vectors = nn.EmbeddingBag(_PADDING + 1, width, mode="sum", padding_idx=_PADDING)
        nn.init.normal_(self.vectors.weight, std=0.05)
        self.biases = nn.Embedding.from_pretrained(torch.zeros(_MATERIALS, width), freeze=False)
        self.experts = nn.Linear(width, experts)
        self.hidden = nn.Linear(experts, hidden)
        self.hidden_biases = nn.Embedding.from_pretrained(torch.zeros(_MATERIALS, hidden), freeze=False)
        self.out = nn.Linear(hidden, len(CLASSES))

    def forward(self, men: np.ndarray) -> Tensor:
        features, materials = map(torch.from_numpy, pair_features(canonical(men)))
        gate, gated = (self.vectors(features) + self.biases(materials)).chunk(2, 1)
        gate = gate.clamp(0, CEILING)
        x = torch.relu(self.experts(torch.cat([gate, gate * gated], 1)))
        return self.out(torch.relu(self.hidden(x) + self.hidden_biases(materials)))


def pair_features(men: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that a ``ManPairNetwork`` looks up: int64 [N, 10] of its vectors, and int64 [N] of its biases.

    Vectors are those of the six pairs, by kinds and differences of files and ranks, and those of the four men, by kind
    and square. Rows of an absent fourth man are padding.
    """
    men = men.astype(np.int64)
    kinds, files, ranks, absent = men >> 6, men & 7, men >> 3 & 7, men == NO_MAN
    features = []
    for i in range(MOST_MEN):
        for j in range(i):
            # Men are sorted except for the kings, so either of the two kinds may be the larger one.
            high, low = np.maximum(kinds[:, i], kinds[:, j]), np.minimum(kinds[:, i], kinds[:, j])
            step = _STEPS * (ranks[:, i] - ranks[:, j] + 7) + files[:, i] - files[:, j] + 7
            row = (high * (high + 1) // 2 + low) * _STEPS**2 + step
            features.append(np.where(absent[:, i], _PADDING, row))
    features += list(np.where(absent, _PADDING, _NUM_PAIRS + men).T)
    third, fourth = (np.where(absent[:, place], NUM_KINDS, kinds[:, place]) for place in (2, 3))
    return np.stack(features, 1), third * (NUM_KINDS + 1) + fourth
