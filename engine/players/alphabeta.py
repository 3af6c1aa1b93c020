"""A plain alpha-beta player: iterative deepening over the compiled search of ``alphabeta_kernels``."""

import math
import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..board import Board, Move
from ..random_words import new_random, next_random
from .alphabeta_kernels import MAX_PLY, NO_MOVE, SearchState, exact_move, new_state, search_nodes, start
from .base import PlayerError, check_range, search_moves
from .evaluation import LEAST_WIN, WIN
from .kernels import start_line
from .watching import MoveThought, Proof, Purpose, Thought, Unit

MAX_DEPTH = 64
TABLE_SLOTS = 1 << 18  # 8 MiB
NOISE = 2  # hundredths of a man
LOGISTIC_SCALE = 160  # expected score = 1 / (1 + exp(-score / scale)): fitted to 300 games of depth 4 against itself
_SLICE = 512  # nodes between two checks of the clock: 0.2 ms, with a network 1 ms
_MOST_NODES = 1 << 60
_NEVER = float("inf")


class NodeSearch(Protocol):
    """A function like ``alphabeta_kernels.search_nodes`` that evaluates leaves in its own way."""

    def __call__(self, state: SearchState, budget: int) -> bool: ...


class AlphaBetaPlayer:
    """Alpha-beta with iterative deepening, transposition table and captures played out; a forced move is not searched.

    So that games vary, up to ``NOISE`` hundredths of a man are added to or subtracted from every leaf's score. This
    noise is random, but the same for the same position within one search. ``analyse`` uses no noise.

    Args:
        depth: plies to search, 1 to ``MAX_DEPTH``.
        seconds: time limit per move, kept to within a few milliseconds; the first iteration is always finished. With a
            time limit the moves depend on the machine's speed, too.
        seed: seed of the random numbers.
        table_slots: slots of the transposition table, a power of two (32 bytes each), or 0 for no table.
        search: search function with other evaluations of leaves, which also prunes; None: ``evaluation.evaluate``, and
            every move to full depth.
        nodes: limit of nodes per move, in addition to the limit of depth; None: no limit.
        name: name of the player; None: ``alphabeta:DEPTH``.

    Attributes:
        values: P(win) - P(loss) for the side to move in each board of the last ``choose``; None where only one move was
            legal.

    Raises:
        PlayerError: an argument is out of range.
    """

    def __init__(
        self,
        depth: int,
        seconds: float | None = None,
        seed: int = 0,
        table_slots: int = TABLE_SLOTS,
        *,
        search: NodeSearch | None = None,
        nodes: int | None = None,
        name: str | None = None,
    ) -> None:
        self.depth = check_range("the search depth", depth, MAX_DEPTH)
        if seconds is not None and not seconds > 0.0:
            raise PlayerError(f"the time limit is {seconds} seconds, not more than 0")
        if table_slots < 0 or table_slots & (table_slots - 1):
            raise PlayerError(f"the table has {table_slots} slots, not a power of two or 0")
        self.seconds = seconds
        self.name = name or f"alphabeta:{depth}"
        self.values: list[float | None] = []
        self._nodes = nodes if nodes is None else check_range("the number of nodes", nodes, _MOST_NODES)
        self._state, self._search = new_state(table_slots), search or search_nodes
        self._state.search[0]["prunes"] = search is not None
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """See ``Player.seed``. Also empties the transposition table."""
        self._random = new_random(seed)
        self._state.table["bound"] = 0

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        self.values = []
        return [self._choose(board) for board in boards]

    def _choose(self, board: Board) -> Move:
        moves = search_moves(board)
        if len(moves) == 1:
            self.values.append(None)
            return moves[0]
        search = self._searched(board, NOISE)
        self.values.append(search.value)
        return search.choose()

    def begin(self, board: Board, purpose: Purpose = "move") -> "Deepening":
        noise = 0 if purpose == "analysis" else NOISE
        depth, nodes = (self.depth, self._nodes) if purpose == "move" else (MAX_DEPTH, None)
        return Deepening(self._state, board, depth, noise, next_random(self._random), self._search, nodes)

    def analyse(self, board: Board) -> "Deepening":
        """Searches the position to the player's depth or time limit, without noise, and returns the finished search.

        Raises ``PlayerError`` if there is no legal move.
        """
        return self._searched(board, 0)

    def _searched(self, board: Board, noise: int) -> "Deepening":
        """Searches a board to the player's limits and returns the finished search."""
        salt = next_random(self._random)
        search = Deepening(self._state, board, self.depth, noise, salt, self._search, self._nodes)
        search.advance(_NEVER if self.seconds is None else self.seconds)
        return search


class Deepening:
    """Iterative deepening on one board, see ``watching.Thinking``; raises ``PlayerError`` if there is no legal move.

    Args:
        state: the player's state; an earlier search in it can no longer be continued.
        depth: plies to search.
        noise: hundredths of a man, see ``AlphaBetaPlayer``.
        salt: random number that separates this search's noise and table entries from those of other searches.
        search, nodes: see ``AlphaBetaPlayer``.

    Attributes:
        depth: plies searched in full (forced replies and captures are searched deeper).
        score: score of the best move for the side to move, in hundredths of a man; ``evaluation.WIN - n`` for a win in
            n plies.
    """

    unit: Unit = "nodes"

    def __init__(
        self, state: SearchState, board: Board, depth: int, noise: int, salt: int, search: NodeSearch, nodes: int | None
    ) -> None:
        self._moves = search_moves(board)
        self._board, self._state, self._most = board.copy(), state, depth
        self._search_nodes, self._nodes = search, nodes
        self._search, self._root = state.search[0], state.frames[0]
        self.depth = self.score = 0
        self._finished = False
        self._search["salt"] = salt
        self._search["nodes"] = 0
        self._search["root"] = start_line(board, state.line)
        self._search["noise"] = noise
        self._search["age"] = self._search["age"] % np.iinfo(np.uint16).max + 1
        self._search["first_move"] = NO_MOVE
        state.cutoffs[:], state.killers[:] = 0, 0
        start(state, 1)

    @property
    def count(self) -> int:
        """Positions visited by all iterations."""
        return int(self._search["nodes"])

    @property
    def progress(self) -> float:
        """Fraction of the plies, or of the nodes where these are limited, that has been searched: 0 to 1."""
        if self._finished:
            return 1.0
        return self.depth / self._most if self._nodes is None else min(1.0, self.count / self._nodes)

    def advance(self, seconds: float) -> bool:
        """See ``Thinking.advance``; the first iteration is always finished."""
        deadline = time.perf_counter() + seconds
        while not self._finished:
            if self._search_nodes(self._state, self._slice()):
                self.depth += 1
                self._take()
                self._finished = self.depth >= self._most or abs(self.score) >= LEAST_WIN
                if self._finished:
                    break
                start(self._state, self.depth + 1)
            if self.depth > 0 and (time.perf_counter() >= deadline or self._spent()):
                self._take_unfinished()
                break
        return not self._finished

    def _slice(self) -> int:
        """Nodes until the next look at the clock and at the limit of nodes."""
        left = _SLICE if self._nodes is None else self._nodes - self.count
        return min(left, _SLICE) if left > 0 else _SLICE  # the first iteration may need more than the limit

    def _spent(self) -> bool:
        """Whether the limit of nodes is reached; if so, marks the search as finished."""
        self._finished = self._finished or (self._nodes is not None and self.count >= self._nodes)
        return self._finished

    def _take(self) -> None:
        self._search["first_move"], self.score = int(self._root["best_move"]), int(self._root["best"])

    def _take_unfinished(self) -> None:
        """Takes the best move and score of an unfinished iteration, which begins with the best move of the last one.

        If all moves that it has searched lose, it takes the move that it would search next, and keeps the score.
        """
        if self._root["best_move"] == NO_MOVE:
            return
        if self._root["best"] > -LEAST_WIN:
            self._take()
            return
        order = self._state.order[0, : len(self._moves)]
        if self._search["ply"] > 0 or self._search["again"]:
            self._search["first_move"] = self._root["move"]
        elif order.max() >= 0:
            self._search["first_move"] = order.argmax()

    def choose(self) -> Move:
        return self._moves[int(self._search["first_move"])]

    @property
    def value(self) -> float:
        """P(win) - P(loss) for the side to move, from the current score."""
        return math.tanh(self.score / (2 * LOGISTIC_SCALE))

    def thought(self) -> Thought:
        """See ``Thinking.thought``; alpha-beta knows the value of its best move only."""
        value, plies = self.value, None
        proof: Proof | None = None
        if abs(self.score) >= LEAST_WIN:
            proof, plies = "win" if self.score > 0 else "loss", WIN - abs(self.score) - 1
        known = MoveThought(self.choose(), value=value, proof=proof, proof_plies=plies)
        return Thought((known,), self.line(), value, None, self.count, depth=self.depth)

    def line(self) -> tuple[Move, ...]:
        """The expected line of play: the best move, and the replies as far as the transposition table has them."""
        board, line = self._board.copy(), [self.choose()]
        while len(line) < MAX_PLY:
            board.push(line[-1])
            number = NO_MOVE
            if board.outcome() is None:
                number = exact_move(self._state, *(np.uint32(word) for word in board.words()))
            if number == NO_MOVE:
                break
            line.append(search_moves(board)[number])
        return tuple(line)
