"""What captures make of a position, and pieces that can be won by force: what players work out move by move."""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import popcount, turned
from ..movegen import DISTINCT, generate, jumpers_of, new_moves

_DEPTH = 24  # every ply captures one of at most 24 pieces


class Buffers(NamedTuple):
    """Room for a walk through captures, and for looking ahead.

    Attributes:
        captures: [plies, MAX_MOVES] of ``MOVE``.
        frames: int64 [plies, 4]: number of moves, next move, pieces taken by it, the best balance so far.
        ahead: [6, MAX_MOVES] of ``MOVE``, a row for each ply of ``wins_in_three`` and one before.
    """

    captures: np.ndarray
    frames: np.ndarray
    ahead: np.ndarray


def new_buffers() -> Buffers:
    return Buffers(new_moves(_DEPTH), np.zeros((_DEPTH, 4), np.int64), new_moves(6))


@njit(cache=True)
def is_quiet(own, opp, kings):
    """Whether neither side could capture, were it to move."""
    return jumpers_of(own, opp, kings) == 0 and jumpers_of(turned(opp), turned(own), turned(kings)) == 0


@njit(cache=True)
def _open(own, opp, kings, frame, moves):
    frame[0] = generate(own, opp, kings, moves, DISTINCT) if jumpers_of(own, opp, kings) != 0 else 0
    frame[1] = 0
    frame[3] = -_DEPTH if frame[0] else 0


@njit(cache=True)
def capture_balance(own, opp, kings, room):
    """Pieces that the side to move wins, less those it loses, while captures follow one another; both play their best.

    Whoever can capture must; where nobody has to, the walk ends.
    """
    moves, frames = room.captures, room.frames
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
def _balance_after(move, room):
    """What captures cost the player who made a move, below 0, or bring."""
    return -capture_balance(turned(move.opp), turned(move.own), turned(move.kings), room)


@njit(cache=True)
def _must_capture_after(move):
    return jumpers_of(turned(move.opp), turned(move.own), turned(move.kings)) != 0


@njit(cache=True)
def wins_now(own, opp, kings, room):
    """Whether the side to move wins a piece by captures, now or after a quiet move that forces them."""
    if jumpers_of(own, opp, kings) != 0:
        return capture_balance(own, opp, kings, room) > 0
    moves = room.ahead[0]
    for i in range(generate(own, opp, kings, moves, DISTINCT)):
        if _must_capture_after(moves[i]) and _balance_after(moves[i], room) > 0:
            return True
    return False


@njit(inline="always")
def _wins_later(own, opp, kings, room, depth, wins):
    """Whether a move wins a piece at once, or whatever is answered is followed by what ``wins`` asks for.

    Args:
        depth: of ``room.ahead``, where the moves are written; their answers one deeper.
        wins: compiled function of a position, ``wins(own, opp, kings, room)``.
    """
    if jumpers_of(own, opp, kings) != 0:
        return capture_balance(own, opp, kings, room) > 0
    moves, answers = room.ahead[depth], room.ahead[depth + 1]
    for i in range(generate(own, opp, kings, moves, DISTINCT)):
        move = moves[i]
        if _must_capture_after(move):
            if _balance_after(move, room) > 0:
                return True
            continue
        all_lose = True
        for j in range(generate(turned(move.opp), turned(move.own), turned(move.kings), answers, DISTINCT)):
            answer = answers[j]
            if not wins(turned(answer.opp), turned(answer.own), turned(answer.kings), room):
                all_lose = False
                break
        if all_lose:
            return True
    return False


@njit(cache=True)
def wins_in_two(own, opp, kings, room):
    """Whether the side to move wins a piece whatever is answered, at the latest with its second move."""
    return _wins_later(own, opp, kings, room, 1, wins_now)


@njit(cache=True)
def wins_in_three(own, opp, kings, room):
    """The same with one move more."""
    return _wins_later(own, opp, kings, room, 3, wins_in_two)


@njit(cache=True)
def loses_in_three(own, opp, kings, room):
    """Whether the side to move loses a piece whatever it plays: after each of its moves ``wins_in_three`` holds."""
    moves = room.ahead[5]
    for i in range(generate(own, opp, kings, moves, DISTINCT)):
        move = moves[i]
        if not wins_in_three(turned(move.opp), turned(move.own), turned(move.kings), room):
            return False
    return True
