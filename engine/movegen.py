"""Legal moves of the game that this process plays (``engine.rules``), and perft."""

import numpy as np
from numba import njit

from .bitboard import turned
from .rules import played
from .rules.moves import CAPTURE_FLAG, DISTINCT, EVERY_PATH, MOVE, is_capture, move_start  # noqa: F401 - for all games

MAX_MOVES = played.MAX_MOVES
generate = played.generate
count_moves = played.count_moves
jumpers_of = played.jumpers_of
move_hops = played.move_hops
move_direction = played.move_direction


def new_moves(*shape: int) -> np.ndarray:
    """Room for the moves of one position, or of ``shape`` positions: structured array [..., MAX_MOVES] of ``MOVE``."""
    return np.zeros((*shape, MAX_MOVES), MOVE)


@njit(cache=True)
def _count(own, opp, kings, moves, distinct):
    return generate(own, opp, kings, moves, DISTINCT) if distinct else count_moves(own, opp, kings, moves)


@njit(cache=True)
def perft(own, opp, kings, depth, moves, distinct):
    """Number of leaf positions after exactly ``depth`` plies; the last ply is counted without making its moves.

    Args:
        own, opp, kings: uint32, seen by the side to move.
        moves: buffer [depth, MAX_MOVES] of ``MOVE``, one row per ply (at least one row).
        distinct: count captures that reach the same position once.
    """
    if depth == 0:
        return 1
    if depth == 1:
        return _count(own, opp, kings, moves[0], distinct)
    counts = np.zeros(depth, np.int64)
    made = np.zeros(depth, np.int64)
    level = depth - 1
    counts[level] = generate(own, opp, kings, moves[level], distinct)
    leaves = 0
    while level < depth:
        if made[level] == counts[level]:
            level += 1
            continue
        move = moves[level, made[level]]
        made[level] += 1
        child_own, child_opp, child_kings = turned(move.opp), turned(move.own), turned(move.kings)
        if level == 1:
            leaves += _count(child_own, child_opp, child_kings, moves[0], distinct)
        else:
            level -= 1
            made[level] = 0
            counts[level] = generate(child_own, child_opp, child_kings, moves[level], distinct)
    return leaves
