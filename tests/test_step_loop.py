"""Steps in compiled code, with evaluator and tables, give the same nodes as steps through Python."""

import math
import time
from collections.abc import Callable, Iterator
from itertools import count, islice

import numpy as np
import pytest
from hashed_evaluator import HashedEvaluator
from hypothesis import given, settings
from hypothesis import strategies as st
from search_boards import mixed_boards
from search_reference import HashEvaluator

from engine.board import Board
from engine.outcomes import UNKNOWN
from engine.search import CompiledEvaluator, Evaluator, LeafOracle, LockstepSearch, SearchConfig
from engine.search import UniformEvaluator as Uniform
from engine.search.lockstep import Ending
from engine.search.step_loop import GROUP
from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.probing import Tables

ENDGAMES = ["B:W31,32,27:B1,K10,2", "W:WK18,K19,30:BK1,12,5,9", "B:W18,K22:B7,8,K11,3"]
WON = "B:W12,K25:BK1,K9,K32"  # the tables of the package have no distances of it
CONFIGS = {
    "one leaf": SearchConfig(num_simulations=150),
    "in flight": SearchConfig(num_simulations=300, leaves_in_flight=16, shot_prior=0.3, policy_temperature=2.0),
    "more than room": SearchConfig(num_simulations=1500, leaves_in_flight=40, virtual_loss=0.5),
    "shared": SearchConfig(num_simulations=400, leaves_in_flight=8, transpositions=True, draw_value=-0.3),
    "shared, one leaf": SearchConfig(num_simulations=200, transpositions=True, shot_prior=0.2, shot_visits=4),
    "contempt": SearchConfig(num_simulations=200, draw_value=-0.8, contempt_lead=0.1),
}


class Plain:
    """An evaluator that hides the other methods of another one."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        return self._evaluator.evaluate(positions)


class PlainOracle:
    """Tables that are only used through Python."""

    def __init__(self, tables: Tablebase) -> None:
        self._tables, self.max_pieces, self.asked = tables, tables.max_pieces, 0

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        self.asked += len(positions)
        return self._tables.judge(positions)

    def compiled(self) -> Tables | None:
        return None


class CompiledOracle(PlainOracle):
    """Tables that the step loop looks up if their blocks are in memory."""

    def compiled(self) -> Tables | None:
        return self._tables.compiled()


# name → makes one that takes its steps in compiled code, and one with the same answers that goes through Python
EVALUATORS: dict[str, Callable[[], tuple[Evaluator, Evaluator]]] = {
    "uniform": lambda: (Uniform(), Plain(Uniform())),
    "hashed": lambda: (HashedEvaluator(), Plain(HashedEvaluator())),
}


@pytest.fixture(params=EVALUATORS)
def evaluators(request: pytest.FixtureRequest) -> tuple[Evaluator, Evaluator]:
    compiled, plain = EVALUATORS[request.param]()
    assert isinstance(compiled, CompiledEvaluator)
    assert not isinstance(plain, CompiledEvaluator)
    return compiled, plain


def trees(
    config: SearchConfig, boards: list[Board], oracle: LeafOracle | None = None, most: int | None = None
) -> LockstepSearch:
    search = LockstepSearch(config, len(boards), most, seed=3, leaf_oracle=oracle)
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
    return search


def assert_same(compiled: LockstepSearch, plain: LockstepSearch) -> None:
    np.testing.assert_array_equal(compiled._slots, plain._slots)
    for slot in compiled._slots:
        used = slice(slot["root"], slot["used"])
        np.testing.assert_array_equal(compiled._nodes[used], plain._nodes[used])


def many_boards(number: int) -> list[Board]:
    return list(islice((board for seed in count(3) for board in mixed_boards(seed)), number))


def simulations_of(slot: int) -> int:
    return 1 + 53 * slot % 211


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_same_trees(evaluators: tuple[Evaluator, Evaluator], config: SearchConfig) -> None:
    boards = mixed_boards(seed=3)[:4]
    running = range(len(boards))
    searches = [trees(config, boards) for _ in evaluators]
    for _ in range(2):
        made = []
        for search, evaluator in zip(searches, evaluators, strict=True):
            for slot in running:
                search.start(slot)
            made.append(search.run(evaluator))
        assert made[0] == made[1] > 0
        assert_same(*searches)
        ends = [[search.play(slot, search.choose(slot))[1] for slot in running] for search in searches]
        assert ends[0] == ends[1]
        running = [slot for slot, end in zip(running, ends[0], strict=True) if end == Ending.RUNNING]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_games_in_groups(evaluators: tuple[Evaluator, Evaluator], config: SearchConfig) -> None:
    """Games have different numbers of simulations; it makes no difference which of them share a group."""
    boards = many_boards(40)
    assert len(boards) > 2 * GROUP
    searches = [trees(config, boards, most=300) for _ in evaluators]
    for search in searches:
        for slot in range(len(boards)):
            search.start(slot, simulations_of(slot))
    assert searches[0].steps(evaluators[0], 5) == sum(searches[1].steps(evaluators[1], 1) for _ in range(5))
    assert_same(*searches)
    assert searches[0].run(evaluators[0]) == searches[1].run(evaluators[1]) > 0
    assert_same(*searches)
    for slot in range(len(boards)):
        result = searches[0].result(slot)
        assert result.simulations >= simulations_of(slot) or (result.proofs != UNKNOWN).any()


@settings(max_examples=30)
@given(
    asked=st.lists(st.integers(1, 9), max_size=30),
    waits=st.booleans(),
    stops=st.sets(st.integers(0, 9)),
    seed=st.integers(0, 9),
    name=st.sampled_from([name for name in CONFIGS if name != "more than room"]),
)
def test_any_number_of_steps(asked: list[int], waits: bool, stops: set[int], seed: int, name: str) -> None:
    """Also if the search is stopped while leaves wait, and continued."""
    config, boards = CONFIGS[name], mixed_boards(seed=10)[seed : seed + 2]
    evaluator = HashedEvaluator()
    compiled, plain = (trees(config, boards) for _ in range(2))
    for search in (compiled, plain):
        for slot in range(len(boards)):
            search.start(slot)
    if waits:  # what has been selected already is judged first
        for search in (compiled, plain):
            search.select()
    for number, most in enumerate(asked):
        made = compiled.steps(evaluator, most)
        alone = 0
        while alone < made:
            alone += plain.step(Plain(evaluator))
        assert alone == made
        if not compiled.active().any():  # it has looked for leaves once more than it found some
            assert plain.step(Plain(evaluator)) == 0
        if number in stops:
            for search in (compiled, plain):
                search.select()
                search.stop()
                for slot in range(len(boards)):
                    search.start(slot)
    if not plain.active().any():
        return
    for search in (compiled, plain):
        search.stop()
    assert_same(compiled, plain)


def test_compiling_makes_no_step(evaluators: tuple[Evaluator, Evaluator]) -> None:
    search = trees(CONFIGS["one leaf"], [Board()])
    search.start(0)
    assert search.steps(evaluators[0], 0) == search.steps(evaluators[1], 0) == 0
    assert search.simulations(0) == 0
    assert search.active().all()
    assert search.run(evaluators[0]) > 0


def test_evaluators_that_are_no_compiled_code_make_single_steps() -> None:
    evaluator = HashEvaluator()
    assert not isinstance(evaluator, CompiledEvaluator)
    search = trees(CONFIGS["in flight"], mixed_boards(seed=1)[:1])
    search.start(0)
    assert search.steps(evaluator, 8) == 1  # the root
    assert search.run(evaluator) > 0
    assert search.simulations(0) >= 300


# --- tables


@pytest.fixture
def tables() -> Iterator[Tablebase]:
    with open_tablebase() as opened:
        yield opened


@pytest.mark.parametrize("fen", ENDGAMES)
def test_the_tables_are_left_what_they_must_read(fen: str, tables: Tablebase) -> None:
    config = CONFIGS["in flight"].model_copy(update={"oracle": "tablebase"})
    oracle = CompiledOracle(tables)
    search = trees(config, [Board(fen)], oracle)
    search.start(0)
    search.run(HashedEvaluator())
    assert oracle.asked > 0
    assert search._root(0)["proof"] != UNKNOWN or search.result(0).simulations >= 300


@pytest.mark.parametrize("deadline", [0.0, math.inf])
def test_same_trees_with_and_without_a_plan_for_a_win(deadline: float, tables: Tablebase) -> None:
    config = CONFIGS["in flight"].model_copy(update={"oracle": "tablebase"})
    searches = [trees(config, [Board(WON)], kind(tables)) for kind in (CompiledOracle, PlainOracle)]
    for search in searches:
        search.plan_until(deadline)
        search.start(0)
        search.run(HashedEvaluator())
    assert_same(*searches)
    proven = [search._root(0)["proof"] != UNKNOWN for search in searches]
    assert proven == 2 * [deadline > 0]


@pytest.mark.parametrize("resting", [False, True])
def test_a_search_by_time_asks_for_blocks_only_while_the_loader_does_not_rest(tables: Tablebase, resting: bool) -> None:
    config = CONFIGS["in flight"].model_copy(update={"oracle": "tablebase"})
    oracle = CompiledOracle(tables)
    search = trees(config, [Board("B:W21,22,K23:B1,K2,K3")], oracle)
    search.plan_until(time.perf_counter() + 60)
    assert search._tables is not None
    search._tables.resting[0] = resting
    search.start(0)
    search.run(HashedEvaluator())
    assert (oracle.asked == 0) == resting


# --- memory


def test_arrays_of_many_games_are_small() -> None:
    """The memory for a thousand games at 64 simulations per move."""
    for games, most in ((1024, 100 << 20), (1, 1 << 20)):
        search = LockstepSearch(SearchConfig(num_simulations=64), games)
        assert sum(array.nbytes for array in (*search._state, search._scratch, search._moved)) < most
