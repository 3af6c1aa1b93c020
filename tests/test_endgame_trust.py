"""Confidence about more pieces than tested: what is expected, the rule made of it, and what it may never state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.endgame.probabilities import bounded, log_probabilities, softmax
from learner.endgame.resolve import AT_ONCE, CHANGED, PROVEN, STEADY, Resolved
from learner.endgame.trust import (
    Beyond,
    Further,
    Mistakes,
    believed,
    error_of,
    expected_mistakes,
    is_close,
    matching_temperature,
    mistakes_of,
    surest_right,
)

FURTHER = tuple(
    Further(errors=errors, temperatures=temperatures)
    for errors, temperatures in (((0.1, 0.01), (2.0, 1.0)), ((0.2, 0.02), (3.0, 1.5)), ((0.3, 0.03), (4.0, 2.0)))
)
RULE = Beyond(further=FURTHER, most=0.9, pieces=6, positions=1000)
SHARES = st.floats(0, 0.4)
PAIRS = st.tuples(SHARES | st.just(float("nan")), SHARES | st.just(float("nan"))).map(lambda pair: Mistakes(*pair))


def found(probabilities: np.ndarray, ways: np.ndarray) -> Resolved:
    n = len(probabilities)
    return Resolved(probabilities.astype(np.float32), np.ones(n, np.int64), np.ones(n, np.uint8), ways)


def overconfident(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Stated probabilities, and classes drawn from those of temperature 2 and of the doubt of 10 % errors."""
    random = np.random.default_rng(seed)
    stated = softmax(random.normal(0, 6, (n, 3)).astype(np.float32))
    truth = believed(stated, 2.0, 0.1).astype(np.float64)
    classes = (random.random((n, 1)) > (truth / truth.sum(1, keepdims=True)).cumsum(1)).sum(1)
    return stated, np.minimum(classes, 2)


def test_the_rule_is_the_documented_one() -> None:
    random = np.random.default_rng(1)
    shares = softmax(random.normal(0, 3, (60, 3)).astype(np.float32))
    ways = np.tile([AT_ONCE, STEADY, CHANGED, PROVEN], 15).astype(np.uint8)
    further, close = random.integers(0, 7, 60), random.random(60) < 0.5
    stated = RULE.applied(found(shares, ways), further, close)
    rows = {1: 0, 2: 1, 3: 2, 4: 1, 5: 2, 6: 1}  # of more pieces than there are rows: the last two by turns
    for p, way, times, near, q in zip(shares.astype(np.float64), ways, further, close, stated, strict=True):
        expected = p
        if way != PROVEN and times:
            row = FURTHER[rows[int(times)]]
            errors, temperature = row.errors[0 if near else 1], row.temperatures[0 if near else 1]
            expected = p ** (1 / temperature)
            expected = (1 - 0.3 * errors) * expected / expected.sum() + 0.1 * errors
            most = max(0.9**times, 1 / 3)
            if expected.max() > most:
                weight = (most - 1 / 3) / (expected.max() - 1 / 3)
                expected = weight * expected + (1 - weight) / 3
        assert q == pytest.approx(expected, abs=1e-5)
        assert q.argmax() == p.argmax()


def test_proofs_stay_certain_and_each_piece_costs_confidence() -> None:
    shares = np.tile(np.array([[1.0, 0.0, 0.0]]), (7, 1))
    for close in (np.zeros(7, bool), np.ones(7, bool)):
        proven = RULE.applied(found(shares, np.full(7, PROVEN, np.uint8)), np.arange(7), close)
        assert np.array_equal(proven, shares)
        sure = RULE.applied(found(shares, np.full(7, AT_ONCE, np.uint8)), np.arange(7), close).max(1)
        assert sure[0] == 1.0
        assert (np.diff(sure) < 0).all()
        assert (sure[1:] <= 0.9 ** np.arange(1, 7) + 1e-6).all()


def test_mistakes_are_counted_in_close_positions_and_in_others() -> None:
    positions = np.array([[1, 2, 0, 0], [3, 4, 0, 0], [7, 8, 0, 0], [1, 30, 0, 0]], np.uint32)
    close = is_close(positions)
    assert close.tolist() == [True, True, False, False]
    shares = np.tile(np.array([[0.8, 0.1, 0.1]]), (4, 1))
    ways = np.full(4, AT_ONCE, np.uint8)
    assert mistakes_of(found(shares, ways), np.array([0, 1, 0, 0]), close) == (0.5, 0.0)
    assert np.isnan(mistakes_of(found(shares[:2], ways[:2]), np.array([0, 1]), close[:2]).others)


def test_as_many_mistakes_are_expected_on_top_as_a_smaller_network_made() -> None:
    smaller = [Mistakes(0.01, float("nan")), Mistakes(0.05, 0.002), Mistakes(0.11, 0.001)]
    expected = expected_mistakes(Mistakes(0.02, float("nan")), smaller, 5)
    assert [pair.close for pair in expected] == pytest.approx([0.06, 0.12, 0.16, 0.22, 0.26])
    assert [pair.others for pair in expected] == pytest.approx([0.002, 0.002, 0.004, 0.004, 0.006])
    assert expected_mistakes(Mistakes(0, 0), [Mistakes(0, 0), Mistakes(0.4, 0)], 3)[2] == (0.6, 1e-4)


@given(own=PAIRS, smaller=st.lists(PAIRS, min_size=2, max_size=4), count=st.integers(2, 6))
def test_expected_mistakes_never_fall_with_more_pieces(own: Mistakes, smaller: list[Mistakes], count: int) -> None:
    expected = np.array(expected_mistakes(own, smaller, count))
    assert expected.shape == (count, 2)
    assert (np.diff(expected, axis=0) >= -1e-12).all()
    for within, column in zip(own, expected.T, strict=True):
        assert np.isnan(within) or column[0] >= min(within, 0.6) - 1e-12


def test_the_temperature_makes_confidence_what_errors_leave() -> None:
    stated, classes = overconfident(40_000, 1)
    ways = np.full(len(stated), AT_ONCE, np.uint8)
    ways[:500], stated[:500] = PROVEN, [1, 0, 0]
    classes[:500] = 0
    errors = float((stated.argmax(1) != classes).mean())
    temperature = matching_temperature(found(stated, ways), errors)
    shares = stated.copy()
    shares[500:] = believed(stated[500:], temperature, errors)
    assert shares.max(1).mean() == pytest.approx(1 - errors, abs=1e-3)
    assert error_of(shares, classes) < 0.02 < error_of(stated, classes)


def test_temperatures_where_there_is_nothing_to_match() -> None:
    modest = np.tile(np.array([[0.5, 0.3, 0.2]]), (10, 1))
    assert matching_temperature(found(modest, np.full(10, STEADY, np.uint8)), 0.1) == 1  # less sure than it has to be
    assert matching_temperature(found(modest, np.full(10, PROVEN, np.uint8)), 0.1) == 1
    assert matching_temperature(found(modest, np.full(10, STEADY, np.uint8)), 0.67) == 100


def test_the_surest_answers_bound_what_is_stated() -> None:
    shares = np.tile(np.array([[0.9, 0.1, 0.0]]), (1000, 1))
    shares[:100] = [0.99, 0.01, 0.0]
    ways = np.full(1000, STEADY, np.uint8)
    classes = np.zeros(1000, np.int64)
    assert 0.95 < surest_right(found(shares, ways), classes) < 1
    classes[:50] = 1
    assert 0.39 < surest_right(found(shares, ways), classes) < 0.5
    classes[:100] = 1
    assert surest_right(found(shares, ways), classes) == 0.34
    ways[:100] = PROVEN  # proofs do not count
    assert surest_right(found(shares, ways), classes) > 0.95


def test_probabilities_are_bounded_towards_a_third_each() -> None:
    shares = np.array([[0.98, 0.02, 0.0], [0.5, 0.3, 0.2]], np.float32)
    less = bounded(shares, 0.8)
    assert less.max(1) == pytest.approx([0.8, 0.5], abs=1e-6)
    assert less.sum(1) == pytest.approx([1, 1], abs=1e-6)
    assert np.isfinite(log_probabilities(np.zeros((1, 3), np.float32))).all()
