"""Elo differences against simulated matches, tables against plain optimisation and ratings known beforehand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from selfplay.rating.elo import (
    EloRating,
    PairingResult,
    Tally,
    elo_diff,
    elo_from_score,
    expected_score,
    fit_elo,
)


def test_400_elo_are_odds_of_ten_to_one() -> None:
    for elo, score in ((0, 1 / 2), (400, 10 / 11), (800, 100 / 101), (-400, 1 / 11)):
        assert expected_score(elo) == pytest.approx(score)
        assert elo_from_score(score) == pytest.approx(elo)


def test_elo_of_a_score() -> None:
    diff = elo_diff([0, 10, 30, 40, 20])
    assert diff.score == (5 + 30 + 60 + 40) / 200
    assert diff.elo == pytest.approx(400 * math.log10(diff.score / (1 - diff.score)))
    assert elo_diff([0] * 5, [10, 0, 30]).score == 0.75


@given(st.lists(st.integers(0, 300), min_size=8, max_size=8).filter(any))
def test_always_finite_and_antisymmetric(counts: list[int]) -> None:
    pairs, singles = counts[:5], counts[5:]
    diff, mirrored = elo_diff(pairs, singles), elo_diff(pairs[::-1], singles[::-1])
    assert math.isfinite(diff.elo)
    assert 0 < diff.elo_error < 2000
    assert mirrored.elo == pytest.approx(-diff.elo, abs=1e-9)
    assert mirrored.elo_error == pytest.approx(diff.elo_error)
    assert mirrored.score == pytest.approx(1 - diff.score)


def test_perfect_scores_grow_with_the_games() -> None:
    elos = []
    for games in (1, 2, 10, 100, 1000):
        single = elo_diff([0] * 5, [0, 0, games])
        assert single.elo == pytest.approx(elo_from_score((games + 0.5) / (games + 1)))
        elos.append(single.elo)
        assert single.elo > elo_diff([0] * 5, [0, 1, games - 1]).elo  # half a point less is less
        assert elo_diff([0] * 5, [games, 0, 0]).elo == pytest.approx(-single.elo)
    assert elos == sorted(elos)
    with pytest.raises(ValueError, match="no games"):
        elo_diff([0] * 5)


def test_errors_shrink_with_the_root_of_the_games() -> None:
    errors = [elo_diff([3 * n, 8 * n, 20 * n, 9 * n, 4 * n]).elo_error for n in (1, 4, 16)]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.02)
    # By hand: 44 pairs, mean 45.5 / 44 points, textbook standard error of the mean, slope of the Elo curve.
    points = np.repeat(np.arange(5) / 2, [3, 8, 20, 9, 4])
    score, deviation = points.mean() / 2, points.std() / 2 / math.sqrt(44)
    slope = 400 / math.log(10) / (score * (1 - score))
    assert errors[0] == pytest.approx(1.96 * deviation * slope, rel=0.05)


@pytest.mark.parametrize(("elo", "bias", "pairs"), [(0, 0, 20), (35, 150, 50), (150, 80, 100), (-300, 0, 30)])
def test_intervals_hold_the_truth_in_95_percent(elo: float, bias: float, pairs: int) -> None:
    """With openings that favour one side, intervals from pairs are right; those from single games would be too wide."""
    rng = np.random.default_rng(3)
    draws = 0.3

    def points(strength: np.ndarray) -> np.ndarray:
        score = 1 / (1 + 10 ** (-strength / 400))
        draw = np.minimum(draws, 2 * np.minimum(score, 1 - score))
        luck = rng.random(strength.shape)
        return np.where(luck < score - draw / 2, 1, np.where(luck < score + draw / 2, 0.5, 0))

    favour = rng.choice([-bias, bias], (2000, pairs))
    totals = points(elo + favour) + points(elo - favour)
    counts = np.stack([(totals == value / 2).sum(axis=1) for value in range(5)], axis=1)
    truth = elo_from_score((expected_score(elo + bias) + expected_score(elo - bias)) / 2)
    inside = 0
    for row in counts:
        diff = elo_diff(row.tolist())
        inside += abs(diff.elo - truth) <= diff.elo_error
    assert 0.925 < inside / 2000 < 0.995


def test_tally() -> None:
    tally = Tally()
    for scores in ((1, 1), (1, 0), (0.5, 0.5), (0.5, 1), (0, 0.5), (0,)):
        tally.add(scores)
    assert (tally.games, tally.wins, tally.draws, tally.losses) == (11, 4, 4, 3)
    assert tally.pairs == [0, 1, 2, 1, 1]
    assert tally.singles == [1, 0, 0]
    assert tally.points == 6
    assert tally.elo_diff() == elo_diff([0, 1, 2, 1, 1], [1, 0, 0])
    for wrong in ((), (1, 1, 1), (0.3,), (2,)):
        with pytest.raises(ValueError, match="not the result"):
            tally.add(wrong)
    assert tally.games == 11


# Tables


def elo_table(
    results: list[PairingResult], anchors: dict[str, float], prior_draws: float = 1.0
) -> tuple[EloRating, ...]:
    tallies = [(a, b, Tally.of_games(*counts)) for a, b, *counts in results]
    return fit_elo(tallies, anchors, prior_draws).table


def plain_table(results: list[PairingResult], anchors: dict[str, float], prior: float) -> dict[str, float]:
    """Ratings that maximise the same likelihood, written game by game, found by a general optimiser."""
    players = sorted({name for line in results for name in line[:2]} - set(anchors))
    points: dict[tuple[str, str], float] = {}
    for line in results:
        points[line[:2]] = points.get(line[:2], 0) + line.wins + line.draws / 2
        points[line[1::-1]] = points.get(line[1::-1], 0) + line.losses + line.draws / 2

    def loss(values: np.ndarray) -> float:
        rating = {**anchors, **dict(zip(players, values, strict=True))}
        return -sum(
            (gained + prior / 2) * math.log(expected_score(rating[a] - rating[b])) for (a, b), gained in points.items()
        )

    start = np.full(len(players), np.mean(list(anchors.values())))
    solution = minimize(loss, start, method="BFGS", options={"gtol": 1e-7})
    return {**anchors, **dict(zip(players, solution.x, strict=True))}


def test_table_of_two_is_the_difference_of_two() -> None:
    (first, second) = elo_table([PairingResult("a", "b", 60, 20, 20)], {"b": 1000.0}, prior_draws=1e-9)
    assert first.rating - 1000 == pytest.approx(elo_from_score(0.7), abs=1e-5)
    assert second == EloRating("b", 1000.0, 0.0, 100, 0.3)
    # The spread of 100 games, drawn ones among them, and one more evenly over all results: less than of coin tosses.
    weights = np.array([60 + 1 / 3, 20 + 1 / 3, 20 + 1 / 3]) / 101
    spread = weights @ (np.array([1, 0.5, 0]) - weights @ [1, 0.5, 0]) ** 2
    slope = 400 / math.log(10) / (0.7 * 0.3)
    assert first.error == pytest.approx(1.959964 * math.sqrt(spread / 100) * slope)
    assert first.error == pytest.approx(elo_diff([0] * 5, [20, 20, 60]).elo_error, rel=0.01)
    assert first.error < 0.9 * 1.959964 * math.sqrt(0.7 * 0.3 / 100) * slope


def test_table_finds_the_ratings_that_made_the_results() -> None:
    rng = np.random.default_rng(0)
    truth = {"random": -300.0, "v0": -250.0, "v1": -60.0, "v2": 90.0, "v3": 40.0}
    inside = 0
    for _ in range(200):
        results = []
        for a, b in itertools.combinations(truth, 2):
            wins = int(rng.binomial(60, expected_score(truth[a] - truth[b])))
            results.append(PairingResult(a, b, wins, 0, 60 - wins))
        table = elo_table(results, {"random": -300.0})
        assert [line.rating for line in table] == sorted((line.rating for line in table), reverse=True)
        for line in table:
            assert line.games == 240
            assert (line.error == 0) == (line.player == "random")
            inside += 0 < abs(line.rating - truth[line.player]) <= line.error
    assert 0.93 < inside / (200 * 4) < 0.975


def test_errors_are_right_where_pairs_are_often_level() -> None:
    """One side wins most openings, so most pairs are level: errors that treat games as coin tosses are too large."""
    rng = np.random.default_rng(1)
    truth = {"v0": 0.0, "v1": 60.0, "v2": 90.0}
    inside, errors, tosses = 0, [], []
    for _ in range(200):
        tallies, singles = [], []
        for a, b in itertools.combinations(truth, 2):
            ahead = 2 * (2 * expected_score(truth[b] - truth[a]) - 1)  # P(1 1/2 points) - P(1/2 point) of b
            tally = Tally()
            for draw in rng.random(60):
                tally.add((1, 0.5) if draw < 0.05 + ahead else (0.5, 0) if draw > 0.95 else (1, 0))
            tallies.append((b, a, tally))
            counts = {"losses": tally.losses, "draws": tally.draws, "wins": tally.wins}
            singles.append((b, a, Tally(singles=list(counts.values()), **counts)))
        fit = fit_elo(tallies, {"v0": 0.0})
        difference, error = fit.difference("v2", "v1")
        inside += abs(difference - 30) <= error
        for line in fit.table:
            inside += 0 < abs(line.rating - truth[line.player]) <= line.error
        errors += [line.error for line in fit.table]
        tosses += [line.error for line in fit_elo(singles, {"v0": 0.0}).table]
    assert 0.93 < inside / (200 * 3) < 0.975
    assert np.sum(errors) < 0.6 * np.sum(tosses)


def test_table_against_a_general_optimiser() -> None:
    results = [
        PairingResult("a", "b", 10, 3, 2),
        PairingResult("b", "a", 1, 1, 4),
        PairingResult("b", "c", 5, 0, 0),
        PairingResult("c", "a", 0, 1, 20),
        PairingResult("d", "c", 7, 7, 7),
        PairingResult("e", "d", 100, 0, 0),
    ]
    anchors = {"c": 200.0, "b": 250.0}
    expected = plain_table(results, anchors, 1.0)
    table = {line.player: line for line in elo_table(results, anchors)}
    assert set(table) == set("abcde")
    for name, line in table.items():
        assert line.rating == pytest.approx(expected[name], abs=0.05)
    assert table["a"].games == 42
    assert table["a"].score == pytest.approx((10 + 1.5 + 4 + 0.5 + 20 + 0.5) / 42)
    assert table["e"].error > table["d"].error > 0 == table["c"].error


def test_table_of_perfect_scores_is_finite() -> None:
    chain = [PairingResult(f"v{i + 1}", f"v{i}", 10**6, 0, 0) for i in range(30)]
    table = elo_table(chain, {"v0": 0.0})
    assert [line.player for line in table] == [f"v{i}" for i in range(30, -1, -1)]
    step = elo_from_score((10**6 + 0.5) / (10**6 + 1))
    for i, line in enumerate(reversed(table)):
        assert line.rating == pytest.approx(i * step, rel=1e-6)
        assert math.isfinite(line.error)


def test_table_says_what_is_wrong() -> None:
    played = [PairingResult("a", "b", 1, 0, 0), PairingResult("c", "d", 1, 0, 0)]
    with pytest.raises(ValueError, match=r"no rating for c, d: .* \(a\)"):
        elo_table(played, {"a": 0.0})
    with pytest.raises(ValueError, match="no rating for a, b, c, d"):
        elo_table(played, {})
    with pytest.raises(ValueError, match="a against a"):
        elo_table([PairingResult("a", "a", 1, 0, 0)], {"a": 0.0})
    assert elo_table([], {"a": 5.0}) == (EloRating("a", 5.0, 0.0, 0, 0.0),)
