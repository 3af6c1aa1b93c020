"""How close a backend's answers are to those of the network it runs, on the same positions."""

from typing import NamedTuple

import numpy as np
import torch

from engine.encoding import hop_table

from ..loss import move_logits

MAX_POLICY_KL = 0.003
MAX_WDL_ERROR = 0.01
"""Bounds of what integers may cost; int16 was measured to cost 0.00001 and 0.0008 on a trained network, int8
0.0003 and 0.003."""


class Fidelity(NamedTuple):
    """Differences between a network's answers and a backend's; all are 0 (agreement: 1) where they are the same.

    Attributes:
        policy_kl: mean Kullback-Leibler divergence of the move probabilities, in nats, over positions with a choice.
        top1_agreement: share of these positions in which both like the same move best.
        wdl_error: mean absolute difference of the probabilities of win, draw and loss.
        value_error: root mean square of the difference of P(win) − P(loss).
    """

    policy_kl: float
    top1_agreement: float
    wdl_error: float
    value_error: float

    @property
    def acceptable(self) -> bool:
        """Whether it keeps within ``MAX_POLICY_KL`` and ``MAX_WDL_ERROR``; not a number does not."""
        return self.policy_kl <= MAX_POLICY_KL and self.wdl_error <= MAX_WDL_ERROR


Answers = tuple[np.ndarray, np.ndarray]
"""Policy logits float32 [N, 128] and win/draw/loss logits [N, 3]."""


def compare(positions: np.ndarray, expected: Answers, found: Answers) -> Fidelity:
    """Compares answers to positions uint32 [N, 4].

    Raises:
        ValueError: no position with a choice of moves.
    """
    hops, counts = hop_table(positions)
    choice = torch.from_numpy(counts > 1)
    if not choice.any():
        raise ValueError("no position to compare answers on has a choice of moves")
    theirs, ours = (
        torch.log_softmax(move_logits(torch.from_numpy(answers[0]), torch.from_numpy(hops)).double(), 1)[choice]
        for answers in (expected, found)
    )
    wdl, our_wdl = (torch.softmax(torch.from_numpy(answers[1]).double(), 1) for answers in (expected, found))
    difference = wdl - our_wdl
    return Fidelity(
        policy_kl=float((theirs.exp() * (theirs - ours)).sum(1).mean()),
        top1_agreement=float((theirs.argmax(1) == ours.argmax(1)).double().mean()),
        wdl_error=float(difference.abs().mean()),
        value_error=float((difference[:, 0] - difference[:, 2]).square().mean().sqrt()),
    )
