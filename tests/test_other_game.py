"""Runs and networks of Russian draughts in a process that plays English draughts; ``in_russian.py`` has the rest."""

import json
import os
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import pytest
import torch
from programs import crownhead_here
from training_runs import assert_refused

import crownhead
from crownhead_board import play
from engine.board import Board
from engine.fen import START_FEN
from engine.game import GAME_VARIABLE, OtherGameError
from engine.players.spec import parse_player
from engine.sealed import sealed, unsealed
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay.conditions import USUAL
from selfplay.engine_command import engine_command
from selfplay.games import shards
from selfplay.games.records import GameRecordBuilder
from selfplay.games.replay import ReplayBuffer
from selfplay.games_command import games_command
from selfplay.match_queue import matches_command
from selfplay.matches.commands import settings_of
from selfplay.requests import EngineRequest, GamesRequest, MatchesRequest, PlayRequest
from selfplay.run.config import make_config
from selfplay.run.reached import shards_of


def _make_russian(path: Path) -> None:
    path.write_bytes(sealed({**unsealed(path.read_bytes()), "game": "russian"}))


@pytest.fixture
def network(tmp_path: Path) -> str:
    torch.manual_seed(1)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]))
    _make_russian(tmp_path / "net" / "checkpoint.json")
    return str(tmp_path / "net")


def test_a_network_is_known_before_anything_is_loaded(network: str, tmp_path: Path) -> None:
    """So the command is started again in a process of its game: here, not in a process of a match."""
    with pytest.raises(OtherGameError, match=f"{network} is of russian draughts"):
        settings_of(parse_player(network), USUAL)
    (tmp_path / "queue").write_text(f"random {network} --openings random:3")
    with pytest.raises(OtherGameError):
        matches_command(MatchesRequest(tmp_path / "queue", tmp_path / "played"), quiet=True)


@pytest.mark.parametrize("game", ["chess", "a\0b", "\ud800"])
def test_a_game_that_is_none_is_refused(network: str, game: str) -> None:
    """The command was started again for it, and then refused a variable that nobody had set."""
    path = Path(network) / "checkpoint.json"
    path.write_text(json.dumps({**unsealed(path.read_bytes()), "game": game}))
    for arguments in (("export", network, "--out", f"{network}.onnx"), ("engine", network)):
        with patch.object(os, "execv", side_effect=AssertionError("it was started again")):
            done = crownhead_here(*arguments)
        assert_refused(done, network, "which this version does not play")


def test_shards_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(sealed(make_config("smoke").model_dump(mode="json")))
    _make_russian(tmp_path / "config.json")
    with pytest.raises(OtherGameError, match=r"config\.json is of russian draughts"):
        shards_of(tmp_path)


def test_shards_without_their_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a folder of shards nothing else tells the game, and so the command is started again in a process of it."""
    path, board = tmp_path / "0.shard", Board()
    builder = GameRecordBuilder("network", START_FEN)
    builder.add_search([*board.words(), 0], [0.2, 0.6, 0.2], None)
    builder.add_move(0)
    with monkeypatch.context() as russian:
        russian.setattr(shards, "RULES", "25,W,8,8,A0,0; moves in some order")
        path.write_bytes(shards.pack_shard([builder.finish(0, "PLY_CAP")]))
    for read in (shards.read_shard, shards.read_shard_info):
        with pytest.raises(OtherGameError, match=r"0\.shard is of russian draughts"):
            read(path)
    with pytest.raises(OtherGameError):
        games_command(GamesRequest(tmp_path, tmp_path / "games.pdn"), quiet=True)
    assert not (tmp_path / "games.pdn").exists()
    assert ReplayBuffer(tmp_path / "run").store(path.read_bytes()) is None, "a run sets it aside, and goes on"
    path.rename(tmp_path / "run" / path.name)
    ReplayBuffer(tmp_path / "run")
    assert {path.suffix for path in (tmp_path / "run").glob("*shard*")} == {".damaged"}


def test_what_plays_english_draughts_alone_refuses_at_once(network: str) -> None:
    with pytest.raises(OtherGameError):
        engine_command(EngineRequest(network))
    with pytest.raises(OtherGameError):
        play(PlayRequest(opponent=network))


def test_a_command_is_started_again_once(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two games meet the message names both things: to set a variable would help nobody."""

    class StartedAgain(BaseException):
        pass

    def start(*arguments: object) -> NoReturn:
        raise StartedAgain

    monkeypatch.setenv(GAME_VARIABLE, "")  # it is as it was after the test, whatever the command writes there
    monkeypatch.delenv(GAME_VARIABLE)
    monkeypatch.setenv(crownhead._OF_OTHER_GAME, "")
    monkeypatch.setattr(crownhead.os, "execv", start)
    monkeypatch.setattr(crownhead, "drop_code_cache", lambda: None)
    with pytest.raises(StartedAgain):
        crownhead_here("match", "random", network, "--openings", "random:3")
    monkeypatch.setenv(crownhead._OF_OTHER_GAME, "the window's board")  # as in the process that was started
    refused = crownhead_here("match", "random", network, "--openings", "random:3")
    words = f"{network} is of russian draughts, the window's board of english: they do not go together"
    assert (refused.returncode, refused.stderr) == (2, f"crownhead: {words}\n")


def test_who_has_named_the_game_is_told_to_change_it(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GAME_VARIABLE, "english")
    refused = crownhead_here("analyse", START_FEN, "--net", network)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "set CROWNHEAD_GAME=russian" in refused.stderr
