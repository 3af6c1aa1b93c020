"""Corrections of a search's probabilities, by the way its verdict was reached, and beyond the tested number of pieces.

A rule turns stated probabilities p into ``(1 - doubt) softmax(log p / temperature) + doubt / 3``. The temperature (Guo
et al. 2017) corrects answers that are all somewhat too sure; the doubt is what goes wrong however sure the networks
are, and so bounds the confidence.

Beyond the pieces that a network was tested on nobody knows how often it is right. What is known is how a smaller
network fared one piece beyond its own: a rule is fitted there, and for every further piece it is applied once more.
"""

from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from .probabilities import bounded, log_probabilities, softmax
from .resolve import CHANGED, Resolved
from .validation import calibration_error, reliability_bins, wilson_interval

WAYS = CHANGED + 1  # number of ways to a verdict that are not proofs
FEWEST = 200  # positions to fit a rule of its own on; below, it is fitted on all
_SUREST = 10  # a tenth of the answers
_LARGEST = 20.0  # temperature
_Three = tuple[float, float, float]


class Beyond(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What one piece more than tested does to confidence, by the way of a verdict: at once, steady, changed.

    Attributes:
        temperatures, doubts: see above.
        most: no verdict but a proven one is stated with more confidence: 95 % sure lower bound of how often the surest
            tenth of the answers was right where this was fitted.
        pieces: of the positions that it was fitted on. positions: their number.
        tested: expected calibration error on them of the rule fitted one piece below; None where that was not possible.
    """

    temperatures: _Three
    doubts: _Three
    most: float = Field(gt=1 / 3, le=1)
    pieces: int
    positions: int
    tested: float | None = None

    def applied(self, found: Resolved, further: np.ndarray) -> np.ndarray:
        """Probabilities float32 [N, 3] of a search for ``further`` int [N] pieces beyond the tested ones."""
        result = found.probabilities.copy()
        for way in range(WAYS):
            for times in np.unique(further[(found.ways == way) & (further > 0)]).tolist():
                rows = np.flatnonzero((found.ways == way) & (further == times))
                temperature, doubt = self.temperatures[way] ** times, 1 - (1 - self.doubts[way]) ** times
                result[rows] = bounded(believed(result[rows], temperature, doubt), self.most**times)
        return result


class _Fit(NamedTuple):
    temperature: float
    doubt: float


def believed(probabilities: np.ndarray, temperature: float, doubt: float) -> np.ndarray:
    """Probabilities float32 [N, 3] after the rule above."""
    return np.float32(1 - doubt) * softmax(log_probabilities(probabilities), temperature) + np.float32(doubt / 3)


def fit_rule(probabilities: np.ndarray, classes: np.ndarray) -> _Fit:
    """Temperature, at least 1, and doubt that make the right classes int64 [N] most likely."""
    from scipy.optimize import minimize  # only training an oracle needs it

    def loss(x: np.ndarray) -> float:
        right = believed(probabilities, float(np.exp(x[0])), float(x[1]))[np.arange(len(classes)), classes]
        return float(-np.log(np.maximum(right.astype(np.float64), 1e-30)).mean())

    bounds = [(0.0, float(np.log(_LARGEST))), (0.0, 0.99)]
    found = minimize(loss, np.array([0.5, 0.05]), method="Nelder-Mead", bounds=bounds)
    return _Fit(float(np.exp(found.x[0])), float(found.x[1]))


def fit_beyond(found: Resolved, classes: np.ndarray, pieces: int, tested: float | None = None) -> Beyond:
    """The rule for one piece beyond the tested ones, from what a network said of positions of as many.

    Args:
        found: of positions of ``pieces`` pieces, one more than the network was tested on.
        classes: int64 [N], right ones.
        tested: see ``Beyond``.
    """
    known = found.ways < WAYS
    of_all = fit_rule(found.probabilities[known], classes[known])
    rules = []
    for way in range(WAYS):
        rows = found.ways == way
        enough = np.count_nonzero(rows) >= FEWEST
        rules.append(fit_rule(found.probabilities[rows], classes[rows]) if enough else of_all)
    rule = Beyond(
        temperatures=tuple(fit.temperature for fit in rules),
        doubts=tuple(fit.doubt for fit in rules),
        most=1.0,
        pieces=pieces,
        positions=len(classes),
        tested=tested,
    )
    stated = rule.applied(found, np.ones(len(classes), np.int64))[known]
    surest = np.argsort(-stated.max(1), kind="stable")[: max(1, len(stated) // _SUREST)]
    right = stated[surest].argmax(1) == classes[known][surest]
    least = wilson_interval(int(right.sum()), len(right))[0]
    return rule.model_copy(update={"most": max(least, 0.34)})


def error_of(probabilities: np.ndarray, classes: np.ndarray) -> float:
    """Expected calibration error of probabilities [N, 3] of the right classes int64 [N]."""
    return calibration_error(reliability_bins(probabilities.max(1), probabilities.argmax(1) == classes))
