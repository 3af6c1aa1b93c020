"""The cache of evaluations against a dictionary, and searches that do not notice it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_boards import mixed_boards
from search_reference import HashEvaluator

from engine.search import CachedEvaluator, LockstepSearch, SearchConfig, UniformEvaluator
from engine.search.cache import ENTRY_BYTES


class Counting(HashEvaluator):
    """Knows what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bytes] = []

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.asked += [row.tobytes() for row in positions]
        return super().evaluate(positions)


def numbered(numbers: list[int]) -> np.ndarray:
    """One made-up position for each number."""
    return np.array([[n + 1, 1 << 31, n % 3, n % 5] for n in numbers], np.uint32).reshape(-1, 4)


@given(st.lists(st.lists(st.integers(0, 30), max_size=12), max_size=20))
def test_answers_are_the_evaluators_and_nothing_is_asked_twice(batches: list[list[int]]) -> None:
    evaluator = Counting()
    cache = CachedEvaluator(evaluator, 4096)
    known: set[int] = set()
    for numbers in batches:
        evaluator.asked.clear()
        policy, wdl = cache.evaluate(numbered(numbers))
        new = [n for n in numbers if n not in known]
        assert evaluator.asked == [row.tobytes() for row in numbered(new)]
        known |= set(numbers)
        expected = HashEvaluator().evaluate(numbered(numbers))
        np.testing.assert_array_equal(policy, expected[0])
        np.testing.assert_array_equal(wdl, expected[1])
    assert cache.asked == sum(map(len, batches))


def test_memory_is_bounded_and_the_latest_stay() -> None:
    evaluator = Counting()
    cache = CachedEvaluator(evaluator, 60)
    assert cache.memory_bytes == 64 * ENTRY_BYTES + 8
    often = numbered([0])
    for n in range(500):
        policy, _ = cache.evaluate(numbered([n]))
        cache.evaluate(often)
    expected = HashEvaluator().evaluate(numbered([499]))[0]
    np.testing.assert_array_equal(policy, expected)
    assert evaluator.asked.count(often[0].tobytes()) == 1
    evaluator.asked.clear()
    cache.evaluate(numbered(list(range(500))))
    assert 500 - 64 <= len(evaluator.asked) < 500


def test_clear_forgets() -> None:
    evaluator = Counting()
    cache = CachedEvaluator(evaluator)
    for _ in range(2):
        cache.evaluate(numbered([1, 2, 3]))
        cache.clear()
    assert len(evaluator.asked) == 6
    assert cache.hits == 0


def test_searches_with_and_without_it_are_the_same() -> None:
    boards = mixed_boards(seed=3)[:6]
    config = SearchConfig(num_simulations=200, leaves_in_flight=4)
    evaluators = HashEvaluator(), CachedEvaluator(HashEvaluator())
    visits = []
    for evaluator in evaluators:
        search = LockstepSearch(config, len(boards))
        for slot, board in enumerate(boards):
            search.set_board(slot, board)
            search.start(slot, explore=False)
        search.run(evaluator)
        visits.append([search.result(slot).visits.tolist() for slot in range(len(boards))])
    assert visits[0] == visits[1]
    assert evaluators[1].hits > 0


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="4 at least"):
        CachedEvaluator(HashEvaluator(), 3)
    with pytest.raises(ValueError, match="without a policy"):
        CachedEvaluator(UniformEvaluator()).evaluate(numbered([1]))
