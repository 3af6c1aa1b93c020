"""Endgame knowledge of players and actors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from player_of import player_of

from engine.board import Board
from engine.outcomes import WIN
from engine.players.base import PlayerSpecError
from engine.players.search_player import SearchPlayer
from engine.players.spec import NetworkSpec, OracleName, one_of, parse_network
from engine.search import BOARD_SEARCH, SearchConfig
from learner.checkpoint import save_checkpoint
from learner.endgame.data import TRAIN, held_out, split_of
from learner.endgame.validate_command import oracle_validate_command
from learner.inference.numba_evaluator import NumbaEvaluator
from learner.network import NETWORKS, make_network
from selfplay.actors.pool import ThreadPool
from selfplay.actors.weights import Weights
from selfplay.commands import analyse_command
from selfplay.games.shards import parse_shard
from selfplay.knowledge import endgame_knowledge, leaf_oracle, shared_tablebase
from selfplay.machines.threads import use_single_thread
from selfplay.players import PlayerError, network_folder
from selfplay.requests import AnalyseRequest
from selfplay.run.config import make_config
from selfplay.run.folder import RunFolder, RunState
from selfplay.training.exam import exam_accuracy, exam_questions

WON = "B:WK1:BK15,K18"  # two kings against one in its single corner's reach


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("network") / "tiny"
    save_checkpoint(folder, make_network(NETWORKS["tiny"]), {"steps": 0})
    return folder


def test_a_network_s_text_may_have_options():
    assert parse_network("runs/quick") == NetworkSpec("runs/quick", "tablebase", None, None)
    assert parse_network("runs/quick@off") == NetworkSpec("runs/quick", "off")
    assert parse_network("champion@800") == NetworkSpec("champion", simulations=800)
    assert parse_network("champion@impartial@ponder") == NetworkSpec("champion", ponder=True, impartial=True)
    assert parse_network("champion@800@400@off@tablebase") == NetworkSpec("champion", "tablebase", 400)
    every = NetworkSpec("a@b", "off", 5, "numba-int16")
    assert parse_network("a@b@off@5@numba-int16") == parse_network("a@b@numba-int16@5@off") == every
    tuned = NetworkSpec("x", "off", settings=(("c_puct", "1.2"), ("fpu_reduction", "0.1")))
    assert parse_network("x@c_puct=2@c_puct=1.2@off@fpu_reduction=0.1") == tuned
    assert tuned.text == "x@off@c_puct=1.2@fpu_reduction=0.1"
    for text in (
        "me@home",
        "x@c_put=1",
        "x@num_simulations=3",
        "@off",
        "@800",
        "x@",
        "x@-5",
        "x@²",
        "x@off@home",
        "x@threads:2",
        "x@openvino-int8",
        "x@2:2",
    ):
        assert parse_network(text) == NetworkSpec(text)


def test_oracles_have_names():
    assert one_of("tablebase", OracleName, "oracle") == "tablebase"
    with pytest.raises(PlayerError, match=r"'network' is no oracle: choose one of off, tablebase$"):
        one_of("network", OracleName, "oracle")


def test_a_network_s_text_names_its_backend(checkpoint: Path):
    torch.set_num_threads(2)
    try:
        player = player_of(f"{checkpoint}@off@numba", seconds=0.05)
        assert torch.get_num_threads() == 1
    finally:
        use_single_thread()
    assert isinstance(player, SearchPlayer)
    assert player.config.leaves_in_flight == BOARD_SEARCH.leaves_in_flight
    board = Board()
    assert player.choose([board])[0] in board.legal_moves
    assert isinstance(player.evaluator, NumbaEvaluator)
    with pytest.raises(PlayerError, match=r"'threads:2' is no option of .*a setting like c_puct=1.2"):
        player_of(f"{checkpoint}@threads:2")


def test_a_text_s_shortest_form():
    assert parse_network("champion@ponder@tablebase@08").text == "champion@8@ponder"
    for text in ("a@b@5@network@numba-int16@ponder@impartial", "runs/quick", "x@0@off"):
        assert parse_network(text).text == text


def test_the_text_of_a_network_goes_before_the_match(checkpoint: Path):
    player = player_of(f"{checkpoint}@7@torch", simulations=16)
    assert isinstance(player, SearchPlayer)
    assert player.config.num_simulations == 7
    assert player.think([Board()]).result(0).simulations == 7
    usual = player_of(checkpoint, simulations=16).config
    assert (usual.num_simulations, usual.draw_value) == (16, BOARD_SEARCH.draw_value)
    assert player_of(f"{checkpoint}@impartial", simulations=16).config == usual.impartial() != usual
    with pytest.raises(PlayerError, match="number of simulations is 300000, not in 0 to 200000"):
        player_of(f"{checkpoint}@300000")


def test_settings_of_the_search_go_before_all_others(checkpoint: Path):
    usual = player_of(checkpoint, simulations=16).config
    tuned = player_of(f"{checkpoint}@c_puct=1.2@transpositions=false@shot_visits=5", simulations=16).config
    assert tuned == usual.model_copy(update={"c_puct": 1.2, "transpositions": False, "shot_visits": 5})
    with pytest.raises(PlayerSpecError, match=r"@c_puct=-1: Input should be greater than 0$"):
        player_of(f"{checkpoint}@c_puct=-1")


def test_settings_that_a_search_without_noise_would_not_read_are_refused(checkpoint: Path):
    text = f"{checkpoint}@temperature=2"
    with pytest.raises(PlayerSpecError, match="@temperature=2: noise and temperature count only"):
        player_of(text)
    assert player_of(text, explore=True).config.temperature == 2


def test_who_is_to_be_impartial_is_so_whatever_its_settings_say(checkpoint: Path):
    """Analyses and an engine that is told ``contempt=false`` add it to a text with a contempt of its own."""
    wary = replace(parse_network(f"{checkpoint}@draw_value=-0.5"), impartial=True)
    assert player_of(wary.text, simulations=16).config.draw_value == 0


def test_each_oracle_is_what_it_says():
    position = np.array([[*Board(WON).words(), 0]], np.uint32)
    assert leaf_oracle(SearchConfig(oracle="off")) is None
    tables = leaf_oracle(SearchConfig(oracle="tablebase"))
    assert tables is shared_tablebase()
    assert shared_tablebase().judge(position)[0].tolist() == [WIN]


@pytest.mark.parametrize("oracle", ["off", "tablebase"])
def test_players_play_with_every_oracle(checkpoint: Path, oracle: str):
    player = player_of(f"{checkpoint}@{oracle}", simulations=16)
    board = Board(WON)
    assert player.name == (str(checkpoint) if oracle == "tablebase" else f"{checkpoint}@{oracle}")
    assert player.choose([board])[0] in board.legal_moves


def test_an_untrained_network_finishes_a_won_endgame_with_the_tables(checkpoint: Path):
    player, board = player_of(checkpoint, simulations=16), Board(WON)
    plies = shared_tablebase().probe_distance(board)
    assert plies is not None
    for left in range(plies, 0, -1):
        assert shared_tablebase().probe_distance(board) == left
        board.push(player.choose([board])[0])
    assert board.outcome() is not None
    assert not board.legal_moves


def test_analysis_shows_what_the_tables_prove(checkpoint: Path):
    request = AnalyseRequest(WON, str(checkpoint), 16, "tablebase")
    figures = analyse_command(request, quiet=True)
    assert {move["proof"] for move in figures["moves"]} & {"win"}
    for move in figures["moves"]:
        assert (move["value"] is not None) == (move["visits"] > 0 or move["proof"] is not None)


def test_positions_kept_for_validation_are_those_of_the_data_splits():
    rng = np.random.default_rng(1)
    squares = np.array([rng.choice(32, 9, replace=False) for _ in range(400)])
    own = np.bitwise_or.reduce(np.uint32(1) << squares[:, :3].astype(np.uint32), axis=1)
    opp = np.bitwise_or.reduce(np.uint32(1) << squares[:, 3:6].astype(np.uint32), axis=1)
    few = np.stack([own, opp, own | opp, np.zeros_like(own)], axis=1)
    assert (held_out(few) == (split_of(few) != TRAIN)).all()
    assert 80 < held_out(few).sum() < 160
    many = few.copy()
    many[:, 0] |= np.bitwise_or.reduce(np.uint32(1) << squares[:, 6:].astype(np.uint32), axis=1)
    assert not held_out(many).any()


def test_actors_of_a_pool_adjudicate_and_keep_no_held_out_sample():
    settings = ["selfplay.adjudicate=true", "selfplay.rescore=true", "selfplay.positions_per_shard=600"]
    config = make_config("smoke", settings)
    torch.manual_seed(0)
    network = make_network(config.network)
    knowledge = endgame_knowledge(config)
    assert knowledge.table is shared_tablebase()
    assert knowledge.leaf_oracle is None
    pool = ThreadPool(config, 0)
    pool.set_weights(Weights.of(network, "x"))
    pool.refill()
    played = []
    while not played:
        played = pool.collect(5.0)
    pool.close()
    records = list(parse_shard(played[0].shard, Path("0.shard")).iter_games())
    assert any(record.termination == "TABLEBASE" for record in records)
    for record in records:
        assert not held_out(record.samples.positions).any()


def test_the_exam_asks_only_what_nobody_trains_on(checkpoint: Path):
    questions = exam_questions(2000)
    assert held_out(questions.positions).all()
    assert (shared_tablebase().probe_wdl_many(questions.positions) == questions.values).all()
    accuracy = exam_accuracy(checkpoint, 2000)
    exam_questions.cache_clear()
    assert accuracy == exam_accuracy(checkpoint, 2000)
    assert accuracy * 2000 == pytest.approx(round(accuracy * 2000))
    assert 0.05 < accuracy < 0.95  # an untrained network


def test_networks_that_oracle_commands_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Accepts checkpoints, also with a ``config.json`` beside them, runs, ``best`` and ``champion``."""
    monkeypatch.chdir(tmp_path)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]))
    assert network_folder(None) is None
    assert network_folder("net") == Path("net")
    (tmp_path / "net" / "config.json").write_text("{}")
    assert network_folder("net") == Path("net")
    champion = network_folder("champion")
    assert champion is not None
    figures = oracle_validate_command(champion, 3, 200, 1, None, quiet=True)
    assert 0.5 < figures["accuracy"] <= 1
    with pytest.raises(PlayerError, match="has no run"):
        network_folder("best")
    run = RunFolder.create(tmp_path / "runs" / "one", make_config("smoke", []))
    save_checkpoint(run.checkpoint("000000"), make_network(NETWORKS["tiny"]))
    run.write_state(RunState(best="000000"))
    assert network_folder("best") == network_folder("runs/one") == Path("runs/one/checkpoints/000000")
