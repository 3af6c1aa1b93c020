"""How good the endgame oracle is: statistics of its answers beside the exact values (the reports of Wang 2023)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.fen import Color, format_fen
from engine.outcomes import OUTCOMES
from engine.tablebase.material import NUM_CODES, Material

REPORT_TITLE = "Endgame oracle: validation"
METHODS = ("network", "search", "oracle")
FLAGS = ("none", "capture", "threatened capture")
ACCURACY_KEYS = {"network": "accuracy", "search": "accuracy_search", "oracle": "accuracy_oracle"}

RELIABILITY_BINS = 15  # Guo et al. 2017, "On Calibration of Modern Neural Networks", section 3
HISTOGRAM_EDGES = np.round(np.arange(0.32, 1.001, 0.02), 2)  # the largest of three probabilities is at least 1/3

_Z95 = NormalDist().inv_cdf(0.975)  # half the width of a 95 % interval, in standard deviations


class Judgements(NamedTuple):
    """Answers of the three methods on N positions, at least one, beside the exact values; seen by the side to move.

    Attributes:
        positions: uint32[N, 4]: own, opp, kings, 0 (layout: ``engine.bitboard``).
        values: int8[N]: exact value, 1 win, 0 draw, -1 loss.
        flags: uint8[N]: index into ``FLAGS``.
        codes: int64[N]: ``Material.code``.
        verdicts: method (``METHODS``) → int8[N], coded like the values.
        probabilities: float32[N, 3]: the oracle's calibrated win, draw, loss; its verdict has the largest.
    """

    positions: NDArray[np.uint32]
    values: NDArray[np.int8]
    flags: NDArray[np.uint8]
    codes: NDArray[np.int64]
    verdicts: Mapping[str, NDArray[np.int8]]
    probabilities: NDArray[np.float32]


class Score(NamedTuple):
    """Right answers of each method on some group of positions."""

    positions: int
    right: Mapping[str, int]

    def accuracy(self, method: str) -> float | None:
        """Share of right answers; None without positions."""
        return self.right[method] / self.positions if self.positions else None

    def interval(self, method: str) -> tuple[float, float] | None:
        """95 % interval of the accuracy; None without positions."""
        return wilson_interval(self.right[method], self.positions) if self.positions else None

    def to_json(self) -> dict[str, Any]:
        """``positions``, the three accuracies, and their ``intervals``."""
        bounds = {key: self.interval(method) for method, key in ACCURACY_KEYS.items()}
        return {
            "positions": self.positions,
            **{key: self.accuracy(method) for method, key in ACCURACY_KEYS.items()},
            "intervals": {key: None if found is None else list(found) for key, found in bounds.items()},
        }


class Confidence(NamedTuple):
    """The oracle's confidence (its largest probability) in right and in wrong answers.

    Attributes:
        means: exact outcome → mean confidence of right and of wrong answers; None where there are none.
        right, wrong: number of answers in each bin between ``HISTOGRAM_EDGES``.
    """

    means: Mapping[str, tuple[float | None, float | None]]
    right: tuple[int, ...]
    wrong: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "mean": {outcome: {"right": mean[0], "wrong": mean[1]} for outcome, mean in self.means.items()},
            "histogram": {"edges": HISTOGRAM_EDGES.tolist(), "right": list(self.right), "wrong": list(self.wrong)},
        }


@dataclass(frozen=True)
class ReliabilityBin:
    """The answers with ``low`` < confidence ≤ ``high``: their mean confidence beside the share that is right."""

    low: float
    high: float
    confidence: float
    right: int
    count: int

    @property
    def accuracy(self) -> float:
        return self.right / self.count


class WorstPosition(NamedTuple):
    """A position where the oracle is wrong and sure of it; ``wdl``: calibrated probabilities. Black is to move."""

    fen: str
    exact: str
    verdicts: Mapping[str, str]
    wdl: tuple[float, float, float]
    flag: str

    @property
    def confidence(self) -> float:
        return max(self.wdl)

    def to_json(self) -> dict[str, Any]:
        return {
            "fen": self.fen,
            "exact": self.exact,
            **self.verdicts,
            "confidence": self.confidence,
            "wdl": list(self.wdl),
            "flag": self.flag,
        }


class Validation(NamedTuple):
    """Statistics of the judgements. See ``to_json`` for what each means.

    Attributes:
        confusion: method → counts int64[3, 3], rows the exact outcome, columns the verdict, both in ``OUTCOMES`` order.
        correlation: counts int64[2, 2], rows network right, wrong; columns search right, wrong.
        reliability: the bins that hold a position, by increasing confidence.
        threshold: confidence from which the oracle searches no further; None where it has none, or several.
        parameters: number of weights of its networks.
    """

    overall: Score
    by_outcome: Mapping[str, Score]
    by_flag: Mapping[str, Score]
    by_pieces: Mapping[int, Score]
    by_slice: Mapping[str, Score]
    confusion: Mapping[str, NDArray[np.int64]]
    correlation: NDArray[np.int64]
    confidence: Confidence
    reliability: tuple[ReliabilityBin, ...]
    threshold: float | None
    parameters: int
    worst: tuple[WorstPosition, ...]

    @property
    def ece(self) -> float:
        """Expected calibration error (Guo et al. 2017): mean distance of confidence and accuracy over the bins."""
        return calibration_error(self.reliability)

    def precision(self, method: str) -> dict[str, float | None]:
        """Outcome → share of the answers "it is this" that are right; None where it was never answered."""
        return _right_shares(self.confusion[method], 0)

    def recall(self, method: str) -> dict[str, float | None]:
        """Outcome → share of its positions that are answered right; None where there are none."""
        return _right_shares(self.confusion[method], 1)

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON values; shares are between 0 and 1, and null where nothing was counted.

        ``by_outcome`` … ``by_slice`` (names of Wang 2023) give ``positions``, the three accuracies and their 95 %
        ``intervals`` (Wilson); ``confusion`` rows are the exact outcome, columns the verdict, in the order win, draw,
        loss; ``worst`` lists the oracle's most confident wrong answers, Black to move.
        """
        (both, network_only), (search_only, neither) = self.correlation.tolist()
        return {
            **self.overall.to_json(),
            "parameters": self.parameters,
            "threshold": self.threshold,
            "ece": self.ece,
            **{
                group: {str(name): score.to_json() for name, score in getattr(self, group).items()}
                for group in ("by_outcome", "by_flag", "by_pieces", "by_slice")
            },
            "precision": {method: self.precision(method) for method in METHODS},
            "recall": {method: self.recall(method) for method in METHODS},
            "confusion": {method: self.confusion[method].tolist() for method in METHODS},
            "correlation": {
                "network_right": {"search_right": both, "search_wrong": network_only},
                "network_wrong": {"search_right": search_only, "search_wrong": neither},
            },
            "confidence": self.confidence.to_json(),
            "reliability": [
                {name: getattr(b, name) for name in ("low", "high", "confidence", "accuracy", "count")}
                for b in self.reliability
            ],
            "worst": [position.to_json() for position in self.worst],
        }


def wilson_interval(right: int, count: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927), which stays useful near 0 and 1, where the usual one has no width.

    Raises:
        ValueError: not 0 ≤ ``right`` ≤ ``count``, or ``count`` is 0.
    """
    if not 0 <= right <= count or count == 0:
        raise ValueError(f"{right} of {count}: count must be positive, and right at most as large")
    share, z2 = right / count, _Z95**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = _Z95 * math.sqrt(share * (1 - share) / count + z2 / (4 * count**2)) / (1 + z2 / count)
    return (middle - half if right else 0.0), (middle + half if right < count else 1.0)


def validate(judgements: Judgements, *, threshold: float | None, parameters: int, worst: int = 24) -> Validation:
    """The statistics of judgements.

    Args:
        threshold, parameters: see ``Validation``.
        worst: how many of the oracle's most confident wrong answers to list at most, each position once.
    """
    j = judgements
    right = {method: j.verdicts[method] == j.values for method in METHODS}
    confidence = np.minimum(j.probabilities.max(1).astype(np.float64), 1.0)
    exact = 1 - j.values.astype(np.int64)  # index into ``OUTCOMES``
    pieces = np.bitwise_count(j.positions[:, 0] | j.positions[:, 1]).astype(np.int64)
    by_outcome, by_flag = _scores(exact, len(OUTCOMES), right), _scores(j.flags, len(FLAGS), right)
    by_pieces = _scores(pieces, int(pieces.max()) + 1, right)
    by_code = _scores(j.codes, NUM_CODES, right)
    present = [Material.of_code(code) for code, score in enumerate(by_code) if score.positions]
    network, search = right["network"], right["search"]
    return Validation(
        overall=_scores(np.zeros(len(exact), np.int64), 1, right)[0],
        by_outcome=dict(zip(OUTCOMES, by_outcome, strict=True)),
        by_flag=dict(zip(FLAGS, by_flag, strict=True)),
        by_pieces={count: score for count, score in enumerate(by_pieces) if score.positions},
        by_slice={m.name: by_code[m.code] for m in sorted(present, key=lambda m: (m.pieces, m.name))},
        confusion={
            method: np.bincount(3 * exact + (1 - j.verdicts[method].astype(np.int64)), minlength=9).reshape(3, 3)
            for method in METHODS
        },
        correlation=np.bincount(2 * ~network + 1 * ~search, minlength=4).reshape(2, 2),
        confidence=_confidence(confidence, right["oracle"], exact),
        reliability=reliability_bins(confidence, right["oracle"]),
        threshold=threshold,
        parameters=parameters,
        worst=_worst(j, confidence, worst),
    )


def _right_shares(counts: NDArray[np.int64], axis: int) -> dict[str, float | None]:
    """Outcome → share of the diagonal in the sum over an axis."""
    wholes = counts.sum(axis).tolist()
    shares = zip(OUTCOMES, counts.diagonal().tolist(), wholes, strict=True)
    return {outcome: right / whole if whole else None for outcome, right, whole in shares}


def _scores(groups: NDArray[Any], size: int, right: Mapping[str, NDArray[np.bool_]]) -> list[Score]:
    """The score of each group, given its number for every position."""
    counts = np.bincount(groups, minlength=size).tolist()
    rights = {method: np.bincount(groups[right[method]], minlength=size).tolist() for method in METHODS}
    return [Score(count, {method: rights[method][i] for method in METHODS}) for i, count in enumerate(counts)]


def _confidence(confidence: NDArray[np.float64], right: NDArray[np.bool_], exact: NDArray[np.int64]) -> Confidence:
    def mean(chosen: NDArray[np.bool_]) -> float | None:
        return float(confidence[chosen].mean()) if chosen.any() else None

    def histogram(chosen: NDArray[np.bool_]) -> tuple[int, ...]:
        return tuple(np.histogram(confidence[chosen], HISTOGRAM_EDGES)[0].tolist())

    means = {
        outcome: (mean(right & (exact == index)), mean(~right & (exact == index)))
        for index, outcome in enumerate(OUTCOMES)
    }
    return Confidence(means, histogram(right), histogram(~right))


def reliability_bins(confidence: NDArray[np.floating], right: NDArray[np.bool_]) -> tuple[ReliabilityBin, ...]:
    """The answers in bins of equal width by their confidence [N]; ``right`` bool [N]. Empty bins are left out."""
    edges = np.arange(RELIABILITY_BINS + 1) / RELIABILITY_BINS
    bins = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, RELIABILITY_BINS - 1)
    counts = np.bincount(bins, minlength=RELIABILITY_BINS)
    sums = np.bincount(bins, confidence, minlength=RELIABILITY_BINS)
    rights = np.bincount(bins[right], minlength=RELIABILITY_BINS)
    return tuple(
        ReliabilityBin(float(edges[i]), float(edges[i + 1]), float(sums[i] / counts[i]), int(rights[i]), int(counts[i]))
        for i in np.flatnonzero(counts)
    )


def calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Expected calibration error (Guo et al. 2017): mean distance of confidence and accuracy over the bins."""
    return sum(abs(b.accuracy - b.confidence) * b.count for b in bins) / sum(b.count for b in bins)


def _worst(j: Judgements, confidence: NDArray[np.float64], limit: int) -> tuple[WorstPosition, ...]:
    wrong = np.flatnonzero(j.verdicts["oracle"] != j.values)
    order = wrong[np.argsort(-confidence[wrong], kind="stable")]
    found: dict[str, WorstPosition] = {}  # by FEN: a sample may hold a position several times
    for index in order.tolist():
        if len(found) >= limit:
            break
        own, opp, kings, _ = j.positions[index].tolist()
        fen = format_fen(Color.BLACK, own, opp, kings)
        win, draw, loss = j.probabilities[index].tolist()
        verdicts = {method: OUTCOMES[1 - int(j.verdicts[method][index])] for method in METHODS}
        exact, flag = OUTCOMES[1 - int(j.values[index])], FLAGS[j.flags[index]]
        found.setdefault(fen, WorstPosition(fen, exact, verdicts, (win, draw, loss), flag))
    return tuple(found.values())
