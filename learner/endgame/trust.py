"""Confidence about more pieces than a network was tested on.

Nobody knows how often a network is right there. What is known is how often smaller ones erred on one and two pieces
more than their own, and temperatures do not carry over from them: one network states what another one would not. But
errors do. So a larger network is taken to make as many errors on top of its own as the smaller one made on top of its
own, in *close* positions (numbers of pieces that differ by one at most) and in others, and its probabilities p become

    (1 - doubt) softmax(log p / temperature) + doubt / 3.

The doubt is a share of these errors: what goes wrong however sure a network is. The temperature (Guo et al. 2017) is
the one at which the confidence in fresh positions, whose values nobody needs to know, is on the mean what these errors
leave of it.
"""

from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from .probabilities import bounded, log_probabilities, softmax
from .resolve import PROVEN, Resolved
from .validation import calibration_error, reliability_bins, wilson_interval

_DOUBTED = 0.2  # share of the errors that no temperature explains
_MOST_ERRORS = 0.6  # of three answers two are wrong where nothing is known
_LARGEST = 100.0  # temperature
_SUREST = 10  # a tenth of the answers
_Two = tuple[float, float]


class Further(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What is believed about a number of pieces, in close positions and in others.

    Attributes:
        errors: share of wrong answers that is expected. temperatures: see above.
    """

    errors: _Two
    temperatures: _Two


class Beyond(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """How a network is believed about more pieces than it was tested on.

    Attributes:
        further: for one piece more, two, and so on; for still more pieces the last two by turns, since an even number
            of pieces is harder to judge than an odd one.
        most: no verdict but a proven one is stated with more confidence on one piece more, with its square on two, and
            so on: the 95 % sure lower bound of how often the surest tenth of the next smaller network's answers was
            right on one piece more than its own.
        pieces, positions: number of these pieces, and of the positions.
        tested: expected calibration error, on them, of the rule made for that network without them; None where there
            was no smaller one to make it with.
    """

    further: tuple[Further, ...] = Field(min_length=2)
    most: float = Field(gt=1 / 3, le=1)
    pieces: int
    positions: int
    tested: float | None = None

    def applied(self, found: Resolved, further: np.ndarray, close: np.ndarray) -> np.ndarray:
        """Probabilities float32 [N, 3] of a search.

        Args:
            further: int [N], pieces more than tested. close: bool [N], see ``is_close``.
        """
        result = found.probabilities.copy()
        for times in np.unique(further[further > 0]).tolist():
            known = len(self.further)
            row = self.further[times - 1 if times <= known else known - 2 + (times - known - 1) % 2]
            for near, errors, temperature in zip((True, False), row.errors, row.temperatures, strict=True):
                rows = np.flatnonzero((found.ways != PROVEN) & (further == times) & (close == near))
                result[rows] = bounded(believed(result[rows], temperature, errors), self.most**times)
        return result


class Mistakes(NamedTuple):
    """Share of wrong answers about close and about other positions; NaN where there were none."""

    close: float
    others: float


def is_close(positions: np.ndarray) -> np.ndarray:
    """bool [N]: whether the numbers of pieces of positions uint32 [N, 4] differ by one at most."""
    own, opp = (np.bitwise_count(positions[:, column]).astype(np.int64) for column in range(2))
    return abs(own - opp) <= 1


def mistakes_of(found: Resolved, classes: np.ndarray, close: np.ndarray) -> Mistakes:
    """How often the answers were wrong; ``classes`` int64 [N] are right, ``close`` bool [N]."""
    wrong = found.probabilities.argmax(1) != classes
    return Mistakes(*(float(wrong[rows].mean()) if rows.any() else np.nan for rows in (close, ~close)))


def expected_mistakes(own: Mistakes, smaller: list[Mistakes], count: int) -> list[Mistakes]:
    """What is expected on one piece more, two, and so on, ``count`` times.

    Args:
        own: of the network on its own number of pieces.
        smaller: of a smaller network on its own number of pieces, on one more, and so on. Beyond the last one errors
            grow as they did from the first to it.
    """
    columns = [_grown(within, steps, count) for within, *steps in zip(own, *smaller, strict=True)]
    return [Mistakes(*pair) for pair in zip(*columns, strict=True)]


def _grown(own: float, smaller: list[float], count: int) -> list[float]:
    """``expected_mistakes`` of one of the two kinds of positions; where there were none, they count as before."""
    steps, before = [], 0.0
    for share in smaller:
        before = before if np.isnan(share) else share
        steps.append(before)
    growth, last = np.maximum.accumulate(np.array(steps) - steps[0]), len(steps) - 1
    start = steps[0] if np.isnan(own) else own
    rounds = [divmod(further, last) for further in range(count)]
    return [float(np.clip(start + n * growth[last] + growth[rest + 1], 1e-4, _MOST_ERRORS)) for n, rest in rounds]


def believed(probabilities: np.ndarray, temperature: float, errors: float) -> np.ndarray:
    """Probabilities float32 [N, 3] after the rule above, where this share of ``errors`` is expected."""
    doubt = 1.5 * _DOUBTED * errors  # two of its three thirds are errors
    return np.float32(1 - doubt) * softmax(log_probabilities(probabilities), temperature) + np.float32(doubt / 3)


def matching_temperature(found: Resolved, errors: float) -> float:
    """The temperature, at least 1, at which the mean confidence in these positions is what ``errors`` leave of it."""
    from scipy.optimize import brentq  # only training an oracle needs it

    open_ones = found.probabilities[found.ways != PROVEN]
    wanted = (1 - errors) * len(found.ways) - (len(found.ways) - len(open_ones))

    def surplus(temperature: float) -> float:
        return float(believed(open_ones, temperature, errors).max(1).sum()) - wanted

    if not len(open_ones) or surplus(1.0) <= 0:
        return 1.0
    return _LARGEST if surplus(_LARGEST) >= 0 else float(brentq(surplus, 1.0, _LARGEST, rtol=1e-4))


def surest_right(found: Resolved, classes: np.ndarray) -> float:
    """95 % sure lower bound of how often the surest tenth of the unproven answers is right; ``classes`` int64 [N]."""
    rows = np.flatnonzero(found.ways != PROVEN)
    shares = found.probabilities[rows]
    surest = np.argsort(-shares.max(1), kind="stable")[: max(1, len(rows) // _SUREST)]
    right = shares[surest].argmax(1) == classes[rows][surest]
    return max(wilson_interval(int(right.sum()), len(right))[0], 0.34)


def error_of(probabilities: np.ndarray, classes: np.ndarray) -> float:
    """Expected calibration error of probabilities [N, 3] of the right classes int64 [N]."""
    return calibration_error(reliability_bins(probabilities.max(1), probabilities.argmax(1) == classes))
