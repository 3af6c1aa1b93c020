"""The Gumbel root against published behaviour: Danihelka et al. 2022, the test cases of its implementation (mctx)."""

import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from engine.search.gumbel import best_gumbel, completed_q, considered_visits, select_gumbel
from scipy import stats
from search_boards import random_game
from search_reference import HashEvaluator, halving_schedule, judge

from engine.board import Board
from engine.search import LockstepSearch, SearchConfig, tree
from engine.search.tree import NODE

PUBLISHED = {
    (8, 24): [0] * 8 + [1] * 4 + [2] * 4 + [3, 3, 4, 4, 5, 5, 6, 6],
    (8, 47): [0] * 8 + [1] * 4 + [2] * 4 + [3] * 4 + [v for v in range(4, 17) for _ in range(2)] + [17],
    (8, 2): [0, 0],
    (8, 13): [0] * 8 + [1] * 4 + [2],
    (7, 24): [0] * 7 + [1] * 3 + [2] * 3 + [v for v in range(3, 8) for _ in range(2)] + [8],
    (0, 16): list(range(16)),
    (1, 16): list(range(16)),
}


@pytest.mark.parametrize(("considered", "simulations"), PUBLISHED)
def test_published_schedules(considered: int, simulations: int) -> None:
    schedule = considered_visits(considered, simulations)
    assert schedule.dtype == np.int32
    assert schedule.tolist() == PUBLISHED[considered, simulations]


def test_schedules_halve_the_field() -> None:
    """Against sequential halving played out move by move, for every size that a search may ask for."""
    for considered in range(129):
        for simulations in (0, 1, 2, 7, 8, 16, 32, 33, 64, 100, 200, 800):
            assert considered_visits(considered, simulations).tolist() == halving_schedule(considered, simulations)


def root_with(
    priors: list[float], visits: list[int], values: list[float], proofs: list[int] | None = None
) -> np.ndarray:
    """A root (node 3) whose children stand from node 5 on."""
    nodes = np.zeros(5 + len(priors), NODE)
    nodes[3]["first_child"], nodes[3]["num_children"] = 5, len(priors)
    nodes["prior"][5:], nodes["visits"][5:] = priors, visits
    nodes["value_sum"][5:] = np.array(visits) * values
    nodes["proof"][5:] = proofs or 0
    return nodes


def completed(
    nodes: np.ndarray, raw_value: float, c_visit: float = 50.0, c_scale: float = 0.1, rescale: bool = True
) -> np.ndarray:
    scores = np.full(len(nodes) - 5, np.nan, np.float32)
    completed_q(nodes, 3, np.float32(raw_value), np.float32(c_visit), np.float32(c_scale), rescale, scores)
    return scores


@pytest.mark.parametrize("raw_value", [-0.8, 0.3, 0.95])
def test_mixed_value(raw_value: float) -> None:
    """An unvisited move counts with the network's value and the visited moves' values, weighted by their priors.

    Two of four moves are visited; the published case has -0.8.
    """
    priors = np.array([0, *(np.exp([-1.0, 2.0]) / np.exp([-1.0, 2.0]).sum()), 0])
    values = np.array([20, 3, -1, 10]) * 10 / 54
    mixed = (raw_value + 8 * (priors * values).sum()) / 9
    expected = np.array([mixed, values[1], values[2], mixed])
    expected = (expected - expected.min()) / (expected.max() - expected.min())
    nodes = root_with(priors.tolist(), [0, 4, 4, 0], values.tolist())
    assert completed(nodes, raw_value) == pytest.approx(expected * (50 + 4) * 0.1, rel=1e-5, abs=1e-6)
    assert completed(nodes, raw_value, 20, 2.0) == pytest.approx(expected * (20 + 4) * 2.0, rel=1e-5, abs=1e-6)


def test_values_that_are_not_stretched() -> None:
    """As for board games in the paper: -1 counts as 0 and 1 as 1, whatever the root's values are."""
    nodes = root_with([0.5, 0.3, 0.2], [3, 1, 0], [0.1, -0.5, 0.0])
    mixed = (0.2 + 4 * (0.5 * 0.1 - 0.3 * 0.5) / 0.8) / 5
    expected = (50 + 3) * 0.5 * (np.array([0.1, -0.5, mixed]) + 1) / 2
    assert completed(nodes, 0.2, 50, 0.5, rescale=False) == pytest.approx(expected, rel=1e-5)


def test_mixed_value_without_visits_is_the_raw_value() -> None:
    nodes = root_with([0.5, 0.25, 0.25], [0, 0, 0], [0.0, 0.0, 0.0])
    assert completed(nodes, 0.7).tolist() == [0, 0, 0]


def test_select_follows_the_schedule() -> None:
    """The best Gumbel + log prior + Q among the moves with the wanted visits; proven losses are passed over."""
    nodes = root_with([0.4, 0.3, 0.2, 0.1], [1, 1, 2, 0], [0.1, 0.5, 0.2, 0.0])
    gumbels, scores = np.zeros((2, 4), np.float32), np.zeros(4, np.float32)
    fixed = (np.float32(0), np.float32(50), np.float32(0.1), True, scores)

    def select(considered: int) -> int:
        return int(select_gumbel(nodes, 3, gumbels, 1, considered, *fixed)) - 5

    assert [select(considered) for considered in (0, 1, 2, 9)] == [3, 1, 2, 2]
    gumbels[1, 0] = 20
    assert [select(considered) for considered in (0, 1, 2, 9)] == [3, 0, 2, 2]
    assert best_gumbel(nodes, 3, gumbels, 1, *fixed) == 2  # the most visited
    nodes["proof"][5 + 2] = tree.LOSS
    assert [select(considered) for considered in (0, 1, 2, 9)] == [3, 0, 0, 0]
    assert best_gumbel(nodes, 3, gumbels, 1, *fixed) == 0
    nodes["proof"][5 + 0] = tree.DRAW
    assert select(1) == 1


def searched(board: Board, simulations: int, slots: int = 1, explore: bool = False, **settings: Any) -> LockstepSearch:
    """The same board searched in every slot."""
    search = LockstepSearch(SearchConfig(num_simulations=simulations, root="gumbel", **settings), slots, seed=1)
    for slot in range(slots):
        search.set_board(slot, board)
        search.start(slot, explore=explore)
    search.run(HashEvaluator())
    return search


def wide_board() -> Board:
    board = random_game(random.Random(13), 20)
    assert len(board.legal_moves) == 9
    return board


@pytest.mark.parametrize("settings", [{}, {"c_visit": 10, "c_scale": 1.0}, {"gumbel_considered": 4}])
def test_improved_policy(settings: dict[str, Any]) -> None:
    """softmax(log prior + completed Q) from what the search reports; it is no worse than the prior."""
    board = wide_board()
    result = searched(board, 24, **settings).result(0)
    assert (result.proofs == tree.UNKNOWN).all()
    priors, raw_value, _ = judge(HashEvaluator(), board.words(), board.reversible_plies)
    tried = result.visits > 0
    average = (result.priors[tried] * result.values[tried]).sum() / result.priors[tried].sum()
    q = np.where(tried, result.values, (raw_value + 24 * average) / 25)
    scale = (settings.get("c_visit", 50) + result.visits.max()) * settings.get("c_scale", 0.1)
    weights = np.array(priors) * np.exp((q - q.min()) / (q.max() - q.min()) * scale)
    np.testing.assert_allclose(result.policy, weights / weights.sum(), rtol=1e-4)
    assert (result.policy * q).sum() > (result.priors * q).sum()


@pytest.mark.parametrize(("considered", "simulations"), [(16, 32), (8, 24), (4, 16), (4, 3), (2, 40), (1, 10)])
def test_visits_at_the_root(considered: int, simulations: int) -> None:
    """min(considered, legal) moves are tried, whatever the noise, and visits fall as the schedule says."""
    board = wide_board()
    search = searched(board, simulations, slots=100, explore=True, gumbel_considered=considered)
    schedule = considered_visits(min(considered, 9), simulations)
    tried = set()
    for slot in range(100):
        result = search.result(slot)
        assert np.count_nonzero(result.visits) == min(considered, 9, simulations)
        assert result.simulations == simulations
        for level, count in enumerate(np.bincount(schedule)):  # so many moves went from ``level`` visits to one more
            assert (result.visits > level).sum() == count
        assert result.visits[search.choose(slot)] == result.visits.max()
        tried.add(tuple(np.flatnonzero(result.visits)))
    assert len(tried) > 3 or considered == 16


def test_no_noise_without_exploring() -> None:
    board = wide_board()
    one, two = searched(board, 32, slots=2), searched(board, 32, explore=True, gumbel_scale=0.0)
    assert one.result(0).visits.tolist() == one.result(1).visits.tolist() == two.result(0).visits.tolist()
    few = searched(board, 4, gumbel_considered=4).result(0)
    assert set(np.flatnonzero(few.visits)) == set(np.argsort(-few.priors)[:4])


def drawn_choices(
    board: Board, simulations: int, considered: int
) -> tuple[np.ndarray, list[frozenset[int]], list[int]]:
    """Priors; sets of root moves tried, and moves chosen, in 3000 searches with fresh noise."""
    search = searched(board, simulations, slots=300, explore=True, gumbel_considered=considered)
    tried, chosen = [], []
    for _ in range(10):
        for slot in range(300):
            search.start(slot)
        search.run(HashEvaluator())
        for slot in range(300):
            tried.append(frozenset(np.flatnonzero(search.result(slot).visits).tolist()))
            chosen.append(search.choose(slot))
    return search.result(0).priors.astype(np.float64), tried, chosen


def test_without_simulations_moves_follow_the_prior() -> None:
    """Gumbel-max: the argmax of Gumbel noise + log prior is a draw from the prior."""
    priors, _, chosen = drawn_choices(wide_board(), 0, 16)
    counts = np.bincount(chosen, minlength=9)
    assert stats.chisquare(counts, 3000 * priors / priors.sum()).pvalue > 1e-4


def test_considered_moves_are_a_sample_without_replacement() -> None:
    """Gumbel-top-2: a pair is drawn as by taking one move from the prior, then another from what is left."""
    priors, tried, _ = drawn_choices(wide_board(), 2, 2)
    pairs = list(combinations(range(9), 2))
    expected = [priors[i] * priors[j] * (1 / (1 - priors[i]) + 1 / (1 - priors[j])) for i, j in pairs]
    counts = [tried.count(frozenset(pair)) for pair in pairs]
    assert sum(counts) == len(tried) == 3000
    assert stats.chisquare(counts, 3000 * np.array(expected) / sum(expected)).pvalue > 1e-4
