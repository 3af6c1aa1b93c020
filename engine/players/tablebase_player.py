"""The perfect player of endgames: what the tables say, the shortest win and the longest defence."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..board import Board, Move
from ..tablebase import Tablebase, read_tablebase
from .base import search_moves

_WON_AT_ONCE = 1 << 14


class TablebasePlayer:
    """Wins by the shortest way, loses by the longest, and keeps draws; among equal moves it draws one at random.

    Perfect as the tables are: they know neither draws by repetition nor the 80-ply rule.

    Args:
        folder: of tables with distances, opened when they are first needed; the default folder if None.
    """

    def __init__(self, folder: str | Path | None = None, seed: int = 0) -> None:
        self.name = "tablebase" if folder is None else f"tablebase:{folder}"
        self._folder = folder
        self._tables: Tablebase | None = None
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """See ``Player.seed``."""
        self._random = np.random.default_rng(seed)

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        """See ``Player.choose``.

        Raises:
            MissingTableError: no table of distances covers the position behind a move.
            TableFileError: a table is damaged or foreign.
            OSError: the folder is not there.
        """
        return [self._choose(board) for board in boards]

    def _choose(self, board: Board) -> Move:
        moves = search_moves(board)
        if len(moves) == 1:
            return moves[0]
        scores = np.array([self._score(board, move) for move in moves])
        best = np.flatnonzero(scores == scores.max())
        return moves[self._random.choice(best)]

    def _score(self, board: Board, move: Move) -> int:
        """Above 0 for a win, the more the shorter; 0 for a draw; below 0 for a loss, the less the longer."""
        after = board.copy()
        after.push(move)
        if not after.legal_moves:
            return _WON_AT_ONCE
        if self._tables is None:
            self._tables = read_tablebase(self._folder)
        plies = self._tables.probe_distance(after)
        if plies is None:
            return 0
        return (_WON_AT_ONCE - plies) * (1 if self._tables.probe_wdl(after) < 0 else -1)
