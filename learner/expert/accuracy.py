"""How often a network's first moves are the expert's: among legal moves, and among all 128 outputs."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.encoding import hop_table
from engine.outcomes import UNKNOWN

from ..loss import move_logits
from ..network_base import Network, planes_on
from .games import ExpertSamples

TOPS = (1, 2, 3, 5, 10)
PIECES = {"2-4": 4, "5-8": 8, "9-12": 12, "13-16": 16, "17-20": 20, "21-24": 24}
"""Pieces on the board, both sides': name of a range → the most in it."""
_BATCH = 2048


class MoveAccuracy(NamedTuple):
    """Shares of N moves, 0 to 1.

    Attributes:
        legal: k → how often the expert's move is among the network's first k of the legal ones.
        raw: k → how often its first hop is among the first k of the 128 outputs, legal or not (Larson 2016).
        with_choice: as ``legal``, where there was more than one move.
        by_pieces: range of ``PIECES`` → how many of those moves there were, and how often the first of the legal ones
            was the expert's; ranges without any are left out.
        outcome: how often the likeliest outcome is the game's; None without a result.
    """

    samples: int
    legal: dict[int, float]
    raw: dict[int, float]
    with_choice: dict[int, float]
    by_pieces: dict[str, tuple[int, float]]
    outcome: float | None

    def to_json(self) -> dict[str, Any]:
        tops = {name: {str(k): v for k, v in getattr(self, name).items()} for name in ("legal", "raw", "with_choice")}
        pieces = {name: {"samples": count, "share": share} for name, (count, share) in self.by_pieces.items()}
        return {"samples": self.samples, **tops, "by_pieces": pieces, "outcome": self.outcome}


@torch.no_grad()
def move_accuracy(network: Network, samples: ExpertSamples) -> MoveAccuracy:
    """Asks a network, which must be in evaluation mode, about moves; ValueError if there are none."""
    if not len(samples.moves):
        raise ValueError("no moves to measure a network on")
    legal, raw, outcomes = [], [], []
    device = next(network.parameters()).device
    for first in range(0, len(samples.moves), _BATCH):
        batch = samples.take(np.arange(first, min(first + _BATCH, len(samples.moves))))
        hops = torch.from_numpy(hop_table(batch.positions)[0])
        planes = planes_on(device, torch.from_numpy(batch.positions.view(np.int32)))
        policy, wdl = (logits.float().cpu() for logits in network(planes))
        made = torch.from_numpy(batch.moves.astype(np.int64))
        legal.append(rank_of(move_logits(policy, hops), made))
        raw.append(rank_of(policy, hops[torch.arange(len(made)), made, 0].long()))
        outcomes.append(wdl.argmax(1).numpy())
    ranks, raw_ranks = np.concatenate(legal), np.concatenate(raw)
    choice, known = samples.choices > 1, samples.results != UNKNOWN
    right = np.concatenate(outcomes)[known] == samples.results[known]
    return MoveAccuracy(
        samples=len(ranks),
        legal=_shares(ranks),
        raw=_shares(raw_ranks),
        with_choice=_shares(ranks[choice]),
        by_pieces=_by_pieces(ranks[choice], samples.positions[choice]),
        outcome=float(right.mean()) if known.any() else None,
    )


def rank_of(logits: Tensor, wanted: Tensor) -> np.ndarray:
    """Number of logits [N, K] of a row above the wanted one [N], and half of the others that equal it: float [N]."""
    own = logits.gather(1, wanted[:, None])
    higher, equal = (logits > own).sum(1), (logits == own).sum(1) - 1
    return (higher + equal / 2).numpy()


def _shares(ranks: np.ndarray) -> dict[int, float]:
    return {k: float((ranks < k).mean()) if len(ranks) else 0.0 for k in TOPS}


def _by_pieces(ranks: np.ndarray, positions: np.ndarray) -> dict[str, tuple[int, float]]:
    pieces = np.bitwise_count(positions[:, 0]) + np.bitwise_count(positions[:, 1])
    groups = np.searchsorted(list(PIECES.values()), pieces)  # the first range that reaches as far
    found = {name: ranks[groups == number] for number, name in enumerate(PIECES)}
    return {name: (len(those), float((those < 1).mean())) for name, those in found.items() if len(those)}
