"""Scores of the Hub protocol: in men, with two decimals, for the side to move; about ±100 is a decided game."""

import math

MEN_PER_LOGIT = 3.2  # score = MEN_PER_LOGIT * atanh(value), the inverse of ``value`` in ``players.alphabeta``
DECIDED = 90.0  # scores from here on are proven wins: 100 minus 0.01 for every ply to the end
_UNKNOWN_PLIES = 100
_MOST = 80.0  # largest score without a proof


def score_of_value(value: float) -> float:
    """Score for a value in [-1, 1], which is P(win) - P(loss)."""
    if abs(value) >= 1.0:
        return math.copysign(_MOST, value)
    return max(-_MOST, min(MEN_PER_LOGIT * math.atanh(value), _MOST))


def score_of_end(won: bool, plies: int | None) -> float:
    """Score of a proven win or loss in ``plies`` (None if their number is not known)."""
    score = max(DECIDED, 100.0 - (_UNKNOWN_PLIES if plies is None else plies) / 100)
    return score if won else -score


def value_of_score(score: float) -> float:
    """Value in [-1, 1] for a score."""
    return math.copysign(1.0, score) if abs(score) >= DECIDED else math.tanh(score / MEN_PER_LOGIT)
