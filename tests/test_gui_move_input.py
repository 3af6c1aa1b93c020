"""Entering moves: clicks, drags, keys and text; multi-jumps and their ambiguities; why a try is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.board import Board, Move
from engine.fen import Color
from gui.game.move_input import MoveInput
from gui.game.move_reasons import why_not, why_not_piece
from gui.game.squares import cursor_step, number_at, row_column

CIRCLE = "B:W6,7,14,15:BK2"
FORK = "B:W7,15,16,24:B3,12"  # two captures of two pieces
TWO_WAYS = "B:W6,7,14,15:BK2,28"  # the circle, and nothing else may move
DIAMOND = "B:W6,7,14,15,22:BK2"  # two ways to 18, then on over 22
SPLIT = "B:W7,8,15,16:B3"  # 3x10, 3x12: jumps of a man that divide at once
SAME_ENDS = "W:WK27:B23,24,15,16"  # from 27 to 11: over 24, 16 ... or over 23, 15


def entry(fen: str = Board().fen(), colors: tuple[Color, ...] = tuple(Color), **options: bool) -> MoveInput:
    return MoveInput(Board(fen), colors, **options)


def played(moves: MoveInput, *squares: int | None) -> str:
    """Long form of the move that the last of these clicks makes, "" for none; earlier clicks must not make a move."""
    *first, last = squares
    for square in first:
        assert moves.click(square) is None, square
    move = moves.click(last)
    assert move is None or move in moves.board.legal_moves
    return str(move) if move else ""


def dragged(moves: MoveInput, *squares: int | None) -> str:
    assert moves.press(squares[0]) is None
    for square in squares[1:]:
        moves.drag(square)
    move = moves.release(squares[-1])
    return str(move) if move else ""


def test_geometry() -> None:
    assert [row_column(number) for number in (1, 4, 5, 8, 29, 32)] == [(0, 1), (0, 7), (1, 0), (1, 6), (7, 0), (7, 6)]
    assert all(number_at(*row_column(number)) == number for number in range(1, 33))
    assert number_at(0, 0) is number_at(-1, 2) is number_at(0, 9) is number_at(8, 1) is None
    assert {number_at(row, column) for row in range(8) for column in range(8)} == {None, *range(1, 33)}


def test_click_and_click() -> None:
    moves = entry()
    assert moves.movable == {9, 10, 11, 12}
    assert not moves.must_capture
    assert moves.click(11) is None
    assert (moves.selected, moves.path, moves.targets, moves.finals) == (11, (11,), {15, 16}, {15, 16})
    assert moves.click(15) == Move(11, 15)
    assert (moves.selected, moves.path, moves.targets) == (None, (), frozenset())


def test_another_piece_is_selected_instead() -> None:
    moves = entry()
    assert played(moves, 11, 10, 15) == "10-15"


def test_a_second_click_deselects() -> None:
    moves = entry()
    moves.click(11)
    moves.click(11)
    assert moves.selected is None
    moves.click(11)
    moves.click(None)
    assert moves.selected is None
    assert moves.message == ""


def test_a_drag_ends_where_the_button_is_seen_released() -> None:
    moves = entry()
    moves.press(11)
    moves.drag(15)
    assert moves.dragging
    moves.hover(15)  # the release went to another page
    assert not moves.dragging
    assert moves.release(15) is None


def test_drag() -> None:
    moves = entry()
    moves.press(11)
    assert not moves.dragging
    moves.drag(11)
    assert not moves.dragging
    moves.drag(None)
    assert moves.dragging
    moves.drag(15)
    assert moves.release(15) == Move(11, 15)
    assert not moves.dragging
    assert dragged(moves, 11, 20) == ""
    assert moves.message == "there is nothing to capture on 16"
    assert dragged(moves, 11, 10) == ""
    assert moves.message == "10 is occupied"
    assert dragged(moves, 11, 19) == ""
    assert moves.message == "a man moves one square diagonally forward"
    assert moves.path == (11,)
    assert dragged(moves, 11, None) == ""
    assert moves.message == ""
    assert dragged(moves, 10, 15, 10) == ""
    assert moves.path == (10,)
    assert moves.message == ""


def test_one_click_on_a_piece_with_one_move() -> None:
    moves = entry(one_click=True)
    assert moves.press(12) is None
    assert moves.release(12) == Move(12, 16)
    assert played(entry(one_click=False), 12) == ""
    assert played(entry(one_click=False), 12, 16) == "12-16"


def test_a_piece_with_one_move_can_still_be_dragged_and_dropped_back() -> None:
    moves = entry()
    assert dragged(moves, 12, 16, 12) == ""
    assert moves.path == (12,)
    assert dragged(moves, 12, 16) == "12-16"


@pytest.mark.parametrize("first", [12, 16])
@pytest.mark.parametrize("second", [12, 16])
def test_a_second_click_for_a_move_made_by_one_plays_nothing(first: int, second: int) -> None:
    """A user who clicks on piece and target although one click is enough must not move another piece."""
    moves = entry("B:W32:B12", one_click=True)
    assert played(moves, first) == "12-16"
    moves.set_board(Board("B:W28:B8,16"))  # 8-12 and 16-19 or 16-20 could be meant now
    assert moves.click(second) is None
    assert moves.path == ((16,) if second == 16 else ())
    assert played(moves, 12) == "8-12" if second == 12 else played(moves, 20) == "16-20"


def test_one_click_on_a_target() -> None:
    moves = entry(one_click=True)
    assert played(moves, 13) == "9-13"
    assert played(moves, 15) == ""
    assert moves.message == "choose the piece that goes to 15 first: 10-15 or 11-15"
    assert played(moves, 17) == ""
    assert moves.message == "no move goes to 17"
    assert played(entry(one_click=False), 13) == ""


def test_pressing_one_square_and_letting_go_of_another_is_no_click() -> None:
    moves = entry()
    moves.press(13)
    assert moves.release(14) is None
    assert moves.message == ""


@pytest.mark.parametrize(
    ("fen", "squares", "message"),
    [
        ("B:W18,19:B15", (15, 10), "you must capture: 15x22 or 15x24"),
        ("B:W18:B15,16", (16,), "you must capture: 15x22"),
        ("B:W18,25:B14,15", (10,), "you must capture: 14x23 or 15x29"),
        ("B:W6,7,14,15,22,23:BK2", (2, 1), "you must capture: 2x11x18x9x2, 2x9x18x25, 2x11x18x25 or another"),
        ("B:W15,20:B11,12", (11, 15), "15 is occupied"),
        ("B:W28:B11,16,20", (11, 7), "men move forward only"),
        ("W:W22,28:B1", (22, 25), "men move forward only"),
        ("B:W7,28:B11", (11, 2), "men move and capture forward only"),
        ("B:W28:B11", (11, 3), "a man moves one square diagonally forward"),
        ("B:W28:B11", (11, 18), "there is nothing to capture on 15"),
        ("B:W28:B11,15", (11, 18), "you cannot jump over your own piece on 15"),
        ("B:W28:B11", (11, 25), "a man moves one square diagonally forward"),
        ("B:W28:BK11", (11, 25), "a king moves one square along a diagonal"),
        ("B:W28:BK11", (11, 10), "a king moves one square along a diagonal"),
        ("B:W28:B1", (28,), "it is Black's move"),
        ("W:W28:B1,5", (1,), "it is White's move"),
        ("B:W9:B1,6", (1,), "you must capture: 6x13"),
        ("B:W28:B1,5,6,9", (1,), "the man on 1 is blocked"),
        ("B:W31,32:BK4,8,11,12", (4,), "the king on 4 is blocked"),
        ("B:W28:B11", (19,), "no move goes to 19"),
        ("B:W5:B1", (1,), ""),
    ],
)
def test_why_a_try_is_refused(fen: str, squares: tuple[int, ...], message: str) -> None:
    moves = entry(fen, one_click=len(squares) == 1 and fen != "B:W5:B1")
    for square in squares[:-1]:
        assert moves.click(square) is None
    assert moves.click(squares[-1]) is None
    assert moves.message == message
    moves.click(None)
    assert moves.message == ""


def test_the_other_side_and_finished_games() -> None:
    moves = entry(colors=(Color.WHITE,))
    assert moves.movable == frozenset()
    for event in (moves.press, moves.release, moves.click):
        assert event(11) is None
    assert moves.message == "it is Black's move"
    assert moves.enter_text("11-15") is None
    assert moves.message == "it is Black's move"
    over = entry("B:W5:B")
    assert played(over, 5) == ""
    assert over.message == "the game is over: no legal move"
    board = Board("B:WK32:BK1")
    for text in ("1-6", "32-28", "6-1", "28-32") * 2:
        board.push_pdn(text)
    resigned = entry()
    resigned.set_board(Board(), closed="the game is over: White resigned")
    assert resigned.movable == frozenset()
    for try_it in (lambda: resigned.click(11), lambda: resigned.enter_text("11-15")):
        assert try_it() is None
        assert resigned.message == "the game is over: White resigned"
    resigned.set_board(Board())
    assert resigned.click(11) is None
    assert resigned.selected == 11
    drawn = MoveInput(board)
    assert drawn.movable == frozenset()
    assert played(drawn, 1) == ""
    assert drawn.message == "the game is over: threefold repetition"


def test_kings_move_both_ways() -> None:
    moves = entry("B:W28:BK15")
    moves.click(15)
    assert moves.targets == {10, 11, 18, 19}
    assert moves.click(10) == Move(15, 10)


def test_a_multi_jump_at_once() -> None:
    fen = "B:W6,14,22:B1,12"
    assert played(entry(fen, one_click=True), 1) == "1x10x17x26"
    assert played(entry(fen, one_click=True), 26) == "1x10x17x26"
    assert played(entry(fen, one_click=False), 1, 10) == "1x10x17x26"
    assert played(entry(fen, one_click=False), 1, 17) == "1x10x17x26"
    assert dragged(entry(fen), 1, 26) == "1x10x17x26"
    assert dragged(entry(fen), 1, 10) == "1x10x17x26"


def test_a_multi_jump_step_by_step() -> None:
    moves = entry("B:W6,14,22:B1,12", one_click=False, auto_complete=False)
    assert moves.click(1) is None
    assert (moves.targets, moves.finals, moves.jumped) == ({10}, {26}, ())
    assert moves.click(10) is None
    assert (moves.path, moves.jumped, moves.targets) == ((1, 10), (6,), {17})
    assert moves.click(12) is None
    assert moves.message == "you must capture: 1x26"
    assert moves.selected is None
    assert played(moves, 1, 10) == ""
    assert played(moves, 23) == ""
    assert moves.message == "the jump goes on from 10 to 17"
    assert moves.path == (1, 10)
    assert moves.click(17) is None
    assert moves.jumped == (6, 14)
    assert str(moves.click(26)) == "1x10x17x26"


def test_going_back_to_the_start_begins_anew() -> None:
    moves = entry("B:W6,14,22:B1,12", one_click=False, auto_complete=False)
    moves.click(1)
    moves.click(10)
    moves.click(1)
    assert moves.path == (1,)


def test_dragging_on_in_mid_jump() -> None:
    moves = entry("B:W6,14,22:B1,12", one_click=False, auto_complete=False)
    assert dragged(moves, 1, 10) == ""
    assert moves.path == (1, 10)
    assert dragged(moves, 10, 23) == ""
    assert moves.path == (1, 10)
    assert moves.message == "the jump goes on from 10 to 17"
    assert dragged(moves, 10, 17, 26) == "1x10x17x26"


def test_what_is_carried_over_squares_is_put_back_or_entered() -> None:
    moves = entry("B:W6,7,14,15,22,23:BK2")
    moves.press(2)
    for square, path in ((9, (2, 9)), (None, (2, 9)), (18, (2, 9, 18)), (9, (2, 9)), (2, (2,)), (11, (2, 11))):
        moves.drag(square)
        assert moves.path == path
    moves.release(None)
    assert moves.path == (2,)
    plain = entry()
    plain.press(11)
    plain.drag(15)
    assert plain.path == (11,)  # a last square is entered by letting go only
    step = entry("B:W6,14,22:B1,12", one_click=False, auto_complete=False)
    step.click(1)
    step.click(10)
    step.click(10)
    assert (step.path, step.message) == ((1, 10), "")
    step.press(10)
    step.drag(1)
    assert step.path == (1, 10)  # squares clicked before are not taken back by a drag


def test_a_circle_is_one_move_by_two_paths() -> None:
    assert played(entry(CIRCLE, one_click=True), 2) == "2x11x18x9x2"
    for way in ((2, 9, 18, 11, 2), (2, 11, 18, 9, 2)):
        text = "x".join(map(str, way))
        assert played(entry(CIRCLE, one_click=False, auto_complete=False), *way) == text
        assert played(entry(CIRCLE, one_click=False), *way[:2]) == text
        assert dragged(entry(CIRCLE, auto_complete=False), *way) == text
        assert dragged(entry(CIRCLE), *way[:3]) == text


def test_a_square_in_the_middle_of_two_ways() -> None:
    """Both paths over 18 are the same move: a click there makes it, unless every square must be entered."""
    moves = entry(CIRCLE, one_click=False)
    moves.click(2)
    assert moves.targets == {9, 11}
    assert moves.finals == {2}
    assert str(moves.click(18)) in ("2x9x18x11x2", "2x11x18x9x2")
    step = entry(CIRCLE, one_click=False, auto_complete=False)
    assert played(step, 2, 18) == ""
    assert step.message == "several ways to 18: enter the jump square by square (2x9x18 or 2x11x18)"


def test_ambiguous_ends_are_entered_square_by_square() -> None:
    """The paths over 6 and 14 and over 7 and 15 capture different pieces, so these are two moves."""
    board = Board("B:W6,7,14,15,22,23:BK2")
    for end in (25, 27):
        ways = {legal.move for legal in board.legal_paths() if legal.move.end == end}
        assert len(ways) == 2
        moves = MoveInput(board)
        assert played(moves, 2, end) == ""
        assert moves.message.startswith(f"several ways to {end}: enter the jump square by square (2x9x18x")
        assert moves.path == (2,)
        assert dragged(moves, 2, 9, 18, end) == f"2x9x18x{end}"
        assert dragged(moves, 2, 11, 18, end) == f"2x11x18x{end}"
        for move in ways:
            assert played(MoveInput(board, one_click=False, auto_complete=False), *move.path) == str(move)


def test_every_legal_path_can_be_entered_in_every_manner() -> None:
    fens = [CIRCLE, FORK, TWO_WAYS, DIAMOND, SPLIT, SAME_ENDS, "W:WK10:B6,7,14,15,22,23", "B:W18,19,26,27:BK15,12"]
    for fen in fens:
        board = Board(fen)
        for legal in board.legal_paths():
            path = legal.move.path
            step = MoveInput(board, one_click=False, auto_complete=False)
            assert played(step, *path) == str(legal.move)
            assert dragged(MoveInput(board, auto_complete=False), *path) == str(legal.move)
            assert MoveInput(board).enter_text(str(legal.move)) == legal.move
            done = None
            quick = MoveInput(board, one_click=False)
            for square in path:
                done = done or quick.click(square)
            assert done == legal.move


@pytest.mark.parametrize("one_click", [False, True])
@pytest.mark.parametrize("auto_complete", [False, True])
@given(data=st.data())
def test_any_events_leave_a_sound_state(one_click: bool, auto_complete: bool, data: st.DataObject) -> None:
    board = Board(data.draw(st.sampled_from([Board().fen(), CIRCLE, FORK, DIAMOND, SAME_ENDS, "B:W18,19:B15"])))
    moves = MoveInput(board, one_click=one_click, auto_complete=auto_complete)
    events: list[Any] = [
        moves.press,
        moves.drag,
        moves.release,
        moves.click,
        moves.hover,
        moves.move_cursor,
        moves.next_square,
    ]
    events += [moves.enter, moves.cancel, moves.type_text, moves.enter_text]
    near = [None, *range(1, 33)]
    for _ in range(data.draw(st.integers(1, 25))):
        event = data.draw(st.sampled_from(events))
        argument: list = []
        if event in (moves.press, moves.drag, moves.release, moves.click, moves.hover):
            argument = [data.draw(st.sampled_from(near))]
        elif event == moves.move_cursor:
            argument = [data.draw(st.sampled_from(["left", "right", "up", "down"]))]
        elif event in (moves.type_text, moves.enter_text):
            argument = [data.draw(st.text("0123456789-x: a", max_size=9))]
        made = event(*argument)
        if isinstance(made, Move):
            board.copy().push(made)
            assert moves.path == ()
        assert moves.selected == (moves.path[0] if moves.path else None)
        assert not moves.path or any(p.move.path[: len(moves.path)] == moves.path for p in board.legal_paths())
        assert len(moves.jumped) == (len(moves.path) - 1 if moves.must_capture and moves.path else 0)
        assert "\n" not in moves.message
        assert moves.board.fen() == board.fen()


def test_hover() -> None:
    moves = entry()
    moves.hover(11)
    assert (moves.hovered, moves.hover_targets) == (11, {15, 16})
    moves.hover(5)
    assert moves.hover_targets == frozenset()
    moves.click(10)
    moves.hover(11)
    assert moves.hover_targets == frozenset()
    moves.cancel()
    moves.hover(21)
    board = Board()
    board.push_pdn("11-15")
    moves.set_board(board)
    assert moves.hover_targets == {17}


def test_cursor_steps() -> None:
    assert [cursor_step(14, way, False) for way in ("left", "right", "up", "down")] == [13, 15, 10, 18]
    assert [cursor_step(14, way, True) for way in ("left", "right", "up", "down")] == [15, 13, 18, 10]
    assert [cursor_step(1, way, False) for way in ("left", "up")] == [1, 1]
    assert [cursor_step(32, way, False) for way in ("right", "down")] == [32, 32]
    for square in range(1, 33):
        row, column = row_column(square)
        for way, (rows, columns) in {"up": (-1, 1), "down": (1, 1), "left": (0, 2), "right": (0, 2)}.items():
            there = row_column(cursor_step(square, way, False))
            assert there == (row, column) or (there[0] - row, abs(there[1] - column)) == (rows, columns)


def test_a_game_by_keys_alone() -> None:
    """Arrows and Enter alone make every move, with the board either way round."""
    board = Board()
    moves = MoveInput(board)
    for ply in range(60):
        if board.outcome():
            break
        moves.flipped = ply % 3 == 0
        goal = board.legal_moves[ply % len(board.legal_moves)]
        made = None
        for square in goal.path:
            if made:
                break
            steer(moves, square)
            made = moves.enter()
            assert moves.cursor == square
        assert made is not None
        board.push(made)
        moves.set_board(board)
    assert board.ply >= 40


def steer(moves: MoveInput, square: int) -> None:
    for _ in range(20):
        if moves.cursor == square:
            return
        if moves.cursor is None:
            moves.move_cursor("up")
            continue
        (row, place), (to_row, to_place) = divmod(moves.cursor - 1, 4), divmod(square - 1, 4)
        if row != to_row:
            way = "down" if (to_row > row) != moves.flipped else "up"
        else:
            way = "right" if (to_place > place) != moves.flipped else "left"
        moves.move_cursor(way)
    assert moves.cursor == square


def test_tab_goes_round_pieces_and_targets() -> None:
    moves = entry()
    seen = []
    for _ in range(5):
        moves.next_square()
        seen.append(moves.cursor)
    assert seen == [9, 10, 11, 12, 9]
    moves.next_square(-1)
    assert moves.cursor == 12
    moves.next_square(-1)
    assert moves.cursor == 11
    moves.enter()
    moves.next_square()
    assert moves.cursor == 15
    moves.next_square()
    assert moves.enter() == Move(11, 16)
    empty = entry("B:W5:B")
    empty.next_square()
    assert empty.cursor is None


def test_the_mouse_hides_the_cursor_and_enter_shows_it() -> None:
    moves = entry()
    assert moves.enter() is None
    assert moves.cursor in moves.movable
    moves.press(11)
    assert moves.cursor is None


def test_typed_moves() -> None:
    moves = entry()
    for character in "11-z1":
        moves.type_text(character)
    moves.type_text("9")
    assert moves.typed == "11-19"
    moves.backspace()
    moves.backspace()
    moves.type_text("15")
    assert moves.enter() == Move(11, 15)
    assert moves.typed == ""
    moves.type_text("11-15")
    assert moves.cancel()
    assert moves.typed == ""
    assert not moves.cancel()
    moves.type_text("1" * 1000)
    assert len(moves.typed) == 40
    moves.click(11)
    assert moves.typed == ""


@pytest.mark.parametrize(
    ("fen", "text", "message"),
    [
        (Board().fen(), "11-19", "a man moves one square diagonally forward"),
        (Board().fen(), "22-18", "it is Black's move"),
        (Board().fen(), "17-18", "there is no piece on 17"),
        (Board().fen(), "7-11", "11 is occupied"),
        (Board().fen(), "11-33", "there is no square 33"),
        (Board().fen(), "0-4", "there is no square 0"),
        (Board().fen(), "11", "'11' is not a move (like 11-15, 15x22 or 2x9x18)"),
        (Board().fen(), "11--15", "'11--15' is not a move (like 11-15, 15x22 or 2x9x18)"),
        (Board().fen(), "", "'' is not a move (like 11-15, 15x22 or 2x9x18)"),
        ("B:W18,19:B15,1", "1-6", "you must capture: 15x22 or 15x24"),
        ("B:W6,14,22:B1", "1x9x17x26", "from 1 to 26 goes 1x10x17x26"),
        ("B:W28:B1,5,6", "1-10", "you cannot jump over your own piece on 6"),
    ],
)
def test_typed_moves_are_refused_with_the_reason(fen: str, text: str, message: str) -> None:
    moves = entry(fen)
    assert moves.enter_text(text) is None
    assert moves.message == message


def test_typing_digits_of_other_scripts_is_no_move() -> None:
    moves = entry()
    assert moves.enter_text("١١-١٥") is None
    assert "is not a move" in moves.message


def test_cancel_in_mid_drag() -> None:
    moves = entry()
    moves.press(11)
    moves.drag(15)
    assert moves.cancel()
    assert not moves.dragging
    moves.drag(16)
    assert moves.release(15) is None
    assert moves.path == ()


def test_set_board_keeps_or_changes_the_sides() -> None:
    board = Board()
    moves = MoveInput(board, [Color.BLACK])
    moves.click(11)
    board.push_pdn("11-15")
    assert moves.path == (11,)  # the board handed in may move on; its position is taken by set_board only
    moves.set_board(board)
    assert moves.path == ()
    assert moves.movable == frozenset()
    moves.set_board(board, Color)
    assert moves.movable == {21, 22, 23, 24}


@given(st.data())
def test_reasons_agree_with_the_rules(data: st.DataObject) -> None:
    board = Board()
    for _ in range(data.draw(st.integers(0, 40))):
        if board.outcome():
            break
        board.push(data.draw(st.sampled_from(board.legal_moves)))
    start, end = data.draw(st.integers(1, 32)), data.draw(st.integers(1, 32))
    legal = [] if board.outcome() else board.legal_moves
    assert (why_not(board, start, end) == "") == any((m.start, m.end) == (start, end) for m in legal)
    assert (why_not_piece(board, start) == "") == any(m.start == start for m in legal)
