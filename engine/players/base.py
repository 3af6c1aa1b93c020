"""What a player is: something that names a move for each of many boards at once."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from ..board import Board, Move
from ..errors import DraughtsError


class PlayerError(DraughtsError):
    """A player cannot do what it is asked: a setting out of range, or a board without a legal move."""


class PlayerSpecError(PlayerError):
    """A text that begins like a built-in player's name but names none."""


class Player(Protocol):
    """A player of many games side by side.

    Attributes:
        name: the text that names it on the command line (``random``, ``rollout:200``, ``alphabeta:8``).
    """

    name: str

    def seed(self, seed: int) -> None:
        """Starts the player's random numbers afresh: the same seed and the same calls after it give the same moves."""

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        """One legal move for each board.

        Args:
            boards: games that are not over; they are left as they are.

        Raises:
            PlayerError: a board has no legal move.
        """


class OneByOne(ABC):
    """A ``Player`` that looks at one board after the other; a forced move costs it nothing."""

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        legal = [(board, search_moves(board)) for board in boards]
        return [moves[0] if len(moves) == 1 else self.choose_from(board, moves) for board, moves in legal]

    @abstractmethod
    def choose_from(self, board: Board, moves: list[Move]) -> Move:
        """One of several moves."""


def close_player(player: Player | None) -> None:
    """Gives back what a player holds beside memory: an engine that runs, a search in its opponent's time."""
    close = getattr(player, "close", None)
    if close is not None:
        close()


def search_moves(board: Board) -> list[Move]:
    """The moves that lead to different positions, in the order of ``movegen.generate(distinct=True)``.

    A search that has chosen move number ``i`` of that order plays ``search_moves(board)[i]``.

    Raises:
        PlayerError: there is no legal move.
    """
    moves = board.distinct_moves
    if not moves:
        raise PlayerError(f"the game is over: {board.turn} has no legal move in {board.fen()}")
    return moves


def check_range(what: str, value: int, most: int) -> int:
    """``value`` if it lies in 1 to ``most``; else PlayerError that names ``what``."""
    if not 1 <= value <= most:
        raise PlayerError(f"{what} is {value}, not in 1 to {most}")
    return value
