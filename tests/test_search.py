"""The lockstep search against the plain one of search_reference.py, node by node, and golden trees."""

import json
import math
from typing import Any

import numpy as np
import pytest
import search_golden
from search_boards import children_of, mixed_boards, words_at
from search_reference import DRAW, LOSS, WIN, HashEvaluator, ReferenceSearch

from engine import outcomes
from engine.bitboard import exp32
from engine.board import Board
from engine.outcomes import UNKNOWN
from engine.players.base import search_moves
from engine.players.search_player import SearchPlayer
from engine.search import Ending, LockstepSearch, SearchConfig, UniformEvaluator
from engine.search.in_flight import IN_FLIGHT
from engine.search.step_loop import StepCounts
from engine.tablebase import open_tablebase

PROOFS = {
    None: outcomes.UNKNOWN,
    WIN: outcomes.LOSS,
    DRAW: outcomes.DRAW,
    LOSS: outcomes.WIN,
}
"""Of the side to move in a node → of the player who moved into it."""
CONFIGS = {
    "puct": SearchConfig(num_simulations=80),
    "no reuse": SearchConfig(num_simulations=40, reuse_tree=False, fpu_reduction=0.0, c_puct=4.0),
    "flight": SearchConfig(num_simulations=80, leaves_in_flight=5),
    "flight with loss": SearchConfig(num_simulations=60, leaves_in_flight=16, virtual_loss=0.5),
    "more and more in flight": SearchConfig(num_simulations=330, leaves_in_flight=9),
    "flat policy": SearchConfig(num_simulations=60, policy_temperature=1.7),
    "shots": SearchConfig(num_simulations=60, shot_prior=0.3),
    "later shots": SearchConfig(num_simulations=200, shot_prior=0.4, shot_visits=5),
    "contempt": SearchConfig(num_simulations=80, draw_value=-0.4),
    "contempt by the lead": SearchConfig(num_simulations=80, draw_value=-0.9, contempt_lead=0.4),
    "shared": SearchConfig(num_simulations=160, transpositions=True),
    "shared in flight": SearchConfig(
        num_simulations=160,
        transpositions=True,
        leaves_in_flight=16,
        shot_prior=0.3,
        draw_value=-0.4,
        contempt_lead=0.2,
    ),
    "shared without reuse": SearchConfig(num_simulations=120, transpositions=True, reuse_tree=False),
}


def check_same(search: LockstepSearch, slot: int, plain: ReferenceSearch) -> set[tuple[str, bool]]:
    """Asserts that both trees are the same, node by node; returns the cases met as (proof, below the root)."""
    pairs, met, seen = [(search._root(slot), plain.root)], set(), set[int]()
    found: list[tuple[float, ...]] = []
    expected: list[tuple[float, ...]] = []
    while pairs:
        node, other = pairs.pop()
        assert words_at(node) == other.words
        counts = [int(node[name]) for name in ("num_children", "reversible", "visits", "proof")]
        assert counts == [len(other.children), other.reversible, other.visits, PROOFS[other.proof]]
        if other.proof is not None:
            assert node["proof_plies"] == other.proof_plies
            met.add((other.proof, other is not plain.root))
        found.append((0.0 if other is plain.root else node["prior"], node["value_sum"], node["draw_sum"]))
        expected.append((0.0 if other is plain.root else other.prior, -other.value_sum, other.draw_sum))
        assert bool(node["shared"]) == other.shared
        if id(other.children) not in seen:
            seen.add(id(other.children))
            pairs += zip(children_of(search, node), other.children, strict=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    result, children = search.result(slot), plain.root.children
    assert result.visits.tolist() == [child.visits for child in children]
    np.testing.assert_allclose(result.values, plain.values(), atol=1e-6)
    np.testing.assert_allclose(result.policy, plain.policy(), atol=1e-4)
    mean, draw = plain.root.value_sum / plain.root.visits, plain.root.draw_sum / plain.root.visits
    np.testing.assert_allclose(result.wdl, [(1 - draw + mean) / 2, draw, (1 - draw - mean) / 2], atol=1e-5)
    assert search.choose(slot) == plain.best() == search.principal_variation(slot)[0]
    return met


def noise_for(config: SearchConfig, rng: np.random.Generator, count: int) -> np.ndarray:
    """The root noise that the search draws from its generator."""
    noise = rng.standard_gamma(config.dirichlet_scale / count, size=count) + 1e-9
    return (noise / noise.sum()).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "explore"),
    [(name, True) for name in CONFIGS] + [(name, False) for name in CONFIGS if CONFIGS[name].num_simulations < 150],
)
def test_same_tree_as_the_plain_search(name: str, explore: bool) -> None:
    """Visits, values, priors and proofs of every node, over several moves of every game."""
    config = CONFIGS[name]
    boards = mixed_boards(seed=1 + 2 * explore)[:: 1 if config.transpositions else 2]  # few share positions
    search = LockstepSearch(config, len(boards))
    plain = [ReferenceSearch(config, board) for board in boards]
    rngs = [np.random.default_rng(slot) for slot in range(len(boards))]
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
        search.reseed(slot, slot)
    playing, met, endings, kept, dropped, shared = list(range(len(boards))), set(), set(), 0, 0, 0
    for turn in range(4):
        pondering = turn % 2 == 1  # so that draws have the same worth to each game's first player throughout
        for slot in playing:
            search.start(slot, explore=explore, pondering=pondering)
            noise = noise_for(config, rngs[slot], search.num_legal(slot)) if explore else None
            plain[slot].search(HashEvaluator(), config.num_simulations, noise, pondering)
        search.run(HashEvaluator())
        for slot in playing.copy():
            met |= check_same(search, slot, plain[slot])
            shared += sum(node.shared for node in plain[slot].judged.values())
            rngs[slot].random()  # ``choose`` has drawn
            dropped += plain[slot].tainted
            _, ending = search.play(slot, plain[slot].best())
            plain[slot].play(plain[slot].best())
            kept += plain[slot].root.visits > 0
            if ending is not Ending.RUNNING:
                endings.add(ending)
                playing.remove(slot)
    assert met >= {(WIN, True), (DRAW, True), (LOSS, True)}
    assert dropped > 0, (dropped, kept, endings)
    assert kept > 5 if config.reuse_tree else kept == 0
    assert Ending.REVERSIBLE in endings
    assert (shared > 20) == config.transpositions, shared


class CertainOfDraws:
    """An evaluator with P(draw) almost 1, so that means of P(draw) round to 1 and values are almost 0."""

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        policy, wdl = HashEvaluator().evaluate(positions)
        return policy, (wdl + np.float32([0, 17, 0])).astype(np.float32)


class ByPieces(HashEvaluator):
    """An evaluator by which the side with fewer pieces is behind, by an amount that depends on the position."""

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        policy, wdl = super().evaluate(positions)
        ahead = np.bitwise_count(positions[:, 0]).astype(np.float32) - np.bitwise_count(positions[:, 1])
        return policy, wdl + ahead[:, None] * np.float32([3, 0, -3])


@pytest.mark.parametrize(
    ("fen", "contempt"), [("B:W18,19,20,21,22,32:B1,2,3,4,5", 0), ("W:W18,19,20,21,22,32:B1,2,3,4,5", -0.8)]
)
@pytest.mark.parametrize("pondering", [False, True])
def test_who_is_behind_has_no_contempt(fen: str, contempt: float, pondering: bool) -> None:
    board = Board(fen)
    if pondering:
        board.push(board.legal_moves[0])
    trees = []
    for settings in (
        {"draw_value": contempt},
        {"draw_value": -0.8, "contempt_lead": 0.1},
        {"draw_value": -0.8 - contempt},
    ):
        search = LockstepSearch(SearchConfig(num_simulations=300, **settings), 1)
        search.set_board(0, board)
        search.start(0, explore=False, pondering=pondering)
        search.run(ByPieces())
        trees.append(search.result(0).visits.tolist())
    assert trees[0] == trees[1] != trees[2]


def test_probabilities_whatever_is_rounded() -> None:
    boards = mixed_boards(seed=5)
    search = LockstepSearch(SearchConfig(num_simulations=300), len(boards))
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
        search.start(slot)
    search.run(CertainOfDraws())
    for slot in range(len(boards)):
        result = search.result(slot)
        assert (result.wdl >= 0).all()
        assert result.wdl.sum() == pytest.approx(1, abs=1e-6)
        assert (np.abs(result.values) <= 1 - result.draws).all()


def test_golden_trees() -> None:
    """search_golden.py tells how to remake them."""
    golden = json.loads(search_golden.GOLDEN.read_text())["trees"]
    found = search_golden.golden_trees()
    assert len(golden) == len(found) == len(search_golden.CASES)
    for old, new in zip(golden, found, strict=True):
        for key in ("values", "policy", "wdl"):
            assert new.pop(key) == pytest.approx(old.pop(key), abs=2e-4), (key, old["fen"])
        assert new == old


def test_bench_signature() -> None:
    assert search_golden.bench_signature() == json.loads(search_golden.GOLDEN.read_text())["signature"]


def test_exp32() -> None:
    for x in np.linspace(-87, 0, 5000, dtype=np.float32):
        assert exp32(x) == pytest.approx(math.exp(x), rel=6e-6, abs=0)
    assert 0 < exp32(np.float32(-1e30)) < 2e-38
    assert exp32(np.float32(0)) == 1


class FailsOnce(HashEvaluator):
    """An evaluator whose sixth answer is an error."""

    calls = 0

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.calls += 1
        if self.calls == 6:
            raise RuntimeError("out of memory")
        return super().evaluate(positions)


def test_an_evaluator_that_fails_leaves_no_leaf_waiting() -> None:
    search, evaluator = LockstepSearch(SearchConfig(num_simulations=400, leaves_in_flight=16), 1), FailsOnce()
    search.set_board(0, Board())
    search.start(0, explore=False)
    with pytest.raises(RuntimeError, match="out of memory"):
        search.run(evaluator)
    search.start(0, explore=False)
    search.run(evaluator)
    assert search.simulations(0) == 400


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("end", ["set_board", "start", "play", "play_all"])
def test_a_search_that_ends_takes_its_waiting_leaves_along(end: str, lanes: int) -> None:
    search = LockstepSearch(SearchConfig(num_simulations=200, leaves_in_flight=lanes), 2)
    for slot in range(2):
        search.set_board(slot, Board())
        search.start(slot, 100, explore=False)
    for _ in range(5):
        search.step(HashEvaluator())
    for _ in range(3):  # more leaves than there is room for, if those of the first game went on waiting
        of_both = search.select()
        if end == "set_board":
            search.set_board(0, Board())
        elif end == "play":
            search.play(0, 0)
        elif end == "play_all":
            search.play_all(np.array([0]), [0.0])
        search.start(0, 200, explore=False)
        assert search.select() <= 2 * lanes
        assert of_both <= 2 * lanes
    search.run(HashEvaluator())
    assert [search.simulations(slot) for slot in range(2)] == [200, 100]
    nodes, first, end_of_tree = search.tree(0)
    assert not (
        (nodes[first:end_of_tree]["proof_plies"] == IN_FLIGHT) & (nodes[first:end_of_tree]["proof"] == UNKNOWN)
    ).any()


class Drawish(HashEvaluator):
    """An evaluator that takes most positions for likely draws, each as much as its policy's first logit says."""

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        policy, wdl = super().evaluate(positions)
        wdl[:, 1] += 2 + policy[:, 0]
        return policy, wdl


def test_leaves_in_flight_leave_the_worth_of_moves_as_it_was() -> None:
    config = SearchConfig(num_simulations=400, leaves_in_flight=16, draw_value=-0.5, noise_fraction=0, virtual_loss=0)
    search = LockstepSearch(config, 1)
    search.set_board(0, Board())
    search.start(0, explore=False)
    most = 0
    while search.simulations(0) < 300:
        search.step(Drawish())
        before = search.result(0)
        most = max(most, search.select())
        during = search.result(0)
        assert during.simulations > before.simulations
        seen = before.visits > 0
        np.testing.assert_allclose(during.values[seen], before.values[seen], atol=1e-5)
        np.testing.assert_allclose(during.draws[seen], before.draws[seen], atol=1e-5)
    assert most > 4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_policy_logits_that_are_no_numbers_are_refused(bad: float) -> None:
    class Broken(HashEvaluator):
        def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            policy, wdl = super().evaluate(positions)
            policy[0, 5] = bad
            return policy, wdl

    search = LockstepSearch(SearchConfig(num_simulations=10), 1)
    search.set_board(0, Board())
    search.start(0)
    with pytest.raises(ValueError, match="policy logits"):
        search.run(Broken())


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_moves_that_are_all_without_a_prior_are_equal(temperature: float) -> None:
    class Masking(HashEvaluator):
        def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            policy, wdl = super().evaluate(positions)
            return np.full_like(policy, -np.inf), wdl

    search = LockstepSearch(SearchConfig(num_simulations=50, policy_temperature=temperature), 1)
    search.set_board(0, Board())
    search.start(0, explore=False)
    search.run(Masking())
    assert search.result(0).priors == pytest.approx(np.full(7, 1 / 7))
    assert (search.result(0).visits > 0).all()


def test_more_nodes_than_can_be_numbered_are_refused() -> None:
    with pytest.raises(ValueError, match="search fewer games"):
        LockstepSearch(SearchConfig(num_simulations=40_000), 4096)


def test_where_there_is_no_room_left_a_leaf_waits_once() -> None:
    search = LockstepSearch(SearchConfig(num_simulations=100_000, leaves_in_flight=16, virtual_loss=0), 1, 40)
    search.set_board(0, Board())
    search.max_simulations = 100_000
    search.start(0, explore=False)
    for _ in range(400):
        waiting = search.select()
        leaves = {tuple(leaf) for leaf in search._state.leaves[:waiting].tolist()}
        assert len(leaves) == waiting
        search.evaluate(HashEvaluator())
    assert search.tree(0)[2] + 10 > search.tree_nodes  # it is full


def test_a_tree_that_was_full_takes_as_many_simulations_as_are_asked_for() -> None:
    """A leaf that was visited again for want of room has more visits than its position, once it is the root."""
    search = LockstepSearch(SearchConfig(num_simulations=100_000, reuse_tree=True), 1, 30)
    search.max_simulations = 100_000
    evaluator, found = HashEvaluator(), 0
    for seed in range(12):
        board, rng = Board(), np.random.default_rng(seed)
        search.set_board(0, board)
        for _ in range(8):
            search.start(0, 300, explore=False)
            for _ in range(2000):  # a full tree may have no more room for the rest
                if not search.step(evaluator):
                    break
            if not search.active()[0] and search._root(0)["proof"] == UNKNOWN:
                assert search.simulations(0) >= 300
                found += 1
            moves = search_moves(board)
            number = int(rng.integers(len(moves)))
            board.push(moves[number])
            search.play(0, number)
            if board.outcome() is not None:
                break
    assert found > 20


class Interrupted(UniformEvaluator):
    """As if Ctrl-C had come while compiled code ran: Python raises it when that code has returned."""

    armed = True

    def search(self, *arguments: Any) -> StepCounts:
        counts = super().search(*arguments)
        if self.armed and counts.waiting:
            self.armed = False
            raise KeyboardInterrupt
        return counts


@pytest.mark.parametrize("lanes", [1, 8])
def test_after_ctrl_c_no_leaf_waits_for_ever(lanes: int) -> None:
    config = SearchConfig(num_simulations=3000, leaves_in_flight=lanes, oracle="tablebase")
    search, evaluator = LockstepSearch(config, 1, leaf_oracle=open_tablebase()), Interrupted()
    search.set_board(0, Board("B:W32,31,22,30:B1,2,10,3"))
    search.start(0, explore=False)
    with pytest.raises(KeyboardInterrupt):
        search.run(evaluator)
    search.start(0, explore=False)
    search.run(evaluator)
    assert search.simulations(0) >= 3000
    assert not search.active()[0]


def test_after_ctrl_c_a_player_does_not_search_another_board(monkeypatch: pytest.MonkeyPatch) -> None:
    player, board = SearchPlayer("me", UniformEvaluator(), SearchConfig(num_simulations=50, reuse_tree=True)), Board()
    thinking = player.begin(board)
    thinking.advance(1.0)
    board.push(thinking.choose())
    board.push(board.legal_moves[0])
    play = LockstepSearch.play

    def interrupted(search: LockstepSearch, *arguments: Any) -> int:
        play(search, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LockstepSearch, "play", interrupted)
        with pytest.raises(KeyboardInterrupt):
            player.begin(board)
    root = player.begin(board)._trees._root(0)
    assert words_at(root) == tuple(map(int, board.words()[:3]))


def test_after_a_wrong_answer_a_search_goes_on_with_right_ones() -> None:
    class Wrong(UniformEvaluator):
        def search(self, state: Any, *arguments: Any) -> StepCounts:
            counts = super().search(state, *arguments)
            state.wdl[:] = np.nan
            return counts

    search = LockstepSearch(SearchConfig(num_simulations=50), 4)
    for slot in range(4):
        search.set_board(slot, Board())
        search.start(slot, explore=False)
    with pytest.raises(ValueError, match="not finite"):
        search.run(Wrong())
    search.set_board(0, Board())
    search.start(0, explore=False)
    search.run(UniformEvaluator())
    assert search.simulations(0) == 50


def test_more_simulations_than_there_is_room_for_are_refused() -> None:
    search = LockstepSearch(SearchConfig(num_simulations=10), 2)
    for slot in range(2):
        search.set_board(slot, Board())
    for wanted in (11, 2**31, -1):
        with pytest.raises(ValueError, match="sized for 10"):
            search.start_all(np.arange(2), np.array([10, wanted]), [False, False])


def test_searches_that_are_stopped_at_once_fill_no_arena() -> None:
    search = LockstepSearch(SearchConfig(num_simulations=64), 2)
    for slot in range(2):
        search.set_board(slot, Board())
    for _ in range(300):
        search.start(0, explore=False)
        search.select()
        search.stop()
    search.start(0, explore=False)
    search.run(HashEvaluator())
    assert search.result(0).visits.sum() > 0
