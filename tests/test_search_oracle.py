"""The search with endgame tables: known positions are proven, won endings are finished, and the draw rules count."""

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from endgame_oracles import TableOracle, board_of, distance_of, endings, retrograde_values
from search_boards import children_of, nodes_below, placed, push_index, started, words_at
from search_reference import HashEvaluator, distinct_moves

from engine.board import Board, Move
from engine.errors import IllegalMoveError
from engine.fen import Color
from engine.movegen import MAX_MOVES
from engine.outcomes import DRAW, LOSS, UNKNOWN, WIN
from engine.players.search_player import SearchPlayer
from engine.search import Ending, LockstepSearch, SearchConfig, UniformEvaluator, tree
from engine.search.conversion import ConversionPlanner
from engine.search.in_flight import IN_FLIGHT
from engine.tablebase import open_tablebase

VALUE_OF_PROOF = {WIN: -1, DRAW: 0, LOSS: 1}  # a node's proof is its mover's, the table's its opponent's
KING_WALK = "B:WK2:BK28,K32"  # won in 31 plies, none of them but the last irreversible
KING_TAKES = "W:WK2,K3:BK28,7"  # one piece more than the tables have, until 2x11 or 3x10
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "flight": {"leaves_in_flight": 4},
    "shared": {"leaves_in_flight": 4, "transpositions": True},
}


class Silent(TableOracle):
    """Has tables that never know a position."""

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        outcomes, plies = super().judge(positions)
        return np.full_like(outcomes, UNKNOWN), np.full_like(plies, -1)


class Recording(TableOracle):
    """Records the numbers of pieces that are asked for."""

    def __init__(self) -> None:
        super().__init__(distances=False)
        self.pieces: list[int] = []

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        self.pieces += np.bitwise_count(positions[:, 0] | positions[:, 1]).tolist()
        return super().judge(positions, patient)


def drawn_at_random(value: int, number: int, seed: int, least: int = 0) -> list[Board]:
    """Boards of two and three pieces with a value for the side to move, at least ``least`` plies from the end."""
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero((endings().values == value) & (endings().plies >= least if value else True))
    chosen = endings().positions[rng.choice(rows, number, replace=False)]
    return [board_of(*words, turn=list(Color)[i % 2]) for i, words in enumerate(chosen)]


def value_of(board: Board) -> int:
    """Value of a board that is not over, for its side to move, by the tables."""
    return int(endings().values[endings().rows(np.array([board.words()], np.uint32))[0]])


def best_reply(board: Board) -> int:
    """Index of the best move by the tables: the soonest win; else a draw; else the longest defence."""

    def merit(move: Move) -> tuple[int, int]:
        after = board.copy()
        after.push(move)
        if not after.words()[0]:
            return 1, 0
        return -value_of(after), distance_of(after) * value_of(after)

    merits = [merit(move) for move in board.distinct_moves]
    return merits.index(max(merits))


def test_brute_force_agrees_with_the_retrograde_tables() -> None:
    assert np.array_equal(endings().values, retrograde_values())


def play_out(boards: list[Board], search: LockstepSearch, searcher_wins: bool) -> list[int]:
    """Plays the search, which moves first, against a perfect opponent; returns the plies of each game."""
    playing = list(range(len(boards)))
    while playing:
        for slot in playing:
            assert search.set_board(slot, boards[slot]) is Ending.RUNNING
            search.start(slot, explore=False)
        search.run(HashEvaluator())
        for slot in playing.copy():
            push_index(boards[slot], search.choose(slot))
            if boards[slot].outcome() is None:
                push_index(boards[slot], best_reply(boards[slot]))
            if boards[slot].outcome() is not None:
                playing.remove(slot)
    for board in boards:
        outcome = board.outcome()
        assert outcome is not None
        first = board.turn if board.ply % 2 == 0 else board.turn.other
        assert outcome.winner is (first if searcher_wins else first.other), board.start_fen
    return [board.ply for board in boards]


@pytest.mark.parametrize("name", SETTINGS)
def test_won_endings_are_finished_the_shortest_way(name: str) -> None:
    boards = drawn_at_random(1, 100, 1) + drawn_at_random(1, 30, 2, least=35)
    distances = [distance_of(board) for board in boards]
    config = SearchConfig(num_simulations=8, **SETTINGS[name])
    assert play_out(boards, LockstepSearch(config, len(boards), leaf_oracle=TableOracle(True)), True) == distances


@pytest.mark.parametrize("name", SETTINGS)
def test_won_endings_are_finished_without_distances(name: str) -> None:
    """The evaluator gives no help: only the tables' wins, draws and losses do."""
    boards = drawn_at_random(1, 100, 3) + drawn_at_random(1, 30, 4, least=35)
    config = SearchConfig(num_simulations=8, **SETTINGS[name])
    plies = play_out(boards, LockstepSearch(config, len(boards), leaf_oracle=TableOracle(False)), True)
    assert max(plies) >= 35


def test_lost_endings_are_put_off() -> None:
    boards = [board for board in drawn_at_random(-1, 80, 5, least=2) if len(board.distinct_moves) > 1]
    distances = [distance_of(board) for board in boards]
    search = LockstepSearch(SearchConfig(num_simulations=8), len(boards), leaf_oracle=TableOracle(True))
    assert play_out(boards, search, False) == distances


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("distances", [True, False])
def test_drawn_endings_are_held_and_played_on(name: str, distances: bool) -> None:
    boards = [board for board in drawn_at_random(0, 300, 6) if len(board.distinct_moves) > 1]
    config = SearchConfig(num_simulations=40, **SETTINGS[name])
    search, plain = (started(config, boards, oracle=oracle) for oracle in (TableOracle(distances), None))
    search.run(HashEvaluator())
    plain.run(HashEvaluator())
    searched = same = 0
    for slot, board in enumerate(boards):
        values = np.array([value_of(after(board, index)) for index in range(len(board.distinct_moves))])
        result, held = search.result(slot), values == 0
        assert result.wdl.tolist() == [0, 1, 0]
        assert (result.proofs == np.where(held, DRAW, LOSS)).all()
        assert (result.values == np.where(held, 0, -1)).all()
        assert (result.draws == held).all()
        assert result.policy[held].sum() == pytest.approx(1)
        assert not result.visits[~held].any()
        assert all(held[search.choose(slot, temperature)] for temperature in (0, 1, 1))
        if held.sum() > 1 and all(node["proof"] != DRAW for node in children_of(search, search._root(slot))):
            searched += 1
            assert result.simulations == 40
            assert result.visits[search.choose(slot)] == result.visits.max()
            same += search.choose(slot) == int(np.where(held, plain.result(slot).visits, -1).argmax())
    assert searched >= 40
    assert same > 0.6 * searched  # the evaluator chooses, not the order of the moves


def test_where_a_move_s_outcome_is_missing_a_draw_is_not_known() -> None:
    """The moves that draw are proven, the others are searched."""

    class Partial(TableOracle):
        def judge(
            self, positions: np.ndarray, patient: bool = True, distances: bool = True
        ) -> tuple[np.ndarray, np.ndarray]:
            outcomes, plies = super().judge(positions, patient)
            return np.where(positions[:, 1] % 5 == 1, np.uint8(UNKNOWN), outcomes), plies

    boards = [board for board in drawn_at_random(0, 400, 6) if len(board.distinct_moves) > 2]
    search = started(SearchConfig(num_simulations=40), boards, oracle=Partial(True))
    search.run(HashEvaluator())
    searched = 0
    for slot, board in enumerate(boards):
        moves = [after(board, index) for index in range(len(board.distinct_moves))]
        known = np.array([moved.words()[1] % 5 != 1 for moved in moves])
        if not known.all() and known.any():
            result, drawn = search.result(slot), np.array([not value_of(moved) for moved in moves])
            assert (result.proofs[known & drawn] == DRAW).all()
            assert not result.visits[known & ~drawn].any()
            searched += result.visits.any()
    assert searched >= 15


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("distances", [True, False])
def test_proofs_agree_with_the_tables(name: str, distances: bool) -> None:
    rng = random.Random(7)
    boards = [placed(rng, 3, 0.6) for _ in range(60)]
    oracle = TableOracle(distances)
    search = started(SearchConfig(num_simulations=150, **SETTINGS[name]), boards, oracle=oracle)
    search.run(HashEvaluator())
    positions, proofs, plies = [], [], []
    for slot in range(len(boards)):
        for node in nodes_below(search, slot):
            words = words_at(node)
            if node["proof"] != UNKNOWN and (words[0] | words[1]).bit_count() <= 3 and words[0]:
                positions.append([*words, 0])
                proofs.append(VALUE_OF_PROOF[int(node["proof"])])
                plies.append(int(node["proof_plies"]))
    rows = endings().rows(np.array(positions, np.uint32))
    values, exact = endings().values[rows], endings().plies[rows]
    decided = np.array(proofs) != 0
    assert np.array_equal(values[decided], np.array(proofs)[decided])
    assert decided.sum() >= 200
    if distances:
        assert not values[~decided].any()
        assert (~decided).sum() >= 20
        assert np.array_equal(np.array(plies)[decided], exact[decided])
    else:  # drawn by a repetition in the tree, or really
        assert (np.array(plies)[decided] >= np.minimum(exact[decided], tree.NO_DISTANCE)).all()
    assert max(oracle.batches) > 10  # asked in batches


def test_oracle_saves_evaluations_and_batches_stay_full() -> None:
    rng = random.Random(8)
    boards = [placed(rng, 3, 0.5) for _ in range(40)]
    config = SearchConfig(num_simulations=100)
    plain, aided = (started(config, boards, oracle=oracle) for oracle in (None, TableOracle(True)))
    assert aided.run(HashEvaluator()) < 0.7 * plain.run(HashEvaluator())
    aided = started(config, boards, oracle=TableOracle(True))
    while waiting := aided.select():
        assert waiting == aided.active().sum()
        leaves = aided._state.leaves[:waiting]
        assert (np.bitwise_count(leaves[:, 0] | leaves[:, 1]) > 3).sum() + (aided._state.depths == 0).sum() >= waiting
        aided.evaluate(HashEvaluator())


@pytest.mark.parametrize("name", SETTINGS)
def test_an_oracle_without_answers_changes_nothing(name: str) -> None:
    rng = random.Random(9)
    boards = [placed(rng, 3, 0.5) for _ in range(20)]
    visits = []
    for oracle in (None, Silent(True)):
        search = started(SearchConfig(num_simulations=100, **SETTINGS[name]), boards, oracle=oracle)
        search.run(HashEvaluator())
        visits.append([search.result(slot).visits.tolist() for slot in range(len(boards))])
    assert visits[0] == visits[1]


def with_reversible(search: LockstepSearch, board: Board, reversible: int) -> None:
    """Starts the search of a board as if ``reversible`` reversible plies had been made before it."""
    search.set_board(0, board)
    search._root(0)["reversible"] = reversible
    search.start(0, explore=False)


def test_a_win_too_far_off_for_the_80_ply_rule_is_not_proven() -> None:
    board = Board(KING_WALK)
    distance = distance_of(board)
    assert distance > 9
    search = LockstepSearch(SearchConfig(num_simulations=60), 1, leaf_oracle=TableOracle(True))
    for late in (0, 1):
        with_reversible(search, board, 80 - distance + late)
        search.run(UniformEvaluator())
        assert (search._root(0)["proof"] == LOSS) == (late == 0)
        if not late:
            lost = board.copy()
            push_index(lost, search.choose(0))
            assert distance_of(lost) == distance - 1
    for late in (0, 1):
        with_reversible(search, lost, 80 - distance_of(lost) + late)
        search.run(UniformEvaluator())
        proofs = search.result(0).proofs
        assert ((proofs == LOSS).all()) == (late == 0)


def test_a_won_root_that_the_80_ply_rule_makes_a_draw_still_has_a_move() -> None:
    """There the tables say "won", and every move is proven to be a draw or worse."""
    found = 0
    search = LockstepSearch(SearchConfig(num_simulations=400, noise_fraction=0), 1, leaf_oracle=TableOracle(False))
    for board in drawn_at_random(1, 300, 10, least=3):
        with_reversible(search, board, 79)
        search.run(UniformEvaluator())
        result = search.result(0)
        if search._slots["known"][0] != WIN or search._root(0)["proof"] != DRAW:
            continue
        found += 1
        for temperature in (0.0, 1.0):
            assert result.proofs[search.choose(0, temperature)] == DRAW
        assert result.policy.sum() == pytest.approx(1)
        assert (result.policy[result.proofs == LOSS] == 0).all()
    assert found > 20


def nodes_under(search: LockstepSearch, root: Any) -> list[Any]:
    """All nodes below a root, its children first."""
    children = children_of(search, root)
    return children + [node for child in children for node in nodes_under(search, child)]


@pytest.mark.parametrize("distances", [True, False])
def test_proofs_hold_under_the_80_ply_rule(distances: bool) -> None:
    """All proofs in trees that begin close to 80 plies are right, inside and outside the tables."""
    rng, values = np.random.default_rng(16), endings().with_80_plies()
    checked = 0
    search = LockstepSearch(SearchConfig(num_simulations=100), 1, leaf_oracle=TableOracle(distances))
    boards = drawn_at_random(1, 40, 17, least=15) + drawn_at_random(-1, 40, 18, least=14)
    boards += [placed(random.Random(seed), 2, 1.0) for seed in range(60)]
    for board in boards:
        with_reversible(search, board, int(rng.integers(30, 80)))
        search.run(HashEvaluator())
        root = search._root(0)
        for node in [root, *nodes_under(search, root)]:
            words = words_at(node)
            if node["proof"] in (WIN, LOSS) and (words[0] | words[1]).bit_count() <= 3 and words[0]:
                row = endings().rows(np.array([[*words, 0]], np.uint32))[0]
                exact = values[min(int(node["reversible"]), 80), row]
                assert exact == VALUE_OF_PROOF[int(node["proof"])]
                checked += 1
    assert checked > 100


class Unreadable(TableOracle):
    """Fails at its third and at its sixth question."""

    calls = 0

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        self.calls += 1
        if self.calls in (3, 6):
            raise OSError("cannot read the table")
        return super().judge(positions, patient)


@pytest.mark.parametrize("name", SETTINGS)
def test_an_oracle_that_fails_leaves_no_leaf_waiting(name: str) -> None:
    board = Board("W:W30,K14,K15:BK6,K22")
    config = SearchConfig(num_simulations=400, **SETTINGS[name])
    search = LockstepSearch(config, 2, leaf_oracle=Unreadable(True))
    for slot in range(2):
        search.set_board(slot, board)
    for _ in range(2):
        for slot in range(2):
            search.start(slot, explore=False)
        with pytest.raises(OSError, match="cannot read"):
            search.run(HashEvaluator())
        nodes, first, end = search.tree(0)
        assert (nodes["proof_plies"][first:end] != IN_FLIGHT).all()
        assert search.evaluate(HashEvaluator()) == 0
    for slot in range(2):
        search.start(slot, explore=False)
    search.run(HashEvaluator())
    assert not search.active().any()


class Failing(HashEvaluator):
    """Fails at its first batch."""

    failed = False

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.failed:
            self.failed = True
            raise OSError("no answer")
        return super().evaluate(positions)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_drawn_root_that_is_dropped_is_looked_up_again(name: str) -> None:
    boards = [board for board in drawn_at_random(0, 300, 6) if losing_moves(board).any()]
    search = started(SearchConfig(num_simulations=40, **SETTINGS[name]), boards, oracle=TableOracle(False))
    evaluator = Failing()
    with pytest.raises(OSError, match="no answer"):
        search.run(evaluator)
    search.run(evaluator)
    for slot, board in enumerate(boards):
        result = search.result(slot)
        assert result.wdl.tolist() == [0, 1, 0]
        assert (result.proofs == np.where(losing_moves(board), LOSS, DRAW)).all()
        assert not losing_moves(board)[search.choose(slot)]


@pytest.mark.parametrize("name", SETTINGS)
def test_in_a_drawn_root_a_move_that_ends_the_game_in_a_draw_does_not_lose(name: str) -> None:
    boards = [board for board in drawn_at_random(0, 300, 6) if losing_moves(board).any()]
    search = LockstepSearch(SearchConfig(num_simulations=40, **SETTINGS[name]), 1, leaf_oracle=TableOracle(True))
    ended = 0
    for board in boards:
        with_reversible(search, board, 79)
        search.run(HashEvaluator())
        result, losing = search.result(0), losing_moves(board)
        at_once = np.array([after(board, i).reversible_plies > 0 for i in range(len(losing))])
        assert (result.proofs == np.where(losing & ~at_once, LOSS, DRAW)).all()
        ended += (losing & at_once).sum()
    assert ended >= 20


def losing_moves(board: Board) -> np.ndarray:
    """bool [moves]."""
    return np.array([value_of(after(board, index)) > 0 for index in range(len(board.distinct_moves))])


class LateOracle(TableOracle):
    """An oracle that knows a position only some plies after an irreversible move."""

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        outcomes, plies = super().judge(positions)
        return np.where(positions[:, 3] > 0, outcomes, UNKNOWN).astype(np.uint8), plies


def test_open_leaves_have_the_verdict_in_their_value() -> None:
    """A win without a distance, after king moves, is not proven, but the leaf's value follows the tables."""
    config = SearchConfig(num_simulations=40)
    search = started(config, [Board(KING_TAKES)], oracle=LateOracle(False))
    search.run(UniformEvaluator())
    checked = 0
    for node in list(nodes_below(search, 0))[1:]:
        if node["visits"] == 1 and node["num_children"] > 1 and node["reversible"] > 0:
            value = endings().values[endings().rows(np.array([[*words_at(node), 0]], np.uint32))[0]]
            if value == 0:
                assert node["proof"] == DRAW
                continue
            assert node["proof"] == UNKNOWN
            assert node["value_sum"] == pytest.approx(-0.9 * value, abs=1e-5)
            checked += 1
    assert checked > 5


def test_repeated_positions_put_a_win_in_doubt() -> None:
    """A line in which a position could occur for the third time is not proven below the root."""
    board = Board("B:WK32:BK5,K23")
    while board.ply < 5:  # the same position twice
        for move in ("5-1", "32-28", "1-5", "28-32", "5-1"):
            board.push_pdn(move)
    assert board.repetitions() == 2
    assert distance_of(board) > 0
    for moves, certain in (("", False), ("x", True)):
        search = LockstepSearch(SearchConfig(num_simulations=50), 1, leaf_oracle=TableOracle(True))
        search.set_board(0, board if not moves else Board(board.fen()))
        search.start(0, explore=False)
        search.run(UniformEvaluator())
        assert (search.result(0).proofs == LOSS).all() == certain


def about_to_repeat() -> Iterator[tuple[Board, int]]:
    """Won boards, each with its only shortest winning move, which leads to a third occurrence."""
    for start in drawn_at_random(1, 400, 19, least=12):
        best = best_reply(start)
        after = [start.copy() for _ in start.distinct_moves]
        for board, move in zip(after, start.distinct_moves, strict=True):
            board.push(move)
        shortest = [board for board in after if distance_of(board) == distance_of(after[best])]
        if len(shortest) > 1 or sum(value_of(board) < 0 for board in after) < 2 or not after[best].reversible_plies:
            continue
        there = start.distinct_moves[best]
        for reply in after[best].legal_moves:
            board = Board(after[best].fen())
            walk = [reply, Move(there.end, there.start), Move(reply.end, reply.start), there]
            try:
                for move in [*walk, *walk[:3]]:
                    board.push(move)
            except IllegalMoveError:
                continue
            if board.outcome() is None and board.reversible_plies == 7:
                yield board, best
                break


def test_a_third_occurrence_is_no_way_to_win() -> None:
    found = 0
    for board, best in about_to_repeat():
        search = started(SearchConfig(num_simulations=8), [board], oracle=TableOracle(True))
        search.run(HashEvaluator())
        chosen = search.choose(0)
        assert chosen != best
        push_index(board, chosen)
        assert board.outcome() is None
        assert value_of(board) == -1
        found += 1
    assert found > 3


def test_leaves_taken_as_decided_are_searched_when_they_are_played() -> None:
    played = 0
    for seed in range(240):
        board = placed(random.Random(seed), 4, 0.6)
        search = started(SearchConfig(num_simulations=60), [board], oracle=TableOracle(False))
        search.run(HashEvaluator())
        for index, child in enumerate(children_of(search, search._root(0))):
            own, opp, _ = words_at(child)
            choice = len(distinct_moves(words_at(child))) > 1  # forced moves are played through in the tree
            if child["visits"] and child["proof"] != UNKNOWN and choice and (own | opp).bit_count() <= 3:
                proof = int(child["proof"])
                _, ending = search.play(0, index)
                root = search._root(0)
                assert root["visits"] == 0 or any(node["proof"] != UNKNOWN for node in children_of(search, root))
                if ending is Ending.RUNNING and root["visits"] == 0:
                    search.start(0, explore=False)
                    search.run(HashEvaluator())
                    assert any(child["proof"] != UNKNOWN for child in children_of(search, search._root(0)))
                    assert search._root(0)["proof"] == proof
                    played += 1
                break
    assert played > 3


def test_tree_is_kept_outside_and_searched_anew_inside_the_tables() -> None:
    rng = random.Random(11)
    finished = 0
    for _ in range(12):
        board = placed(rng, 3, 0.6)
        search = LockstepSearch(SearchConfig(num_simulations=60), 1, leaf_oracle=TableOracle(True))
        ending, best = search.set_board(0, board), 1000
        while ending is Ending.RUNNING and board.ply < 120:
            search.start(0, explore=False)
            search.run(HashEvaluator())
            index = search.choose(0)
            push_index(board, index)
            _, ending = search.play(0, index)
            own, opp, _ = board.words()
            if own and (own | opp).bit_count() <= 3 and distance_of(board) >= 0:
                assert distance_of(board) < best
                best = distance_of(board)
        finished += ending is Ending.LOST
    assert finished >= 6


def test_planner_ranks_fall_on_every_way() -> None:
    oracle = TableOracle(False)
    planner = ConversionPlanner(oracle)
    for board in drawn_at_random(1, 12, 12, least=20):
        ranks = None
        while board.outcome() is None:
            moves = np.zeros((MAX_MOVES, 4), np.uint32)
            for i, move in enumerate(board.distinct_moves):
                after = board.copy()
                after.push(move)
                moves[i] = (*after.words(), after.reversible_plies)
            count = len(board.distinct_moves)
            outcomes, _ = oracle.judge(moves[:count])
            direct = [i for i in range(count) if outcomes[i] == LOSS and moves[i, 3] == 0]
            if direct:
                break
            found = planner.ranks(np.array([*board.words(), 0], np.uint32), moves[:count])
            assert set(outcomes[found >= 0]) == {LOSS}
            best = int(np.where(found >= 0, found, 1000).argmin())
            assert 0 <= found[best] < (1000 if ranks is None else ranks - 1)
            ranks = int(found[best])
            push_index(board, best)
            if board.outcome() is None:
                before = board.words()
                push_index(board, best_reply(board))
                if board.reversible_plies == 0 and before:
                    ranks = None


def planned(planner: ConversionPlanner, board: Board, deadline: float = math.inf) -> np.ndarray:
    """Ranks of the board's moves."""
    moves = []
    for move in board.distinct_moves:
        after = board.copy()
        after.push(move)
        moves.append((*after.words(), 1))
    return planner.ranks(np.array([*board.words(), 0], np.uint32), np.array(moves, np.uint32), deadline)


def test_planner_gives_up_where_it_may_not_look_far_enough_and_tries_again_nearer() -> None:
    board, short_sighted = Board(KING_WALK), ConversionPlanner(TableOracle(False), 100)
    for _ in range(2):
        assert (planned(short_sighted, board) == -1).all()
    found = planned(ConversionPlanner(TableOracle(False)), board)
    assert found[found >= 0].min() == distance_of(board) - 1  # the capture that ends the game is the conversion
    while distance_of(board) > 3:
        best = planned(ConversionPlanner(TableOracle(False)), board).astype(int)
        board.push(board.distinct_moves[int(np.where(best < 0, 999, best).argmin())])
        board.push(max(board.distinct_moves, key=lambda move: distance_of(pushed(board, move))))
    assert planned(short_sighted, board).max() >= 0


def test_a_plan_without_time_is_gone_on_with_and_ends_as_one_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(1)  # every look at the clock is a second later
    monkeypatch.setattr("engine.search.conversion.time.perf_counter", lambda: next(clock))
    board, planner = Board(KING_WALK), ConversionPlanner(TableOracle(False))
    assert (planned(planner, board, deadline=0) == -1).all()
    tries = 1
    while (found := planned(planner, board, deadline=next(clock) + 3)).max() < 0:
        tries += 1
    assert tries > 2
    assert found.tolist() == planned(ConversionPlanner(TableOracle(False)), board).tolist()


def test_a_plan_is_gone_on_with_from_a_position_that_it_does_not_reach() -> None:
    """With little time a search wanders, and each plan is too late for the position that it began with."""
    far, near = Board(KING_WALK), Board(KING_WALK)
    while distance_of(near) > 9:
        push_index(near, best_reply(near))
    fresh, used = Recording(), Recording()
    exact = planned(ConversionPlanner(fresh), far)
    planner = ConversionPlanner(used)
    assert planned(planner, near).max() >= 0
    found, asked = planned(planner, far), len(used.pieces)
    assert (found[found >= 0] >= exact[found >= 0]).all()
    assert found.max() >= 0
    assert asked < len(fresh.pieces)
    assert planned(planner, far).tolist() == found.tolist()
    assert len(used.pieces) == asked


@pytest.mark.parametrize(
    "fens",
    [
        ("B:WK4,K20:BK12,K15", "B:WK18,K21:BK17,K29"),
        ("B:WK3,K13:BK6,K15", "B:WK18,K27:BK20,K26"),
        ("B:WK2,K3:BK11,K14", "B:WK19,K22:BK27,K30"),
        ("B:WK16,K20:BK28,K32", "B:WK1,K5:BK13,K14"),
    ],
)
def test_a_plan_with_the_same_forces_does_not_take_the_opponent_s_wins_for_the_winner_s(fens: tuple[str, str]) -> None:
    """A wrong move in the second position gives the opponent the first one."""
    with open_tablebase() as tables:
        planner, (first, second) = ConversionPlanner(tables), map(Board, fens)
        assert planned(planner, first).max() >= 0
        found = planned(planner, second)
        assert found.max() >= 0
        assert ((found >= 0) <= (planned(ConversionPlanner(tables), second) >= 0)).all()


def test_without_a_plan_only_leaves_with_fewer_pieces_than_the_root_are_looked_up() -> None:
    oracle, alone = Recording(), 2 * [0]
    for number, fens in enumerate([[KING_WALK], [KING_WALK, KING_TAKES]]):
        search = started(SearchConfig(num_simulations=200), [Board(fen) for fen in fens], oracle=oracle)
        search.plan_until(0.0)
        search.select()
        search.evaluate(HashEvaluator())
        oracle.pieces.clear()
        search.run(HashEvaluator())
        alone[number] = oracle.pieces.count(3)
    assert alone[0] == 0 < alone[1]  # another game's leaves are looked up as before
    assert (search.result(0).proofs == UNKNOWN).any()
    search.plan_until(math.inf)
    search.start(0, explore=False)
    search.run(HashEvaluator())
    assert search.result(0).wdl.tolist() == [1, 0, 0]
    push_index(board := Board(KING_WALK), search.choose(0))
    search.set_board(0, board)
    search.start(0, explore=False)
    oracle.pieces.clear()
    search.run(HashEvaluator())
    assert oracle.pieces.count(3) > 0  # the next root is looked up again


def after(board: Board, index: int) -> Board:
    moved = board.copy()
    moved.push(board.distinct_moves[index])
    return moved


def winning_moves(board: Board) -> tuple[list[int], list[int]]:
    """Indices of the moves that keep a win: all, and those of them that are irreversible."""
    boards = [after(board, index) for index in range(len(board.distinct_moves))]
    keep = [i for i, moved in enumerate(boards) if moved.outcome() is not None or value_of(moved) == -1]
    return keep, [i for i in keep if boards[i].reversible_plies == 0]


def test_with_many_pieces_and_little_time_the_evaluator_leads_won_endings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.search.leaf_judge._PLANNED_PIECES", 2)
    boards = []
    for board in drawn_at_random(1, 2000, 21, least=9):
        keep, irreversible = winning_moves(board)
        if irreversible and len(keep) > len(irreversible) and not board.is_capture(board.distinct_moves[0]):
            boards.append(board)
    assert len(boards) >= 20
    losing = [[i for i in range(len(b.distinct_moves)) if value_of(after(b, i)) == 1] for b in boards]
    assert sum(map(len, losing)) >= 3
    search = started(SearchConfig(num_simulations=30), boards, oracle=TableOracle(False))
    search.plan_until(1e12)
    search.run(HashEvaluator())
    open_moves = 0
    for slot, board in enumerate(boards):
        result, (keep, irreversible) = search.result(slot), winning_moves(board)
        assert result.wdl.tolist() == [1, 0, 0]
        assert not result.visits[losing[slot]].any()
        assert result.policy[keep].sum() == pytest.approx(1)
        assert search.choose(slot) in keep
        assert all(search.choose(slot, 2.0) in keep for _ in range(5))
        open_moves += sum(result.proofs[index] == UNKNOWN for index in irreversible)
    assert open_moves >= len(boards)
    alone = LockstepSearch(SearchConfig(num_simulations=30), 1, leaf_oracle=TableOracle(False))
    for board in boards:  # after 40 plies without progress, an irreversible move is made at once
        alone.set_board(0, board)
        alone._root(0)["reversible"] = 40
        alone.plan_until(1e12)
        alone.start(0, explore=False)
        alone.run(HashEvaluator())
        assert alone.choose(0) in winning_moves(board)[1]


def test_a_search_that_is_extended_is_the_longer_search() -> None:
    rng = random.Random(8)
    for board in [Board(KING_TAKES), *drawn_at_random(1, 3, 8, least=10), *(placed(rng, 6, 0.5) for _ in range(6))]:
        results = []
        for targets in ([150], [20, 60, 150]):
            search = LockstepSearch(SearchConfig(oracle="tablebase"), 1, 150, leaf_oracle=TableOracle(False))
            search.set_board(0, board)
            search.start(0, targets[0], explore=False)
            search.run(UniformEvaluator())
            for target in targets[1:]:
                search.extend(0, target)
                search.run(UniformEvaluator())
            results.append(search.result(0))
        assert results[0].visits.tolist() == results[1].visits.tolist()
        assert results[0].proofs.tolist() == results[1].proofs.tolist()
    with pytest.raises(ValueError, match="151 simulations requested"):
        search.extend(0, 151)


def pushed(board: Board, move: Move) -> Board:
    after = board.copy()
    after.push(move)
    return after


def test_search_player_hands_the_oracle_on() -> None:
    with pytest.raises(ValueError, match="oracle is 'tablebase', but no leaf_oracle was given"):
        SearchPlayer("p", UniformEvaluator(), SearchConfig(oracle="tablebase"))
    config = SearchConfig(num_simulations=4, oracle="tablebase")
    player = SearchPlayer("p", UniformEvaluator(), config, leaf_oracle=TableOracle(True))
    boards = drawn_at_random(1, 5, 15, least=10)
    for board in boards:
        result, line, index = player.analyse(board)
        assert line == [board.distinct_moves[index]]
        assert result.wdl.tolist() == [1, 0, 0]
        assert result.values[index] == result.policy[result.proofs == WIN].sum() == 1
        assert set(result.proof_plies[result.proofs == WIN]) == {distance_of(board) - 1}
    for board, move in zip(boards, player.choose(boards), strict=True):
        before = distance_of(board)
        board.push(move)
        assert distance_of(board) == before - 1


class WithoutMen(TableOracle):
    """Fails where it is asked for a position with men."""

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        if ((positions[:, 0] | positions[:, 1]) & ~positions[:, 2]).any():
            raise OSError("cannot read the table")
        return super().judge(positions, patient)


def test_a_board_that_fails_does_not_fail_the_boards_that_are_asked_for_after_it() -> None:
    kings, men = Board("W:WK2,K3:BK28"), Board("W:WK2,22:BK28")
    config = SearchConfig(num_simulations=20, oracle="tablebase")
    player = SearchPlayer("network", HashEvaluator(), config, leaf_oracle=WithoutMen(True))
    with pytest.raises(OSError, match="cannot read"):
        player.choose([kings, men])
    assert player.choose([kings])[0] in kings.legal_moves
