"""Endgame tables in self-play: adjudication, rescoring, held-out positions, and how actors get their oracles."""

from pathlib import Path

import numpy as np
import pytest
from endgame_oracles import TableOracle, board_of, distance_of, endings
from replayed import boards_of, final_board
from test_actor import SEARCH, MaterialEvaluator, play

from engine.board import Board
from engine.fen import Color
from engine.outcomes import DRAW, LOSS, UNKNOWN, WIN
from engine.players.base import search_moves
from engine.search import SearchConfig, UniformEvaluator
from learner.network import NETWORKS, make_network
from selfplay.actors.actor import Actor
from selfplay.actors.pool import PoolError, Turns
from selfplay.actors.weights import Weights
from selfplay.actors.worker import Worker
from selfplay.games.endgame import EndgameKnowledge, adjudicated, rescored, without_held_out
from selfplay.games.records import ADJUDICATION, GameRecord, GameRecordBuilder
from selfplay.games.shards import parse_shard, read_shard, write_shard
from selfplay.run.config import PRESETS, RunConfig, SelfPlayConfig, make_config

CARELESS = SearchConfig(num_simulations=2, temperature_plies=1000)  # most games get down to a few pieces

# White is two kings to two, loses one, and is lost; Black's king walks, throws the win away, and is taken.
THROWN_AWAY = ("W:WK7,K23:BK25,K31", "23-26 31x22 7-2 22-17 2-6 25-29 6-10 17-14 10x17")
REPEATED = ("W:WK7,K23:BK25,K31", "23-26 31x22 7-2 22-17 2-7 17-22 7-2 22-17")


def hand_made(fen: str, moves: str, result: int) -> GameRecord:
    """A record of these moves with a search at every position; ``result``: result of the game as played."""
    board, builder = Board(fen), GameRecordBuilder("net", fen)
    for text in moves.split():
        legal = search_moves(board)
        builder.add_search(
            [*board.words(), board.reversible_plies], [0.2, 0.3, 0.5], np.full(len(legal), 1 / len(legal))
        )
        before = board.copy()
        board.push_pdn(text)
        after = [before.copy() for _ in legal]
        for copy, move in zip(after, legal, strict=True):
            copy.push(move)
        builder.add_move([copy.words() for copy in after].index(board.words()))
    legal = search_moves(board)
    builder.add_search([*board.words(), board.reversible_plies], [0.2, 0.3, 0.5], np.full(len(legal), 1 / len(legal)))
    return builder.finish(result, "RESIGNATION")


def black_results(record: GameRecord) -> list[int]:
    """Results of the samples for Black: 1, 0, -1."""
    white_first = Board(record.start_fen).turn is Color.WHITE
    return [
        (1 - int(result)) * (-1 if (ply + white_first) % 2 else 1)
        for ply, result in zip(record.samples.ply, record.samples.result, strict=True)
    ]


@pytest.mark.parametrize("result", [1, 0, -1])
def test_rescoring_goes_back_to_the_mistake(result: int) -> None:
    record = hand_made(*THROWN_AWAY, result)
    assert black_results(record) == [result] * 10
    with_distances = rescored(record, TableOracle(True), 3)
    assert black_results(with_distances) == [1] * 8 + [0, 0]
    assert (with_distances.result, with_distances.termination) == (result, "RESIGNATION")
    assert with_distances.moves is record.moves
    # Between irreversible moves nothing but a distance shows that the win was still within reach.
    assert black_results(rescored(record, TableOracle(False), 3)) == [1] * 3 + [0] * 7


@pytest.mark.parametrize(("result", "after"), [(1, [1, 1]), (0, [0, 0]), (-1, [0, 0])])
def test_rescoring_trusts_no_distance_after_a_repetition(result: int, after: list[int]) -> None:
    record = hand_made(*REPEATED, result)
    assert final_board(record).repetitions() == 2
    assert black_results(rescored(record, TableOracle(True), 3)) == [1] * 6 + after + after[:1]


def test_rescoring_leaves_games_outside_the_tables_alone() -> None:
    record = hand_made(*THROWN_AWAY, -1)
    assert rescored(record, TableOracle(True), 1) is record
    silent = TableOracle(True)
    silent.max_pieces = 1
    assert rescored(record, silent, 3) is record


def test_positions_held_out_are_no_samples() -> None:
    record = hand_made(*THROWN_AWAY, 0)
    kept = without_held_out(record, lambda positions: positions[:, 3] % 2 == 1)
    assert kept.samples.ply.tolist() == [0, 2, 4, 6, 8, 9]
    for row, ply in enumerate(kept.samples.ply):
        assert np.array_equal(kept.samples.positions[row], record.samples.positions[ply])
        ours, theirs = (s.policy_offsets[i : i + 2] for s, i in ((kept.samples, row), (record.samples, ply)))
        assert np.diff(ours) == np.diff(theirs) > 0
    assert without_held_out(record, lambda positions: np.zeros(len(positions), bool)) is record


def test_adjudication_waits_for_quiet_positions_and_minds_the_80_plies() -> None:
    def verdict(table: TableOracle, position: np.ndarray, pieces: int) -> int:
        (found,) = adjudicated(table, position[None], pieces, np.zeros(1, np.int64))
        return int(found)

    table = TableOracle(True)
    won = np.array([*Board("B:WK2:BK28,K32").words(), 0], np.uint32)
    distance = distance_of(Board("B:WK2:BK28,K32"))
    for reversible, outcome in ((0, WIN), (80 - distance, WIN), (81 - distance, UNKNOWN)):
        won[3] = reversible
        assert verdict(table, won, 3) == outcome
    assert verdict(TableOracle(False), won, 3) == UNKNOWN
    won[3] = 0
    assert verdict(TableOracle(False), won, 3) == WIN
    assert verdict(table, won, 2) == UNKNOWN
    assert verdict(table, np.array([*Board("B:WK15:BK18,K23").words(), 0], np.uint32), 3) == UNKNOWN  # a capture
    for value, outcome in ((0, DRAW), (-1, LOSS)):
        rows = np.flatnonzero(endings().values == value)
        boards = [board_of(*endings().positions[row]) for row in rows[:: len(rows) // 50]]
        quiet = [board for board in boards if board.legal_moves and not board.legal_moves[0].captured]
        assert len(quiet) > 5
        for board in quiet:
            assert verdict(table, np.array([*board.words(), 0], np.uint32), 3) == outcome
    assert verdict(table, np.array([*Board("B:WK31:BK1").words(), 79], np.uint32), 3) == DRAW


def test_adjudicated_games(tmp_path: Path) -> None:
    knowledge = EndgameKnowledge(table=TableOracle(False))
    config = SelfPlayConfig(
        games_in_lockstep=8, fast_simulations=3, adjudicate=True, table_pieces=3, play_on_fraction=0.3
    )
    records, _ = Actor(config, CARELESS, UniformEvaluator(), 3, "net", knowledge).play(7000)
    ended = [record for record in records if record.termination == ADJUDICATION]
    assert len(ended) > 3
    played_on = 0
    for record in records:
        boards = [board.copy() for board in boards_of(record)]
        stops = []
        for ply, board in enumerate(boards):
            own, opp, _ = board.words()
            quiet = board.legal_moves and not board.legal_moves[0].captured
            if own and (own | opp).bit_count() <= 3 and quiet and len(search_moves(board)) > 1:
                stops.append(ply)
        played_on += stops[:-1] != [] or (stops != [] and record.termination != ADJUDICATION)
        assert (stops == [len(boards) - 1]) == (record.termination == ADJUDICATION)
        if record.termination == ADJUDICATION:
            value = endings().values[endings().rows(np.array([boards[-1].words()], np.uint32))[0]]
            assert record.result == value * (1 if boards[-1].turn is Color.BLACK else -1)
            assert record.termination == "TABLEBASE"
    assert 0.1 < played_on / (played_on + len(ended)) < 0.5
    write_shard(tmp_path / "a.shard", records)
    read = [record.termination == ADJUDICATION for record in read_shard(tmp_path / "a.shard").iter_games()]
    assert read == [record.termination == ADJUDICATION for record in records]


def test_nothing_is_adjudicated_or_rescored_unless_asked_for() -> None:
    knowledge = EndgameKnowledge(TableOracle(True), TableOracle(True))
    config = SelfPlayConfig(games_in_lockstep=8, fast_simulations=3)
    aided = Actor(config, SEARCH, MaterialEvaluator(), 3, "net", knowledge).play(400)[0]
    assert [record.moves.tolist() for record in aided] == [record.moves.tolist() for record in play(SEARCH)]
    assert not knowledge.table.batches  # type: ignore[union-attr]
    assert not knowledge.leaf_oracle.batches  # type: ignore[union-attr]
    for preset in PRESETS:
        made = make_config(preset)
        assert {made.selfplay.adjudicate, made.selfplay.rescore} == {preset in ("laptop", "gpu")}
        assert made.search.oracle == made.match_search.oracle == "off"


def test_actor_rescores_and_holds_out() -> None:
    def held_out(positions: np.ndarray) -> np.ndarray:
        return positions[:, 0] % 3 == 0

    knowledge = EndgameKnowledge(table=TableOracle(True), held_out=held_out)
    config = SelfPlayConfig(games_in_lockstep=8, fast_simulations=3, rescore=True, table_pieces=3)
    records, stats = Actor(config, CARELESS, UniformEvaluator(), 3, "net", knowledge).play(2000)
    assert stats.samples == sum(len(record.samples) for record in records) >= 2000
    changed = 0
    for record in records:
        assert not held_out(record.samples.positions).any()
        assert len(record.samples) > 0
        own, opp = record.samples.positions[:, 0], record.samples.positions[:, 1]
        inside = np.bitwise_count(own | opp) <= 3
        values = endings().values[endings().rows(record.samples.positions[inside])]
        given = 1 - record.samples.result[inside].astype(int)
        assert (given[values == 0] == 0).all()
        assert (given * values >= 0).all()  # at most a win may have become a draw
        changed += any(value != record.result for value in black_results(record))
    assert changed > 0


def test_missing_knowledge_is_named() -> None:
    for settings in ({"adjudicate": True}, {"rescore": True}):
        with pytest.raises(ValueError, match="need endgame tables, and there are none"):
            Actor(SelfPlayConfig(**settings), SEARCH, MaterialEvaluator(), 1)
    with pytest.raises(ValueError, match="oracle is 'tablebase', but no leaf_oracle was given"):
        Actor(SelfPlayConfig(), SearchConfig(oracle="tablebase"), MaterialEvaluator(), 1)


class Listener:
    """An oracle that knows no position and counts the positions it is asked about."""

    max_pieces = 22

    def __init__(self) -> None:
        self.asked = 0

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        self.asked += len(positions)
        return np.full(len(positions), UNKNOWN, np.uint8), np.full(len(positions), -1, np.int16)

    def compiled(self) -> None:
        """Every position goes to ``judge``."""


def test_worker_makes_its_knowledge_once(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ["search.oracle=tablebase", "selfplay.games_in_lockstep=4", "selfplay.positions_per_shard=30"]
    config = make_config("smoke", settings)
    oracle, made = Listener(), []

    def knowledge(config: RunConfig) -> EndgameKnowledge:
        made.append(config)
        return EndgameKnowledge(leaf_oracle=oracle)

    monkeypatch.setattr("selfplay.actors.worker.endgame_knowledge", knowledge)
    worker, network = Worker(config, 0, 1), make_network(config.network)
    evaluations = 0
    for number in range(2):
        played = worker.play(Weights.of(network, f"digest{number}"))
        assert played is not None
        evaluations += played.stats.evaluations
    assert made == [config]
    assert oracle.asked > 0
    assert evaluations > 0


def test_a_teachers_games_are_not_mixed_with_the_runs_own() -> None:
    """Networks of two families alternate; the games in play of each continue."""
    own, teacher = make_network(NETWORKS["wide32"]), make_network(NETWORKS["tiny"])
    settings = ["network=wide32", "selfplay.games_in_lockstep=4", "selfplay.positions_per_shard=60"]
    config = make_config("smoke", settings, teacher={"digest": "teacher", "plays": 0.5})
    worker, played = Worker(config, 0, 1), []
    for number in range(12):
        weights = Weights.of(teacher, "teacher") if number % 2 else Weights.of(own, f"own {number}")
        made = worker.play(weights)
        assert made is not None
        played.append(set(parse_shard(made.shard, Path("0.shard")).info.networks))
    assert played[1] == played[3] == played[5] == {"teacher"}
    assert all(name.startswith("own") for names in played[::2] for name in names)
    assert len(set.union(*played[::2])) > 1


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_whose_turn_it_is_to_play(share: float) -> None:
    turns = Turns()
    with pytest.raises(PoolError, match="set_weights"):
        turns.next()
    turns.own = "own"
    turns.set_teacher("teacher", share)
    assert [turns.next() for _ in range(40)].count("teacher") == 40 * share
