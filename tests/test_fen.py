"""FEN: round trips, other ways to write the same, every kind of error, and arbitrary text."""

import random

import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st

from engine import fen as fen_module
from engine.board import Board
from engine.errors import FenError, IllegalMoveError
from engine.fen import START_FEN, Color, format_fen, parse_fen, to_number, to_square

positions = st.builds(
    lambda seed, most, kings: reference.random_position(random.Random(seed), most, kings),
    st.integers(0, 2**32),
    st.integers(1, 12),
    st.floats(0, 1),
)


def canonical(fen: str) -> str:
    return format_fen(*parse_fen(fen))


@given(positions)
def test_random_positions_come_back(position: reference.Position) -> None:
    fen = position.fen()
    assert canonical(fen) == fen
    board = Board(fen)
    assert board.fen() == fen
    expected = {n: (Color(piece.upper()), piece.isupper()) for n, piece in position.pieces.items()}
    assert board.piece_map() == expected


@given(positions, st.randoms(use_true_random=False))
def test_order_does_not_matter(position: reference.Position, rng: random.Random) -> None:
    """Sides and squares may come in any order, with an optional dot at the end and spaces around."""
    turn, *sides = position.fen().split(":")
    shuffled = []
    for side in sides:
        pieces = side[1:].split(",") if side[1:] else []
        rng.shuffle(pieces)
        shuffled.append(side[0] + ",".join(pieces))
    rng.shuffle(shuffled)
    text = ":".join([turn, *shuffled])
    assert canonical(text) == canonical(text + ".") == canonical(f" {text}\n") == position.fen()


@pytest.mark.parametrize(
    ("fen", "written"),
    [
        ("B:W21-32:B1-12", START_FEN),
        ("B:B1-12:W21-32.", START_FEN),
        ("W:WK1-3:BK30,7", "W:WK1,K2,K3:B7,K30"),
        ("W:W5-5:B", "W:W5:B"),
        ("B:W:B", "B:W:B"),
        ("B:W21,22,K23:B1-4,K30", "B:W21,22,K23:B1,2,3,4,K30"),
        ("B:W05:B08", "B:W5:B8"),
        ("w:w21,k22:b1:H0:F12", "W:W21,K22:B1"),
        ("B:W21:B1:H3.", "B:W21:B1"),
    ],
)
def test_other_ways_to_write(fen: str, written: str) -> None:
    assert canonical(fen) == written


@pytest.mark.parametrize(
    ("fen", "message"),
    [
        ("", "1 parts between colons, not 3"),
        ("B:W21", "2 parts between colons, not 3"),
        ("B:W21:B1:W3", "4 parts between colons, not 3"),
        ("rnbqkbnr/pppppppp/8/8 w", "1 parts between colons"),
        ("x:W21:B1", "side to move is 'X', not B or W"),
        ("B:W21:B1:H", "4 parts between colons, not 3"),
        ("B:W21:H0", "the pieces 'H0' do not begin with B or W"),
        (":W21:B1", "side to move is '', not B or W"),
        ("B:21:B1", "pieces '21' do not begin with B or W"),
        ("B::B1", "pieces '' do not begin with B or W"),
        ("B:W21:W22", "pieces of W are given twice"),
        ("B:W21,:B1", "'' is not a square"),
        ("B:W21,,22:B1", "'' is not a square"),
        ("B:WX5:B1", "'X5' is not a square"),
        ("B:WKK5:B1", "'KK5' is not a square"),
        ("B:W21;22:B1", "'21;22' is not a square"),
        ("B:W2 1:B1", "'2 1' is not a square"),
        ("B:W123:B1", "'123' is not a square"),
        ("B:WK5-K7:B1", "'K5-K7' is not a square"),
        ("B:W-5:B1", "'-5' is not a square"),
        ("B:W5-:B1", "'5-' is not a square"),
        ("B:W٣:B1", "is not a square"),
        ("B:W0:B1", "'0' is outside squares 1 to 32"),
        ("B:W33:B1", "'33' is outside squares 1 to 32"),
        ("B:W30-33:B1", "'30-33' is outside squares 1 to 32"),
        ("B:W9-7:B1", "'9-7' is outside squares 1 to 32"),
        ("B:W21,21:B1", "square 21 is given twice"),
        ("B:W21,K21:B1", "square 21 is given twice"),
        ("B:W21-24,23-25:B1", "square 23 is given twice"),
        ("B:W7,9:BK9", "square 9 holds pieces of both sides"),
        ("B:W20-32:B1", "White has 13 pieces, more than 12"),
        ("B:W32:BK1-13", "Black has 13 pieces, more than 12"),
        ("B:W4,9:B12", "a man of White on 4, its promotion row .write K4."),
        ("B:W21:B29", "a man of Black on 29, its promotion row .write K29."),
    ],
)
def test_malformed(fen: str, message: str) -> None:
    for read in (parse_fen, Board):
        with pytest.raises(FenError, match=message) as caught:
            read(fen)
        assert isinstance(caught.value, ValueError)
        assert "\n" not in str(caught.value)


@given(st.text() | st.text("BWK0123456789,:-. ") | st.from_regex(r"[BW]:[BW][K0-9,\-]*:[BW][K0-9,\-]*", fullmatch=True))
@example("B:W" + "9" * 5000 + ":B1")  # more digits than int() takes
@example("\x00:\ud800:\n")
def test_any_text_is_a_position_or_a_fen_error(text: str) -> None:
    try:
        written = canonical(text)
    except FenError:
        return
    assert canonical(written) == written
    assert Board(text).fen() == written


@given(st.text() | st.text("0123456789-x: ") | st.from_regex(r"[0-9]{1,2}([-x:][0-9]{1,2}){1,4}", fullmatch=True))
@example("9-" + "9" * 5000)
@example("٩-١٣")
@example("9-13\n")
def test_any_text_is_a_move_or_an_illegal_move_error(text: str) -> None:
    for fen in (START_FEN, "B:W6,7,14,15:BK2", "W:W:B1"):
        board = Board(fen)
        try:
            move = board.parse_pdn(text)
        except IllegalMoveError:
            continue
        assert move in board.legal_moves


def test_numbers_and_squares() -> None:
    for color in Color:
        assert sorted(to_square(number, color) for number in range(1, 33)) == list(range(32))
        assert all(to_number(to_square(number, color), color) == number for number in range(1, 33))
    assert to_square(1, Color.BLACK) == to_square(32, Color.WHITE) == 0


def test_long_texts_are_read_but_not_remembered() -> None:
    before = fen_module._parsed.cache_info().misses
    for spaces in range(1000, 1010):
        assert parse_fen("W:WK10:BK20" + " " * spaces)[1:] == parse_fen("W:WK10:BK20")[1:]
    assert fen_module._parsed.cache_info().misses <= before + 1


def test_spaces_around_pieces_are_read_over() -> None:
    """Other programs and people write them."""
    assert parse_fen(" B:W21, K22 :B 1,2 ") == parse_fen("B:W21,K22:B1,2")
