"""Pondering: a player that goes on searching while its opponent thinks."""

import threading
from collections.abc import Sequence

from ..board import Board, Move
from .base import search_moves
from .search_player import SearchPlayer
from .watching import Purpose, Thinking, Thought, Unit

_SLICE_S = 0.02  # of search between two looks at whether the opponent has moved


class PonderingPlayer:
    """Searches the position behind its own move, in a thread, until it is asked for the next one.

    All replies are searched as far as they deserve it; the tree below the one that comes is kept. See
    ``WatchablePlayer``; only searches of one board are pondered on.

    Args:
        player: keeps its tree from move to move (``config.reuse_tree``), else nothing is gained.
    """

    def __init__(self, player: SearchPlayer) -> None:
        self.name = player.name
        self._player = player
        self._thread: threading.Thread | None = None
        self._enough = threading.Event()

    @property
    def seconds(self) -> float | None:
        """Time per move, see ``SearchPlayer``."""
        return self._player.seconds

    @seconds.setter
    def seconds(self, seconds: float | None) -> None:
        self._player.seconds = seconds

    def seed(self, seed: int) -> None:
        """See ``Player.seed``."""
        self.stop()
        self._player.seed(seed)

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        """See ``Player.choose``."""
        self.stop()
        moves = self._player.choose(boards)
        if len(boards) == 1:
            self._ponder(boards[0], moves[0], "move")
        return moves

    def begin(self, board: Board, purpose: Purpose = "move") -> Thinking:
        """See ``WatchablePlayer.begin``; the search's ``choose`` begins to ponder on the move."""
        self.stop()
        thinking = self._player.begin(board, purpose)
        return thinking if purpose == "analysis" else _Pondered(self, board.copy(), purpose, thinking)

    def stop(self) -> None:
        """Ends the search in the opponent's time; what it found is kept."""
        if self._thread is not None:
            self._enough.set()
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        """See ``stop``."""
        self.stop()

    def _ponder(self, board: Board, move: Move, purpose: Purpose) -> None:
        after = board.copy()
        after.push(move)
        if after.outcome() is not None:
            return
        self._enough.clear()
        self._thread = threading.Thread(target=self._search, args=(after, purpose), name="ponder", daemon=True)
        self._thread.start()

    def _search(self, board: Board, purpose: Purpose) -> None:
        search_moves(board)
        thinking = self._player.begin(board, purpose, pondering=True)
        while not self._enough.is_set() and thinking.advance(_SLICE_S):
            pass


class _Pondered:
    """A search whose move is pondered on once it is chosen."""

    def __init__(self, player: PonderingPlayer, board: Board, purpose: Purpose, thinking: Thinking) -> None:
        self._player, self._board, self._purpose, self._thinking = player, board, purpose, thinking
        self.unit: Unit = thinking.unit

    @property
    def progress(self) -> float:
        """See ``Thinking.progress``."""
        return self._thinking.progress

    def advance(self, seconds: float) -> bool:
        """See ``Thinking.advance``."""
        return self._thinking.advance(seconds)

    def thought(self) -> Thought:
        """See ``Thinking.thought``."""
        return self._thinking.thought()

    def choose(self) -> Move:
        """See ``Thinking.choose``."""
        move = self._thinking.choose()
        self._player._ponder(self._board, move, self._purpose)
        return move
