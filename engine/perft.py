"""Perft: counts of the positions reached after a number of plies, with figures for the command line."""

import time
from collections.abc import Iterable
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
    return _count(map(np.uint32, board.words()), depth, distinct)


def _count(words: Iterable[np.uint32], depth: int, distinct: bool) -> int:
    """``count`` of a position: own, opp, kings."""
    own, opp, kings = words
    if depth <= _AT_ONCE:
        return int(movegen.perft(own, opp, kings, depth, movegen.new_moves(_AT_ONCE), distinct))
    moves = movegen.new_moves()
    found = moves[: movegen.generate(own, opp, kings, moves, distinct)]
    return sum(_count((turned(move[name]) for name in ("opp", "own", "kings")), depth - 1, distinct) for move in found)


def divide(board: Board, depth: int, distinct: bool = False) -> dict[str, int]:
    """``count`` split by the first move (every capture path apart unless ``distinct``); depth is at least 1."""
    counts = {}
    for move, (own, opp, kings) in generated_moves(*board.words(), board.turn, distinct):
        counts[str(move)] = _count((turned(np.uint32(word)) for word in (opp, own, kings)), depth - 1, distinct)
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
