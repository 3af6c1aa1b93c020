"""``Board``: its interface, its draw rules and its move texts, against the plain rules of reference.py."""

import itertools
import random

import pytest
import reference
from reference import START, Position

from engine.board import Board, Move, Outcome, Termination
from engine.errors import FenError, IllegalMoveError
from engine.fen import START_FEN, Color

CIRCLE = "B:W6,7,14,15:BK2"
DIAMOND = "B:W6,7,14,15:B2"  # the man reaches 18 over 6 and 14 or over 7 and 15
TWO_KINGS = "B:WK32:BK1"


def snapshot(board: Board) -> tuple:
    """Everything that the interface shows of a board."""
    return (
        board.fen(),
        board.start_fen,
        board.turn,
        board.ply,
        board.words(),
        board.history(),
        board.reversible_plies,
        board.repetitions(),
        board.move_stack.copy(),
        board.legal_moves,
        board.piece_map(),
        board.outcome(),
        str(board),
    )


def random_boards(seed: int, games: int) -> list[Board]:
    """Boards in mid-game: half from the start, half from few pieces with many kings."""
    rng = random.Random(seed)
    boards = []
    for game in range(games):
        board = Board() if game % 2 else Board(reference.random_position(rng, most=5, kings=0.7).fen())
        for _ in range(rng.randint(0, 60)):
            if board.outcome():
                break
            board.push(rng.choice(board.legal_moves))
        boards.append(board)
    return boards


def shuffle_kings(board: Board, ply: int) -> None:
    """Makes ply number ``ply`` of the repeated sequence in which both kings of TWO_KINGS move forth and back."""
    board.push_pdn(("1-6", "32-27", "6-1", "27-32")[ply % 4])


def test_start() -> None:
    board = Board()
    assert board.fen() == board.start_fen == START_FEN
    assert board.turn is Color.BLACK
    assert board.ply == board.reversible_plies == 0
    assert board.repetitions() == 1
    assert board.outcome() is None
    assert board.result() == "*"
    assert {str(move) for move in board.legal_moves} == {"9-13", "9-14", "10-14", "10-15", "11-15", "11-16", "12-16"}
    assert board.piece_map() == {number: (Color(piece.upper()), False) for number, piece in START.items()}


def test_random_games_agree_with_the_reference() -> None:
    """Moves, positions, counters and the result, ply by ply; games run on to the draw rules."""
    rng = random.Random(1)
    results = set()
    for number in range(40):
        start = Position("B", START) if number % 4 == 0 else reference.random_position(rng, most=3, kings=0.8)
        board, game = Board(start.fen()), reference.Game(start)
        while True:
            assert board.fen() == game.position.fen()
            assert board.reversible_plies == game.reversible_plies
            assert board.result() == game.result()
            assert board.turn.value == game.position.turn
            steps = reference.legal_moves(game.position)
            named = {(step.path[0], step.path[-1], tuple(sorted(step.taken))) for step in steps}
            assert {(move.start, move.end, move.captured) for move in board.legal_moves} == named
            assert len(board.legal_moves) == len(named)
            if board.outcome():
                break
            step = rng.choice(steps)
            move = board.parse_pdn("-".join(map(str, step.path)))
            assert move.path == step.path
            board.push(move)
            game.push(step)
        outcome = board.outcome()
        assert outcome is not None
        results.add((outcome.termination, outcome.result))
    assert {termination for termination, _ in results} == {Termination.NO_MOVES, Termination.REPETITION}


def test_pop_takes_back_what_push_did() -> None:
    rng = random.Random(2)
    for board in random_boards(2, 30):
        seen = [snapshot(board)]
        while not board.outcome() and len(seen) < 30:
            board.push(rng.choice(board.legal_moves))
            assert board.peek() == board.move_stack[-1]
            seen.append(snapshot(board))
        for expected in reversed(seen[:-1]):
            last = board.peek()
            assert board.pop() is last
            assert snapshot(board) == expected


def test_pop_and_peek_without_a_move() -> None:
    board = Board()
    for call in (board.pop, board.peek):
        with pytest.raises(IndexError):
            call()
    assert snapshot(board) == snapshot(Board())


def test_copy_is_independent() -> None:
    for board in random_boards(3, 20):
        other = board.copy()
        before = snapshot(board)
        assert snapshot(other) == before
        if board.legal_moves:
            other.push(other.legal_moves[0])
            assert other.ply == board.ply + 1
        other.set_fen(TWO_KINGS)
        assert snapshot(board) == before


def test_history_is_what_led_here_since_the_last_irreversible_move() -> None:
    board = Board("B:WK32,10:BK1,K2")
    seen = [board.words()]
    for text in ("1-5", "32-28", "5-1"):
        board.push_pdn(text)
        seen.append(board.words())
    assert board.history() == seen
    board.push_pdn("10-7")
    assert board.history() == [board.words()]
    board.push_pdn("2x11")
    assert board.history() == [board.words()]
    assert board.reversible_plies == 0


@pytest.mark.parametrize(
    "text", ["11-16x20", "9-18", "21-17", "12-12", "1-5", "nonsense", "", "9-13 ", "9", "0-0", "99-13"]
)
def test_illegal_moves_change_nothing(text: str) -> None:
    board = Board()
    board.push_pdn("11-15")
    board.pop()
    before = snapshot(board)
    for call in (board.parse_pdn, board.push_pdn):
        with pytest.raises(IllegalMoveError):
            call(text)
        assert snapshot(board) == before


def test_pushing_an_illegal_move_changes_nothing() -> None:
    board = Board()
    board.push_pdn("11-15")
    before = snapshot(board)
    for move in (Move(11, 15), Move(9, 13), Move(22, 15, (18,)), Move(21, 17, (18,)), Move(22, 26)):
        for call in (board.push, board.pdn):
            with pytest.raises(IllegalMoveError):
                call(move)
            assert snapshot(board) == before


def test_a_failed_set_fen_changes_nothing() -> None:
    for board in random_boards(4, 10):
        before = snapshot(board)
        with pytest.raises(FenError):
            board.set_fen("B:W33:B1")
        assert snapshot(board) == before


def test_set_fen_forgets_the_game() -> None:
    board = Board()
    board.push_pdn("11-15")
    board.set_fen("W:BK1:W32,31.")
    assert snapshot(board) == snapshot(Board("W:W31,32:BK1"))


@pytest.mark.parametrize(
    ("fen", "winner", "result"),
    [
        ("B:W21:B", Color.WHITE, "0-1"),
        ("W:W:B1", Color.BLACK, "1-0"),
        ("W:W:B", Color.BLACK, "1-0"),
        ("W:W12:B3,7,8", Color.BLACK, "1-0"),
        ("B:W25,30:B21", Color.WHITE, "0-1"),
    ],
)
def test_a_side_without_a_move_loses(fen: str, winner: Color, result: str) -> None:
    board = Board(fen)
    assert board.legal_moves == []
    assert board.outcome() == Outcome(Termination.NO_MOVES, winner)
    assert board.result() == result
    with pytest.raises(IllegalMoveError, match=f"{winner.other} has no legal move"):
        board.parse_pdn("21-17")


def test_third_occurrence_is_a_draw() -> None:
    board = Board(TWO_KINGS)
    for ply, occurrences in enumerate([1, 1, 1, 1, 2, 2, 2, 2]):
        assert board.repetitions() == occurrences
        assert board.outcome() is None
        shuffle_kings(board, ply)
    assert board.repetitions() == 3
    assert board.outcome() == Outcome(Termination.REPETITION, None)
    assert board.result() == "1/2-1/2"
    board.push_pdn("1-5")
    assert board.outcome() is None


def test_repetitions_need_not_follow_each_other() -> None:
    """The start comes back by two different ways, other positions come once or twice between."""
    board = Board("B:WK32:BK1,K2")
    seen = [board.fen()]
    for text in ("1-5", "32-28", "5-1", "28-24", "2-6", "24-20", "1-5", "20-24", "6-2", "24-28", "5-1", "28-32"):
        board.push_pdn(text)
        seen.append(board.fen())
        assert board.repetitions() == seen.count(board.fen())
    assert board.fen() == seen[0]
    assert board.repetitions() == 2


def test_eighty_plies_are_a_draw() -> None:
    """80 plies without a capture or a move of a man, and no position three times."""
    board = Board("B:WK32,K31,21,30:BK1,K2,K3,13")
    rng = random.Random(5)
    while board.reversible_plies < 80:
        assert board.outcome() is None
        quiet = []
        for move in board.legal_moves:
            if board.piece_map()[move.start][1] and not move.captured:
                board.push(move)
                if board.repetitions() < 3 and not any(reply.captured for reply in board.legal_moves):
                    quiet.append(move)
                board.pop()
        board.push(rng.choice(quiet))
    assert board.ply == 80
    assert board.outcome() == Outcome(Termination.REVERSIBLE_PLIES, None)
    assert board.result() == "1/2-1/2"


def test_no_move_left_outranks_the_draw_rules() -> None:
    """The eightieth reversible ply shuts White's last king in: White has lost, it is no draw."""
    way = [17, 13, 9, 5, 1, 6, 2, 7, 3, 8, 12, 16, 20, 24, 28, 32, 27, 23, 19, 15]
    way += way[-2::-1]  # there and back: every position comes at most twice
    black = [f"{start}-{end}" for start, end in itertools.pairwise(way)]
    board = Board("W:WK29:BK17,K18,K21,K30")
    for number, text in enumerate([*black, "17-22", "21-25"]):
        assert board.outcome() is None
        board.push_pdn("25-29" if number % 2 else "29-25")
        assert board.outcome() is None
        board.push_pdn(text)
    assert board.reversible_plies == 80
    assert board.outcome() == Outcome(Termination.NO_MOVES, Color.BLACK)


def test_a_man_move_and_a_capture_start_the_count_anew() -> None:
    board = Board("B:WK32,24:BK1,10")
    for text, count in [("1-5", 1), ("32-28", 2), ("10-14", 0), ("28-32", 1), ("5-9", 2), ("24-19", 0), ("14-17", 0)]:
        board.push_pdn(text)
        assert board.reversible_plies == count, text


def test_promotion_is_a_man_move() -> None:
    board = Board("B:WK1:B25,K5")
    board.push_pdn("25-30")
    assert board.reversible_plies == 0
    assert board.piece_map()[30] == (Color.BLACK, True)


def test_move_texts_are_read_back() -> None:
    """Every legal move by its text, its long form, and its long form with dashes."""
    checked = 0
    for board in random_boards(6, 250):
        before = snapshot(board)
        for move in board.legal_moves:
            text = board.pdn(move)
            assert ("x" in text) == bool(move.captured)
            for form in (text, str(move), str(move).replace("x", ":"), str(move).replace("x", "-")):
                assert board.parse_pdn(form) == move
            assert board.pdn(Move(move.start, move.end, move.captured)) == text
            checked += 1
        assert snapshot(board) == before
    assert checked > 500


def test_one_jump_is_told_from_a_round_trip_to_the_same_square() -> None:
    """The king may go round and home before it makes the jump that it could make at once."""
    board = Board("B:WK1,K3,K9,K10,K11,K17,K18,K25,K31:BK15")
    jump, trip = (board.parse_pdn(text) for text in ("15x8", "15x22x13x6x15x8"))
    assert (jump.captured, len(trip.captured)) == ((11,), 5)
    assert (board.pdn(jump), board.pdn(trip)) == ("15x8", "15x22x13x6x15x8")


def test_a_multiple_capture_has_a_short_text_and_every_square_in_its_long_form() -> None:
    board = Board("B:W6,14,22:B1")
    (move,) = board.legal_moves
    assert board.pdn(move) == "1x26"
    assert str(move) == "1x10x17x26"
    assert board.parse_pdn("1x17x26") == move


def test_an_ambiguous_capture_needs_the_long_form() -> None:
    board = Board(DIAMOND)
    left, right = board.parse_pdn("2x9x18"), board.parse_pdn("2x11x18")
    assert (left.captured, right.captured) == ((6, 14), (7, 15))
    assert left != right
    assert {board.pdn(move) for move in board.legal_moves} == {"2x9x18", "2x11x18"}
    with pytest.raises(IllegalMoveError, match=r"2x18 is ambiguous .* write (2x9x18 or 2x11x18|2x11x18 or 2x9x18)$"):
        board.push_pdn("2x18")
    assert board.ply == 0
    board.push_pdn("2x11x18")
    assert board.fen() == "W:W6,14:B18"


def test_two_ways_round_a_circle_are_one_move() -> None:
    board = Board(CIRCLE)
    assert len(board.legal_moves) == 1
    move = board.parse_pdn("2x2")
    assert move == Move(2, 2, (6, 7, 14, 15)) == board.parse_pdn("2x9x18x11x2") == board.parse_pdn("2x11x18x9x2")
    assert board.parse_pdn("2x11x18x9x2").path == (2, 11, 18, 9, 2)
    assert board.parse_pdn("2x11x2").path == (2, 11, 18, 9, 2)
    assert board.parse_pdn(board.pdn(move)).path == move.path
    board.push(move)
    assert board.fen() == "W:W:BK2"
    assert board.result() == "1-0"


def test_the_path_played_is_kept() -> None:
    board = Board(CIRCLE)
    for text in ("2x9x18x11x2", "2x11x18x9x2"):
        board.push_pdn(text)
        assert str(board.peek()) == text
        board.pop()
    board.push(Move(2, 2, (6, 7, 14, 15)))
    assert str(board.peek()) in ("2x9x18x11x2", "2x11x18x9x2")


@pytest.mark.parametrize(
    ("fen", "text", "message"),
    [
        (START_FEN, "9-18", r"9-18 is illegal in B:W21.*; legal: "),
        (START_FEN, "e4", r"'e4' is not a move \(like 11-15, 15x22 or 2x9x18\)"),
        (START_FEN, "x" * 1000, r"'x{40}' is not a move"),
        ("B:W18,25:B14,9", "9-13", r"9-13 is illegal in .*: Black must capture \(14x23\)"),
        ("W:W18:B14,15,9", "18-22", r"18-22 is illegal in .*: White must capture"),
        ("W:W:B1", "21-17", r"21-17 is illegal in W:W:B1: White has no legal move"),
    ],
)
def test_errors_say_what_is_wrong(fen: str, text: str, message: str) -> None:
    with pytest.raises(IllegalMoveError, match=f"^{message}") as caught:
        Board(fen).parse_pdn(text)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_words_are_seen_by_the_side_to_move() -> None:
    """A position turned by 180 degrees with colours exchanged has the same words."""
    black, white = Board("B:W21,K22:B1,K13"), Board("W:B12,K11:W32,K20")
    assert black.words() == white.words()
    own, opp, kings = black.words()
    assert (own.bit_count(), opp.bit_count(), (own & opp), (kings & own).bit_count()) == (2, 2, 0, 1)


def test_text_of_a_board() -> None:
    rows = str(Board()).splitlines()
    assert [row.split() for row in rows] == [["b"] * 4] * 3 + [["."] * 4] * 2 + [["w"] * 4] * 3
    assert [row.startswith(" ") for row in rows] == [True, False] * 4
    rows = [row.split() for row in str(Board("B:WK32,7:BK1,10")).splitlines()]
    assert (rows[0][0], rows[1][2], rows[2][1], rows[7][3]) == ("B", "w", "b", "W")
    assert sum(row.count(".") for row in rows) == 28


def test_move_text_without_a_path() -> None:
    assert str(Move(11, 15)) == "11-15"
    assert str(Move(15, 22, (18,))) == "15x22"
    assert str(Move(2, 18, (6, 14), (2, 9, 18))) == "2x9x18"
    assert Move(2, 18, (6, 14), (2, 9, 18)) == Move(2, 18, (6, 14))
    assert hash(Move(2, 18, (6, 14), (2, 9, 18))) == hash(Move(2, 18, (6, 14)))
    assert Move(2, 18, (6, 14)) != Move(2, 18, (7, 15))
