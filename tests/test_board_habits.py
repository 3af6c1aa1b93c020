"""``Board`` and its pictures beside the obvious: a dict of pieces, and the moves of reference.py."""

import copy
import pickle
import random
from xml.etree import ElementTree

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from test_board import CIRCLE, DIAMOND, random_boards, snapshot

from engine import svg
from engine.bitboard import row_column
from engine.board import Board, Move
from engine.errors import AmbiguousMoveError, FenError, IllegalMoveError, InvalidMoveError
from engine.fen import EMPTY_FEN, START_FEN, Color, Piece

SEEDS = st.integers(0, 10_000)
SVG = "{http://www.w3.org/2000/svg}"


def board_of(seed: int) -> Board:
    """A board in mid-game."""
    return random_boards(seed, 2)[seed % 2]


@given(SEEDS, st.integers(0, 12))
def test_pieces_are_those_of_the_reference(seed: int, most: int) -> None:
    position = reference.random_position(random.Random(seed), most=max(most, 1), kings=0.5)
    board = Board(position.fen())
    assert {number: piece.symbol() for number, piece in board.piece_map().items()} == position.pieces
    for number in range(1, 33):
        piece = board.piece_at(number)
        assert (piece.symbol() if piece else None) == position.pieces.get(number)
        assert board.color_at(number) == (piece.color if piece else None)
        assert piece is None or Piece.from_symbol(piece.symbol()) == piece
    for number in (0, 33, -1):
        with pytest.raises(IndexError, match="outside 1 to 32"):
            board.piece_at(number)


@given(SEEDS)
def test_the_mirror_shows_the_same_game_from_the_other_side(seed: int) -> None:
    board = board_of(seed)
    other = board.mirror()
    assert other.turn is board.turn.other
    assert other.words() == board.words()
    assert {33 - number: (piece.color.other, piece.king) for number, piece in board.piece_map().items()} == (
        other.piece_map()
    )
    assert [move.mirror() for move in board.legal_moves] == other.legal_moves
    again = other.root()
    for move in other.move_stack:
        again.push(move)
    assert snapshot(again) == snapshot(other)
    assert snapshot(other.mirror()) == snapshot(board)
    assert (other == board) == (not board.piece_map())


@given(SEEDS)
def test_copies_are_equal_and_independent(seed: int) -> None:
    board = board_of(seed)
    before = snapshot(board)
    for other in (board.copy(), copy.copy(board), copy.deepcopy(board), pickle.loads(pickle.dumps(board))):
        assert snapshot(other) == before
        assert other == board
        if board.legal_moves:
            other.push(other.legal_moves[-1])
            assert other != board
        other.clear()
        assert snapshot(board) == before
    assert snapshot(board.root()) == snapshot(Board(board.start_fen))
    assert snapshot(board.copy(stack=False)) == snapshot(Board(board.fen()))


def test_equal_boards_have_the_same_position_and_counter() -> None:
    first, second = Board("B:WK32:BK1"), Board("B:WK32:BK1")
    assert first == second
    assert first != Board("W:WK32:BK1")
    assert first != first.fen()
    for text in ("1-5", "32-28", "5-1", "28-32"):
        second.push_pdn(text)
    assert (first.fen(), first.reversible_plies) != (second.fen(), second.reversible_plies)
    assert first != second
    left, right = Board(), Board()
    for one, other in zip(("9-13", "22-18", "12-16"), ("12-16", "22-18", "9-13"), strict=True):
        left.push_pdn(one)
        right.push_pdn(other)
    assert left == right
    with pytest.raises(TypeError):
        hash(first)
    assert repr(Board(CIRCLE)) == f"Board({CIRCLE!r})"
    assert eval(repr(first)) == first


@given(SEEDS)
def test_a_move_is_legal_if_it_can_be_made(seed: int) -> None:
    board = board_of(seed)
    steps = reference.legal_moves(reference.Position(board.turn.value, _symbols(board)))
    for move in [
        *board.legal_moves,
        Move(1, 6),
        Move(32, 27),
        *(Move(move.end, move.start) for move in board.legal_moves),
    ]:
        fits = [step for step in steps if (step.path[0], step.path[-1]) == (move.start, move.end)]
        legal = any(tuple(sorted(step.taken)) == move.captured for step in fits)
        assert board.is_legal(move) == legal
        if len({frozenset(step.taken) for step in fits}) > 1:
            with pytest.raises(AmbiguousMoveError):
                board.find_move(move.start, move.end)
        elif fits:
            found = board.find_move(move.start, move.end)
            assert found.captured == tuple(sorted(fits[0].taken))
        else:
            with pytest.raises(IllegalMoveError):
                board.find_move(move.start, move.end)
        if legal:
            piece = board.piece_at(move.start)
            assert piece is not None
            after = board.copy()
            after.push(move)
            assert board.is_capture(move) == (len(after.piece_map()) < len(board.piece_map()))
            assert board.is_zeroing(move) == (board.is_capture(move) or not piece.king) == (after.reversible_plies == 0)
    assert board.is_game_over() == (board.outcome() is not None)
    assert [board.is_repetition(count) for count in (1, 2, 3)] == [count <= board.repetitions() for count in (1, 2, 3)]


def _symbols(board: Board) -> dict[int, str]:
    return {number: piece.symbol() for number, piece in board.piece_map().items()}


def test_errors_of_moves_have_kinds() -> None:
    board = Board(DIAMOND)
    assert not board.is_legal(Move(2, 18))
    assert not board.is_legal(Move(2, 18, (6, 14), (2, 11, 18)))
    with pytest.raises(AmbiguousMoveError, match=r"write 2x\d+x18 or 2x\d+x18$"):
        board.find_move(2, 18)
    with pytest.raises(AmbiguousMoveError):
        board.push_pdn("2x18")
    for text in ("e4", "", "2"):
        with pytest.raises(InvalidMoveError):
            board.parse_pdn(text)
    with pytest.raises(IllegalMoveError) as caught:
        board.parse_pdn("2-7")
    assert type(caught.value) is IllegalMoveError
    assert isinstance(caught.value, ValueError)
    assert Board(CIRCLE).find_move(2, 2) == Board(CIRCLE).legal_moves[0]


@given(SEEDS)
def test_a_line_is_written_as_it_is_played(seed: int) -> None:
    board = board_of(seed)
    line, texts = board.move_stack, board.root().pdn_line(board.move_stack)
    again = board.root()
    assert [again.push_pdn(text) for text in texts] == line
    if line:
        with pytest.raises(IllegalMoveError):
            board.root().pdn_line([Move(32, 1)])


@given(SEEDS, st.dictionaries(st.integers(1, 32), st.sampled_from("bwBW"), max_size=8))
def test_pieces_put_down_stand_there(seed: int, wanted: dict[int, str]) -> None:
    board, expected = Board.empty(), {}
    board.turn = list(Color)[seed % 2]
    for number, symbol in wanted.items():
        before, piece = snapshot(board), Piece.from_symbol(symbol)
        if (symbol == "b" and number >= 29) or (symbol == "w" and number <= 4):
            with pytest.raises(FenError):
                board.set_piece_at(number, piece)
            assert snapshot(board) == before
        else:
            board.set_piece_at(number, piece)
            expected[number] = piece
        assert board.piece_map() == expected
    for number in list(wanted):
        assert board.remove_piece_at(number) == expected.pop(number, None)
        assert board.piece_map() == expected
    assert (board.fen()[2:], board.turn) == (EMPTY_FEN[2:], list(Color)[seed % 2])


def test_setting_up_forgets_the_game() -> None:
    board = Board()
    board.push_pdn("11-15")
    board.turn = Color.BLACK
    assert (board.ply, board.piece_at(15), board.piece_at(11)) == (0, Piece(Color.BLACK), None)
    assert board.fen().startswith("B:W21,")
    board.set_piece_map({1: Piece(Color.BLACK), 32: Piece(Color.WHITE, True)})
    assert board.fen() == "B:WK32:B1"
    board.clear()
    assert snapshot(board) == snapshot(Board.empty())
    board.reset()
    assert snapshot(board) == snapshot(Board(START_FEN))
    for wrong in (0, 33):
        with pytest.raises(IndexError, match="outside 1 to 32"):
            board.set_piece_at(wrong, Piece(Color.BLACK))
    for wrong_symbol in ("", "x", "bw", "K"):
        with pytest.raises(ValueError, match="is no piece"):
            Piece.from_symbol(wrong_symbol)


@given(SEEDS, st.sampled_from(Color))
def test_a_picture_has_every_piece_in_its_place(seed: int, orientation: Color) -> None:
    board = board_of(seed)
    picture = ElementTree.fromstring(svg.board(board, orientation=orientation))
    found = {}
    for circle in picture.iter(f"{SVG}circle"):
        place = int(circle.get("cy", "")) // 32, int(circle.get("cx", "")) // 32
        number = next(number for number in range(1, 33) if row_column(number) == place)
        number = number if orientation is Color.WHITE else 33 - number
        if circle.get("r") == "12":
            white = circle.get("fill") == svg.COLORS["white"]
            found[number] = Piece(Color.WHITE if white else Color.BLACK)
        else:
            found[number] = found[number]._replace(king=True)
    assert found == board.piece_map()
    numbers = {int(text.text or "") for text in picture.iter(f"{SVG}text")}
    assert numbers == set(range(1, 33)) - found.keys()


def test_a_picture_shows_what_is_asked_for() -> None:
    board = Board()
    board.push_pdn("11-15")
    plain = svg.board(board)
    assert plain._repr_svg_() == plain == svg.board(board, lastmove=None)
    assert board._repr_svg_() == svg.board(board, lastmove=board.peek()) != plain
    assert plain.count("<rect") == 33
    assert svg.board(board, coordinates=False).count("<text") == 0
    last = svg.board(board, lastmove=board.peek(), colors={"square lastmove": "gold"})
    assert last.count('fill="gold"') == 2
    assert svg.board(board, lastmove=board.peek(), fill={15: "#123456"}).count(svg.COLORS["square lastmove"]) == 1
    assert svg.board(board, squares=[18, 19]).count("<path") == 2
    arrows = svg.board(board, arrows=[(22, 18), svg.Arrow(23, 19, "red"), (18, 18)])
    assert (arrows.count("<line"), arrows.count("<polygon"), arrows.count('r="14"')) == (2, 2, 1)
    assert arrows.count('fill="red"') == 1
    assert 'width="400" height="400"' in svg.board(board, size=400)
    ElementTree.fromstring(svg.board(board, fill={15: '"/><script>'}, colors={"white": "<&"}))
    for wrong in ({"squares": [0]}, {"arrows": [(1, 33)]}, {"fill": {40: "red"}}, {"lastmove": Move(0, 5)}):
        with pytest.raises(ValueError, match="outside 1 to 32"):
            svg.board(board, **wrong)
    with pytest.raises(ValueError, match="no colour is called 'dark'"):
        svg.board(board, colors={"dark": "black"})


def test_the_list_of_legal_paths_is_the_callers_own() -> None:
    board = Board()
    other = board.copy()
    board.legal_paths().clear()
    assert len(board.legal_moves) == len(other.legal_moves) == 7


def test_a_piece_of_no_colour_is_refused() -> None:
    board = Board("B:W18:B11")
    with pytest.raises(FenError, match="the piece on 11"):
        board.set_piece_at(11, Piece(True, Color.BLACK))  # type: ignore[arg-type]  # as python-chess orders them
    assert board.fen() == "B:W18:B11"
    with pytest.raises(FenError, match="the side to move is True"):
        board.turn = True  # type: ignore[assignment]  # chess.WHITE
    with pytest.raises(ValueError, match="orientation is True"):
        svg.board(board, orientation=True)  # type: ignore[arg-type]
    assert board.fen() == "B:W18:B11"


def test_kings_may_come_from_arrays() -> None:
    board = Board.empty()
    board.set_piece_map({11: Piece(Color.BLACK, np.bool_(True)), 18: Piece(Color.WHITE, np.bool_(False))})  # type: ignore[arg-type]
    assert board.fen() == "B:W18:BK11"
