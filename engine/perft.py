"""Perft: counts of the positions reached after a number of plies, with figures for the command line."""

import time
from typing import Any

import numpy as np

from . import movegen
from .bitboard import turned
from .board import Board
from .fen import START_FEN
from .move import generated_moves

_AT_ONCE = 7  # plies that compiled code counts without a pause: meanwhile Python does not hear Ctrl-C


def count(board: Board, depth: int, distinct: bool = False) -> int:
    """Positions after exactly ``depth`` plies from the board's; draws by the rules do not end a line.

    Args:
        distinct: count captures that reach the same position once, else every path apart.
    """
    return _count([np.uint32(word) for word in board.words()], depth, distinct, movegen.new_moves(_AT_ONCE))


def _count(words: list[np.uint32], depth: int, distinct: bool, below: np.ndarray) -> int:
    """``count`` of a position (own, opp, kings); ``below``: space for the moves of ``_AT_ONCE`` plies."""
    own, opp, kings = words
    if depth <= _AT_ONCE:
        return int(movegen.perft(own, opp, kings, depth, below, distinct))
    moves, total = movegen.new_moves(), 0
    for move in moves[: movegen.generate(own, opp, kings, moves, distinct)]:
        after = [turned(move[name]) for name in ("opp", "own", "kings")]
        total += _count(after, depth - 1, distinct, below)
    return total


def divide(board: Board, depth: int, distinct: bool = False) -> dict[str, int]:
    """``count`` split by the first move (every capture path apart unless ``distinct``); depth is at least 1."""
    below = movegen.new_moves(_AT_ONCE)
    counts: dict[str, int] = {}
    for move, (own, opp, kings) in generated_moves(*board.words(), board.turn, distinct):
        after = [turned(np.uint32(word)) for word in (opp, own, kings)]
        counts[str(move)] = _count(after, depth - 1, distinct, below)
    return counts


def perft_report(depth: int, fen: str | None, distinct: bool, with_divide: bool) -> dict[str, Any]:
    """The figures of ``crownhead perft --json``; raises ``FenError`` if ``fen`` is no position."""
    board = Board(START_FEN if fen is None else fen)
    count(board, min(depth, 2), distinct)  # loads the compiled functions, which is not what is timed
    start = time.perf_counter()
    nodes = count(board, depth, distinct)
    seconds = time.perf_counter() - start
    report: dict[str, Any] = {
        "depth": depth,
        "nodes": nodes,
        "seconds": seconds,
        "nodes_per_second": nodes / max(seconds, 1e-9),
    }
    if with_divide and depth > 0:
        report["divide"] = divide(board, depth, distinct)
    return report
