"""Legal moves of Russian draughts (source: the package's docstring).

A move is made of **runs**, straight lines between two turns; each run of a capture passes at least one piece that is
taken. A king that goes straight on behind a piece it has taken goes on with its run: where between the two pieces it
stood makes no difference. The code of a move (see ``engine.rules.moves``) continues with

    bits 6-7 direction of the first run | from bit 8: four bits a run: side to which it turns, steps (three bits)

and ends at the first run without steps. A capture of twelve pieces has at most twelve runs, which fill 56 bits.

Buffers hold ``MAX_MOVES`` moves, more than any position was found to have (tests/test_russian.py); should one have
more, the rest is left out.
"""

import numpy as np
from numba import njit

from ...bitboard import FAR_ROW, lowest_bit, step
from ..moves import CAPTURE_FLAG, launches, write_move

MAX_MOVES = 128
MOST_RUNS = 12
MOST_STEPS = 7
_DIRECTION_SHIFT, _RUNS_SHIFT, _RUN_BITS = 6, 8, 4
_STEP = np.uint64(2)  # of the first run, before it is shifted

_FRAME = np.dtype(
    [
        ("piece", np.uint32),  # where the piece stands
        ("taken", np.uint32),  # what it has taken
        ("king", np.bool_),
        ("way", np.int64),  # direction in which it came, and
        ("turns", np.bool_),  # whether it has to turn here: straight on it goes from another landing
        ("code", np.uint64),
        ("run", np.int64),  # number of the last run in the code, -1 before the first
        ("direction", np.int64),  # to be tried next
        ("victim", np.uint32),  # the piece that is taken in the direction before that, and
        ("landings", np.uint32),  # where it can land behind it, untried
        ("goes_on", np.bool_),  # something can be taken
    ],
    align=True,
)


@njit(cache=True)
def move_hops(code):
    """Number of runs of a move."""
    runs = np.int64(0)
    while runs < MOST_RUNS and move_steps(code, runs) > 0:
        runs += 1
    return runs


@njit(cache=True)
def move_steps(code, run):
    """Squares that run number ``run`` goes on; 0 behind the last run."""
    return np.int64(code >> np.uint64(_RUNS_SHIFT + _RUN_BITS * run + 1)) & 7


@njit(cache=True)
def move_direction(code, run):
    """Direction (0-3) of run number ``run``."""
    direction = np.int64(code >> np.uint64(_DIRECTION_SHIFT)) & 3
    for turn in range(1, run + 1):
        side = np.int64(code >> np.uint64(_RUNS_SHIFT + _RUN_BITS * turn)) & 1
        direction = (direction + 1 + 2 * side) & 3
    return direction


@njit(cache=True)
def _first_run(code, direction, steps):
    """The code of a start with its first run."""
    return code | (np.uint64(direction) << np.uint64(_DIRECTION_SHIFT)) | (np.uint64(steps) * _STEP << np.uint64(8))


@njit(cache=True)
def _ray(piece, direction, empty):
    """The empty squares that a king passes in a direction, and what stops it (0: the edge)."""
    passed, at = np.uint32(0), step(piece, direction)
    while at & empty:
        passed |= at
        at = step(at, direction)
    return passed, at


@njit(cache=True)
def _victim(piece, king, direction, empty, targets):
    """The piece that can be taken in a direction, or 0."""
    at = _ray(piece, direction, empty)[1] if king else step(piece, direction)
    return at if at & targets and step(at, direction) & empty else np.uint32(0)


@njit(cache=True)
def _takes(piece, way, empty, targets):
    """Whether a king that came on ``way`` can take something to its left or right."""
    left = _victim(piece, True, (way + 1) & 3, empty, targets)
    return (left | _victim(piece, True, (way + 3) & 3, empty, targets)) != 0


@njit(cache=True)
def _king_landings(victim, direction, empty, targets):
    """Where a king may land behind a piece: where it can take on, if there is such a square, else anywhere.

    Straight on it goes from the first square alone, so that a move is found once.
    """
    passed, stop = _ray(victim, direction, empty)
    first = step(victim, direction)
    on = first if stop & targets and step(stop, direction) & empty else np.uint32(0)
    left = passed
    while left != 0:
        landing = np.uint32(left & (~left + np.uint32(1)))
        left ^= landing
        if _takes(landing, direction, empty, targets):
            on |= landing
    return on if on != 0 else passed


@njit(cache=True)
def _next_victim(frame, empty, opp):
    """Finds the next piece that the frame's piece can take; returns whether there is one."""
    while frame.direction < 4:
        direction = np.int64(frame.direction)
        frame.direction += 1
        if direction == frame.way and frame.turns:
            continue
        targets = np.uint32(opp ^ frame.taken)
        victim = _victim(frame.piece, frame.king, direction, empty, targets)
        if victim == 0:
            continue
        landing = step(victim, direction)
        frame.landings = _king_landings(victim, direction, empty, targets ^ victim) if frame.king else landing
        frame.victim = victim
        frame.goes_on = True
        return True
    return False


@njit(cache=True)
def _land(frame, child):
    """Takes the frame's victim and lands on the next of its squares: ``child`` is what follows."""
    landing = np.uint32(frame.landings & (~frame.landings + np.uint32(1)))
    direction = frame.direction - 1
    frame.landings ^= landing
    steps, at = 1, step(frame.piece, direction)
    while at != landing:
        at = step(at, direction)
        steps += 1
    child.piece, child.taken = landing, frame.taken | frame.victim
    child.king = frame.king or (landing & FAR_ROW) != 0
    child.way, child.turns = direction, landing != step(frame.victim, direction)
    child.code, child.run = frame.code, frame.run
    if frame.run < 0:
        child.run = 0
        child.code = _first_run(frame.code, direction, steps)
    elif direction == frame.way:
        child.code += np.uint64(steps) * _STEP << np.uint64(_RUNS_SHIFT + _RUN_BITS * frame.run)
    else:
        child.run = frame.run + 1
        side = np.uint64(direction == (frame.way + 3) & 3)
        child.code |= (np.uint64(steps) * _STEP | side) << np.uint64(_RUNS_SHIFT + _RUN_BITS * child.run)
    child.direction = 0
    child.landings = 0
    child.goes_on = False


@njit(cache=True)
def _record(moves, n, own, opp, kings, code, distinct):
    return n if n == MAX_MOVES else write_move(moves, n, own, opp, kings, code, distinct)


@njit(cache=True)
def _captures_of(own, opp, kings, start, frames, moves, n, distinct):
    """Writes every capture of the piece on bit ``start``; returns ``n`` plus their number.

    The start square is empty while the piece moves; what is taken stays on the board until the end.

    Args:
        frames: [1 + MOST_RUNS or more] of ``_FRAME``: what the piece has taken so far, a frame a piece.
    """
    piece = np.uint32(np.uint32(1) << start)
    rest = np.uint32(own ^ piece)
    empty = np.uint32(~(rest | opp))
    frame = frames[0]
    frame.piece, frame.taken, frame.king = piece, 0, (kings & piece) != 0
    frame.way, frame.turns, frame.run, frame.direction = 0, False, -1, 0
    frame.code, frame.landings = np.uint64(start) | np.uint64(CAPTURE_FLAG), 0
    depth = 0
    while depth >= 0:
        frame = frames[depth]
        if frame.landings != 0 or _next_victim(frame, empty, opp):
            _land(frame, frames[depth + 1])
            depth += 1
            continue
        if depth > 0 and not frame.goes_on:
            left = np.uint32(opp ^ frame.taken)
            crowned = np.uint32((kings & (rest | left)) | (frame.piece if frame.king else np.uint32(0)))
            n = _record(moves, n, np.uint32(rest | frame.piece), left, crowned, frame.code, distinct)
        depth -= 1
    return n


@njit(cache=True)
def jumpers_of(own, opp, kings):
    """The pieces of the side to move that can capture."""
    empty = np.uint32(~(own | opp))
    jumpers = np.uint32(0)
    for direction in range(4):
        squares = launches(opp, empty, direction)
        jumpers |= squares & own
        own_kings, near = np.uint32(own & kings), np.uint32(squares & empty)
        while own_kings != 0 and near != 0:
            squares = step(near, direction ^ 2)
            jumpers |= squares & own_kings
            near = np.uint32(squares & empty)
    return np.uint32(jumpers)


@njit(cache=True)
def _quiet_moves(own, opp, kings, direction, moves, n):
    """Writes the moves in a direction that do not capture; returns ``n`` plus their number."""
    empty = np.uint32(~(own | opp))
    pieces = np.uint32(own if direction < 2 else own & kings)
    while pieces != 0:
        start = lowest_bit(pieces)
        pieces &= pieces - np.uint32(1)
        piece = np.uint32(np.uint32(1) << start)
        king = (kings & piece) != 0
        land, steps = step(piece, direction), 1
        while land & empty:
            crowned = land if king else np.uint32(land & FAR_ROW)
            after = np.uint32((kings & ~piece) | crowned)
            code = _first_run(np.uint64(start), direction, steps)
            n = _record(moves, n, np.uint32(own ^ (piece | land)), opp, after, code, False)
            if not king:
                break
            land = step(land, direction)
            steps += 1
    return n


@njit(cache=True)
def generate(own, opp, kings, moves, distinct):
    """Writes the legal moves into ``moves`` and returns their number.

    Args:
        own, opp, kings: uint32, seen by the side to move.
        moves: [MAX_MOVES] of ``MOVE``; positions are written as the mover sees them.
        distinct: keep one of several captures that reach the same position.
    """
    n = np.int64(0)
    jumpers = jumpers_of(own, opp, kings)
    if jumpers != 0:
        frames = np.empty(MOST_RUNS + 1, _FRAME)
        while jumpers != 0:
            start = lowest_bit(jumpers)
            jumpers &= jumpers - np.uint32(1)
            n = _captures_of(own, opp, kings, start, frames, moves, n, distinct)
        return n
    for direction in range(4):
        n = _quiet_moves(own, opp, kings, direction, moves, n)
    return n


@njit(cache=True)
def count_moves(own, opp, kings, moves):
    """Number of legal moves, different capture paths counted apart; ``moves`` is a buffer."""
    return generate(own, opp, kings, moves, np.bool_(False))
