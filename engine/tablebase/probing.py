"""Looking up positions in blocks that may or may not be in memory.

Files store only some of the positions (``wdl_codec``). The others are derived by a negamax search that stops at every
stored position. It is shallow, because each capture removes a piece and each promotion a man. The search uses an
explicit stack, because Numba cannot cache a function that calls itself.

Scores: 0 for a draw, ``± (full - p)`` for a win or a loss in p plies. Without distances, ``full`` is 1, plies are not
counted, and the first win ends a search.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import FAR_ROW, HOME_ROW, NUM_SQUARES, borrowed, turned
from ..movegen import EVERY_PATH, generate, jumpers_of, new_moves
from .layout import code_of, locate, no_slices
from .material import MAX_PIECES
from .wdl_codec import BLOCK_WORDS

FULL = 1000  # ``full`` with distances: more plies than any game has
UNLOADED, WANTED, NO_FILE = -1, -2, -3  # ``slots`` of blocks that are not in memory
KNOWN, NOT_LOADED, ABSENT = 0, 1, 2  # states of a probe; NOT_LOADED | ABSENT: below a position, both occur
MAX_DEPTH = 4 * MAX_PIECES
BLOCK_ROWS = (np.dtype((np.uint32, 2)), np.dtype((np.uint8, NUM_SQUARES)))  # a word in either kind of block
_NOTHING = -10_000  # score of a position before a move has been tried


class Cache(NamedTuple):
    """The blocks of one kind of file that are in memory.

    Attributes:
        slots: int32 [blocks of all files], index in ``data``, or UNLOADED, WANTED or NO_FILE.
        data: [capacity, BLOCK_WORDS, ...], the blocks.
        ticks: int64 [capacity], ``Blocks.clock`` when each was read last.
    """

    slots: np.ndarray
    data: np.ndarray
    ticks: np.ndarray


class Stack(NamedTuple):
    """Buffers of the search by depth: ``moves`` [MAX_DEPTH, MAX_MOVES] of ``MOVE``, the others int64 [MAX_DEPTH]."""

    moves: np.ndarray
    counts: np.ndarray
    nexts: np.ndarray
    bests: np.ndarray
    states: np.ndarray


class Blocks(NamedTuple):
    """The blocks in memory, and lists of those to load.

    Attributes:
        slices: directory [NUM_CODES] of ``SLICE``; a slice with the second side to move has ``turned`` set, and the
            words of the pair's first slice.
        values, halves: caches of values (``data`` is uint32 [.., 2]) and of half distances (uint8 [.., 32]).
        clock: int64 [1], current time of ``Cache.ticks``.
        wanted: int64 [2, W], blocks of values and of distances to load.
        num_wanted: int64 [2], lengths of these two lists.
    """

    slices: np.ndarray
    values: Cache
    halves: Cache
    clock: np.ndarray
    wanted: np.ndarray
    num_wanted: np.ndarray


class Tables(NamedTuple):
    """Tables for compiled searches, see ``probe_loaded``.

    Attributes:
        max_pieces: int64 [1], largest number of pieces of any table; 0: there are no tables.
        blocks: shared with other threads, except the lists of wanted blocks, which have length 0.
        stack: not shared.
        epoch: int64 [1], odd while a block is being replaced by another, and increased afterwards.
        resting: int64 [1], shared; 1 while a search that does not wait for blocks should not ask for any.
        waits: int64 [1], not shared; 1 if the search waits for blocks.
    """

    max_pieces: np.ndarray
    blocks: Blocks
    stack: Stack
    epoch: np.ndarray
    resting: np.ndarray
    waits: np.ndarray


@njit(cache=True, inline="always")
def _slot_of(block, cache, kind, blocks):
    """Index of a block in ``cache.data``, or a negative number; a missing block that has a file is added to
    ``wanted[kind]``."""
    slot = cache.slots[block]
    if slot >= 0:
        cache.ticks[slot] = blocks.clock[0]
    elif slot == UNLOADED and blocks.num_wanted[kind] < blocks.wanted.shape[1]:
        cache.slots[block] = WANTED
        blocks.wanted[kind, blocks.num_wanted[kind]] = block
        blocks.num_wanted[kind] += 1
    return slot


@njit(cache=True, inline="always")
def _read(word, bit, full, blocks):
    """(score, state) of a stored position."""
    block, row = word // BLOCK_WORDS, word % BLOCK_WORDS
    slot = _slot_of(block, blocks.values, 0, blocks)
    if slot < 0:
        return 0, ABSENT if slot == NO_FILE else NOT_LOADED
    won = np.int64((blocks.values.data[slot, row, 0] >> bit) & np.uint32(1))
    lost = np.int64((blocks.values.data[slot, row, 1] >> bit) & np.uint32(1))
    if full == 1 or won == lost:
        return won - lost, KNOWN
    slot = _slot_of(block, blocks.halves, 1, blocks)
    if slot < 0:
        return 0, ABSENT if slot == NO_FILE else NOT_LOADED
    half = np.int64(blocks.halves.data[slot, row, bit])
    return (full + 1 - 2 * half if won else 2 * half - full), KNOWN


@njit(cache=True)
def _score_leaf(own, opp, kings, full, blocks):
    """(score, state, whether the score must be derived by a search instead) of a position."""
    if own == 0:
        return -full, KNOWN, False
    if opp == 0:
        return full - (1 if full > 1 else 0), KNOWN, False
    entry = blocks.slices[code_of(own, opp, kings)]
    if entry.start < 0:
        return 0, ABSENT, False
    if entry.turned != 0 or jumpers_of(own, opp, kings) != 0:
        return 0, KNOWN, True
    word, bit = locate(own, opp, kings, blocks.slices)
    score, state = _read(word, bit, full, blocks)
    return score, state, False


@njit(cache=True)
def _open(own, opp, kings, stack, depth):
    stack.counts[depth] = generate(own, opp, kings, stack.moves[depth], EVERY_PATH)
    stack.nexts[depth] = 0
    stack.bests[depth] = _NOTHING
    stack.states[depth] = KNOWN


@njit(cache=True)
def _raise(stack, depth, score, state, full):
    """Enters the score of a child, seen by its side to move, into the position at ``depth``."""
    if state != KNOWN:
        stack.states[depth] |= state
        return
    if full > 1:  # one ply further from the end
        score += -1 if score > 0 else np.int64(score < 0)
    stack.bests[depth] = max(stack.bests[depth], -score)


@njit(cache=True)
def _close(stack, depth, full):
    """(score, state) of the position at ``depth`` after its moves have been tried."""
    if stack.counts[depth] == 0:
        return -full, KNOWN
    if full == 1 and stack.bests[depth] == 1:
        return 1, KNOWN
    return stack.bests[depth], stack.states[depth]


@njit(cache=True)
def _probe(own, opp, kings, full, blocks, stack):
    """(score, state) of a position."""
    score, state, opens = _score_leaf(own, opp, kings, full, blocks)
    if not opens:
        return score, state
    depth = np.int64(0)  # not a literal, for which the functions called here would be compiled once more
    _open(own, opp, kings, stack, depth)
    while True:
        if stack.nexts[depth] < stack.counts[depth] and (full > 1 or stack.bests[depth] < 1):
            move = stack.moves[depth, stack.nexts[depth]]
            stack.nexts[depth] += 1
            own, opp, kings = turned(move.opp), turned(move.own), turned(move.kings)
            score, state, opens = _score_leaf(own, opp, kings, full, blocks)
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
def probe_many(positions, todo, full, blocks, stack, scores, states):
    """Probes the rows ``todo`` of ``positions``, until all are done or a list of wanted blocks is full.

    With lists of length 0, blocks that are not in memory are skipped; then several threads may probe at once.

    Args:
        positions: uint32 [N, 3 or more], seen by the side to move.
        todo: int64 [T], row numbers.
        full: 1, or ``FULL`` for scores with distances.
        scores: int64 [N], set.
        states: uint8 [N], set; rows that were not reached keep their entries.
    """
    positions, todo, blocks, stack = borrowed(positions), borrowed(todo), borrowed(blocks), borrowed(stack)
    for i in todo:
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        scores[i], states[i] = _probe(own, opp, kings, full, blocks, stack)
        if 0 < blocks.wanted.shape[1] == max(blocks.num_wanted[0], blocks.num_wanted[1]):
            break


@njit(cache=True)
def probe_loaded(own, opp, kings, tables):
    """(value 1, 0, -1; plies to the end or -1; state) of a position, from the blocks in memory; loads nothing.

    The state is ``KNOWN``, ``ABSENT``, or ``NOT_LOADED`` (also while another thread is replacing a block).
    """
    epoch = tables.epoch[0]
    blocks, stack = borrowed(tables.blocks), borrowed(tables.stack)
    score, state = _probe(own, opp, kings, 1, blocks, stack)
    plies = np.int64(-1)
    if state == KNOWN and score != 0:
        distance, state = _probe(own, opp, kings, FULL, blocks, stack)
        if state == KNOWN:
            plies = FULL - abs(distance)
        elif state == ABSENT:
            state = KNOWN
    if epoch % 2 == 1 or tables.epoch[0] != epoch or state & NOT_LOADED:
        return np.int64(0), np.int64(-1), NOT_LOADED
    return score, plies, state


@njit(cache=True, nogil=True)
def first_impossible(positions):
    """Row of the first impossible position in uint32 [N, 3 or more]; -1 if there is none.

    A side may have no pieces, because a search looks up finished games, too.
    """
    positions = borrowed(positions)
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        crowned = (own & np.uint32(FAR_ROW)) | (opp & np.uint32(HOME_ROW))
        if own & opp != 0 or (kings & ~(own | opp)) | (crowned & ~kings) != 0 or own | opp == 0:
            return i
    return -1


def new_stack() -> Stack:
    """Allocates the buffers for one thread."""
    depths = (np.zeros(MAX_DEPTH, np.int64) for _ in range(4))
    return Stack(new_moves(MAX_DEPTH), *depths)


def no_tables() -> Tables:
    """``Tables`` without any table."""
    slots = np.zeros(0, np.int32)
    blocks = new_blocks(no_slices(), new_cache(0, slots, 0), new_cache(1, slots, 0), 0)
    return Tables(np.zeros(1, np.int64), blocks, new_stack(), *(np.zeros(1, np.int64) for _ in range(3)))


def new_cache(kind: int, slots: np.ndarray, capacity: int) -> Cache:
    """An empty cache for blocks of values (kind 0) or distances (1)."""
    rows = np.zeros((capacity, BLOCK_WORDS, *BLOCK_ROWS[kind].shape), BLOCK_ROWS[kind].base)
    return Cache(slots, rows, np.zeros(capacity, np.int64))


def new_blocks(slices: np.ndarray, values: Cache, halves: Cache, most_wanted: int) -> Blocks:
    """``Blocks`` with empty lists of wanted blocks, for at most ``most_wanted`` each."""
    clock, num_wanted = np.zeros(1, np.int64), np.zeros(2, np.int64)
    return Blocks(slices, values, halves, clock, np.zeros((2, most_wanted), np.int64), num_wanted)
