"""Searches that make whole batches in compiled code are those that go through Python, node for node."""

import numpy as np
import pytest
from endgame_oracles import TableOracle
from hypothesis import given, settings
from hypothesis import strategies as st
from search_boards import mixed_boards
from search_reference import HashEvaluator
from test_network import trained_like

from engine.board import Board
from engine.search import CachedEvaluator, Evaluator, LockstepSearch, SearchConfig
from engine.search import cache as cache_module
from engine.search.lockstep import Ending
from learner.inference.numba_evaluator import NumbaEvaluator
from learner.network import NETWORKS

NETWORK = trained_like(NETWORKS["2x32"], seed=1)
ENDGAMES = ["B:W31,32,27:B1,K10,2", "W:WK18,K19,30:BK1,12,5,9", "B:W18,K22:B7,8,K11,3"]
CONFIGS = {
    "one leaf": SearchConfig(num_simulations=150),
    "gumbel": SearchConfig(num_simulations=64, root="gumbel"),
    "in flight": SearchConfig(num_simulations=300, leaves_in_flight=16, shot_prior=0.3, policy_temperature=2.0),
    "more than room": SearchConfig(num_simulations=1500, leaves_in_flight=40, virtual_loss=0.5),
    "shared": SearchConfig(num_simulations=400, leaves_in_flight=8, transpositions=True, draw_value=-0.3),
}


class Plain:
    """Hides what else an evaluator can do."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        return self._evaluator.evaluate(positions)


@pytest.fixture(scope="module")
def network() -> NumbaEvaluator:
    return NumbaEvaluator(NETWORK)


def caches(network: NumbaEvaluator, entries: int = 4096) -> tuple[CachedEvaluator, CachedEvaluator]:
    """One that makes batches, and one that does not."""
    batched, plain = CachedEvaluator(network, entries), CachedEvaluator(Plain(network), entries)
    assert batched.searches
    assert not plain.searches
    return batched, plain


def trees(config: SearchConfig, boards: list[Board], oracle: TableOracle | None = None) -> LockstepSearch:
    search = LockstepSearch(config, len(boards), seed=3, leaf_oracle=oracle)
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
    return search


def assert_same(batched: LockstepSearch, plain: LockstepSearch) -> None:
    np.testing.assert_array_equal(batched._slots, plain._slots)
    for slot in batched._slots:
        used = slice(slot["root"], slot["used"])
        np.testing.assert_array_equal(batched._nodes[used], plain._nodes[used])


@pytest.mark.parametrize("entries", [4096, 16])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_same_trees(network: NumbaEvaluator, config: SearchConfig, entries: int) -> None:
    boards = mixed_boards(seed=3)[:4]
    running = range(len(boards))
    searches, ours = [trees(config, boards) for _ in running[:2]], caches(network, entries)
    for _ in range(2):
        made = []
        for search, cache in zip(searches, ours, strict=True):
            for slot in running:
                search.start(slot)
            made.append(search.run(cache))
        assert made[0] == made[1] > 0
        assert_same(*searches)
        ends = [[search.play(slot, search.choose(slot))[1] for slot in running] for search in searches]
        assert ends[0] == ends[1]
        running = [slot for slot, end in zip(running, ends[0], strict=True) if end == Ending.RUNNING]
    assert (ours[0].asked, ours[0].hits) == (ours[1].asked, ours[1].hits)


@pytest.mark.parametrize("fen", ENDGAMES)
def test_what_the_oracle_knows_is_left_to_it(network: NumbaEvaluator, fen: str) -> None:
    config = CONFIGS["in flight"].model_copy(update={"oracle": "tablebase"})
    searches = [trees(config, [Board(fen)], TableOracle(True)) for _ in range(2)]
    for search, cache in zip(searches, caches(network), strict=True):
        search.start(0)
        search.run(cache)
    assert (searches[1]._nodes["proof"] != 0).any(), "no leaf was known"
    assert_same(*searches)


@settings(max_examples=30, deadline=None)
@given(asked=st.lists(st.integers(1, 9), max_size=30), waits=st.booleans(), seed=st.integers(0, 9))
def test_any_number_of_steps(asked: list[int], waits: bool, seed: int) -> None:
    network = NumbaEvaluator(NETWORK)
    board = mixed_boards(seed=10)[seed]
    batched, plain = (trees(CONFIGS["in flight"], [board]) for _ in range(2))
    ours, theirs = caches(network)
    for search in (batched, plain):
        search.start(0)
    if waits:  # what has been selected already is judged first
        batched.select()
    for most in asked:
        made = batched.steps(ours, most)
        alone = 0
        while alone < made:
            alone += plain.step(theirs)
        assert alone == made
        if not batched.active().any():  # it has looked for one batch more than it found
            assert plain.step(theirs) == 0
        assert_same(batched, plain)
    batched.stop()
    assert not batched.active().any()


def test_ages_begin_anew(network: NumbaEvaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_LATEST", 25)
    cache, _ = caches(network)
    search = trees(CONFIGS["in flight"], mixed_boards(seed=1)[:1])
    search.start(0)
    while search.steps(cache, 8):
        assert 0 <= cache._ages.max() <= cache._now <= 25
    assert search.simulations(0) >= 300


def test_other_evaluators_make_single_steps() -> None:
    for evaluator in (HashEvaluator(), CachedEvaluator(HashEvaluator())):
        search = trees(CONFIGS["in flight"], mixed_boards(seed=1)[:1])
        search.start(0)
        assert search.steps(evaluator, 8) == 1  # the root
        assert search.run(evaluator) > 0
        assert search.simulations(0) >= 300
