"""Perft: counts of the positions reached after a number of plies, with figures for the command line."""

import time
from typing import Any

import numpy as np

from . import movegen
from .bitboard import turned
from .board import Board
from .fen import START_FEN
from .move import generated_moves


def count(board: Board, depth: int, distinct: bool = False) -> int:
    """Positions after exactly ``depth`` plies from the board's; draws by the rules do not end a line.

    Args:
        distinct: count captures that reach the same position once, else every path apart.
    """
    own, opp, kings = (np.uint32(word) for word in board.words())
    return int(movegen.perft(own, opp, kings, depth, movegen.new_moves(max(depth, 1)), distinct))


def divide(board: Board, depth: int, distinct: bool = False) -> dict[str, int]:
    """``count`` split by the first move (every capture path apart unless ``distinct``); depth is at least 1."""
    below = movegen.new_moves(max(depth - 1, 1))
    counts: dict[str, int] = {}
    for move, (own, opp, kings) in generated_moves(*board.words(), board.turn, distinct):
        own, opp, kings = (turned(np.uint32(word)) for word in (opp, own, kings))
        counts[str(move)] = int(movegen.perft(own, opp, kings, depth - 1, below, distinct))
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
