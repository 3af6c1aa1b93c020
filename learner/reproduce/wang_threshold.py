"""Threshold, the fourth experiment of Wang 2023: when the network decides, and when a search."""

import numpy as np

from engine.tablebase.material import MIN_PIECES

from ..endgame.calibration import calibrate_oracle
from ..endgame.data import TEST, VALIDATION
from ..endgame.validation import OUTCOMES
from ..report import Figure
from . import published
from .experiment import Experiment, Measure, Row, comparison_note
from .figures import draw_curves
from .wang_lab import Lab, Training, share

NOWHERE, EVERYWHERE = 0.0, 1.01  # thresholds that every confidence reaches, and none
_CURVE = np.append(np.linspace(0.34, 0.98, 33), (0.99, 0.995, 0.999, EVERYWHERE))
_CALIBRATION_BUDGET = 8.0
_MEASURES = (
    Measure("wang", "Wang's network"),
    Measure("wang_searched", "searched, Wang's network"),
    Measure("pair", "PairNetwork"),
    Measure("pair_searched", "searched, PairNetwork"),
)


def _trainings(pieces: int) -> dict[str, Training]:
    """By key of the measures."""
    return {"wang": Training("wang", MIN_PIECES, pieces), "pair": Training("pair", MIN_PIECES, pieces)}


def threshold_trainings(pieces: int) -> list[Training]:
    """What ``threshold`` needs."""
    return list(_trainings(pieces).values())


def _curve(lab: Lab, training: Training, split: int) -> list[tuple[float, float]]:
    """Thresholds, and the share of right answers with each."""
    batch, answers = lab.answers(training, training.fewest, training.most, split)
    return [(float(threshold), share(answers.both(threshold) == batch.values)) for threshold in _CURVE]


def _chosen(lab: Lab, training: Training) -> float:
    """The threshold with the fewest errors on the validation split."""
    return max(_curve(lab, training, VALIDATION), key=lambda point: point[1])[0]


def _row(lab: Lab, pieces: int, name: str, thresholds: dict[str, float], figure: float | None = None) -> Row:
    """Right answers of network and search with these thresholds, by key of the measures."""
    measured = {}
    for key, training in _trainings(pieces).items():
        batch, answers = lab.answers(training, MIN_PIECES, pieces)
        measured[key] = share(answers.both(thresholds[key]) == batch.values)
        measured[f"{key}_searched"] = share(answers.confidence < thresholds[key])
    return Row(name, {} if figure is None else {"wang": figure}, measured)


def _rows(lab: Lab, pieces: int, chosen: dict[str, float]) -> list[Row]:
    theirs, trainings = published.PIECES["2–7"], _trainings(pieces)
    fixed: list[tuple[str, float, float | None]]
    fixed = [("network alone", NOWHERE, theirs["network"]), ("one-ply search", EVERYWHERE, theirs["search"])]
    for value in published.THRESHOLDS:
        fixed.append((f"both, threshold {value}", value, theirs["both"] if value == published.THRESHOLD else None))
    rows = [_row(lab, pieces, name, dict.fromkeys(trainings, value), figure) for name, value, figure in fixed]
    rows.append(_row(lab, pieces, "both, threshold chosen on the validation split", chosen))
    captures = {key: lab.capture_score(training, MIN_PIECES, pieces) for key, training in trainings.items()}
    return [*rows, Row("capture search", {}, captures), _oracle_row(lab, pieces)]


def _oracle_row(lab: Lab, pieces: int) -> Row:
    """The oracle of the project, calibrated on the validation split: capture search, quiet moves where it is unsure."""
    lab.progress.phase("calibrating the oracle")
    training = _trainings(pieces)["pair"]
    networks = [(lab.trained(training).network, (MIN_PIECES, pieces))]
    oracle = calibrate_oracle(networks, lab.tables, _CALIBRATION_BUDGET, lab.tested, lab.seed, lab.progress.part)
    batch, _ = lab.answers(training, MIN_PIECES, pieces)
    found = oracle.search(batch.positions)
    name = (
        f"oracle, threshold {oracle.members[0].threshold:g} chosen for {_CALIBRATION_BUDGET:g} evaluations a position"
    )
    return Row(name, {}, {"pair": share(found.values == batch.values), "pair_searched": share(found.rounds > 0)})


def _confidence_rows(lab: Lab, pieces: int) -> list[Row]:
    rows = []
    for place, outcome in enumerate(OUTCOMES):
        for right in ("right", "wrong"):
            measured = {}
            for key, training in _trainings(pieces).items():
                batch, answers = lab.answers(training, MIN_PIECES, pieces)
                chosen = (batch.classes == place) & ((answers.network == batch.values) == (right == "right"))
                if chosen.any():
                    measured[key] = float(answers.confidence[chosen].mean())
            name = f"mean confidence of {right} answers, {outcome}"
            rows.append(Row(name, {"wang": published.CONFIDENCE[outcome][right]}, measured))
    return rows


def threshold(lab: Lab, pieces: int) -> Experiment:
    """When should the network decide, when the search?"""
    trainings = _trainings(pieces)
    chosen = {key: _chosen(lab, training) for key, training in trainings.items()}
    curves = {
        "Wang's network": _curve(lab, trainings["wang"], TEST),
        "PairNetwork": _curve(lab, trainings["pair"], TEST),
    }
    rows = _rows(lab, pieces, chosen)
    points = {"both, 2–7 pieces": [(published.THRESHOLD, published.PIECES["2–7"]["both"])]}
    png = draw_curves(points, curves, "threshold: from this confidence on, the network decides")
    return Experiment(
        "threshold",
        "Threshold between network and search",
        "Where the network's confidence reaches a threshold it decides, elsewhere the one-ply search.",
        _MEASURES,
        [*rows, *_confidence_rows(lab, pieces)],
        [Figure("threshold", png, f"Right answers on 2–{pieces} pieces by threshold; at the end the search alone.")],
        [
            f"Scaled: 2–{pieces} pieces where 2–7 were published. Thresholds chosen on the validation split: "
            f"{chosen['wang']:.3g} for Wang's network, {chosen['pair']:.3g} for the PairNetwork; above 1, the search "
            "always decides.",
            "The PairNetwork learns from positions without a capture alone: by itself, and under a one-ply search, it "
            "is asked about captures that it has never seen; the capture search asks it only where it has learned.",
            comparison_note(rows, _MEASURES, lab.why_missed()),
        ],
    )
