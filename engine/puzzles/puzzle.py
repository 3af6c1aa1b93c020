"""The data of a puzzle."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from ..board import Board, Move


class Goal(StrEnum):
    """Result of the only right move: it wins while no other move wins, or it draws while all others lose."""

    WIN = "win"
    DRAW = "draw"


class Theme(StrEnum):
    """Theme of a puzzle, see ``themes.theme_of``. The number of a shot is the number of pieces that are offered."""

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
    """How it is known that only one move is right: the tables cover all moves, a search has proven all moves, or the
    values of a search are far apart."""

    TABLES = "tables"
    SOLVED = "solved"
    VALUES = "values"


@dataclass(frozen=True)
class Puzzle:
    """A position with one right move.

    Attributes:
        fen: the position; the side to move is the solver.
        line: moves in PDN: the solution and its continuation.
        asked: number of plies of the line that are played, odd. The solver makes the first, the third and so on, each
            the only right move; the opponent's moves in between are forced.
        rating, deviation: Glicko-2 rating of the difficulty, and its deviation (``glicko``).
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
        """The moves of the line; raises ``DraughtsError`` if one is illegal."""
        board = Board(self.fen)
        return tuple(board.push_pdn(text) for text in self.line)
