"""Scores of the Hub protocol: hundredths of a man as decimals, for the side to move; about ±100 is a decided game."""

import math

MEN_PER_LOGIT = 3.2  # score = MEN_PER_LOGIT * atanh(value); as ``players.alphabeta`` turns its scores into values
DECIDED = 90.0  # scores from here on are wins: 100 minus a hundredth for every ply to the end
_UNKNOWN_PLIES = 100
_MOST = 80.0  # largest score that is no proof


def score_of_value(value: float) -> float:
    """Score of a value, which is P(win) - P(loss), in [-1, 1]."""
    if abs(value) >= 1.0:
        return math.copysign(_MOST, value)
    return max(-_MOST, min(MEN_PER_LOGIT * math.atanh(value), _MOST))


def score_of_end(won: bool, plies: int | None) -> float:
    """Score of a proven win or loss in ``plies``; None if their number is not known."""
    score = max(DECIDED, 100.0 - (_UNKNOWN_PLIES if plies is None else plies) / 100)
    return score if won else -score


def value_of_score(score: float) -> float:
    """Value, in [-1, 1], of a score."""
    return math.copysign(1.0, score) if abs(score) >= DECIDED else math.tanh(score / MEN_PER_LOGIT)
