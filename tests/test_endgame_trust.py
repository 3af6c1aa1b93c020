"""Confidence about more pieces than tested: the rule, how it is fitted, and what it may never state."""

import numpy as np
import pytest

from learner.endgame.probabilities import bounded, log_probabilities, softmax
from learner.endgame.resolve import AT_ONCE, CHANGED, PROVEN, STEADY, Resolved
from learner.endgame.trust import Beyond, believed, error_of, fit_beyond, fit_rule

RULE = Beyond(temperatures=(1.5, 2.0, 3.0), doubts=(0.1, 0.2, 0.3), most=0.9, pieces=6, positions=1000)


def found(probabilities: np.ndarray, ways: np.ndarray) -> Resolved:
    n = len(probabilities)
    return Resolved(probabilities.astype(np.float32), np.ones(n, np.int64), np.ones(n, np.uint8), ways)


def overconfident(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Stated probabilities, and classes drawn from less sure ones (temperature 2, doubt 0.15)."""
    random = np.random.default_rng(seed)
    stated = softmax(random.normal(0, 4, (n, 3)).astype(np.float32))
    truth = believed(stated, 2.0, 0.15).astype(np.float64)
    classes = (random.random((n, 1)) > (truth / truth.sum(1, keepdims=True)).cumsum(1)).sum(1)
    return stated, np.minimum(classes, 2)


def test_the_rule_is_the_documented_one() -> None:
    shares = softmax(np.random.default_rng(1).normal(0, 3, (40, 3)).astype(np.float32))
    ways = np.tile([AT_ONCE, STEADY, CHANGED, PROVEN], 10).astype(np.uint8)
    further = np.repeat([0, 1, 2, 3, 1], 8)
    stated = RULE.applied(found(shares, ways), further)
    for p, way, times, q in zip(shares.astype(np.float64), ways, further, stated, strict=True):
        expected = p
        if way != PROVEN and times:
            temperature, doubt = RULE.temperatures[way] ** times, 1 - (1 - RULE.doubts[way]) ** times
            expected = p ** (1 / temperature)
            expected = (1 - doubt) * expected / expected.sum() + doubt / 3
            most = max(RULE.most**times, 1 / 3)
            if expected.max() > most:
                weight = (most - 1 / 3) / (expected.max() - 1 / 3)
                expected = weight * expected + (1 - weight) / 3
        assert q == pytest.approx(expected, abs=1e-5)
        assert q.argmax() == p.argmax()


def test_proofs_stay_certain_and_each_piece_costs_confidence() -> None:
    shares = np.tile(np.array([[1.0, 0.0, 0.0]]), (5, 1))
    proven = RULE.applied(found(shares, np.full(5, PROVEN, np.uint8)), np.arange(5))
    assert np.array_equal(proven, shares)
    for way in (AT_ONCE, STEADY, CHANGED):
        sure = RULE.applied(found(shares, np.full(5, way, np.uint8)), np.arange(5)).max(1)
        assert sure[0] == 1.0
        assert (np.diff(sure) < 0).all()
        assert (sure[1:] <= RULE.most ** np.arange(1, 5) + 1e-6).all()
    one = [RULE.applied(found(shares[:1], np.array([way], np.uint8)), np.ones(1, int)).max() for way in range(3)]
    assert one[AT_ONCE] >= one[STEADY] > one[CHANGED]


def test_fitting_finds_temperature_and_doubt() -> None:
    stated, classes = overconfident(40_000, 1)
    fit = fit_rule(stated, classes)
    assert fit.temperature == pytest.approx(2.0, abs=0.2)
    assert fit.doubt == pytest.approx(0.15, abs=0.04)
    assert error_of(stated, classes) > 0.1
    fresh, right = overconfident(40_000, 2)
    assert error_of(believed(fresh, *fit), right) < 0.01


def test_what_is_fitted_is_never_surer_than_its_surest_answers_were() -> None:
    stated, classes = overconfident(6000, 3)
    ways = np.full(6000, AT_ONCE, np.uint8)
    ways[:3000], ways[5990:] = STEADY, PROVEN
    rule = fit_beyond(found(stated, ways), classes, 6)
    shares = rule.applied(found(stated, ways), np.ones(6000, np.int64))
    kept = ways < PROVEN
    assert shares[kept].max() <= rule.most + 1e-6
    sure = np.argsort(-shares[kept].max(1), kind="stable")[: kept.sum() // 10]
    assert rule.most < 1
    assert (shares[kept].argmax(1)[sure] == classes[kept][sure]).mean() >= rule.most - 0.05
    assert error_of(shares[kept], classes[kept]) < 0.03
    assert rule.temperatures[CHANGED] != rule.temperatures[STEADY]  # of all, where there are few


def test_probabilities_are_bounded_towards_a_third_each() -> None:
    shares = np.array([[0.98, 0.02, 0.0], [0.5, 0.3, 0.2]], np.float32)
    less = bounded(shares, 0.8)
    assert less.max(1) == pytest.approx([0.8, 0.5], abs=1e-6)
    assert less.sum(1) == pytest.approx([1, 1], abs=1e-6)
    assert np.isfinite(log_probabilities(np.zeros((1, 3), np.float32))).all()
