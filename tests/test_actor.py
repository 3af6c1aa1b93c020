"""Self-play games: what is recorded is what was played."""

from dataclasses import fields

import numpy as np
import pytest
from replayed import boards_of, final_board

from engine.board import Board, Termination
from engine.players.base import search_moves
from engine.search import CompiledEvaluator, SearchConfig, UniformEvaluator
from selfplay.actors.actor import RESIGNATION, Actor
from selfplay.games.records import GameRecord
from selfplay.matches.match import PLY_CAP
from selfplay.run.config import SelfPlayConfig

SEARCH = SearchConfig(num_simulations=6)


class MaterialEvaluator:
    """Values a position by counting pieces; policy by a fixed pattern."""

    def __init__(self, sharpness: float = 0.5) -> None:
        self.sharpness = sharpness

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = np.bitwise_count(positions[:, :2]).astype(np.float32)
        lead = self.sharpness * (counts[:, 0] - counts[:, 1])
        policy = np.tile(np.cos(np.arange(128, dtype=np.float32)), (len(positions), 1))
        return policy, np.stack([lead, np.zeros_like(lead), -lead], axis=1)


def play(search: SearchConfig, seed: int = 3, min_samples: int = 400, **settings: object) -> list[GameRecord]:
    config = SelfPlayConfig(games_in_lockstep=8, fast_simulations=3, **settings)
    return Actor(config, search, MaterialEvaluator(), seed, "net").play(min_samples)[0]


def test_games_replay_to_what_was_recorded() -> None:
    records = play(SEARCH)
    assert sum(len(record.samples) for record in records) >= 400
    for record in records:
        boards = [board.copy() for board in boards_of(record)]
        outcome = boards[-1].outcome()
        if record.termination == PLY_CAP:
            assert outcome is None
        else:
            assert outcome is not None
            assert outcome.termination.name == record.termination
            winner = {"1-0": 1, "0-1": -1, "1/2-1/2": 0}[outcome.result]
            assert winner == record.result
        samples = record.samples
        for row, ply in enumerate(samples.ply):
            board = boards[ply]
            assert tuple(samples.positions[row]) == (*board.words(), board.reversible_plies)
            legal = len(search_moves(board))
            assert legal > 1, "forced moves are not searched"
            entries = samples.policy_offsets[row + 1] - samples.policy_offsets[row]
            assert entries == (legal if samples.has_policy[row] else 0)
            black = board.turn.value == "B"
            assert samples.result[row] == 1 - (record.result if black else -record.result)


def test_every_unsearched_position_was_forced() -> None:
    for record in play(SEARCH):
        searched = set(record.samples.ply.tolist())
        for ply, board in enumerate(boards_of(record)):
            if ply < len(record.moves) and ply not in searched:
                assert len(search_moves(board)) == 1


def test_same_seed_same_games() -> None:
    first, again, other = play(SEARCH), play(SEARCH), play(SEARCH, seed=4)
    assert [record.moves.tolist() for record in first] == [record.moves.tolist() for record in again]
    for record, twin in zip(first, again, strict=True):
        for field in fields(record.samples):
            assert np.array_equal(getattr(record.samples, field.name), getattr(twin.samples, field.name))
    assert [record.moves.tolist() for record in first] != [record.moves.tolist() for record in other]


def test_playout_cap_mixes_full_and_fast_searches() -> None:
    records = play(SEARCH, full_search_fraction=0.3, min_samples=2000)
    full = np.concatenate([record.samples.has_policy for record in records])
    assert 0.25 < full.mean() < 0.35
    assert np.concatenate([r.samples.has_policy for r in play(SEARCH, full_search_fraction=1.0)]).all()


def test_openings_vary() -> None:
    records = play(SEARCH, min_samples=1500)
    assert len({record.start_fen for record in records}) > len(records) / 2
    start = Board().fen()
    plain = play(SEARCH, ballot_fraction=0.0, random_opening_plies=0)
    assert {record.start_fen for record in plain} == {start}


def test_ply_cap_is_a_draw() -> None:
    capped = [record for record in play(SEARCH, max_plies=12) if record.termination == PLY_CAP]
    assert capped
    assert all(record.result == 0 and len(record.moves) >= 12 for record in capped)


def test_resignation_and_its_false_positives() -> None:
    config = SelfPlayConfig(
        games_in_lockstep=8, fast_simulations=3, resign_value=-0.4, resign_moves=2, play_on_fraction=0.5
    )
    actor = Actor(config, SEARCH, MaterialEvaluator(1.0), 1, "net")
    records, stats = actor.play(1500)
    resigned = [record for record in records if record.termination == RESIGNATION]
    assert resigned
    assert all(record.result != 0 for record in resigned)
    assert stats.resign_checks > 0
    assert 0 <= stats.resign_false <= stats.resign_checks
    for record in resigned:  # the side that resigned is the one to move at the end
        loser = final_board(record).turn
        assert record.result == (-1 if loser.value == "B" else 1)
    endings = {record.termination for record in records}
    assert endings - {RESIGNATION} <= {termination.name for termination in Termination} | {PLY_CAP}


def test_without_resignation_nothing_is_checked() -> None:
    config = SelfPlayConfig(games_in_lockstep=4, fast_simulations=2)
    _, stats = Actor(config, SEARCH, UniformEvaluator(), 1).play(200)
    assert (stats.resign_checks, stats.resign_false) == (0, 0)


def test_stop_returns_soon() -> None:
    actor = Actor(SelfPlayConfig(games_in_lockstep=4), SEARCH, UniformEvaluator(), 1)
    actor.stop()
    records, stats = actor.play(10**9)
    assert len(records) == stats.games == 0


class Plain(UniformEvaluator):
    """Takes its steps one by one through Python."""

    search = None  # type: ignore[assignment]


@pytest.mark.parametrize("evaluator", [UniformEvaluator(), Plain()], ids=["compiled", "through Python"])
def test_games_of_every_way_of_searching_are_whole(evaluator: UniformEvaluator) -> None:
    """40 games, more than one group of the step loop; searches in full and fast ones side by side."""
    assert isinstance(evaluator, CompiledEvaluator) == (type(evaluator) is UniformEvaluator)
    config = SelfPlayConfig(games_in_lockstep=40, fast_simulations=5, max_plies=60)
    records, stats = Actor(config, SearchConfig(num_simulations=30), evaluator, 1, "net").play(3000)
    assert stats.samples == sum(len(record.samples) for record in records) >= 3000
    assert stats.evaluations > 10 * stats.samples
    for record in records:
        assert final_board(record).ply == len(record.moves) < 80  # forced moves may go beyond 60
        policies = np.diff(record.samples.policy_offsets)[record.samples.has_policy]
        assert (policies > 1).all()
