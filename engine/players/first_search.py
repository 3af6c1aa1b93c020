"""Searches once (with tables if there are any) with a stand-in for a network: Numba compiles the search to disk.

``python -m engine.players.first_search`` takes about twenty seconds, and as long again for the functions of the tables.
In between it writes a line: the functions for the first moves of a game are ready. The functions that back up evaluated
leaves are needed late; another process may compile them meanwhile with ``compile_backup``.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..board import Board
from ..encoding import NUM_POLICY
from ..rules import played
from ..search import LockstepSearch, SearchConfig
from ..search.kernels import select_leaves
from ..tablebase import open_tablebase
from .search_player import SearchPlayer

_FEW_PIECES = "B:W31,32:B1,K10"  # a position in which the search uses the tables


class _Flat:
    """An evaluator with a uniform policy and equal win, draw and loss."""

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(positions)
        return np.zeros((n, NUM_POLICY), np.float32), np.zeros((n, 3), np.float32)


def search_is_compiled() -> bool:
    """Whether Numba's cache holds compiled functions of the search, of this version or another."""
    folder = select_leaves.stats.cache_path
    return folder is not None and any(Path(folder).glob("kernels.select_leaves-*.nbi"))


def search_once() -> Iterator[Board]:
    """Searches the start position, and an endgame if there are tables, for a moment; yields each board afterwards.

    Raises ``TableFileError`` if a table in the default folder is damaged or foreign.
    """
    tables = open_tablebase() if played.HAS_TABLES else None
    config = SearchConfig(oracle="tablebase" if tables else "off", leaves_in_flight=16, shot_prior=0.3)
    player = SearchPlayer("first search", _Flat(), config, seconds=0.05, leaf_oracle=tables)
    for board in (Board(), *([Board(_FEW_PIECES)] if tables else [])):
        search = player.begin(board)
        search.advance(0.05)
        search.choose()
        search.thought()
        yield board


def compile_backup() -> None:
    """Compiles the functions that back up evaluated leaves, without a search."""
    search = LockstepSearch(SearchConfig(), 1)
    search.back_up(0, np.zeros((0, NUM_POLICY), np.float32), np.zeros((0, 3), np.float32))


if __name__ == "__main__":
    for searched in search_once():
        print(searched.fen(), flush=True)
