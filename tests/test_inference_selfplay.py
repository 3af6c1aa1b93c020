"""Actors and players on every backend: they play and take new weights."""

from pathlib import Path

import numpy as np
import pytest
from player_of import player_of
from test_inference import moderate

from engine.board import Board
from engine.search import SearchConfig
from learner.inference import BackendError, make_evaluator
from learner.inference.numba_evaluator import NumbaEvaluator
from learner.inference.torch_evaluator import TorchEvaluator
from learner.network import NETWORKS
from selfplay.actors.weights import Weights
from selfplay.actors.worker import Worker
from selfplay.games.shards import parse_shard
from selfplay.players import evaluator_player
from selfplay.run.config import ConfigError, make_config

TINY = NETWORKS["tiny"]
BACKENDS = {"torch": TorchEvaluator, "numba": NumbaEvaluator, "numba-int16": NumbaEvaluator}


def config(backend):
    settings = [f"selfplay.backend={backend}", "selfplay.games_in_lockstep=4", "selfplay.positions_per_shard=40"]
    return make_config("smoke", settings)


@pytest.fixture(autouse=True)
def _cpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


@pytest.mark.parametrize("backend", BACKENDS)
def test_actors_play_on_every_backend_and_take_new_weights(backend):
    worker = Worker(config(backend), 0, seed=1)
    networks = [moderate(TINY, seed=seed) for seed in range(2)]
    for number, network in enumerate(networks):
        played = worker.play(Weights.of(network, f"digest {number}"))
        assert played.stats.evaluations > 0
        assert parse_shard(played.shard, Path("0.shard")).info.samples >= 40
    _, evaluator = worker._actors[False]
    assert isinstance(evaluator, BACKENDS[backend])
    positions = np.array([[*Board().words(), 0]], np.uint32)
    fresh = make_evaluator(networks[1], backend)
    np.testing.assert_allclose(evaluator.evaluate(positions)[0], fresh.evaluate(positions)[0], atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_seed_plays_the_same_games(backend):
    weights, games = Weights.of(moderate(TINY), "digest"), []
    for _ in range(2):
        played = Worker(config(backend), 0, seed=3).play(weights)
        games.append([list(game.moves) for game in parse_shard(played.shard, Path("0.shard")).iter_games()])
    assert games[0] == games[1]


def test_auto_is_the_kernels():
    worker = Worker(config("auto"), 0, seed=1)
    worker.play(Weights.of(moderate(TINY), "digest"))
    assert worker._actors[False][1].backend == "numba-int16"


def test_configurations_name_backends():
    assert make_config("laptop").selfplay.backend == "auto"
    assert make_config("smoke").selfplay.backend == "torch"
    with pytest.raises(ConfigError, match=r"selfplay\.backend"):
        make_config("quick", ["selfplay.backend=abacus"])


@pytest.mark.parametrize("backend", ["torch", "torch-float32", "numba"])
def test_players_take_a_backend(backend):
    evaluator = make_evaluator(moderate(TINY), backend)
    player = evaluator_player("tiny", evaluator, SearchConfig(num_simulations=20))
    board = Board()
    assert all(move in board.legal_moves for move in player.choose([board, board]))
    with pytest.raises(BackendError, match="abacus"):
        player_of("champion", backend="abacus")
