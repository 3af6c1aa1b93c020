"""Tests of kernels as plain Python against their references, on small cases; ``test_uncompiled.py`` runs them without
Numba.

Compiled code does not check indices and cannot be debugged step by step; plain Python can.
"""

import random

import numpy as np
import pytest
from hashed_evaluator import HashedEvaluator
from numba import njit
from reference import START, Position, random_position
from search_boards import mixed_boards, started
from search_reference import HashEvaluator, ReferenceSearch
from solved_tables import solve_tables
from test_encoding import test_a_circle_is_one_move, test_planes_do_not_know_colours
from test_movegen import check_position, perft
from test_players import negamax, random_boards, test_random_numbers_are_those_of_splitmix64
from test_search import CONFIGS, check_same
from test_step_loop import Plain, assert_same, trees
from test_tablebase_solve import check_counts

from engine.fen import START_FEN
from engine.players.alphabeta import AlphaBetaPlayer

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # words wrap around, as intended

__all__ = [  # which are small enough already
    "test_a_circle_is_one_move",
    "test_planes_do_not_know_colours",
    "test_random_numbers_are_those_of_splitmix64",
]


def test_numba_is_off() -> None:
    assert njit(negamax) is negamax


def test_moves() -> None:
    rng = random.Random(1)
    check_position(Position("B", START))
    for _ in range(60):
        check_position(random_position(rng, 12, rng.random()))
    assert [perft(START_FEN, depth) for depth in range(5)] == [1, 7, 49, 302, 1469]


@pytest.mark.parametrize("name", ["shared in flight", "later shots", "contempt by the lead"])
def test_trees(name: str) -> None:
    config = CONFIGS[name].model_copy(update={"num_simulations": 60})
    boards = mixed_boards(seed=1)[::3]
    search = started(config, boards)
    search.run(HashEvaluator())
    for slot, board in enumerate(boards):
        plain = ReferenceSearch(config, board)
        plain.search(HashEvaluator(), config.num_simulations)
        check_same(search, slot, plain)


def test_steps() -> None:
    config = CONFIGS["flight"].model_copy(update={"num_simulations": 30})
    searches = [trees(config, mixed_boards(seed=1)[:4]) for _ in range(2)]
    for search, evaluator in zip(searches, (HashedEvaluator(), Plain(HashedEvaluator())), strict=True):
        for slot in range(4):
            search.start(slot)
        assert search.run(evaluator) > 0
    assert_same(*searches)


@pytest.mark.parametrize("slots", [0, 1 << 12])
def test_alpha_beta(slots: int) -> None:
    for board in random_boards(4, 0, 70, 10):
        for depth in (1, 2):
            assert AlphaBetaPlayer(depth, table_slots=slots).analyse(board).score == negamax(board, depth)


def test_tables() -> None:
    check_counts(solve_tables(2), 2)


def test_indexes_are_checked() -> None:
    @njit
    def beyond(array):
        return array[3]

    with pytest.raises(IndexError):
        beyond(np.zeros(3))
