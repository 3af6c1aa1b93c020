"""Searches once with tables and a stand-in for a network, so that the search's compiled functions are on disk.

``python -m engine.players.first_search`` compiles them, which takes some twenty seconds, and as long again for those of
the tables. In between it writes a line: what the first moves of a game need is there. The functions for evaluated
leaves come late; ``compile_backup`` may have compiled that by then in another process.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..board import Board
from ..encoding import NUM_POLICY
from ..search import LockstepSearch, SearchConfig
from ..search.kernels import select_leaves
from ..tablebase import open_tablebase
from .search_player import SearchPlayer

_FEW_PIECES = "B:W31,32:B1,K10"  # the tables are asked, too


class _Flat:
    """Has the network's types, and no opinion."""

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(positions)
        return np.zeros((n, NUM_POLICY), np.float32), np.zeros((n, 3), np.float32)


def search_is_compiled() -> bool:
    """Whether compiled functions of the search, of this version or another, are where Numba looks for them."""
    folder = select_leaves.stats.cache_path
    return folder is not None and any(Path(folder).glob("kernels.select_leaves-*.nbi"))


def search_once() -> Iterator[Board]:
    """Searches the opening and an endgame for a moment; yields what it has searched.

    Raises:
        TableFileError: a table in the default folder is damaged or foreign.
    """
    config = SearchConfig(oracle="tablebase", leaves_in_flight=16, shot_prior=0.3)
    player = SearchPlayer("first search", _Flat(), config, seconds=0.05, leaf_oracle=open_tablebase())
    for board in (Board(), Board(_FEW_PIECES)):
        search = player.begin(board)
        search.advance(0.05)
        search.choose()
        search.thought()
        yield board


def compile_backup() -> None:
    """What is done with evaluated leaves, without a search."""
    search = LockstepSearch(SearchConfig(), 1)
    search.back_up(0, np.zeros((0, NUM_POLICY), np.float32), np.zeros((0, 3), np.float32))


if __name__ == "__main__":
    for searched in search_once():
        print(searched.fen(), flush=True)
