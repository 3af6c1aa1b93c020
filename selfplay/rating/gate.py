"""The gate: decides from the games of a match whether a candidate network becomes the best one."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field, model_validator

from .elo import Tally, TallyFigures, expected_score

Decision = Literal["promote", "keep"]
PAIR_SCORES = np.arange(5) / 4  # score of a pair with 0, 1/2, 1, 3/2, 2 points
_EMPTY_COUNT = 1e-3  # count of an outcome not seen yet, as in Fishtest
_HALVINGS = 50  # of the interval of the multiplier: below the precision of a float in the end
_ROUNDING = 1e-9  # points; 0.55 * 100 is a little more than 55 in floating point


class GateConfig(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Rule of the gate.

    - ``sprt``: generalised sequential probability ratio test on colour-swapped pairs. It promotes the candidate once
      the results accept a strength of ``elo1`` over ``elo0``, and keeps the best network once they accept ``elo0``. If
      neither has happened after ``max_games``, the score decides.
    - ``winrate``: promotes at a score of ``score_threshold`` (AlphaGo Zero: 0.55 of 400 games). The match ends early
      once the remaining games cannot change the decision.
    - ``always``: promotes every candidate, after ``max_games`` (AlphaZero).

    The score is the candidate's fraction of all points: a win has ``win_points``, a draw 1 for each side.
    """

    rule: Literal["sprt", "winrate", "always"] = "sprt"
    max_games: int = Field(200, ge=2, description="largest number of games; above 312, games come again")
    elo0: float = Field(0.0, ge=-1000, le=1000, description="hypothesis H0: Elo of the candidate above the best")
    elo1: float = Field(50.0, ge=-1000, le=1000, description="hypothesis H1: Elo of the candidate above the best")
    alpha: float = Field(0.05, gt=0, lt=0.5, description="probability of promotion at strength elo0")
    beta: float = Field(0.05, gt=0, lt=0.5, description="probability of no promotion at strength elo1")
    score_threshold: float = Field(0.55, ge=0, le=1, description="score that promotes; with sprt only after max_games")
    win_points: float = Field(2.0, gt=1, le=100, description="points of a win; a draw has 1: above 2 wins count more")

    @model_validator(mode="after")
    def _hypotheses_in_order(self) -> "GateConfig":
        if self.elo1 <= self.elo0:
            raise ValueError(f"elo1 is {self.elo1}, not more than elo0, which is {self.elo0}")
        return self


def llr_bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Log-likelihood ratios at which a test with these error probabilities accepts H0 (at most) and H1 (at least)."""
    return math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)


def log_likelihood_ratio(pairs: Sequence[int], elo0: float, elo1: float) -> float:
    """Log of the generalised likelihood ratio of ``elo1`` to ``elo0``; positive if the results fit ``elo1`` better.

    A hypothesis fixes only the expected score. The distribution over the five outcomes of a pair is the most likely one
    with this mean (pentanomial model of Fishtest, by Van den Bergh). An outcome not seen yet counts 1/1000.

    Args:
        pairs: number of pairs in which the candidate took 0, 1/2, 1, 3/2 and 2 points.
    """
    if sum(pairs) == 0:
        return 0.0
    counts = np.maximum(np.array(pairs, float), _EMPTY_COUNT)
    fit0, fit1 = (_most_likely_with_mean(counts / counts.sum(), expected_score(elo)) for elo in (elo0, elo1))
    return float(counts @ np.log(fit1 / fit0))


def _most_likely_with_mean(frequencies: np.ndarray, mean: float) -> np.ndarray:
    """The distribution [5] over ``PAIR_SCORES`` with mean ``mean`` that makes ``frequencies`` [5] most likely.

    It is frequencies / (1 + x (PAIR_SCORES - mean)); the Lagrange multiplier x is found so that the mean is right.
    """
    distance = PAIR_SCORES - mean
    low, high = (float(-1 / end) * (1 - 1e-12) for end in (distance[-1], distance[0]))
    terms = list(zip((frequencies * distance).tolist(), distance.tolist(), strict=True))
    for _ in range(_HALVINGS):  # the mean falls as the multiplier grows
        middle = (low + high) / 2
        if sum(weight / (1.0 + middle * away) for weight, away in terms) > 0:
            low = middle
        else:
            high = middle
    return frequencies / (1 + high * distance)


class GateFigures(TallyFigures):
    """The decision and the candidate's results; ``llr`` and its bounds are None except for the rule ``sprt``."""

    rule: str
    decision: Decision | None
    llr: float | None
    llr_lower: float | None
    llr_upper: float | None


class Gate:
    """Counts results one by one and decides as soon as the rule allows; later results are ignored.

    Results must come in the order of the openings, not in the order in which games end: else short games count first.
    """

    def __init__(self, config: GateConfig) -> None:
        self.config = config
        self.tally = Tally()
        self.decision: Decision | None = None
        self.llr_bounds = llr_bounds(config.alpha, config.beta)
        self._open_pair: list[float] = []

    @property
    def llr(self) -> float:
        return log_likelihood_ratio(self.tally.pairs, self.config.elo0, self.config.elo1)

    def add_game(self, score: float) -> Decision | None:
        """Counts a game: ``score`` is the candidate's (0, 1/2 or 1). The two games of a pair must follow each other.

        Returns the decision, None while there is none. A decision falls after a whole pair or after the last game.
        """
        self._open_pair.append(score)
        whole = len(self._open_pair) == 2 or self.tally.games + 1 == self.config.max_games
        if whole and self.decision is None:
            self.tally.add(self._open_pair)
            self._open_pair = []
            self.decision = self._decide()
        return self.decision

    def _decide(self) -> Decision | None:
        config, tally = self.config, self.tally
        left = max(0, config.max_games - tally.games)
        if config.rule == "always":
            return None if left > 0 else "promote"
        if config.rule == "sprt":
            lower, upper = self.llr_bounds
            llr = self.llr
            if llr >= upper:
                return "promote"
            if llr <= lower:
                return "keep"
            if left > 0:
                return None
            return "promote" if self._passes(tally.wins, tally.losses) else "keep"
        if self._passes(tally.wins, tally.losses + left):
            return "promote"
        return None if self._passes(tally.wins + left, tally.losses) else "keep"

    def _passes(self, wins: int, losses: int) -> bool:
        """Whether the candidate reaches ``score_threshold`` with these wins and losses and the draws so far."""
        draws, win_points = self.tally.draws, self.config.win_points
        total = win_points * (wins + losses) + 2 * draws
        return win_points * wins + draws >= self.config.score_threshold * total - _ROUNDING

    def report(self) -> GateFigures:
        sprt = self.config.rule == "sprt"
        return {
            "rule": self.config.rule,
            "decision": self.decision,
            **self.tally.figures(),
            "llr": self.llr if sprt else None,
            "llr_lower": self.llr_bounds[0] if sprt else None,
            "llr_upper": self.llr_bounds[1] if sprt else None,
        }
