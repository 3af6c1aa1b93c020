"""What a puzzle is."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from ..board import Board, Move


class Goal(StrEnum):
    """What the only move does, and no other: it wins, or it draws where all others lose."""

    WIN = "win"
    DRAW = "draw"


class Theme(StrEnum):
    """What a puzzle is about; see ``themes.theme_of``. Shots by the pieces that are offered."""

    SHOT_1 = "shot-1"
    SHOT_2 = "shot-2"
    SHOT_3 = "shot-3"
    SHOT_4 = "shot-4"
    CAPTURE = "capture"
    BREAKTHROUGH = "breakthrough"
    FIRST_POSITION = "first-position"
    OPPOSITION = "opposition"
    ENDING = "ending"
    ATTACK = "attack"
    DEFENCE = "defence"


class Proof(StrEnum):
    """How it is known that the move is the only one: tables know all moves, a search has proven all, or its values are
    far apart."""

    TABLES = "tables"
    SOLVED = "solved"
    VALUES = "values"


@dataclass(frozen=True)
class Puzzle:
    """A position with one right move.

    Attributes:
        fen: the side to move is to solve it.
        line: moves in PDN: the solution and how it goes on.
        asked: plies of the line that are played; the solver makes the first, the third and so on, each the only one
            that is right, the opponent the others, each forced. Odd.
        rating, deviation: of its difficulty, in the numbers of Glicko-2 (``glicko``).
    """

    fen: str
    line: tuple[str, ...]
    asked: int
    goal: Goal
    theme: Theme
    proof: Proof
    rating: int
    deviation: int

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The line's moves; raises ``DraughtsError`` if they cannot be made."""
        board = Board(self.fen)
        return tuple(board.push_pdn(text) for text in self.line)
