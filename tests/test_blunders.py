"""Moves that throw away a win or a draw."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import crownhead_here

from engine.board import Board
from engine.errors import DraughtsError, PartlyReadError
from engine.pdn import PdnGame, format_game
from engine.tablebase import MissingTableError, open_tablebase
from engine.tablebase.folder import SHIPPED
from selfplay.games.openings import MatchError
from selfplay.measures.blunders import blunders_command
from selfplay.measures.decisions import drawn_decisions, move_values, recorded_decisions
from selfplay.requests import BlundersRequest, RequestError


def count(player: str | None = None, **options: Any) -> dict[str, Any]:
    quiet = options.pop("quiet", True)
    drawn = {} if player is None else {"positions": 60, "seed": 3}
    given: dict[str, Any] = {"pieces": 4, "folder": SHIPPED, **drawn, **options}
    return json.loads(json.dumps(blunders_command(BlundersRequest(player, **given), quiet)))


def plain_value(board: Board, tables: Any) -> int:
    """Value for the side to move by the tables; -1 if it cannot move."""
    return tables.probe_wdl(board) if board.legal_moves else -1


THROWN_AWAY = "B:WK14:B6,22"


@pytest.fixture
def games(tmp_path: Path) -> Path:
    """Two men against a king: Black gives one of them away, and with it the win."""
    board = Board(THROWN_AWAY)
    for text in ("6-10", "14x7", "22-26", "7-11"):
        board.push_pdn(text)
    path = tmp_path / "games.pdn"
    tags = {"Black": "Smith", "White": "Jones", "Result": "*"}
    path.write_text(format_game(PdnGame.from_board(board, tags)), encoding="utf-8")
    return path


def test_all_decisions_are_found_where_there_are_few() -> None:
    with open_tablebase(SHIPPED) as tables:
        found = drawn_decisions(2, 5000, 1, None, tables)
        assert len({one.board.words() for one in found}) == len(found) == 603
        assert [one.board.fen() for one in drawn_decisions(2, 30, 1, None, tables)] == [
            one.board.fen() for one in drawn_decisions(2, 60, 1, None, tables)[:30]
        ]


def test_a_folder_of_which_a_table_is_lacking_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A position that some table covers says nothing of the other tables."""
    monkeypatch.setattr("selfplay.measures.decisions.load_tables", lambda *_, **__: pytest.fail("it began"))
    monkeypatch.setattr("selfplay.measures.decisions.SHIPPED_PIECES", 4)
    shutil.copy(SHIPPED / "4100.wdl", tmp_path)
    monkeypatch.setattr("learner.endgame.labels.SHIPPED", tmp_path)
    with open_tablebase(SHIPPED) as tables, pytest.raises(MissingTableError, match=r"lacks tables of up to 5 pieces"):
        drawn_decisions(5, 10, 1, tmp_path, tables)


def test_moves_are_worth_what_the_tables_say() -> None:
    with open_tablebase(SHIPPED) as tables:
        decisions = drawn_decisions(4, 80, 1, None, tables)
        assert len({decision.board.words() for decision in decisions}) == 80
        for decision in decisions:
            worth = {}
            for move in decision.board.legal_moves:
                after = decision.board.copy()
                after.push(move)
                worth[after.words()] = -plain_value(after, tables)
                assert decision.value_of(move) == worth[after.words()]
            assert decision.values == worth
            assert len(set(worth.values())) > 1
            assert decision.best == tables.probe_wdl(decision.board)


def test_taking_the_last_piece_wins() -> None:
    with open_tablebase(SHIPPED) as tables:
        (values,) = move_values(np.array([Board("B:B1,K20:W6").words()], np.uint32), tables)
        assert move_values(np.zeros((0, 3), np.uint32), tables) == []
    assert list(values.values()) == [1]


def test_random_play_blunders_and_perfect_play_does_not() -> None:
    figures = count("random")
    (player,) = figures["players"]
    assert player["positions"] == sum(line["positions"] for line in player["by_pieces"]) == 60
    assert 0 < player["blunders"] == len(figures["blunders"]) < 60
    assert player["blunders"] == player["win_to_draw"] + player["win_to_loss"] + player["draw_to_loss"]
    assert player["interval"][0] < player["share"] == player["blunders"] / 60 < player["interval"][1]
    values = {"win": 1, "draw": 0, "loss": -1}
    with open_tablebase(SHIPPED) as tables:
        for blunder in figures["blunders"]:
            board = Board(blunder["fen"])
            assert plain_value(board, tables) == values[blunder["was"]]
            board.push_pdn(blunder["move"])
            assert -plain_value(board, tables) == values[blunder["became"]] < values[blunder["was"]]
    (perfect,) = count(f"tablebase:{SHIPPED}")["players"]
    assert (perfect["positions"], perfect["blunders"]) == (60, 0)


def test_limits_that_make_no_difference_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    count("random", positions=2, seconds=0.01, quiet=False)
    assert capsys.readouterr().err.count("random ignores time limits") == 1
    count("random", positions=2, quiet=False)
    assert "ignores" not in capsys.readouterr().err


def test_the_same_seed_asks_the_same() -> None:
    first = count("alphabeta:1")
    assert first == count("alphabeta:1") != count("alphabeta:1", seed=4)


def test_recorded_moves_are_judged(games: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = count(games=games, quiet=False)
    first = {"player": "Smith", "fen": THROWN_AWAY, "move": "6-10", "was": "win", "became": "draw", "better": "22-26"}
    assert figures["blunders"] == [{**first, "kind": None, "reason": None}]
    smith = figures["players"][0]
    assert (smith["player"], smith["blunders"], smith["win_to_draw"]) == ("Smith", 1, 1)
    assert "6-10: a win became a draw" in capsys.readouterr().out
    with open_tablebase(SHIPPED) as tables:
        decisions, unread = recorded_decisions(games, 4, tables)
    assert unread == []
    assert decisions[0].player == "Smith"
    (asked,) = count(f"tablebase:{SHIPPED}", games=games)["players"]
    assert (asked["positions"], asked["blunders"]) == (len(decisions), 0)


def test_reasons_are_told_where_they_are_asked_for(games: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = count(games=games, reasons=True, quiet=False)
    reason = "6-10 leaves the man on 10 to be taken: 14x7. By the tables a won ending becomes a draw."
    assert [(one["kind"], one["reason"]) for one in figures["blunders"]] == [("capture", reason)]
    told = " ".join(capsys.readouterr().out.split())
    assert f"6-10: a win became a draw. {reason}" in told


def test_a_misprinted_move_costs_one_game(games: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = count(games=games)["players"]
    game = games.read_text(encoding="utf-8")
    games.write_text(f'{game}\n[Event "misprinted"]\n1. 11-15 22-99 *\n\n{game}', encoding="utf-8")
    with pytest.raises(PartlyReadError, match=r"games left out of .*games\.pdn: 1; the first: .*22-99") as caught:
        count(games=games, quiet=False)
    figures = caught.value.figures
    assert isinstance(figures, dict)
    assert [player["positions"] for player in figures["players"]] == [2 * player["positions"] for player in expected]
    assert len(figures["unread"]) == 1
    assert "Left out: " in capsys.readouterr().out
    with pytest.raises(MatchError, match="22-99"):
        count(games=games, strict=True)
    done = crownhead_here("blunders", "--games", games, "--pieces", 4, "--json")
    assert (done.returncode, json.loads(done.stdout)["unread"]) == (2, figures["unread"])


def test_what_cannot_be_counted_is_said(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="name a PLAYER, or recorded games"):
        count()
    with pytest.raises(RequestError, match="nobody is asked for a move: leave --positions and --seconds out"):
        BlundersRequest(None, games=tmp_path / "games.pdn", positions=5, seconds=5)
    with pytest.raises(RequestError, match="leave --seed out"):
        BlundersRequest(None, games=tmp_path / "games.pdn", seed=0)
    with pytest.raises(RequestError, match="--strict is for recorded games"):
        BlundersRequest("random", strict=True)
    with pytest.raises(RequestError, match="up to 6 pieces"):
        count("random", pieces=7)
    with pytest.raises(MissingTableError, match="tablebase build --pieces 6"):
        count("random", pieces=6)
    with pytest.raises(DraughtsError, match="alphabeta"):
        count("alphabeta:x")
    (tmp_path / "short.pdn").write_text("1. 11-15 22-18 *\n", encoding="utf-8")
    with pytest.raises(MatchError, match="no move of at most 4 pieces"):
        count(games=tmp_path / "short.pdn")
    (tmp_path / "bad.pdn").write_text('[Event "x"]\n1. 11-99 *\n', encoding="utf-8")
    nothing = r"games in .*bad\.pdn: no move of at most 4 pieces could be a blunder; .* cannot be read: 1, .*11-99"
    with pytest.raises(MatchError, match=nothing):
        count(games=tmp_path / "bad.pdn")
    with pytest.raises(MatchError, match=r"bad\.pdn: .*11-99"):
        count(games=tmp_path / "bad.pdn", strict=True)
