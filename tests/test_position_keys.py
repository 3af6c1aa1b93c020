"""Keys of positions: against the board, move for move; transpositions; games with moves that cannot be played."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.board import Board
from engine.fen import START_FEN
from engine.position_keys import key_of, keys_of_game

AMBIGUOUS = "B:WK2,6,7,14,15,22,23:BK10,K31"


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_keys_are_those_of_the_boards(rng: random.Random) -> None:
    board, texts, expected = Board(), [], [key_of(Board())]
    for _ in range(80):
        if board.outcome() is not None:
            break
        move = rng.choice(board.legal_moves)
        texts.append(board.pdn(move))
        board.push(move)
        expected.append(key_of(board))
    assert keys_of_game(START_FEN, texts).tolist() == expected


def test_a_position_reached_on_two_ways_has_one_key() -> None:
    one = keys_of_game(START_FEN, ["11-15", "23-19", "9-14"])
    other = keys_of_game(START_FEN, ["9-14", "23-19", "11-15"])
    assert (one == other).tolist() == [True, False, False, True]


def test_the_side_to_move_is_part_of_the_key() -> None:
    assert key_of(Board("B:W31:B2")) != key_of(Board("W:W31:B2"))
    turned = Board("W:WK31:BK2"), Board("B:WK31:BK2")  # each side sees the same
    assert turned[0].words() == turned[1].words()
    assert key_of(turned[0]) != key_of(turned[1])


def test_they_end_before_a_move_that_cannot_be_played() -> None:
    for wrong in ("11-15", "99-1", "0-4", "e3-d4"):
        assert len(keys_of_game(START_FEN, ["11-15", wrong, "8-11"])) == 2


def test_moves_with_every_square_are_followed() -> None:
    board = Board(AMBIGUOUS)
    for move in board.legal_moves:
        text = board.pdn(move)
        after = board.copy()
        after.push(move)
        assert keys_of_game(AMBIGUOUS, [text])[-1] == key_of(after), text
    assert any(board.pdn(move).count("x") > 1 for move in board.legal_moves)
