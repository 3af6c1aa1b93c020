"""Looking positions up in blocks that may or may not be in memory.

Files keep only part of the positions (``wdl_codec``): the others are worked out from those they lead to, by a negamax
search that stops at every position that is kept. Each capture takes a piece and each promotion a man, so it is shallow.
The search walks an explicit stack: Numba cannot cache a function that calls itself.

Scores: 0 for a draw, and for a win or a loss in p plies ``± (full - p)``; where distances are not asked for, ``full``
is 1, plies are not counted, and the first win ends a search.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import FAR_ROW, NUM_SQUARES, borrowed, turned
from ..movegen import EVERY_PATH, generate, jumpers_of, new_moves
from .layout import code_of, locate, no_slices
from .material import MAX_PIECES
from .wdl_codec import BLOCK_WORDS

FULL = 1000  # of scores with distances: more than any game is long
UNLOADED, WANTED, NO_FILE = -1, -2, -3  # what ``slots`` says of blocks that are not in memory
KNOWN, NOT_LOADED, ABSENT = 0, 1, 2  # states of a probe; NOT_LOADED | ABSENT may both hold below a position
MAX_DEPTH = 4 * MAX_PIECES
_HOME_ROW = np.uint32(turned(FAR_ROW))
_NOTHING = -10_000  # score of a position that no move has been tried in


class Cache(NamedTuple):
    """Blocks of one kind of file that are in memory.

    Attributes:
        slots: int32 [blocks of all files], place in ``data``, or why it has none.
        data: [capacity, BLOCK_WORDS, ...]. ticks: int64 [capacity], when a place was read last.
    """

    slots: np.ndarray
    data: np.ndarray
    ticks: np.ndarray


class Stack(NamedTuple):
    """Buffers of the search, one row for each depth: ``moves`` [MAX_DEPTH, MAX_MOVES] of ``MOVE``, the rest int64."""

    moves: np.ndarray
    counts: np.ndarray
    nexts: np.ndarray
    bests: np.ndarray
    states: np.ndarray


class Tables(NamedTuple):
    """What compiled searches need to look positions up by themselves, see ``probe_loaded``. Several threads may share
    the blocks; the stack is one search's own.

    Attributes:
        max_pieces: int64 [1], the most pieces of any table; 0: there are none.
        slices, values, halves: see ``probe_many``.
        stack: see ``probe_many``.
        clock: int64 [1], the present for ``Cache.ticks``.
        epoch: int64 [1], odd while blocks are being replaced by others, and another number afterwards.
        nothing_wanted, num_wanted: int64 [2, 0] and [2], so that no block is put on a list.
    """

    max_pieces: np.ndarray
    slices: np.ndarray
    values: Cache
    halves: Cache
    stack: Stack
    clock: np.ndarray
    epoch: np.ndarray
    nothing_wanted: np.ndarray
    num_wanted: np.ndarray


@njit(cache=True)
def _slot_of(block, slots, ticks, now, wanted, num_wanted):
    """(place of a block or a negative number, number of blocks wanted); a block that has a file is put on the list."""
    slot = slots[block]
    if slot >= 0:
        ticks[slot] = now
    elif slot == UNLOADED and num_wanted < wanted.shape[0]:
        slots[block] = WANTED
        wanted[num_wanted] = block
        num_wanted += 1
    return slot, num_wanted


@njit(cache=True)
def _read(word, bit, full, now, values, halves, wanted, num_wanted):
    """(score, state) of a kept position; wanted blocks are added, those of distances as ``-1 - block``."""
    block, row = word // BLOCK_WORDS, word % BLOCK_WORDS
    slot, num_wanted[0] = _slot_of(block, values.slots, values.ticks, now, wanted[0], num_wanted[0])
    if slot < 0:
        return 0, ABSENT if slot == NO_FILE else NOT_LOADED
    won = np.int64((values.data[slot, row, 0] >> bit) & np.uint32(1))
    lost = np.int64((values.data[slot, row, 1] >> bit) & np.uint32(1))
    if full == 1 or won == lost:
        return won - lost, KNOWN
    slot, num_wanted[1] = _slot_of(block, halves.slots, halves.ticks, now, wanted[1], num_wanted[1])
    if slot < 0:
        return 0, ABSENT if slot == NO_FILE else NOT_LOADED
    half = np.int64(halves.data[slot, row, bit])
    return (full + 1 - 2 * half if won else 2 * half - full), KNOWN


@njit(cache=True)
def _score_leaf(own, opp, kings, full, now, slices, values, halves, wanted, num_wanted):
    """(score, state, whether the score has to be worked out instead) of a position."""
    if own == 0:
        return -full, KNOWN, False
    if opp == 0:
        return full - (1 if full > 1 else 0), KNOWN, False
    entry = slices[code_of(own, opp, kings)]
    if entry.start < 0:
        return 0, ABSENT, False
    if entry.turned != 0 or jumpers_of(own, opp, kings) != 0:
        return 0, KNOWN, True
    word, bit = locate(own, opp, kings, slices)
    score, state = _read(word, bit, full, now, values, halves, wanted, num_wanted)
    return score, state, False


@njit(cache=True)
def _open(own, opp, kings, stack, depth):
    stack.counts[depth] = generate(own, opp, kings, stack.moves[depth], EVERY_PATH)
    stack.nexts[depth] = 0
    stack.bests[depth] = _NOTHING
    stack.states[depth] = KNOWN


@njit(cache=True)
def _raise(stack, depth, score, state, full):
    """Gives the value of a child, as its side to move sees it, to the position at ``depth``."""
    if state != KNOWN:
        stack.states[depth] |= state
        return
    if full > 1:  # one ply further from the end
        score += -1 if score > 0 else np.int64(score < 0)
    stack.bests[depth] = max(stack.bests[depth], -score)


@njit(cache=True)
def _close(stack, depth, full):
    """(score, state) of the position at ``depth`` after the moves tried."""
    if stack.counts[depth] == 0:
        return -full, KNOWN
    if full == 1 and stack.bests[depth] == 1:
        return 1, KNOWN
    return stack.bests[depth], stack.states[depth]


@njit(cache=True)
def _probe(own, opp, kings, full, now, slices, values, halves, stack, wanted, num_wanted):
    """(score, state) of a position."""
    score, state, opens = _score_leaf(own, opp, kings, full, now, slices, values, halves, wanted, num_wanted)
    if not opens:
        return score, state
    depth = 0
    _open(own, opp, kings, stack, 0)
    while True:
        if stack.nexts[depth] < stack.counts[depth] and (full > 1 or stack.bests[depth] < 1):
            move = stack.moves[depth, stack.nexts[depth]]
            stack.nexts[depth] += 1
            own, opp, kings = turned(move.opp), turned(move.own), turned(move.kings)
            score, state, opens = _score_leaf(own, opp, kings, full, now, slices, values, halves, wanted, num_wanted)
            if opens:
                depth += 1
                _open(own, opp, kings, stack, depth)
            else:
                _raise(stack, depth, score, state, full)
        else:
            score, state = _close(stack, depth, full)
            if depth == 0:
                return score, state
            depth -= 1
            _raise(stack, depth, score, state, full)


@njit(cache=True, nogil=True)
def probe_many(positions, todo, full, now, slices, values, halves, stack, wanted, num_wanted, scores, states):
    """Probes the rows ``todo`` of ``positions``, until done or until a list of wanted blocks is full.

    Args:
        positions: uint32 [N, 3 or more], seen by the side to move. todo: int64 [T].
        full: 1, or ``FULL`` for scores with distances. now: number of this call, for ``ticks``.
        slices: directory [NUM_CODES] of ``SLICE`` of the pairs' first sides; a second side has ``turned`` set.
        values, halves: ``Cache`` of uint32 [.., 2] and of uint8 [.., 32].
        wanted: int64 [2, W], of values and of distances. num_wanted: int64 [2], how many are on each list; changed.
        scores: int64 [N]. states: uint8 [N]; rows that were not reached keep theirs.
    """
    positions, todo, slices = borrowed(positions), borrowed(todo), borrowed(slices)
    values = Cache(borrowed(values.slots), borrowed(values.data), borrowed(values.ticks))
    halves = Cache(borrowed(halves.slots), borrowed(halves.data), borrowed(halves.ticks))
    wanted, num_wanted = borrowed(wanted), borrowed(num_wanted)
    stack = Stack(
        borrowed(stack.moves),
        borrowed(stack.counts),
        borrowed(stack.nexts),
        borrowed(stack.bests),
        borrowed(stack.states),
    )
    for i in todo:
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        scores[i], states[i] = _probe(own, opp, kings, full, now, slices, values, halves, stack, wanted, num_wanted)
        if max(num_wanted[0], num_wanted[1]) == wanted.shape[1]:
            break


@njit(cache=True)
def probe_loaded(own, opp, kings, tables):
    """(value 1, 0, -1; plies to the end or -1; state) of a position, by what is in memory; loads nothing.

    The state is ``KNOWN``, ``ABSENT``, or ``NOT_LOADED`` (also where another thread is just replacing blocks).
    """
    epoch, now = tables.epoch[0], tables.clock[0]
    arrays = tables.slices, tables.values, tables.halves, tables.stack, tables.nothing_wanted, tables.num_wanted
    score, state = _probe(own, opp, kings, 1, now, *arrays)
    plies = np.int64(-1)
    if state == KNOWN and score != 0:
        distance, state = _probe(own, opp, kings, FULL, now, *arrays)
        if state == KNOWN:
            plies = FULL - abs(distance)
        elif state == ABSENT:
            state = KNOWN
    if epoch % 2 == 1 or tables.epoch[0] != epoch or state & NOT_LOADED:
        return np.int64(0), np.int64(-1), NOT_LOADED
    return score, plies, state


@njit(cache=True, nogil=True)
def first_impossible(positions):
    """Row of the first of positions uint32 [N, 3 or more] that no board can show, -1 if there is none.

    A side may be without pieces: a search asks about games that are over.
    """
    positions = borrowed(positions)
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        crowned = (own & np.uint32(FAR_ROW)) | (opp & _HOME_ROW)
        if own & opp != 0 or (kings & ~(own | opp)) | (crowned & ~kings) != 0 or own | opp == 0:
            return i
    return -1


def new_stack() -> Stack:
    """Buffers for one thread."""
    depths = (np.zeros(MAX_DEPTH, np.int64) for _ in range(4))
    return Stack(new_moves(MAX_DEPTH), *depths)


def no_tables() -> Tables:
    """``Tables`` that know nothing."""
    nothing = np.zeros(0, np.int32), np.zeros((0, BLOCK_WORDS, 2), np.uint32), np.zeros(0, np.int64)
    halves = np.zeros(0, np.int32), np.zeros((0, BLOCK_WORDS, NUM_SQUARES), np.uint8), np.zeros(0, np.int64)
    return new_tables(0, no_slices(), Cache(*nothing), Cache(*halves), np.zeros(1, np.int64), np.zeros(1, np.int64))


def new_tables(
    max_pieces: int, slices: np.ndarray, values: Cache, halves: Cache, clock: np.ndarray, epoch: np.ndarray
) -> Tables:
    """``Tables`` for one search; see there."""
    wanted = np.zeros((2, 0), np.int64), np.zeros(2, np.int64)
    return Tables(np.array([max_pieces]), slices, values, halves, new_stack(), clock, epoch, *wanted)
