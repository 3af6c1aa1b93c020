"""Results of capture sequences, and pieces that can be won by force within three moves."""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import popcount, turned
from ..movegen import DISTINCT, generate, jumpers_of, new_moves

_DEPTH = 24  # every ply captures one of at most 24 pieces


class Buffers(NamedTuple):
    """Buffers for searching captures and for looking ahead.

    Attributes:
        captures: [plies, MAX_MOVES] of ``MOVE``.
        frames: int64 [plies, 4]: number of moves, index of the next move, pieces captured by the current move, best
            balance so far.
        ahead: [6, MAX_MOVES] of ``MOVE``: rows 0 to 4 for ``wins_in_three``, row 5 for ``loses_in_three``.
    """

    captures: np.ndarray
    frames: np.ndarray
    ahead: np.ndarray


def new_buffers() -> Buffers:
    return Buffers(new_moves(_DEPTH), np.zeros((_DEPTH, 4), np.int64), new_moves(6))


@njit(cache=True)
def is_quiet(own, opp, kings):
    """Whether neither side could capture if it were to move."""
    return jumpers_of(own, opp, kings) == 0 and jumpers_of(turned(opp), turned(own), turned(kings)) == 0


@njit(cache=True)
def _open(own, opp, kings, frame, moves):
    frame[0] = generate(own, opp, kings, moves, DISTINCT) if jumpers_of(own, opp, kings) != 0 else 0
    frame[1] = 0
    frame[3] = -_DEPTH if frame[0] else 0


@njit(cache=True)
def capture_balance(own, opp, kings, buffers):
    """Pieces that the side to move captures minus those it loses in a sequence of captures; both play their best.

    Only captures are searched: the line ends where the side to move cannot capture.
    """
    moves, frames = buffers.captures, buffers.frames
    depth = 0
    _open(own, opp, kings, frames[0], moves[0])
    while True:
        frame = frames[depth]
        if frame[1] < frame[0]:
            move = moves[depth, frame[1]]
            frame[1] += 1
            before = opp if depth == 0 else turned(moves[depth - 1, frames[depth - 1, 1] - 1].own)
            frame[2] = np.int64(popcount(before)) - np.int64(popcount(move.opp))
            depth += 1
            _open(turned(move.opp), turned(move.own), turned(move.kings), frames[depth], moves[depth])
            continue
        if depth == 0:
            return frame[3]
        depth -= 1
        frames[depth, 3] = max(frames[depth, 3], frames[depth, 2] - frame[3])


@njit(cache=True)
def _balance_after(move, buffers):
    """Balance of the captures after ``move`` for the side that made it: above 0 if it wins pieces."""
    return -capture_balance(turned(move.opp), turned(move.own), turned(move.kings), buffers)


@njit(cache=True)
def _must_capture_after(move):
    return jumpers_of(turned(move.opp), turned(move.own), turned(move.kings)) != 0


@njit(cache=True)
def wins_now(own, opp, kings, buffers):
    """Whether the side to move wins a piece by captures, now or after a quiet move that forces them."""
    if jumpers_of(own, opp, kings) != 0:
        return capture_balance(own, opp, kings, buffers) > 0
    moves = buffers.ahead[0]
    for i in range(generate(own, opp, kings, moves, DISTINCT)):
        if _must_capture_after(moves[i]) and _balance_after(moves[i], buffers) > 0:
            return True
    return False


@njit(inline="always")
def _wins_later(own, opp, kings, buffers, depth, wins):
    """Whether the side to move has a move that wins a piece by captures at once, or one that forces no capture and
    after which ``wins`` holds for it whatever the opponent replies. So nothing is looked for behind an exchange.

    Args:
        depth: row of ``buffers.ahead`` for the moves; the replies take the next row.
        wins: compiled function ``wins(own, opp, kings, buffers)``, seen by the side to move.
    """
    if jumpers_of(own, opp, kings) != 0:
        return capture_balance(own, opp, kings, buffers) > 0
    moves, answers = buffers.ahead[depth], buffers.ahead[depth + 1]
    for i in range(generate(own, opp, kings, moves, DISTINCT)):
        move = moves[i]
        if _must_capture_after(move):
            if _balance_after(move, buffers) > 0:
                return True
            continue
        all_lose = True
        for j in range(generate(turned(move.opp), turned(move.own), turned(move.kings), answers, DISTINCT)):
            answer = answers[j]
            if not wins(turned(answer.opp), turned(answer.own), turned(answer.kings), buffers):
                all_lose = False
                break
        if all_lose:
            return True
    return False


@njit(cache=True)
def wins_in_two(own, opp, kings, buffers):
    """Whether the side to move can force the win of a piece with its first or second move."""
    return _wins_later(own, opp, kings, buffers, 1, wins_now)


@njit(cache=True)
def wins_in_three(own, opp, kings, buffers):
    """Whether the side to move can force the win of a piece with one of its first three moves."""
    return _wins_later(own, opp, kings, buffers, 3, wins_in_two)


@njit(cache=True)
def loses_in_three(own, opp, kings, buffers):
    """Whether the side to move loses a piece whatever it plays: ``wins_in_three`` holds after each of its moves."""
    moves = buffers.ahead[5]
    for i in range(generate(own, opp, kings, moves, DISTINCT)):
        move = moves[i]
        if not wins_in_three(turned(move.opp), turned(move.own), turned(move.kings), buffers):
            return False
    return True
