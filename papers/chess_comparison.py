"""Values of chess endings beside those of Syzygy tables."""

import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any

import chess

from .chess_endings import LEGAL, LOST, NOT_WON, Ending, Endings
from .chess_moves import BLACK, KING, NOBODY, WHITE
from .chess_positions import CLASSES, SyzygyTables
from .experiment import ReproduceError

_TYPES = (chess.QUEEN, chess.ROOK, chess.BISHOP, chess.KNIGHT, chess.PAWN, chess.KING)  # by ``chess_moves``'s kinds


def board_of(ending: Ending, squares: tuple[int, int, int, int], side: int) -> chess.Board:
    """A position as a board, without rights to castle or to capture en passant.

    Args:
        squares: of White's king, Black's king, third man (if there is one), roamer.
    """
    men = (KING, WHITE), (KING, BLACK), (ending.third, ending.third_color), (ending.roamer, ending.roamer_color)
    board = chess.Board(None)
    for (kind, color), square in zip(men, squares, strict=True):
        if kind != NOBODY:
            board.set_piece_at(square, chess.Piece(_TYPES[kind], color == WHITE))
    board.turn = side == WHITE
    return board


def draw_values(tables: Endings, ending: Ending, source: Random) -> Iterator[tuple[chess.Board, str]]:
    """Yields legal positions of an ending without end, drawn uniformly, and their values, as in ``CLASSES``."""
    sets = tables.solved[ending].sets
    while True:
        white, black, third, roamer = (source.randrange(64) for _ in range(4))
        side, word = source.randrange(2), (white, black, third % ending.thirds)
        lost, not_won, legal = (bool(int(sets[(kind, side, *word)]) >> roamer & 1) for kind in (LOST, NOT_WON, LEGAL))
        if legal:
            value = "loss" if lost else ("draw" if not_won else "win")
            yield board_of(ending, (white, black, third, roamer), side), value


def compare(
    syzygy: SyzygyTables, positions: int, seed: int, tables: Endings, report: Callable[[float], object]
) -> dict[str, Any]:
    """Compares positions of each ending that the Syzygy tables can judge, and closes these.

    Returns:
        ``compared`` (positions), ``endings_compared`` and ``syzygy_bytes``.

    Raises:
        ReproduceError: values differ.
        SyzygyError: a table is damaged.
    """
    source, compared = Random(seed), 0
    with contextlib.closing(syzygy):
        chosen = [ending for ending in tables.solved if ending.name not in syzygy.left_out]
        for number, ending in enumerate(chosen):
            report(number / len(chosen))
            for board, value in islice(draw_values(tables, ending, source), positions):
                theirs = CLASSES[syzygy.probe(board)]
                if theirs != value:
                    raise ReproduceError(f"{board.fen()} is a {value} here and a {theirs} by Syzygy's {ending.name}")
                compared += 1
        return {"compared": compared, "endings_compared": len(chosen), "syzygy_bytes": syzygy.bytes}
