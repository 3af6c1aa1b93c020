"""The three-move deck: its numbers, that every opening is legal, and that another library deals the same."""

from collections import Counter

import pytest

from engine.ballots import Ballot, ballot_board, ballots, playable_ballots
from engine.board import Board
from engine.fen import Color


def test_the_deck() -> None:
    deck = ballots()
    assert [ballot.number for ballot in deck] == list(range(1, 175))
    assert Counter(ballot.status for ballot in deck) == {"std": 144, "mail": 12, "barred": 18}
    assert len({ballot.moves for ballot in deck}) == 174
    assert deck[0] == Ballot(1, ("9-13", "21-17", "5-9"), "std")
    assert str(deck[0]) == "9-13 21-17 5-9"


def test_by_status() -> None:
    assert len(playable_ballots()) == 156
    assert {ballot.status for ballot in playable_ballots()} == {"std", "mail"}


def test_every_ballot_is_legal() -> None:
    boards = [ballot_board(ballot) for ballot in ballots()]
    assert all(board.turn is Color.WHITE and board.ply == 3 and board.outcome() is None for board in boards)
    for board, ballot in zip(boards, ballots(), strict=True):
        replayed = [str(move).replace("x", "-") for move in board.move_stack]
        assert replayed == [move.replace("x", "-") for move in ballot.moves]


def test_pydraughts_deals_the_same_deck() -> None:
    library = pytest.importorskip("draughts.ballots", reason="pydraughts (a development dependency) is not installed")
    deck = library.Ballots("english", moves=3)
    theirs = {int(name.split()[0]): Board(fen).fen() for name, fen in deck.positions.items()}
    assert theirs == {ballot.number: ballot_board(ballot).fen() for ballot in ballots()}
    # Its list of lost openings names 13 twice and 26 not at all, so 26 is dealt by mistake.
    dealt = {int(name.split()[0]) for name in deck.keys}
    assert dealt - {26} == {ballot.number for ballot in playable_ballots()}
