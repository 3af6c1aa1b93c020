"""Pondering: a player that goes on searching while its opponent thinks."""

import contextlib
import threading
from collections.abc import Sequence
from typing import Any

from ..board import Board, Move
from .search_player import SearchPlayer, TreeSearch
from .watching import Purpose

_SLICE_S = 0.02  # seconds of search between two checks whether the opponent has moved


def _of_player(name: str) -> Any:
    """A property that reads and sets the attribute of this name of the player that ponders."""
    return property(lambda self: getattr(self._player, name), lambda self, value: setattr(self._player, name, value))


class PonderingPlayer:
    """A ``WatchablePlayer`` that goes on searching in a thread after its own move, until it is asked for the next.

    The subtree below the opponent's reply is kept. It ponders only after a search of a single board.

    Args:
        player: should keep its tree from move to move (``config.reuse_tree``); without this, pondering is useless.
    """

    seconds: float | None = _of_player("seconds")
    planning_s: float | None = _of_player("planning_s")

    def __init__(self, player: SearchPlayer) -> None:
        self.name = player.name
        self._player = player
        self._thread: threading.Thread | None = None
        self._enough = threading.Event()

    def prepare(self) -> None:
        """See ``SearchPlayer.prepare``."""
        self._player.prepare()

    def seed(self, seed: int) -> None:
        self.rest()
        self._player.seed(seed)

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        self.rest()
        moves = self._player.choose(boards)
        if len(boards) == 1:
            self._ponder(boards[0], moves[0], "move")
        return moves

    def begin(self, board: Board, purpose: Purpose = "move") -> TreeSearch:
        """See ``WatchablePlayer.begin``; the search's ``choose`` starts pondering, except in an analysis."""
        self.rest()
        thinking, board = self._player.begin(board, purpose), board.copy()
        if purpose != "analysis":
            thinking.when_chosen = lambda move: self._ponder(board, move, purpose)
        return thinking

    def rest(self) -> None:
        """Ends the search in the opponent's time; its tree is kept."""
        if self._thread is not None:
            self._enough.set()
            self._thread.join()
            self._thread = None

    close = rest

    def _ponder(self, board: Board, move: Move, purpose: Purpose) -> None:
        after = board.copy()
        after.push(move)
        if after.outcome() is not None:
            return
        self.rest()
        self._enough.clear()
        self._thread = threading.Thread(target=self._search, args=(after, purpose), name="ponder", daemon=True)
        self._thread.start()

    def _search(self, board: Board, purpose: Purpose) -> None:
        with contextlib.suppress(Exception):  # the player's own search fails, too, if it needs what has failed here
            thinking = self._player.begin(board, purpose, pondering=True)
            while not self._enough.is_set() and thinking.advance(_SLICE_S):
                pass
