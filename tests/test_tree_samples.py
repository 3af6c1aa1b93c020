"""Samples from nodes inside trees, and positions beside games, as an actor records them."""

import numpy as np
import pytest
from search_boards import mixed_boards
from search_reference import HashEvaluator

from engine.bitboard import turned
from engine.board import Board
from engine.movegen import DISTINCT, generate, jumpers_of, new_moves
from engine.outcomes import UNKNOWN
from engine.search import LockstepSearch, SearchConfig
from engine.tablebase import open_tablebase
from selfplay.actors.actor import Actor
from selfplay.games.endgame import EndgameKnowledge
from selfplay.games.records import GAME, OFFSHOOT, TREE, GameRecord
from selfplay.games.replay import to_training_batch
from selfplay.games.tree_samples import TreeReader, TreeSampleConfig, offshoots
from selfplay.run.config import SelfPlayConfig

SEARCH = SearchConfig(num_simulations=600, leaves_in_flight=4, policy_temperature=2.0)
TREES = TreeSampleConfig(most=1024)


def plain_samples(nodes: np.ndarray, root: int, end: int) -> list[tuple[list[int], list[float], list[float]]]:
    """Position, win/draw/loss and policy of every sample, node by node."""
    found, families = [], set()
    for node in nodes[root + 1 : end]:
        family = int(node["first_child"])
        children = nodes[family : family + int(node["num_children"])]
        visits = 1 + int(children["visits"].sum())
        wanted = node["proof"] == UNKNOWN and node["judged"] and len(children) > 1 and visits >= TREES.least_visits
        if not wanted or node["visits"] < 2 or family in families:
            continue
        families.add(family)
        value = (node["raw_value"] + children["value_sum"].sum()) / visits
        draw = (node["raw_draw"] + children["draw_sum"].sum()) / visits
        words = [int(turned(node[name])) for name in ("opp", "own", "kings")]
        policy = list(children["visits"] / (visits - 1)) if visits >= TREES.policy_visits else []
        found.append(
            ([*words, int(node["reversible"])], [(1 - draw + value) / 2, draw, (1 - draw - value) / 2], policy)
        )
    return found


def searched(config: SearchConfig, boards: list[Board]) -> LockstepSearch:
    search = LockstepSearch(config, len(boards), seed=3)
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
        search.start(slot)
    search.run(HashEvaluator())
    return search


@pytest.mark.parametrize("shares", [False, True])
def test_samples_are_what_the_tree_holds(shares: bool) -> None:
    boards = [board for board in mixed_boards(seed=2) if len(board.distinct_moves) > 1]
    search = searched(SEARCH.model_copy(update={"transpositions": shares}), boards)
    reader = TreeReader(search, TREES)
    total = 0
    for slot in [*range(len(boards)), 0]:  # what has been read leaves nothing behind
        samples, expected = reader.read(slot), plain_samples(*search.tree(slot))
        assert len(samples) == len(expected)
        total += len(samples)
        assert samples.positions.tolist() == [position for position, _, _ in expected]
        outcomes = np.reshape([wdl for _, wdl, _ in expected], (-1, 3))
        np.testing.assert_allclose(samples.search_wdl, outcomes, atol=2e-3)
        assert np.diff(samples.policy_offsets).tolist() == [len(policy) for _, _, policy in expected]
        np.testing.assert_allclose(
            samples.move_probabilities, [p for _, _, policy in expected for p in policy], atol=1e-3
        )
    assert total > 50


def test_offshoots_count_as_evaluations() -> None:
    class Counting(HashEvaluator):
        asked = 0

        def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            self.asked += len(positions)
            return super().evaluate(positions)

    evaluator = Counting()
    config = SelfPlayConfig(games_in_lockstep=4, tree_samples=TreeSampleConfig(most=64, offshoots=0.5))
    actor = Actor(config, SearchConfig(num_simulations=100), evaluator, 3)
    assert sum(stats.evaluations for _, stats in (actor.play(200) for _ in range(2))) == evaluator.asked


def test_no_more_than_asked_for() -> None:
    search = searched(SEARCH, [Board()])
    every = TreeReader(search, TREES).read(0)
    few = TreeReader(search, TREES.model_copy(update={"most": 7})).read(0)
    assert len(few) == 7 < len(every)
    np.testing.assert_array_equal(few.positions, every.positions[:7])


def test_offshoots_are_quiet_positions_of_the_game() -> None:
    positions = np.array([[*board.words(), 5] for board in mixed_boards(seed=4)], np.uint32)
    network, moves = HashEvaluator(), new_moves(1)[0]
    samples = offshoots(positions, network, np.random.default_rng(1))
    assert 0 < len(samples) <= len(positions)
    assert not samples.has_policy.any()
    for own, opp, kings, reversible in samples.positions:
        assert reversible == 0
        assert int(own & opp) == 0
        assert int(kings & ~(own | opp)) == 0
        assert jumpers_of(own, opp, kings) == 0
        assert generate(own, opp, kings, moves, DISTINCT) > 0
    _, logits = network.evaluate(samples.positions)
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(samples.search_wdl, expected, atol=1e-3)
    again, other = (offshoots(positions, network, np.random.default_rng(seed)) for seed in (1, 2))
    assert again.positions.tolist() == samples.positions.tolist() != other.positions.tolist()


def play(knowledge: EndgameKnowledge | None = None, **settings: object) -> list[GameRecord]:
    trees = TreeSampleConfig(most=40, least_visits=8, policy_visits=20, offshoots=0.5)
    config = SelfPlayConfig(games_in_lockstep=8, tree_samples=trees, max_plies=80, **settings)
    actor = Actor(config, SearchConfig(num_simulations=60), HashEvaluator(), 3, "net", knowledge)
    return actor.play(2000)[0]


def test_games_hold_samples_of_all_kinds() -> None:
    records = play()
    kinds = np.concatenate([record.samples.kind for record in records])
    assert all((kinds == kind).sum() > 50 for kind in (GAME, TREE, OFFSHOOT))
    for record in records:
        samples = record.samples
        game = samples.kind == GAME
        assert np.array_equal(samples.result == UNKNOWN, ~game)
        assert (np.diff(samples.ply[game].astype(int)) > 0).all(), "the game's positions come first, in their order"
        assert set(samples.ply[~game]) <= set(samples.ply[game & samples.has_policy]), "searches in full have trees"
        assert not samples.has_policy[samples.kind == OFFSHOOT].any()
        batch = to_training_batch(samples, 0.25)
        np.testing.assert_allclose(batch.wdl[~game], samples.search_wdl[~game].astype(np.float32), atol=2e-3)
        won = samples.result == 0
        assert (batch.wdl[won & game][:, 0] >= 0.75).all()


def test_what_tables_know_is_corrected_beside_the_game_too() -> None:
    tables = open_tablebase()
    records = play(EndgameKnowledge(table=tables), rescore=True, table_pieces=5)
    inside = 0
    for record in records:
        samples = record.samples
        few = np.bitwise_count(samples.positions[:, 0] | samples.positions[:, 1]) <= 5
        rows = np.flatnonzero(few & (samples.kind != GAME) & (samples.positions[:, 3] == 0))
        values = tables.probe_wdl_many(samples.positions[rows])
        assert np.array_equal(samples.search_wdl[rows], np.eye(3, dtype=np.float16)[1 - values])
        inside += len(rows)
    assert inside >= 5
