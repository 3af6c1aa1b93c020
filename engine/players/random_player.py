"""The weakest anchor of every scale: any legal move, all equally likely."""

from collections.abc import Sequence

import numpy as np

from ..board import Board, Move
from .base import search_moves


class RandomPlayer:
    """Plays uniformly among the moves that lead to different positions."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """See ``Player.seed``."""
        self._random = np.random.default_rng(seed)

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        """See ``Player.choose``."""
        chosen = []
        for board in boards:
            moves = search_moves(board)
            chosen.append(moves[self._random.integers(len(moves))])
        return chosen
