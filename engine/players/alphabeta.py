"""A plain alpha-beta player: iterative deepening over the compiled search of ``alphabeta_kernels``."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..board import Board, Move
from .alphabeta_kernels import MAX_PLY, NO_MOVE, exact_move, new_state, search_nodes, start
from .base import PlayerError, check_range, search_moves
from .evaluation import LEAST_WIN
from .kernels import new_random, next_random, start_line

MAX_DEPTH = 64
TABLE_SLOTS = 1 << 18  # 12 MiB
NOISE = 2  # hundredths of a man
_SLICE = 4096  # nodes between two looks at the clock, about a millisecond
_NEVER = float("inf")


@dataclass(frozen=True)
class AlphaBetaResult:
    """What a search found.

    Attributes:
        move: the best move.
        score: hundredths of a man for the side to move; ``evaluation.WIN - n`` for a win in n plies.
        depth: plies searched in full (forced replies and captures come on top).
        nodes: positions visited, all iterations together.
        pv: expected line of play, ``move`` first; it ends early where the table has lost its continuation.
    """

    move: Move
    score: int
    depth: int
    nodes: int
    pv: tuple[Move, ...]


class AlphaBetaPlayer:
    """Alpha-beta with iterative deepening, transposition table and captures played out; a forced move is not searched.

    Every leaf's score is moved by up to ``NOISE`` hundredths of a man, at random but the same wherever the position
    turns up in one search, so that games vary; ``analyse`` does without.

    Args:
        depth: plies to search, 1 to ``MAX_DEPTH``.
        seconds: time limit per move, kept to a few milliseconds; the first iteration is always finished. With a limit
            the moves depend on the machine's speed, not on the seed alone.
        seed: of its random numbers.
        table_slots: size of the transposition table, a power of two (48 bytes each), or 0 for none.

    Raises:
        PlayerError: an argument is out of range.
    """

    def __init__(self, depth: int, seconds: float | None = None, seed: int = 0, table_slots: int = TABLE_SLOTS) -> None:
        self.depth = check_range("the search depth", depth, MAX_DEPTH)
        if seconds is not None and not seconds > 0.0:
            raise PlayerError(f"the time limit is {seconds} seconds, not more than 0")
        if table_slots < 0 or table_slots & (table_slots - 1):
            raise PlayerError(f"the table has {table_slots} slots, not a power of two or 0")
        self.seconds = seconds
        self.name = f"alphabeta:{depth}"
        self._state = new_state(table_slots)
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """See ``Player.seed``. Empties the table too."""
        self._random = new_random(seed)
        self._state.table["bound"] = 0

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        """See ``Player.choose``."""
        return [self._choose(board) for board in boards]

    def _choose(self, board: Board) -> Move:
        moves = search_moves(board)
        return moves[0] if len(moves) == 1 else moves[self._deepen(board, NOISE)[0]]

    def analyse(self, board: Board) -> AlphaBetaResult:
        """Searches the position to the player's depth or time limit, without noise.

        Raises:
            PlayerError: there is no legal move.
        """
        moves = search_moves(board)
        number, score, depth = self._deepen(board, 0)
        pv = (moves[number], *self._continuation(board, moves[number]))
        return AlphaBetaResult(moves[number], score, depth, int(self._state.search[0]["nodes"]), pv)

    def _deepen(self, board: Board, noise: int) -> tuple[int, int, int]:
        """Iterative deepening; returns the number of the best move, its score and the depth searched in full."""
        deadline = _NEVER if self.seconds is None else time.perf_counter() + self.seconds
        search, root = self._state.search[0], self._state.frames[0]
        search["salt"] = next_random(self._random)
        search["nodes"] = 0
        search["root"] = start_line(board, self._state.line)
        search["noise"] = noise
        search["age"] = search["age"] % np.iinfo(np.uint16).max + 1
        search["first_move"] = NO_MOVE
        self._state.cutoffs[:] = 0
        depth = score = 0
        while depth < self.depth and abs(score) < LEAST_WIN:
            start(self._state, depth + 1)
            finished = self._run(deadline if depth > 0 else _NEVER)
            if root["best_move"] != NO_MOVE:
                search["first_move"], score = int(root["best_move"]), int(root["best"])
            if not finished:
                break
            depth += 1
        return int(search["first_move"]), score, depth

    def _run(self, deadline: float) -> bool:
        """Finishes the iteration that was started, or stops at the deadline and returns False."""
        while time.perf_counter() < deadline:
            if search_nodes(self._state, _SLICE):
                return True
        return False

    def _continuation(self, board: Board, move: Move) -> list[Move]:
        """The line of play after ``move``, as far as the table knows it."""
        board = board.copy()
        line: list[Move] = []
        while len(line) < MAX_PLY:
            board.push(move)
            number = NO_MOVE
            if board.outcome() is None:
                number = exact_move(self._state, *(np.uint32(word) for word in board.words()))
            if number == NO_MOVE:
                break
            move = search_moves(board)[number]
            line.append(move)
        return line
