"""The perfect player of endgames, and won endgames against it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.board import Board
from engine.players import PlayerError, RandomPlayer, TablebasePlayer, make_simple_player
from engine.players.spec import TablebaseSpec
from engine.tablebase import MissingTableError, open_tablebase
from engine.tablebase.folder import SHIPPED
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay.games.openings import MatchError, Opening
from selfplay.matches.match import play_games
from selfplay.matches.record import MatchGame
from selfplay.measures.convert import convert_command, winnable, won_positions
from selfplay.requests import ConvertRequest, RequestError

LONG_WIN = "B:BK1,K2:WK12"


def play(player_a: Any, player_b: Any, board: Board) -> MatchGame:
    return next(play_games(player_a, player_b, [(0, Opening("endgame", board))]))


def test_perfect_play_takes_exactly_as_long_as_the_tables_say() -> None:
    player = TablebasePlayer(SHIPPED, seed=1)
    with open_tablebase(SHIPPED) as tables:
        for board in won_positions(4, 40, seed=3):
            plies = tables.probe_distance(board)
            game = play(player, player, board)
            assert game.score == 1.0
            assert plies == len(game.moves)


def test_the_defence_holds_what_can_be_held() -> None:
    """From positions that Black cannot win, Black's random play never beats the player, whoever is to move."""
    player, random = TablebasePlayer(SHIPPED), RandomPlayer()
    rng = np.random.default_rng(5)
    held = 0
    with open_tablebase(SHIPPED) as tables:
        while held < 20:
            first, second, third = (int(square) for square in rng.choice(32, 3, replace=False) + 1)
            board = Board(f"{'BW'[held % 2]}:BK{first},K{second}:WK{third}")
            if not board.legal_moves or tables.probe_wdl(board) == (1 if held % 2 == 0 else -1):
                continue
            assert play(random, player, board).score <= 0.5
            held += 1


def test_what_the_tables_lack_is_said(tmp_path: Path) -> None:
    player = make_simple_player(TablebaseSpec())
    assert isinstance(player, TablebasePlayer)
    assert player.name == "tablebase"
    with pytest.raises(MissingTableError, match="there are tables of at most 8 pieces; this position has 24"):
        player.choose([Board()])
    with pytest.raises(OSError, match="nowhere"):
        TablebasePlayer(tmp_path / "nowhere").choose([Board(LONG_WIN)])
    with pytest.raises(PlayerError, match="the game is over"):
        player.choose([Board("B:B1:W5,6,9,10")])


def test_won_positions() -> None:
    with open_tablebase(SHIPPED) as tables:
        for pieces in (2, 3):
            boards = won_positions(pieces, 30, seed=7)
            assert len(boards) == 30
            assert all(len(board.piece_map()) == pieces and tables.probe_wdl(board) == 1 for board in boards)
            again = [board.fen() for board in won_positions(pieces, 30, seed=7)]
            assert again == [board.fen() for board in boards]
            assert again != [board.fen() for board in won_positions(pieces, 30, seed=8)]


@pytest.fixture
def network(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]), {"steps": 0})
    return tmp_path / "net"


def convert(player: str, **options: Any) -> dict[str, Any]:
    quiet = options.pop("quiet", True)
    given: dict[str, Any] = {"pieces": 3, "positions": 12, "simulations": 8, "jobs": 1, **options}
    return convert_command(ConvertRequest(player, **given), quiet)


def test_random_weights_win_with_the_tables_and_not_without(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = convert(str(network), quiet=False)
    assert (figures["positions"], figures["possible"], figures["won"], figures["share"]) == (24, 24, 24, 1.0)
    assert [line["pieces"] for line in figures["by_pieces"]] == [2, 3]
    assert figures["not_won"] == []
    assert "100.00%" in capsys.readouterr().out
    without = convert(f"{network}@off", jobs=2)
    assert without["won"] < without["possible"] == 24
    assert len(without["not_won"]) == 24 - without["won"]
    failed = without["not_won"][0]
    assert winnable(Board(failed["fen"]), TablebasePlayer(SHIPPED))
    assert failed["termination"] in ("REPETITION", "REVERSIBLE_PLIES", "NO_MOVES")


def test_limits_that_make_no_difference_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    convert("random", positions=1, pieces=2, simulations=None, seconds=0.01, quiet=False)
    assert capsys.readouterr().err.count("random ignores time limits") == 1


def test_a_defence_that_cannot_play_wins_nothing_for_the_player(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a node of a cluster without the tables."""

    def lacking(*_: object) -> None:
        raise MissingTableError("no table of 2100")

    monkeypatch.setattr(TablebasePlayer, "_score", lacking)
    with pytest.raises(MatchError, match=r"the defence has failed: .*no table of 2100"):
        convert("random")


def test_what_cannot_be_done_is_said_before_the_first_game(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match="--pieces 6: exact values are known for 2 to 5 pieces"):
        convert(str(network), pieces=6)
    with pytest.raises(MissingTableError, match=r"no table with distances .* build it with"):
        convert(str(network), pieces=5, positions=30, folder=SHIPPED)
    monkeypatch.setattr("selfplay.measures.convert.load_tables", None)  # nothing is loaded for it
    with pytest.raises(MissingTableError, match="4100"):
        convert(str(network), pieces=5, positions=30, folder=SHIPPED)
    with pytest.raises(PlayerError, match="is no player"):
        convert(str(network / "x"))
