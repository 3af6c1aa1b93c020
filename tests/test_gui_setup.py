"""Setting up positions, and whether they can be played."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.board import Board
from engine.errors import FenError
from engine.fen import START_FEN, Color, fen_of_pieces, parse_fen
from gui.game.position_setup import Piece, PositionSetup

MEN = {color: Piece(color) for color in Color}
KINGS = {color: Piece(color, True) for color in Color}


def place(setup: PositionSetup, square: int, piece: Piece | None) -> None:
    setup.tool = piece
    if setup.pieces.get(square) != piece:
        setup.click(square)


def test_the_start_position() -> None:
    setup = PositionSetup()
    assert setup.fen() == START_FEN
    assert (setup.problems, setup.warnings) == ([], [])
    setup.clear()
    assert setup.pieces == {}
    setup.load_fen(START_FEN)
    assert setup.fen() == START_FEN


def test_changes_are_taken_back() -> None:
    setup = PositionSetup("B:W21:B1,2")
    assert not setup.changed
    setup.click(9)
    setup.set_turn(Color.WHITE)
    setup.clear()
    setup.clear()  # changes nothing, and is no change to take back
    assert setup.changed
    fens = []
    for _ in range(4):
        setup.undo()
        fens.append(setup.fen())
    assert fens == ["W:W21:B1,2,9", "B:W21:B1,2,9", "B:W21:B1,2", "B:W21:B1,2"]
    assert not setup.changed


def test_placing_and_taking_away() -> None:
    setup = PositionSetup()
    setup.clear()
    setup.tool = KINGS[Color.WHITE]
    setup.click(14)
    assert setup.pieces == {14: Piece(Color.WHITE, True)}
    setup.tool = MEN[Color.BLACK]
    setup.click(14)
    assert setup.pieces == {14: Piece(Color.BLACK)}
    setup.click(14)
    assert setup.pieces == {}
    setup.click(None)
    assert setup.pieces == {}


def test_dragging_does_what_the_click_did() -> None:
    setup = PositionSetup()
    setup.clear()
    setup.drag(9)  # the press was not on the board
    assert setup.pieces == {}
    man = Piece(Color.BLACK)
    for square in (9, 9, 10, None, 11):  # a hand that trembles, and leaves the board for a moment
        if setup.pieces:
            setup.drag(square)
        else:
            setup.click(square)
    assert setup.pieces == {9: man, 10: man, 11: man}
    setup.release()
    setup.drag(12)
    assert setup.pieces == {9: man, 10: man, 11: man}
    setup.click(9)
    setup.drag(9)
    setup.drag(10)
    assert setup.pieces == {11: man}
    setup.tool = None
    setup.click(12)
    setup.drag(11)
    assert setup.pieces == {}


def test_problems() -> None:
    setup = PositionSetup()
    place(setup, 13, MEN[Color.BLACK])
    place(setup, 32, None)
    place(setup, 31, None)
    place(setup, 32, MEN[Color.BLACK])
    place(setup, 2, MEN[Color.WHITE])
    assert setup.problems == [
        "Black has 13 pieces, more than 12",
        "the black man on 32, its promotion row, must be a king",
        "the white man on 2, its promotion row, must be a king",
    ]
    with pytest.raises(FenError, match=r"^Black has 13 pieces, more than 12$"):
        setup.fen()
    place(setup, 32, KINGS[Color.BLACK])
    place(setup, 2, KINGS[Color.WHITE])
    place(setup, 13, None)
    assert setup.problems == []
    assert setup.fen().startswith("B:W21,22,23,24,25,26,27,28,29,30,K2:B1,3")


def test_warnings() -> None:
    setup = PositionSetup()
    setup.clear()
    assert (setup.problems, setup.warnings) == ([], ["Black has no pieces", "White has no pieces"])
    setup.load_fen("B:W:B1")
    assert setup.warnings == ["White has no pieces"]
    setup.load_fen("W:W12:B3,8")
    assert setup.warnings == ["White has no legal move and loses at once"]
    setup.set_turn(Color.BLACK)
    assert setup.warnings == []


def test_a_pasted_position_may_be_in_small_letters() -> None:
    setup = PositionSetup()
    setup.load_fen("w:w k5:b1-3")
    assert setup.fen() == "W:WK5:B1,2,3"


def test_a_position_that_is_none_changes_nothing() -> None:
    setup = PositionSetup()
    setup.load_fen("W:WK5 : B1-3\n")
    before = setup.fen()
    with pytest.raises(FenError):
        setup.load_fen("B:W1:B32")
    assert setup.fen() == before
    assert before == "W:WK5:B1,2,3"


def test_cursor() -> None:
    setup = PositionSetup()
    setup.cursor = 14
    setup.move_cursor("right")
    setup.move_cursor("down")
    assert setup.cursor == 19
    setup.flipped = True
    setup.move_cursor("down")
    assert setup.cursor == 15


pieces = st.dictionaries(st.integers(1, 32), st.builds(Piece, st.sampled_from(Color), st.booleans()), max_size=32)


@given(pieces, st.sampled_from(Color))
def test_problems_are_those_of_fen(placed: dict[int, Piece], turn: Color) -> None:
    """The editor finds a position playable exactly when the FEN reader takes it."""
    setup = PositionSetup()
    setup.clear()
    setup.set_turn(turn)
    for square, piece in placed.items():
        place(setup, square, piece)
    text = fen_of_pieces(setup.turn, setup.pieces)
    if setup.problems:
        with pytest.raises(FenError):
            parse_fen(text)
        return
    board = Board(setup.fen())
    assert board.fen() == setup.fen()
    assert {number: (piece.color, piece.king) for number, piece in placed.items()} == board.piece_map()
    assert bool(setup.warnings) == (not board.legal_moves or len({p.color for p in placed.values()}) < 2)


@given(pieces)
def test_swapping_colours_twice_is_nothing(placed: dict[int, Piece]) -> None:
    setup = PositionSetup()
    setup.clear()
    for square, piece in placed.items():
        place(setup, square, piece)
    before, moves = (dict(setup.pieces), setup.turn), len(Board(setup.fen()).legal_moves) if not setup.problems else 0
    setup.swap_colors()
    assert setup.turn is Color.WHITE
    assert moves == (len(Board(setup.fen()).legal_moves) if not setup.problems else 0)
    setup.swap_colors()
    assert (setup.pieces, setup.turn) == before
