"""``TrainingBatch``: what one training step sees."""

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from engine.encoding import hop_table

_SUM_TOLERANCE = 1e-3


class BatchError(ValueError):
    """Samples that do not make a batch; the message names the first bad one."""


@dataclass(frozen=True)
class TrainingBatch:
    """Samples for one training step; N positions, M the most moves of one, H the most hops of a move.

    Attributes:
        positions: [N, 4] int32, the bits of the uint32 words of ``engine.encoding``.
        hops: [N, M, H] uint8, policy indices of each legal move, padded with ``NO_HOP``.
        policy: [N, M] float32, target probability of each legal move; zero throughout where there is no target.
        wdl: [N, 3] float32, target probabilities of win, draw and loss for the side to move.
    """

    positions: Tensor
    hops: Tensor
    policy: Tensor
    wdl: Tensor

    def __len__(self) -> int:
        return len(self.positions)

    def to(self, device: torch.device | str) -> "TrainingBatch":
        moved = {field.name: getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)}
        return TrainingBatch(**moved)


def make_batch(
    positions: np.ndarray,
    move_probabilities: np.ndarray,
    offsets: np.ndarray,
    has_policy: np.ndarray,
    wdl: np.ndarray,
) -> TrainingBatch:
    """Puts samples together into a batch.

    Args:
        positions: [N, 4] uint32.
        move_probabilities: [T] float, those of all samples one after the other, each sample's in the order of
            ``engine.movegen.generate(distinct=True)``.
        offsets: [N + 1] int; sample i has ``move_probabilities[offsets[i]:offsets[i + 1]]``.
        has_policy: [N] bool; where false, the sample's move probabilities (if any) are left out.
        wdl: [N, 3] float, target probabilities of win, draw and loss for the side to move.

    Raises:
        BatchError: shapes that do not fit, numbers that are no probabilities, or not one for every legal move.
    """
    _check_shapes(positions, move_probabilities, offsets, has_policy, wdl)
    hops, num_moves = hop_table(positions)
    lengths = np.diff(offsets)
    _refuse(has_policy & (lengths != num_moves), "has not one probability for each of its legal moves")
    _refuse(~_is_distribution(wdl), "has a win/draw/loss target that is no probability distribution")

    policy = np.zeros(hops.shape[:2], np.float32)
    samples = np.repeat(np.arange(len(positions)), lengths)
    moves = np.arange(len(samples)) - np.repeat(offsets[:-1] - offsets[0], lengths)
    kept = has_policy[samples]
    policy[samples[kept], moves[kept]] = move_probabilities[offsets[0] : offsets[-1]][kept]
    _refuse(has_policy & ~_is_distribution(policy), "has move probabilities that are no probability distribution")
    return TrainingBatch(
        positions=torch.from_numpy(np.ascontiguousarray(positions).view(np.int32)),
        hops=torch.from_numpy(np.ascontiguousarray(hops)),
        policy=torch.from_numpy(policy),
        wdl=torch.from_numpy(wdl.astype(np.float32)),
    )


def _check_shapes(
    positions: np.ndarray, move_probabilities: np.ndarray, offsets: np.ndarray, has_policy: np.ndarray, wdl: np.ndarray
) -> None:
    n = len(positions)
    if n == 0:
        raise BatchError("a batch needs at least one sample")
    if positions.dtype != np.uint32 or positions.shape != (n, 4):
        raise BatchError(f"positions are {positions.dtype} {list(positions.shape)}, not uint32 [N, 4]")
    if has_policy.dtype != np.bool_ or has_policy.shape != (n,):
        raise BatchError(f"has_policy is {has_policy.dtype} {list(has_policy.shape)}, not bool [{n}]")
    if wdl.shape != (n, 3):
        raise BatchError(f"wdl is {list(wdl.shape)}, not [{n}, 3]")
    if move_probabilities.ndim != 1 or offsets.shape != (n + 1,):
        shapes = f"{list(move_probabilities.shape)} and {list(offsets.shape)}"
        raise BatchError(f"move_probabilities and offsets are {shapes}, not [T] and [{n + 1}]")
    if offsets[0] < 0 or offsets[-1] > len(move_probabilities) or (np.diff(offsets) < 0).any():
        raise BatchError(f"offsets do not rise from 0 to at most {len(move_probabilities)}")


def _is_distribution(probabilities: np.ndarray) -> np.ndarray:
    """Whether each row [..., K] is non-negative and sums to one; NaN is not."""
    return (probabilities >= 0).all(-1) & (np.abs(probabilities.sum(-1) - 1.0) <= _SUM_TOLERANCE)


def _refuse(bad: np.ndarray, reason: str) -> None:
    if bad.any():
        raise BatchError(f"sample {int(np.argmax(bad))} {reason}")
