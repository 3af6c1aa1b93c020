"""The numba backend on several threads: the same answers, whoever computes them, and no thread left behind."""

import gc
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from test_loss import random_positions
from test_network import trained_like

from learner.inference import helper as helper_module
from learner.inference import open_backend
from learner.inference.helper import _ASLEEP, _DONE, _NOTHING, _TASK, Helper, new_desks, share
from learner.inference.numba_evaluator import LARGEST_BATCH, NumbaEvaluator
from learner.inference.words import pause, read_word, replace_word, write_word
from learner.network import NETWORKS

NETWORK = trained_like(NETWORKS["2x32"], seed=1)
POSITIONS = random_positions(3 * LARGEST_BATCH + 5, seed=1)


@pytest.fixture(scope="module")
def alone() -> tuple[np.ndarray, np.ndarray]:
    return NumbaEvaluator(NETWORK).evaluate(POSITIONS)


@pytest.fixture
def pair() -> Iterator[NumbaEvaluator]:
    yield NumbaEvaluator(NETWORK, threads=2)
    gc.collect()


def assert_same(found: tuple[np.ndarray, np.ndarray], expected: tuple[np.ndarray, np.ndarray], n: int) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs[:n])


def wait_for(happens: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.001)


def helpers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "helper"]


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_answers_do_not_depend_on_the_threads(threads, alone):
    evaluator = NumbaEvaluator(NETWORK, threads=threads)
    for n in range(len(POSITIONS) + 1):
        assert_same(evaluator.evaluate(POSITIONS[:n]), alone, n)


def test_integers_and_new_weights():
    others = trained_like(NETWORKS["2x32"], seed=2)
    pair, alone = (open_backend(NETWORK, "numba-int16", threads=threads) for threads in (2, 1))
    assert_same(pair.evaluate(POSITIONS), alone.evaluate(POSITIONS), len(POSITIONS))
    for evaluator in (pair, alone):
        evaluator.update(others)
    assert_same(pair.evaluate(POSITIONS), alone.evaluate(POSITIONS), len(POSITIONS))


@given(positions=st.integers(0, 200), threads=st.integers(1, 9))
def test_shares(positions, threads):
    """All positions in their order, in pairs, and nobody has two pairs more than another, or more than the first."""
    parts = [range(*share(positions, threads, thread)) for thread in range(threads)]
    assert [row for part in parts for row in part] == list(range(positions))
    sizes = [(len(part) + 1) // 2 for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert sizes[0] == max(sizes)
    assert all(part.start % 2 == 0 for part in parts if part)


def test_what_nobody_has_begun_is_computed_at_once(monkeypatch, alone):
    monkeypatch.setattr(helper_module, "_help", lambda *task: None)
    lonely = NumbaEvaluator(NETWORK, threads=2)
    wait_for(lambda: not helpers())
    for n in (2, 9, 32):
        assert_same(lonely.evaluate(POSITIONS[:n]), alone, n)


def ask(pair: NumbaEvaluator, n: int) -> tuple[np.ndarray, ...]:
    """The helper's answer to the first positions, asked by hand, so that nobody takes them back."""
    words, positions, *answers = (array[0] for array in pair._desks)
    positions[:n] = POSITIONS[:n]
    words[_TASK] = n
    pair._helpers[0].wake()
    wait_for(lambda: words[_TASK] == _DONE)
    words[_TASK] = _NOTHING
    return tuple(array[:n] for array in answers)


def test_the_helper_does_its_share(pair, alone):
    for n in (4, 7, LARGEST_BATCH):
        assert_same(ask(pair, n), alone, n)


def test_a_helper_sleeps_and_wakes(pair, alone):
    words = pair._desks.words[0]
    for n in (1, 6, 9):
        wait_for(lambda: words[_ASLEEP])
        assert_same(ask(pair, n), alone, n)
        wait_for(lambda: words[_ASLEEP])
        assert_same(pair.evaluate(POSITIONS[:n]), alone, n)
        assert words[_TASK] == _NOTHING


def test_helpers_end_with_their_evaluator():
    wait_for(lambda: gc.collect() is not None and not helpers())
    evaluator = NumbaEvaluator(NETWORK, threads=3)
    assert len(helpers()) == 2
    evaluator.update(trained_like(NETWORKS["2x32"], seed=3))
    wait_for(lambda: len(helpers()) == 2)
    evaluator.evaluate(POSITIONS)
    del evaluator
    gc.collect()
    wait_for(lambda: not helpers())


@njit(nogil=True)
def _count_up(words, times):
    for _ in range(times):
        while not replace_word(words, 0, 0, 1):  # a lock
            pause()
        words[1] += 1
        write_word(words, 0, 0)


@settings(max_examples=3)
@given(threads=st.integers(2, 3))
def test_words_are_agreed_upon(threads):
    words, times = np.zeros(2, np.int64), 20_000
    _count_up(words, 0)
    workers = [threading.Thread(target=_count_up, args=(words, times)) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert words.tolist() == [0, threads * times]


@njit
def _three(words):
    write_word(words, 2, 7)
    return read_word(words, 2), replace_word(words, 2, 6, 1), replace_word(words, 2, 7, 1), read_word(words, 2)


def test_words_one_by_one():
    words = np.arange(4)
    assert _three(words) == (7, False, True, 1)
    assert words.tolist() == [0, 1, 1, 3]


def test_a_helper_is_kept_alive_by_nothing_else():
    evaluator = NumbaEvaluator(NETWORK)
    lone = Helper(evaluator._weights, evaluator._buffers, new_desks(1, 4), 0)
    assert helpers()
    del lone
    gc.collect()
    wait_for(lambda: not helpers())
