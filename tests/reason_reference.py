"""A slow, plain search for what can be forced: a reference for reasons that the engine's search has confirmed."""

from functools import cache

import numpy as np

from engine.board import Board
from engine.fen import Color
from engine.movegen import DISTINCT, generate, new_moves

Words = tuple[int, int, int]
WON = 1000


def turned(word: int) -> int:
    return int(f"{word:032b}"[::-1], 2)


@cache
def moves_of(own: int, opp: int, kings: int) -> tuple[tuple[Words, bool], ...]:
    """The positions after all moves, seen by their side to move, and whether each move captures."""
    buffer = new_moves()
    count = generate(np.uint32(own), np.uint32(opp), np.uint32(kings), buffer, DISTINCT)
    return tuple(
        ((turned(next_opp), turned(next_own), turned(next_kings)), next_opp != opp)
        for next_own, next_opp, next_kings, _ in buffer[:count].tolist()
    )


def worth(own: int, opp: int, kings: int) -> int:
    """Material for the side to move: a man counts 2, a king 3."""
    men = own.bit_count() - opp.bit_count()
    return 2 * men + (own & kings).bit_count() - (opp & kings).bit_count()


@cache
def forced(position: Words, least: int, plies: int) -> bool:
    """Whether the side to move can force a material of ``least`` after ``plies`` plies, with captures played out."""
    moves = moves_of(*position)
    if not moves:
        return least <= -WON
    capture = moves[0][1]
    if plies == 0 and not capture:
        return worth(*position) >= least
    left = plies if len(moves) == 1 else max(0, plies - 1)
    ordered = sorted(moves, key=lambda move: worth(*move[0]))
    return any(not forced(behind, 1 - least, left) for behind, _ in ordered)


def gets(board: Board, color: Color, least: int, plies: int) -> bool:
    """Whether ``color`` can force a material of at least ``least``, see ``forced``."""
    if board.turn is color:
        return forced(board.words(), least, plies)
    return not forced(board.words(), 1 - least, plies)


def plies_that_show(better: Board, worse: Board, color: Color, least: int, most: int) -> int | None:
    """Fewest plies (at most ``most``) after which ``color`` gets ``least`` in ``better`` but not in ``worse``."""
    for plies in range(most + 1):
        if gets(better, color, least, plies) and not gets(worse, color, least, plies):
            return plies
    return None
