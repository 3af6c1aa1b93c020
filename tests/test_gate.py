"""The gate: its rules game by game, and its error rates by simulation."""

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.optimize import minimize

from papers.settings import POPIC, share_of_points
from selfplay.rating.elo import expected_score
from selfplay.rating.gate import Gate, GateConfig, log_likelihood_ratio

SCORES = (0.0, 0.5, 1.0)


def add(gate: Gate, pairs: Iterable[Sequence[float]]) -> str | None:
    for score in itertools.chain.from_iterable(pairs):
        gate.add_game(score)
    return gate.decision


def slow_log_likelihood_ratio(pairs: list[int], elo0: float, elo1: float) -> float:
    """The definition: the best likelihood under each hypothesis, found by a general optimiser."""
    counts = np.maximum(np.array(pairs, float), 1e-3)
    weights, values = counts / counts.sum(), np.arange(5) / 4

    def best(mean: float) -> float:
        solution = minimize(
            lambda p: -weights @ np.log(p),
            np.full(5, 0.2),
            jac=lambda p: -weights / p,
            method="SLSQP",
            bounds=[(1e-12, 1)] * 5,
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(5)},
                {"type": "eq", "fun": lambda p: values @ p - mean, "jac": lambda p: values},
            ],
            options={"ftol": 1e-14, "maxiter": 2000},
        )
        assert solution.success, solution.message
        return -float(solution.fun) * counts.sum()

    return best(expected_score(elo1)) - best(expected_score(elo0))


@pytest.mark.parametrize(
    "pairs",
    [[1, 5, 20, 12, 3], [10, 40, 200, 90, 30], [2, 2, 2, 2, 2], [30, 20, 10, 5, 1], [4, 0, 6, 0, 7], [0, 3, 9, 4, 0]],
)
@pytest.mark.parametrize(("elo0", "elo1"), [(0, 50), (-20, 5), (10, 200)])
def test_llr_against_its_definition(pairs: list[int], elo0: float, elo1: float) -> None:
    expected = slow_log_likelihood_ratio(pairs, elo0, elo1)
    assert log_likelihood_ratio(pairs, elo0, elo1) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_llr_of_two_outcomes_by_hand() -> None:
    """Pairs that are won 2-0 or lost 0-2 are coin tosses, whose likelihood ratio has a simple formula."""
    wins, losses = 60, 40
    s0, s1 = expected_score(0), expected_score(40)
    expected = wins * math.log(s1 / s0) + losses * math.log((1 - s1) / (1 - s0))
    assert log_likelihood_ratio([losses, 0, 0, 0, wins], 0, 40) == pytest.approx(expected, abs=0.01)


def test_llr_speaks_for_the_nearer_hypothesis() -> None:
    assert log_likelihood_ratio([0] * 5, 0, 50) == 0
    pairs = [3, 10, 30, 12, 4]
    assert log_likelihood_ratio(pairs, 0, 50) == pytest.approx(-log_likelihood_ratio(pairs, 50, 0))
    assert log_likelihood_ratio(pairs, 0, 50) == pytest.approx(log_likelihood_ratio(pairs[::-1], 0, -50))
    assert log_likelihood_ratio([0, 0, 20, 0, 0], 0, 50) < 0 < log_likelihood_ratio([0, 0, 10, 10, 10], 0, 50)
    for perfect in ([0, 0, 0, 0, 5], [5, 0, 0, 0, 0]):
        assert math.isfinite(log_likelihood_ratio(perfect, 0, 50))


DRAWS = 0.3


def play(gate: Gate, elo: float, rng: np.random.Generator) -> str:
    score = expected_score(elo)
    while gate.decision is None:
        luck = rng.random(2)
        add(gate, [np.where(luck < score - DRAWS / 2, 1, np.where(luck < score + DRAWS / 2, 0.5, 0)).tolist()])
    return gate.decision


@pytest.mark.parametrize(("elo", "wrong"), [(0, "promote"), (80, "keep")])
def test_sprt_is_wrong_as_rarely_as_it_promises(elo: float, wrong: str) -> None:
    config = GateConfig(elo0=0, elo1=80, alpha=0.1, beta=0.1, max_games=100_000)
    rng = np.random.default_rng(1)
    gates = [Gate(config) for _ in range(400)]
    mistakes = sum(play(gate, elo, rng) == wrong for gate in gates)
    assert abs(mistakes - 40) < 15  # two and a half standard deviations
    # A test of fixed length with the same errors: 1.2816 standard deviations of the mean from the middle on both sides.
    fixed = (2 * 1.2816) ** 2 * (1 - DRAWS) / 4 / (expected_score(80) - 0.5) ** 2
    assert np.mean([gate.tally.games for gate in gates]) < 0.75 * fixed


def test_sprt_decides_at_its_bounds_and_not_before() -> None:
    config = GateConfig(elo0=0, elo1=60, alpha=0.05, beta=0.1, max_games=1000)
    gate = Gate(config)
    assert gate.llr_bounds == pytest.approx((math.log(0.1 / 0.95), math.log(0.9 / 0.05)))
    for pair in itertools.cycle([(1, 1), (1, 0.5), (0, 1)]):
        decision = add(gate, [pair])
        llr = log_likelihood_ratio(gate.tally.pairs, 0, 60)
        assert gate.llr == llr
        assert (decision is None) == (llr < gate.llr_bounds[1])
        if decision:
            break
    assert decision == "promote"
    before = gate.report()
    assert add(gate, [(0, 0)] * 50) == "promote"  # what comes after the decision is not counted
    assert gate.report() == before
    losing = Gate(config)
    assert add(losing, [(0, 0.5)] * 100) == "keep"
    assert losing.tally.games < 60


@pytest.mark.parametrize(("pair", "threshold", "decision"), [((1, 0), 0.5, "promote"), ((1, 0), 0.51, "keep")])
def test_sprt_at_the_limit_goes_by_the_score(pair: tuple[float, float], threshold: float, decision: str) -> None:
    gate = Gate(GateConfig(elo0=-100, elo1=100, max_games=30, score_threshold=threshold))
    assert add(gate, [pair] * 14) is None
    assert add(gate, [pair]) == decision
    assert gate.tally.games == 30


def wins_at_the_end(config: GateConfig, scores: tuple[float, ...]) -> bool:
    """Decision by the stated rule after all games."""
    wins, draws, losses = (sum(score == value for score in scores) for value in (1.0, 0.5, 0.0))
    if config.win_points == 2:
        return round(100 * (wins + draws / 2), 6) >= round(100 * config.score_threshold * len(scores), 6)
    factor = config.score_threshold / (1 - config.score_threshold)  # of the other side's points
    return round(10 * (3 * wins + draws), 6) >= round(10 * factor * (3 * losses + draws), 6)


@pytest.mark.parametrize(
    "config",
    [
        GateConfig(rule="winrate", max_games=6, score_threshold=0.55),
        GateConfig(rule="winrate", max_games=6, score_threshold=0.5),
        GateConfig(rule="winrate", max_games=5, score_threshold=0.7),
        GateConfig(rule="winrate", max_games=6, win_points=3, score_threshold=share_of_points(1.3)),
        GateConfig(rule="winrate", max_games=6, win_points=3, score_threshold=share_of_points(1.0)),
        GateConfig(rule="winrate", max_games=5, win_points=3, score_threshold=share_of_points(2.0)),
    ],
)
def test_fixed_rules_for_every_course_of_a_match(config: GateConfig) -> None:
    """In every possible match the early decision is that after all games, and comes as soon as it is certain."""
    ends: dict[tuple[float, ...], set[bool]] = {}
    matches = list(itertools.product(SCORES, repeat=config.max_games))
    stops = [*range(2, config.max_games, 2), config.max_games]
    for match in matches:
        for length in stops:
            ends.setdefault(match[:length], set()).add(wins_at_the_end(config, match))
    for match in matches:
        gate = Gate(config)
        for played, score in enumerate(match, 1):
            decision = gate.add_game(score)
            if played in stops and len(ends[match[:played]]) == 1:
                break
            assert decision is None
        assert decision == ("promote" if wins_at_the_end(config, match) else "keep")
        assert gate.tally.games == played


@pytest.mark.parametrize("score", SCORES)
def test_always_promotes_after_all_games(score: float) -> None:
    gate = Gate(GateConfig(rule="always", max_games=5))
    assert [gate.add_game(score) for _ in range(5)] == [None] * 4 + ["promote"]
    assert gate.report()["llr"] is None


def test_rounding_does_not_decide() -> None:
    for games in range(20, 2001, 20):
        for threshold in (0.55, 0.6, 0.7):
            gate = Gate(GateConfig(rule="winrate", max_games=games, score_threshold=threshold))
            wins = round(threshold * games)
            scores = [0.0] * (games - wins) + [1.0] * wins
            assert add(gate, zip(scores[::2], scores[1::2], strict=True)) == "promote"
    gate = Gate(GateConfig(rule="winrate", max_games=64, win_points=3, score_threshold=share_of_points(1.1)))
    assert add(gate, [(1, 0)] * 29 + [(1, 0.5)] * 3) == "promote"  # 99 points to 90: 1.1 exactly


def test_popic_gate_of_twenty_games() -> None:
    def decide(wins: int, draws: int, losses: int) -> str | None:
        gate = Gate(GateConfig.model_validate(POPIC["gate"]))
        scores = [1.0] * wins + [0.5] * draws + [0.0] * losses
        return add(gate, zip(scores[::2], scores[1::2], strict=True))

    assert decide(8, 7, 5) == "promote"  # 31 points to 22
    assert decide(7, 8, 5) == "keep"  # 29 to 23: a factor of 1.26
    assert decide(4, 14, 2) == "promote"  # 26 to 20: 1.3 exactly


def test_add_game_makes_pairs() -> None:
    gate = Gate(GateConfig(max_games=5, elo0=-400, elo1=400))
    for score in (1, 0, 0.5, 0.5):
        assert gate.add_game(score) is None
    assert gate.tally.pairs == [0, 0, 2, 0, 0]
    assert gate.add_game(1) == "promote"
    assert gate.tally.singles == [0, 0, 1]


def test_report() -> None:
    gate = Gate(GateConfig())
    empty = gate.report()
    assert (empty["games"], empty["elo"], empty["decision"], empty["llr"]) == (0, None, None, 0.0)
    add(gate, [(1, 0.5), (0, 0.5)])
    report = gate.report()
    assert list(report) == list(empty)
    diff = gate.tally.elo_diff()
    assert report == {
        "rule": "sprt",
        "decision": None,
        "games": 4,
        "wins": 1,
        "draws": 2,
        "losses": 1,
        "score": 0.5,
        "elo": diff.elo,
        "elo_error": diff.elo_error,
        "llr": gate.llr,
        "llr_lower": gate.llr_bounds[0],
        "llr_upper": gate.llr_bounds[1],
    }
    assert Gate(GateConfig(rule="winrate")).report()["llr"] is None


def test_settings_are_checked() -> None:
    for wrong in (
        {"rule": "coin"},
        {"win_points": 1},
        {"elo2": 3},
        {"elo0": 5, "elo1": 5},
        {"alpha": 0.5},
        {"max_games": 1},
    ):
        with pytest.raises(ValidationError):
            GateConfig.model_validate(wrong)
    with pytest.raises(ValueError, match="not the result"):
        add(Gate(GateConfig()), [(1, 0.7)])
