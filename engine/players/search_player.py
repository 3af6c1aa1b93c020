"""The player that searches with an evaluator (a network): the one that training makes stronger."""

import time
from collections.abc import Sequence

from ..board import Board, Move
from ..search import Evaluator, LeafOracle, LockstepSearch, SearchConfig, SearchResult
from .base import check_range, search_moves

MAX_SIMULATIONS = 200_000
_TIMED_SIMULATIONS = 50_000  # sizes the tree where only time limits the search


class SearchPlayer:
    """Plays the most visited move of a search without noise; all boards are searched in lockstep.

    Args:
        name: as on the command line.
        config: settings of the search; ``num_simulations`` per move.
        seconds: time per move instead of a number of simulations; boards asked for together share their time.
        leaf_oracle: decides leaves of few pieces; needed where ``config.oracle`` is not ``off``.

    Raises:
        PlayerError: more simulations than fit into memory.
        ValueError: the configuration wants an oracle and there is none.
    """

    def __init__(
        self,
        name: str,
        evaluator: Evaluator,
        config: SearchConfig | None = None,
        seconds: float | None = None,
        leaf_oracle: LeafOracle | None = None,
    ) -> None:
        config = config or SearchConfig()
        if seconds is not None:
            config = config.model_copy(update={"num_simulations": _TIMED_SIMULATIONS})
        check_range("number of simulations", max(config.num_simulations, 1), MAX_SIMULATIONS)
        self.name = name
        self.config = config
        self.seconds = seconds
        self._evaluator = evaluator
        self._leaf_oracle = leaf_oracle
        self._search = LockstepSearch(config, 1, leaf_oracle=leaf_oracle)

    def seed(self, seed: int) -> None:
        """Has no effect on the moves: nothing in this player's search is random."""

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        """One legal move for each board; see ``Player.choose``."""
        moves = [search_moves(board) for board in boards]
        self.think(boards)
        return [legal[self._search.choose(slot)] for slot, legal in enumerate(moves)]

    def think(self, boards: Sequence[Board]) -> LockstepSearch:
        """Searches the boards and returns the trees, board by board in the slots 0, 1, ..."""
        if len(boards) > self._search.slots:
            self._search = LockstepSearch(self.config, len(boards), leaf_oracle=self._leaf_oracle)
        for slot, board in enumerate(boards):
            self._search.set_board(slot, board)
            self._search.start(slot, explore=False)
        if self.seconds is None:
            self._search.run(self._evaluator)
        else:
            deadline = time.perf_counter() + self.seconds * len(boards)
            while self._search.step(self._evaluator) and time.perf_counter() < deadline:
                pass
            self._search.stop()
        return self._search

    def analyse(self, board: Board) -> tuple[SearchResult, list[Move], int]:
        """What the search of one board found, its principal variation, and the index of the move to play.

        Raises:
            PlayerError: there is no legal move.
        """
        search_moves(board)
        search = self.think([board])
        line: list[Move] = []
        after = board.copy()
        for index in search.principal_variation(0):
            line.append(search_moves(after)[index])
            after.push(line[-1])
        return search.result(0), line, search.choose(0)
