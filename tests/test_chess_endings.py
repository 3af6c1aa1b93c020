"""Chess endings solved from the rules, against python-chess and Syzygy tables, and coded without loss."""

import json
import os
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import crownhead_here

chess = pytest.importorskip("chess", reason="needs the extra papers")
from chess.syzygy import tablenames  # noqa: E402

from papers import chess_codec, chess_commands, chess_endings  # noqa: E402
from papers.chess_codec import ChessCodecError, EndingCoder  # noqa: E402
from papers.chess_coded import CHESS_FILE, read_coded, write_coded  # noqa: E402
from papers.chess_commands import decode_command, encode_command  # noqa: E402
from papers.chess_comparison import board_of, compare, draw_values  # noqa: E402
from papers.chess_endings import LEGAL, LOST, NOT_WON, Endings, Solved, endings, solve_endings  # noqa: E402
from papers.chess_moves import KING, NOBODY, WHITE, Ending, attackers, attacks, between  # noqa: E402
from papers.chess_positions import SyzygyTables  # noqa: E402
from papers.experiment import ReproduceError  # noqa: E402

SHARED = Path(os.environ.get("CROWNHEAD_SHARED", Path(__file__).parents[2] / "shared"))
FOLDER = SHARED / "data" / "syzygy"
needs_tables = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the folder ../shared with the Syzygy tables is not there"
)
TYPES = [chess.QUEEN, chess.ROOK, chess.BISHOP, chess.KNIGHT, chess.PAWN, chess.KING]
SQUARES = st.integers(0, 63)
BY_NAME = {ending.name: ending for ending in endings()}
THREE_MEN = endings()[:5]


@pytest.fixture(scope="module")
def solved() -> Endings:
    return solve_endings()


@pytest.fixture
def three_men_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the commands quick."""
    for module in (chess_codec, chess_endings):
        monkeypatch.setattr(module, "endings", lambda: THREE_MEN)


def value_of(tables: Endings, board: Any) -> str:
    """Value of a position by any board, found by trying which colour is White in the tables; kings alone draw."""
    if len(board.piece_map()) == 2:
        return "draw"
    for turned in (board, board.mirror()):
        men = [(TYPES.index(piece.piece_type), int(not piece.color), at) for at, piece in turned.piece_map().items()]
        kings = [at for color in range(2) for kind, side, at in men if kind == KING and side == color]
        others = sorted((side, kind, at) for kind, side, at in men if kind != KING)
        if len(others) == 1:
            others = [(WHITE, NOBODY, 0), *others]
        (third_color, third, third_at), (roamer_color, roamer, roamer_at) = others
        ending = Ending(third, third_color, roamer, roamer_color)
        if ending in tables.solved:
            word = (int(not turned.turn), *kings, third_at)
            lost, not_won, legal = (
                int(tables.solved[ending].sets[(kind, *word)]) >> roamer_at & 1 for kind in (LOST, NOT_WON, LEGAL)
            )
            assert legal, turned.fen()
            return "loss" if lost else ("draw" if not_won else "win")
    raise AssertionError(board.fen())


def by_one_ply(tables: Endings, board: Any) -> str:
    """Value of a position by those that its moves lead to."""
    found = set()
    for move in board.legal_moves:
        board.push(move)
        found.add(by_one_ply(tables, board) if board.has_legal_en_passant() else value_of(tables, board))
        board.pop()
    if not found:
        return "loss" if board.is_check() else "draw"
    return "win" if "loss" in found else ("draw" if "draw" in found else "loss")


def test_the_endings_are_those_of_syzygy() -> None:
    assert set(BY_NAME) == set(tablenames(piece_count=4)) - {"KvK"}
    assert len(BY_NAME) == len(endings()) == 35


@given(kind=st.integers(0, 5), color=st.integers(0, 1), square=SQUARES, occupied=st.integers(0, 2**64 - 1))
def test_attacks_are_those_of_python_chess(kind: int, color: int, square: int, occupied: int) -> None:
    def attacked(at: int) -> int:
        board = chess.Board(None)
        board.set_piece_at(at, chess.Piece(TYPES[kind], color == WHITE))
        board.occupied = occupied | 1 << at
        return int(board.attacks_mask(at))

    assert int(attacks(kind, color, square, np.uint64(occupied))) == attacked(square)
    expected = sum(1 << at for at in range(64) if attacked(at) >> square & 1 and at != square)
    assert int(attackers(kind, color, square, np.uint64(occupied))) == expected


@given(SQUARES, SQUARES)
def test_squares_between_two(a: int, b: int) -> None:
    assert int(between(a, b)) == chess.between(a, b)


@pytest.mark.slow
def test_legal_positions_are_those_of_python_chess(solved: Endings) -> None:
    source = Random(1)
    for ending in endings():
        sets = solved.solved[ending].sets
        for _ in range(300):
            white, black, third, roamer = source.sample(range(64), 4)
            for side in range(2):
                board = board_of(ending, (white, black, third, roamer), side)
                word = sets[LEGAL, side, white, black, third % ending.thirds]
                possible = board.status() & ~chess.STATUS_IMPOSSIBLE_CHECK == chess.STATUS_VALID
                assert int(word) >> roamer & 1 == possible, board.fen()


@pytest.mark.slow
def test_each_value_follows_from_those_that_moves_lead_to(solved: Endings) -> None:
    """By the moves of python-chess, promotions and captures en passant included."""
    source, seen = Random(2), set()
    for ending in endings():
        for board, value in islice(draw_values(solved, ending, source), 200):
            assert by_one_ply(solved, board) == value, (ending.name, board.fen())
            seen.add(value)
    assert len(seen) == 3


@pytest.mark.slow
def test_double_steps_that_may_be_answered_en_passant(solved: Endings) -> None:
    ending, source, answered = BY_NAME["KPvKP"], Random(3), 0
    while answered < 300:
        white, black, file = source.randrange(64), source.randrange(64), source.randrange(8)
        beside = min(7, max(0, file + source.choice((-1, 1))))
        for side, pawns in ((0, (8 + file, 24 + beside)), (1, (32 + beside, 48 + file))):
            board = board_of(ending, (white, black, *pawns), side)
            if board.status() & ~chess.STATUS_IMPOSSIBLE_CHECK == chess.STATUS_VALID:
                assert by_one_ply(solved, board) == value_of(solved, board), board.fen()
                answered += 1


@pytest.mark.slow
def test_known_lengths(solved: Endings) -> None:
    """A queen takes a rook within 31 moves, bishop and knight mate within 33 (both well known)."""
    plies = {ending.name: found.plies or 0 for ending, found in solved.solved.items()}
    assert plies["KQvKR"] == 2 * 31
    assert 2 * 33 <= plies["KBNvK"] <= 2 * 34
    assert max(plies.values()) <= 100  # so that the 50-move rule changes nothing


@pytest.mark.slow
@needs_tables
def test_values_are_those_of_syzygy(solved: Endings) -> None:
    found = compare(SyzygyTables(FOLDER), 200, 1, solved, lambda share: None)
    assert found["compared"] == 35 * 200
    assert found["endings_compared"] == 35


@pytest.mark.slow
@needs_tables
def test_a_wrong_value_is_told_with_its_position(solved: Endings) -> None:
    ending = BY_NAME["KQvK"]
    wrong = Endings()
    wrong.solved[ending] = solved.solved[ending]._replace(sets=solved.solved[ending].sets[[2, 2, 2]])
    with pytest.raises(ReproduceError, match=r"is a loss here and a (win|draw) by Syzygy's KQvK"):
        compare(SyzygyTables(FOLDER), 200, 1, wrong, lambda share: None)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most_bytes"), [("KPvK", 600), ("KRvKN", 13_000), ("KPvKP", 27_000)])
def test_an_ending_is_coded_without_loss(solved: Endings, name: str, most_bytes: int) -> None:
    rules, truth = solved.rules_of(BY_NAME[name]), solved.solved[BY_NAME[name]]
    encoder = EndingCoder()
    assert np.array_equal(encoder.code(rules, truth).sets, truth.sets)
    coded = encoder.finish()
    assert len(coded.data) < most_bytes
    decoder = EndingCoder(coded.data)
    assert np.array_equal(decoder.code(rules).sets, truth.sets)
    again = decoder.finish()
    assert (again.positions, again.digest) == (coded.positions, coded.digest)


def test_values_that_contradict_the_rules_are_refused() -> None:
    tables = solve_three_men()
    for name in ("KQvK", "KPvK"):
        rules, truth = tables.rules_of(BY_NAME[name]), tables.solved[BY_NAME[name]]
        sets = truth.sets.copy()
        sets[NOT_WON, 0, 0, 18] |= sets[LEGAL, 0, 0, 18]  # no win with White's king on a1 and Black's on c3
        with pytest.raises(ChessCodecError, match=f"values of {name} are not what the rules"):
            EndingCoder().code(rules, Solved(sets))


@pytest.mark.usefixtures("three_men_only")
def test_commands_write_and_read_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, arrays = tmp_path / "chess.coded", tmp_path / "chess.npz"
    written = encode_command(file, quiet=False)
    assert f"{written['bytes']:,} bytes for 5 chess endings" in capsys.readouterr().out
    assert written["bytes"] == file.stat().st_size < 1000
    found = decode_command(file, arrays, None, None, None, quiet=True)
    assert found["digest"] == written["digest"]
    decode_command(file, arrays, None, None, None, quiet=True)  # its own file is replaced
    with np.load(arrays) as there:
        assert set(there) == {ending.name for ending in THREE_MEN}
        assert np.array_equal(there["KPvK"], solve_three_men().solved[BY_NAME["KPvK"]].sets)
    encode_command(file, quiet=True)  # its own file is replaced
    json.dumps(found)


def solve_three_men() -> Endings:
    found = Endings()
    for ending in THREE_MEN:
        found.solved[ending] = found.rules_of(ending).solve()
    return found


@needs_tables
@pytest.mark.usefixtures("three_men_only")
def test_decoded_values_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "chess.coded"
    encode_command(file, quiet=True)
    found = decode_command(file, None, FOLDER, 20, 7, quiet=False)
    assert found["compared"] == 100
    assert "100 positions as in" in capsys.readouterr().out


@pytest.mark.usefixtures("three_men_only")
def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "chess.coded"
    write_coded(file, solve_three_men())
    good = file.read_bytes()
    for bad in (b"", good[:20], good[:-1], good + b"\0", good[:40] + b"?" + good[41:], b"CRWNNEU2" + good[8:]):
        file.write_bytes(bad)
        with pytest.raises(ChessCodecError, match=r"chess\.coded"):
            read_coded(file)
    file.write_bytes(good)
    header, data = CHESS_FILE.read(file)
    CHESS_FILE.write(file, header, data[:-4] + bytes(4))
    with pytest.raises(ChessCodecError, match="decodes to other values"):
        read_coded(file)


@pytest.mark.usefixtures("three_men_only")
def test_what_cannot_be_done_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, file, other = tmp_path / "text", tmp_path / "chess.coded", tmp_path / "other.npz"
    text.write_text("mine\n")
    np.savez(other, mine=np.arange(3))
    encode_command(file, quiet=True)
    monkeypatch.setattr(chess_commands, "solve_endings", None)
    monkeypatch.setattr(chess_commands, "read_coded", None)
    decode = partial(decode_command, quiet=True)
    for refused, why in (
        (lambda: encode_command(text, True), "holds no coded chess endings"),
        (lambda: encode_command(tmp_path / "no" / "file", True), "cannot write"),
        (lambda: decode(text, None, None, None, None), "holds no coded chess endings"),
        (lambda: decode(file, text, None, None, None), "holds no decoded chess endings"),
        (lambda: decode(file, other, None, None, None), "holds no decoded chess endings"),
        (lambda: decode(file, None, None, 5, None), "give --syzygy, too"),
        (lambda: decode(file, None, None, None, 5), "give --syzygy, too"),
        (lambda: decode(file, None, tmp_path / "no", None, None), "no such folder"),
    ):
        with pytest.raises((ValueError, OSError), match=why):
            refused()
    assert text.read_text() == "mine\n"
    with np.load(other) as there:
        assert list(there) == ["mine"]
    most = crownhead_here("reproduce", "chess-decode", file, "--syzygy", tmp_path, "--positions", 10**20)
    assert (most.returncode, "'--positions'" in most.stderr) == (2, True)
