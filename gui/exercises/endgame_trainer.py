"""The endgame trainer: random positions of a class of endings, played against the tables. No pygame."""

from typing import NamedTuple, Self

import numpy as np

from engine.board import Board
from engine.errors import DraughtsError
from engine.fen import Color, format_fen
from engine.knowledge.drawing import draw_positions
from engine.knowledge.lines import known_moves, plies_of
from engine.puzzles.puzzle import Goal
from engine.tablebase import Tablebase
from engine.tablebase.material import Material, parse_name

from .ending_exercise import DEEDS, VALUES, Ending, EndingExercise, counted

_CANDIDATES = 24  # positions drawn, of which the hardest is asked
_LEAST_MOVES, _UNKNOWN_MOVES = 10, 40  # moves allowed for a win: smallest number, and number without a distance
_HOLDING_MOVES = 10


class EndingClass(NamedTuple):
    """A class of endings to train: material and goal. The player is to move and has the ``own`` pieces."""

    material: Material
    goal: Goal

    @property
    def key(self) -> str:
        """Name of the slice and the goal, like ``2100 win``."""
        return f"{self.material.name} {self.goal}"

    @classmethod
    def of_key(cls, key: str) -> Self:
        """The class of a key; raises ``ValueError`` if the text is not one."""
        name, _, goal = key.partition(" ")
        return cls(parse_name(name), Goal(goal))

    @property
    def title(self) -> str:
        own_men, own_kings, opp_men, opp_kings = self.material
        return f"{DEEDS[self.goal]}: {_pieces(own_men, own_kings)} against {_pieces(opp_men, opp_kings)}"


def _pieces(men: int, kings: int) -> str:
    counts = counted(kings, "king") if kings else "", counted(men, "man", "men") if men else ""
    return " and ".join(filter(None, counts))


def draw_ending(tables: Tablebase, kind: EndingClass, hard: bool, rng: np.random.Generator) -> Ending | None:
    """Draws an ending of a class; None if no position with this result was found, or no table covers the class.

    Args:
        hard: whether to take the hardest of several positions: the one with the longest win. Without distances, and to
            hold a draw, the one where the largest fraction of moves gives the result away.

    Raises:
        TableFileError: a table is damaged.
    """
    words = draw_positions(tables, kind.material, VALUES[kind.goal], _CANDIDATES if hard else 1, rng)
    if len(words) == 0:
        return None
    turn = list(Color)[rng.integers(2)]
    boards = [Board(format_fen(turn, *row)) for row in words.tolist()]
    return ending_of(tables, max(boards, key=lambda board: _difficulty(tables, board)), kind.goal)


def ending_of(tables: Tablebase, board: Board, goal: Goal) -> Ending:
    """The task to win or to hold a position. A win may take twice as many moves as the shortest way, but at least
    ``_LEAST_MOVES`` are allowed."""
    if goal is Goal.DRAW:
        return Ending(board.fen(), goal, _HOLDING_MOVES)
    plies = plies_of(tables, board)
    return Ending(board.fen(), goal, _UNKNOWN_MOVES if plies is None else max(_LEAST_MOVES, plies))


def repeated_ending(tables: Tablebase, kind: EndingClass, fen: str) -> Ending | None:
    """The ending of a position that was failed before; None if the position does not have the class's result."""
    try:
        board = Board(fen)
    except DraughtsError:
        return None
    return ending_of(tables, board, kind.goal) if tables.get_wdl(board) == VALUES[kind.goal] else None


def _difficulty(tables: Tablebase, board: Board) -> tuple[int, float]:
    """Plies to the end of the game (0 if unknown), and the fraction of moves that give the result away."""
    values = [one.value for one in known_moves(tables, board)]
    return plies_of(tables, board) or 0, np.mean(np.array(values) < max(values)).item()


def score(exercise: EndingExercise, shortest: int | None) -> str:
    """The result of an exercise, in one or two sentences.

    Args:
        shortest: plies of the shortest win, None if unknown.
    """
    parts = []
    if exercise.status == "solved" and exercise.ending.goal is Goal.WIN:
        way = "" if shortest is None else f"; the shortest way has {shortest}"
        parts.append(f"Won in {counted(len(exercise.made), 'ply', 'plies')}{way}.")
    elif exercise.status == "solved":
        parts.append("Held.")
    if exercise.thrown:
        parts.append(f"Thrown away: {counted(exercise.thrown, 'half point')}.")
    return " ".join(parts)
