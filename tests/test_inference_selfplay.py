"""Actors and players on every backend: they play, take new weights, and say what is missing."""

import sys

import numpy as np
import pytest
from player_of import player_of
from test_inference import moderate

from engine.board import Board
from engine.search import SearchConfig
from learner.inference import BackendError, TorchEvaluator, choose_backend
from learner.inference.runtimes import OnnxRuntimeEvaluator, OpenVinoEvaluator
from learner.network import NETWORKS
from selfplay.config import ConfigError, make_config
from selfplay.players import network_player
from selfplay.shards import read_shard
from selfplay.worker import Weights, Worker

TINY = NETWORKS["tiny"]
BACKENDS = {"torch": TorchEvaluator, "onnxruntime-int8": OnnxRuntimeEvaluator, "openvino-int8": OpenVinoEvaluator}


def config(backend):
    settings = [f"selfplay.backend={backend}", "selfplay.games_in_lockstep=4", "selfplay.positions_per_shard=40"]
    return make_config("smoke", settings)


@pytest.fixture(autouse=True)
def _cpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


@pytest.mark.parametrize("backend", BACKENDS)
def test_actors_play_on_every_backend_and_take_new_weights(tmp_path, backend):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    worker = Worker(config(backend), 0, seed=1)
    networks = [moderate(TINY, seed=seed) for seed in range(2)]
    for number, network in enumerate(networks):
        played = worker.play(tmp_path / f"{number}.shard", Weights.of(network, f"digest {number}"))
        assert played.stats.evaluations > 0
        assert read_shard(tmp_path / f"{number}.shard").info.samples >= 40
    evaluator = worker._evaluator
    assert isinstance(evaluator, BACKENDS[backend])
    positions = np.array([[*Board().words(), 0]], np.uint32)
    fresh = BACKENDS[backend](networks[1], **({} if backend == "torch" else {"precision": "int8"}))
    np.testing.assert_allclose(evaluator.evaluate(positions)[0], fresh.evaluate(positions)[0], atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_seed_plays_the_same_games(tmp_path, backend):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    weights, games = Weights.of(moderate(TINY), "digest"), []
    for number in range(2):
        path = tmp_path / f"{number}.shard"
        Worker(config(backend), 0, seed=3).play(path, weights)
        games.append([list(game.moves) for game in read_shard(path).iter_games()])
    assert games[0] == games[1]


def test_auto_is_the_choice_for_the_actors_batch(tmp_path):
    worker = Worker(config("auto"), 0, seed=1)
    network = moderate(TINY)
    worker.play(tmp_path / "0.shard", Weights.of(network, "digest"))
    chosen = choose_backend(network, batch=4)
    assert worker._evaluator.backend in (chosen.name, chosen.fallback)


def test_configurations_name_backends():
    assert make_config("laptop").selfplay.backend == "auto"
    assert make_config("smoke").selfplay.backend == "torch"
    with pytest.raises(ConfigError, match=r"selfplay\.backend"):
        make_config("quick", ["selfplay.backend=abacus"])


def test_an_actor_without_its_backend_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    worker = Worker(config("openvino-int8"), 0, seed=1)
    with pytest.raises(BackendError, match=r"pip install 'crownhead\[inference\]'"):
        worker.play(tmp_path / "0.shard", Weights.of(moderate(TINY), "digest"))


@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_players_take_a_backend(backend):
    player = network_player(moderate(TINY), "tiny", SearchConfig(num_simulations=20), backend=backend, batch=2)
    board = Board()
    assert all(move in board.legal_moves for move in player.choose([board, board]))
    with pytest.raises(BackendError, match="abacus"):
        player_of("champion", backend="abacus")
