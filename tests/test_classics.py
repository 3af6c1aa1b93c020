"""The page of classics says what the tables say, and its lines are best play."""

import json
import re
from pathlib import Path

import pytest
from programs import crownhead_here

from engine import svg
from engine.bitboard import row_column
from engine.board import Board
from engine.fen import Color
from engine.knowledge.classics import CLASSICS, PAGE, Classic, classics_command, section
from engine.knowledge.lines import Proof, Prover
from engine.tablebase import MissingTableError, Tablebase, open_tablebase
from engine.tablebase.folder import SHIPPED

FOLDER = Path(__file__).parents[1] / "docs" / "endgames"
PAGE_TEXT = (FOLDER / PAGE).read_text(encoding="utf-8")
SIDES = (Color.WHITE, Color.BLACK)


@pytest.fixture(scope="module")
def tables() -> Tablebase:
    return open_tablebase(SHIPPED)


def pieces_of(classic: Classic) -> int:
    return len(classic.board(Color.WHITE).piece_map())


def moves_after(fen: str) -> list[str]:
    """The line that the page gives for a position; [] of a draw."""
    rest = PAGE_TEXT.split(f"(`{fen}`)")[1].split("\n**")[0].split("\n##")[0]
    return re.findall(r"\d+[-x]\d+(?:x\d+)*\*?", "".join(re.findall(r"\n    .*", rest)))


@pytest.mark.parametrize("classic", CLASSICS, ids=lambda classic: classic.name)
def test_the_page_is_what_the_tables_say(classic: Classic, tables: Tablebase) -> None:
    """Where tables with distances are shipped, the page has their text; elsewhere its lines keep the shipped values."""
    prover = Prover(tables)
    if pieces_of(classic) <= 4 or pieces_of(classic) == classic.pieces.count("K") == 5:
        proofs: dict[Color, Proof | None] = {turn: prover.prove(classic.board(turn)) for turn in SIDES}
        assert section(classic, proofs) in PAGE_TEXT
    for turn in SIDES:
        board = classic.board(turn)
        for move in moves_after(board.fen()):
            best = best_value(board, tables)
            keeping = [one for one in board.legal_moves if best is None or value_after(board, one, tables) == best]
            played = board.parse_pdn(move.removesuffix("*"))
            assert played in keeping
            if best is not None:
                assert move.endswith("*") == (best == 1 and len(keeping) == 1 < len(board.legal_moves))
            board.push(played)
        if moves_after(classic.board(turn).fen()):
            assert not board.legal_moves


def value_after(board: Board, move: object, tables: Tablebase) -> int | None:
    after = board.copy()
    after.push(move)  # type: ignore[arg-type]
    if not after.legal_moves:
        return 1
    value = tables.get_wdl(after)
    return None if value is None else -value


def best_value(board: Board, tables: Tablebase) -> int | None:
    values = [value_after(board, move, tables) for move in board.legal_moves]
    return None if None in values else max(value for value in values if value is not None)


@pytest.mark.parametrize("classic", CLASSICS, ids=lambda classic: classic.name)
def test_pictures_are_the_settings(classic: Classic) -> None:
    assert (FOLDER / classic.picture).read_text() == svg.board(classic.board(Color.WHITE))
    assert f"]({classic.picture})" in PAGE_TEXT


def test_a_picture_shows_every_piece_and_names_every_free_square() -> None:
    picture = svg.board(Board("W:W27,K30:B20,K21,K9"))
    assert picture.count("<circle") == 5 + 3
    assert picture.count("<text") == 32 - 5
    assert [row_column(number)[::-1] for number in (1, 4, 5, 29, 32)] == [(1, 0), (7, 0), (0, 1), (0, 7), (6, 7)]


def test_lines_take_exactly_as_long_as_the_tables_say(tables: Tablebase) -> None:
    for fen in ("W:W20,K15:B12,K28", "W:WK17,K32:BK29,K30", "B:WK9,K27:BK10,K15,K19"):
        proof = Prover(tables).prove(Board(fen))
        assert len(proof.line) == proof.plies == tables.probe_distance(Board(fen))


def test_without_distances_lines_win_all_the_same(tables: Tablebase, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Tablebase, board: Board) -> int:
        raise MissingTableError("no distances")

    monkeypatch.setattr(Tablebase, "probe_distance", missing)
    board = Board("W:W20,K15:B12,K28")
    proof = Prover(tables).prove(board)
    assert (proof.value, proof.plies) == (1, None)
    for step in proof.line:
        board.push_pdn(step.text)
    assert board.turn is Color.BLACK
    assert not board.legal_moves


def test_a_draw_names_the_moves_that_keep_it(tables: Tablebase) -> None:
    assert Prover(tables).prove(Board("W:WK15,K23:B12,K7,K28")).keeping == ("15-19", "23-19")
    assert Prover(tables).prove(Board("B:WK32:BK26")).keeping == ()


def test_what_tables_do_not_reach_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = classics_command(SHIPPED, tmp_path, quiet=True)
    unproven = {one["name"] for one in figures["positions"] if one["value"] is None}
    assert unproven == {classic.name for classic in CLASSICS if pieces_of(classic) > 5}
    page = (tmp_path / PAGE).read_text()
    assert page.count("not proven here") == 2 * len(unproven)
    assert page.count("`crownhead tablebase build --pieces 6`") == 2  # enough for the one with six pieces
    assert capsys.readouterr().out == ""


def test_the_command(tmp_path: Path) -> None:
    done = crownhead_here("classics", "--dir", SHIPPED, "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    first = next(one for one in figures["positions"] if one["fen"] == "W:W20,K15:B12,K28")
    assert (first["value"], first["plies"], first["line"][0]) == ("win", 81, "15-19")
    assert crownhead_here("classics", "--dir", tmp_path / "none").returncode == 2
