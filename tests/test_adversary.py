"""Games against a network that never learns, and whole runs of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import crownhead_here
from replayed import boards_of
from test_actor import MaterialEvaluator
from test_inference import moderate
from training_runs import SHORT, assert_refused, events, trained

from engine.fen import Color
from engine.files import StorageError
from engine.pdn import read_games
from engine.players.base import search_moves
from engine.search import LockstepSearch, SearchConfig, UniformEvaluator
from engine.tablebase import open_tablebase
from engine.tablebase.folder import SHIPPED
from learner.checkpoint import load_checkpoint, save_checkpoint
from learner.network import NETWORKS
from selfplay import commands
from selfplay.actors.adversary import Adversary
from selfplay.actors.pool import ThreadPool
from selfplay.actors.weights import Weights
from selfplay.games.endgame import EndgameKnowledge
from selfplay.games.records import ADJUDICATION, GameRecord
from selfplay.games.shards import read_shard
from selfplay.matches.match import PLY_CAP
from selfplay.run.config import ConfigError, SelfPlayConfig, make_config
from selfplay.run.folder import RunFolder

STRONG, WEAK = SearchConfig(num_simulations=60), SearchConfig(num_simulations=1)
REPLIES = SearchConfig(num_simulations=12, reuse_tree=False, policy_temperature=1.5)


def an_adversary(search: SearchConfig = STRONG, replies: SearchConfig = REPLIES, **settings: Any) -> Adversary:
    config = SelfPlayConfig(**{"games_in_lockstep": 8, "full_search_fraction": 1.0} | settings)
    opponent = MaterialEvaluator(0.7)
    return Adversary(config, search, MaterialEvaluator(), 3, "net", opponent=opponent, opponent_search=replies)


def own_side(record: GameRecord) -> Color:
    """The side of the adversary: that of all its samples."""
    boards = [board.turn for board in boards_of(record)]
    sides = {boards[ply] for ply in record.samples.ply}
    assert len(sides) == 1
    return sides.pop()


def score(records: list[GameRecord]) -> float:
    """The adversary's score per game, 0 to 1."""
    results = [record.result if own_side(record) is Color.BLACK else -record.result for record in records]
    return float(np.mean(results)) / 2 + 0.5


def test_samples_are_of_one_side_and_the_games_of_both() -> None:
    records, stats = an_adversary().play(800)
    assert {own_side(record) for record in records} == {Color.BLACK, Color.WHITE}
    assert stats.samples == sum(len(record.samples) for record in records)
    for record in records:
        boards, side = [board.copy() for board in boards_of(record)], own_side(record)
        choices = [ply for ply, board in enumerate(boards[:-1]) if len(search_moves(board)) > 1]
        mine = [ply for ply in choices if boards[ply].turn is side]
        assert record.samples.ply.tolist() == mine  # each of its choices is a sample, none of the other side's
        for row, ply in enumerate(mine):
            words = (*boards[ply].words(), boards[ply].reversible_plies)
            assert tuple(record.samples.positions[row]) == words
        outcome = boards[-1].outcome()
        assert record.termination == (PLY_CAP if outcome is None else outcome.termination.name)


def test_the_opponent_plays_the_best_move_of_its_own_search() -> None:
    records, _ = an_adversary().play(150)
    slow, evaluator, checked = LockstepSearch(REPLIES, 1), MaterialEvaluator(0.7), 0
    for record in records:
        side = own_side(record)
        for board, made in zip(boards_of(record), record.moves, strict=False):
            if board.turn is not side and len(search_moves(board)) > 1:
                slow.set_board(0, board)
                slow.start(0, explore=False)
                slow.run(evaluator)
                assert slow.choose(0) == made
                checked += 1
    assert checked > 100


def test_who_searches_more_wins() -> None:
    assert score(an_adversary(STRONG, WEAK).play(2000)[0]) > 0.75
    assert score(an_adversary(WEAK, STRONG, random_opening_plies=2).play(1500)[0]) < 0.35


def test_games_are_adjudicated_after_either_sides_moves() -> None:
    ends = {"adjudicate": True, "table_pieces": 5, "play_on_fraction": 0.0}
    config = SelfPlayConfig(games_in_lockstep=8, full_search_fraction=1.0, **ends)
    sides = {"opponent": MaterialEvaluator(), "opponent_search": REPLIES}
    movers = set()
    with open_tablebase(SHIPPED) as table:
        records, _ = Adversary(
            config, STRONG, MaterialEvaluator(), 3, "net", EndgameKnowledge(table=table), **sides
        ).play(1500)
        for record in (record for record in records if record.termination == ADJUDICATION):
            *_, final = boards_of(record)
            assert record.result == table.probe_wdl(final) * (1 if final.turn is Color.BLACK else -1)
            movers.add(final.turn is own_side(record))
    assert movers == {True, False}


def test_the_same_seed_gives_the_same_games() -> None:
    first, second = (an_adversary().play(300)[0] for _ in range(2))
    assert [record.moves.tolist() for record in first] == [record.moves.tolist() for record in second]


def test_actors_of_a_pool_play_against_it(tmp_path: Path) -> None:
    own, other = (Weights.of(moderate(NETWORKS[name]), name) for name in ("tiny", "wide32"))
    settings = ["selfplay.positions_per_shard=20", "selfplay.games_in_lockstep=4", "loop.anchor_games=0"]
    pool = ThreadPool(make_config("smoke", settings, opponent={"digest": "wide32"}), 0)
    pool.set_opponent(other)
    pool.set_weights(own)
    try:
        played = []
        while not played:
            pool.refill()
            played = pool.collect(1.0)
        handle = pool._actors[0].handle[0]
        (actor, _), *_ = handle._actors.values()
        assert isinstance(actor, Adversary)
        assert actor.network == "tiny"
    finally:
        pool.close()


def test_a_run_against_a_network(tmp_path: Path) -> None:
    """Its candidates play the opponent, all are promoted, and a part of the run that resumes needs no name."""
    save_checkpoint(tmp_path / "champion", moderate(NETWORKS["wide32"]))
    run = tmp_path / "run"
    tables = "--set", "match_search.oracle=tablebase"  # by which the opponent searches, and the adversary does not
    begun = trained("--preset", "smoke", "--run", run, "--against", tmp_path / "champion", *SHORT, *tables)
    assert (begun["iterations"], begun["promotions"]) == (1, 1)
    assert load_checkpoint(run / "opponent").info.digest == load_checkpoint(tmp_path / "champion").info.digest
    (gate,) = events(run, "gate")
    assert (gate["rule"], gate["games"]) == ("always", 2)
    results = json.loads((run / "elo.json").read_text())["results"]
    assert [result[:2] for result in results] == [["000001", "opponent"]]
    check_names(run, tmp_path / "games.pdn", json.loads((run / "config.json").read_text())["opponent"]["digest"])
    again = trained("--run", run, "--resume", "--set", "loop.max_iterations=2")
    assert (again["iterations"], again["promotions"]) == (2, 2)
    assert_refused(crownhead_here("train", "--run", run, "--resume", "--against", "champion"), "keeps its own opponent")
    assert_refused(
        crownhead_here("train", "--run", run, "--resume", "--set", "opponent=null"), "cannot change a run under way"
    )


def check_names(run: Path, out: Path, opponent: str) -> None:
    """The games in PDN name the opponent, too, also where only the shards are named."""
    records = [record for path in sorted((run / "shards").iterdir()) for record in read_shard(path).iter_games()]
    for place in (run, run / "shards"):
        out.unlink(missing_ok=True)
        assert crownhead_here("games", place, "--out", out).returncode == 0
        for game, record in zip(read_games(out.read_text()), records, strict=True):
            side = str(own_side(record))
            assert game.headers[side] == record.network[:12]
            assert game.headers["White" if side == "Black" else "Black"] == opponent[:12]


@pytest.mark.parametrize("option", ["--against", "--teacher", "--init"])
def test_a_run_that_was_killed_before_it_had_its_networks_is_none(
    tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asked for --resume, which then lacked the network."""

    def full(*_: object) -> None:
        raise StorageError(None, "the disk is full")

    save_checkpoint(tmp_path / "net", moderate(NETWORKS["tiny"]))
    (run := tmp_path / "run").mkdir()
    monkeypatch.setattr(commands, "save_checkpoint", full)
    begun = crownhead_here("train", "--preset", "smoke", "--run", run, option, tmp_path / "net")
    assert_refused(begun, "the disk is full")
    RunFolder(run).check_free()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "opponent.digest=x"], "--set opponent: use --against"),
        (["--against", "nowhere"], "nowhere"),
        (["--against", "champion", "--teacher", "champion", "--set", "teacher.plays=0.5"], "teacher.plays must be 0"),
    ],
)
def test_what_cannot_be_leaves_no_folder(tmp_path: Path, arguments: list[str], words: str) -> None:
    run = tmp_path / "run"
    assert_refused(crownhead_here("train", "--preset", "smoke", "--run", run, *arguments), words)
    assert not run.exists()


def test_an_opponent_that_the_backend_does_not_compute_is_refused_before_and_later(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "net", moderate(NETWORKS["tiny"].model_copy(update={"board": "8x8"})))
    run = tmp_path / "run"
    begin = ("train", "--preset", "smoke", "--run", run, "--against", tmp_path / "net")
    assert_refused(crownhead_here(*begin, "--backend", "numba"), "not 3x3 over 8x8 with relu")
    assert not run.exists()
    folder = RunFolder.create(run, make_config("smoke", opponent={"digest": "x"}))
    save_checkpoint(folder.opponent, load_checkpoint(tmp_path / "net").network, {})
    resumed = crownhead_here("train", "--run", run, "--resume", "--set", "selfplay.backend=numba")
    assert_refused(resumed, "not 3x3 over 8x8 with relu")


def test_the_other_settings_of_the_gate_can_be_chosen() -> None:
    changes = {"opponent": {"digest": "x"}, "gate": {"rule": "always"}}
    assert make_config("smoke", **changes).gate.rule == "always"
    assert make_config("smoke", ["gate.rule=sprt"], **changes).gate.rule == "sprt"
    with pytest.raises(ConfigError, match=r"gate\.rule"):
        make_config("smoke", ["gate.rule=never"], **changes)


def test_an_opponent_without_a_policy_plays() -> None:
    config = SelfPlayConfig(games_in_lockstep=4)
    common = config, WEAK, MaterialEvaluator(), 1
    records, _ = Adversary(*common, opponent=UniformEvaluator(), opponent_search=WEAK).play(100)
    assert records
