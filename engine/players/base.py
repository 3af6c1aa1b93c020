"""The interface of players: each chooses a move for every board of a list."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from ..board import Board, Move
from ..errors import DraughtsError


class PlayerError(DraughtsError):
    """A player cannot do what it is asked, as with a setting out of range or a board without a legal move."""


class PlayerSpecError(PlayerError):
    """A player's text from the command line is not valid."""


class Player(Protocol):
    """A player of many games side by side.

    Attributes:
        name: its text on the command line (``random``, ``rollout:200``, ``alphabeta:8``).
    """

    name: str

    def seed(self, seed: int) -> None:
        """Restarts the player's random numbers: the same seed and the same calls afterwards give the same moves."""

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        """One legal move for each board.

        Args:
            boards: games that are not over; they are not changed.

        Raises:
            PlayerError: a board has no legal move.
        """


class OneByOne(ABC):
    """A ``Player`` that takes one board after the other; a forced move is played without ``choose_from``."""

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        legal = [(board, search_moves(board)) for board in boards]
        return [moves[0] if len(moves) == 1 else self.choose_from(board, moves) for board, moves in legal]

    @abstractmethod
    def choose_from(self, board: Board, moves: list[Move]) -> Move:
        """Chooses one of two or more legal moves."""


def close_player(player: Player | None) -> None:
    """Calls the player's ``close``, if it has one: ends a running engine, or a search in the opponent's time."""
    getattr(player, "close", lambda: None)()


def rest_player(player: Player) -> None:
    """Calls the player's ``rest``, if it has one: ends a search in the opponent's time, until its next move."""
    getattr(player, "rest", lambda: None)()


def search_moves(board: Board) -> list[Move]:
    """Legal moves, one for each position that can follow, in the order of ``movegen.generate(distinct=True)``.

    Move number ``i`` of a search is ``search_moves(board)[i]``.

    Raises:
        PlayerError: there is no legal move.
    """
    moves = board.distinct_moves
    if not moves:
        raise PlayerError(f"the game is over: {board.turn} has no legal move in {board.fen()}")
    return moves


def check_range(what: str, value: int, most: int) -> int:
    """Returns ``value`` if it is in 1 to ``most``; else raises ``PlayerError`` with ``what`` in its message."""
    if not 1 <= value <= most:
        raise PlayerError(f"{what} is {value}, not in 1 to {most}")
    return value
