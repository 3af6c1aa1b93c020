"""The three-move ballots: the openings that tournament games are drawn to start from (American Checker Federation).

``ballots.csv`` holds the deck: 144 ``std`` openings, 12 ``mail`` openings that were added later, and 18 ``barred`` ones
that lose a piece or the game.
"""

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from .board import Board


class Ballot(NamedTuple):
    """An opening of three plies.

    Attributes:
        number: 1-174, the place in the deck.
        moves: PDN moves of Black, White and Black.
        status: ``std``, ``mail`` or ``barred``.
    """

    number: int
    moves: tuple[str, str, str]
    status: str

    def __str__(self) -> str:
        return " ".join(self.moves)


@cache
def ballots() -> tuple[Ballot, ...]:
    """The deck in its order."""
    text = files(__package__).joinpath("ballots.csv").read_text("utf-8")
    return tuple(
        Ballot(int(row["number"]), (row["move1"], row["move2"], row["move3"]), row["status"])
        for row in csv.DictReader(text.splitlines())
    )


def playable_ballots() -> tuple[Ballot, ...]:
    """The 156 ballots that are played: all but the barred ones."""
    return tuple(ballot for ballot in ballots() if ballot.status != "barred")


def ballot_board(ballot: Ballot) -> Board:
    """The board after the three moves of a ballot, White to move."""
    board = Board()
    for move in ballot.moves:
        board.push_pdn(move)
    return board
