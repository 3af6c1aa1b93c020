"""Retrograde analysis of one pair of slices, second part: number of plies to a win or a loss under best play.

The winner takes the shortest way to the end of the game, the loser the longest. A won position is an odd number of
plies from the end and a lost one an even number. So tables hold *half distances*, one byte each::

    plies = 2 * half - 1   in a won position        plies = 2 * half   in a lost position

    Positions are *dated* level by level, which means that their half distance is set. At level h, first the lost
    positions are dated, all of whose moves lead to wins dated already, then the won positions one ply further. Moves
    out of the slice lead to positions whose half distances are known.

    Files have blocks of the same words as in ``wdl_codec``, one byte for each position, compressed by Zstandard. As
    there, only those positions are stored that a prober cannot derive: won and lost positions with the first side to
    move and without a capture, in the copy whose roamer has the lowest bit. Every other byte repeats that of the word
    before, which compresses to almost nothing.
"""

from typing import NamedTuple

import numpy as np
import zstandard
from numba import njit

from ..bitboard import FAR_ROW, NUM_SQUARES, borrowed, lowest_bit, step, turned
from ..frames import decompressed
from ..movegen import EVERY_PATH, generate, jumpers_of, new_moves
from .captures import capture_places
from .layout import NUM_KINDS, Layout, locate
from .solve import Grid, canonical_places, grids_of, place_fast, place_row, place_word, seen_by_mover, sweep_word
from .solver import Values, Workers
from .wdl_codec import BLOCK_WORDS

Halves = tuple[np.ndarray, np.ndarray]
"""Half distances of a pair with the first and with the second side to move: each uint8 [words, 32]."""
MAX_HALF = 254
NO_HALF = 255  # half distance of a won position in which no move out of the slice wins
_ZSTD_LEVEL = 12


@njit(cache=True, nogil=True)
def _keep_needed(first_word, grid, values, halves, kept):
    """Copies the bytes to store into ``kept`` [BLOCK_WORDS, 32]; every other byte gets that of the row above."""
    values, halves, kept = borrowed(values), borrowed(halves), borrowed(kept)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    for word in range(first_word, first_word + BLOCK_WORDS):
        here = word - first_word
        for b in range(NUM_SQUARES):
            kept[here, b] = kept[here - 1, b] if here else 0
        if word >= grid.words:
            continue
        taken = place_word(grid, word, ranks, pieces)
        places = canonical_places(grid.roamer, taken, pieces[grid.roamer]) & (values[word, 0] | values[word, 1])
        places &= ~capture_places(grid, pieces, taken)
        while places != 0:
            kept[here, lowest_bit(places)] = halves[word, lowest_bit(places)]
            places &= places - np.uint32(1)


def kept_distances(block: int, grid: Grid, values: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """The bytes that a file stores for one block of a slice: uint8 [BLOCK_WORDS, 32].

    Args:
        values: uint32 [words, 2], values of the slice.
        halves: uint8 [words, 32], half distances of the slice.
    """
    kept = np.zeros((BLOCK_WORDS, NUM_SQUARES), np.uint8)
    _keep_needed(block * BLOCK_WORDS, grid, values, halves, kept)
    return kept


def encode_distances(block: int, grid: Grid, values: np.ndarray, halves: np.ndarray) -> bytes:
    """Compresses one block of a slice's half distances, see ``kept_distances``."""
    kept = kept_distances(block, grid, values, halves)
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(kept.tobytes())


def decode_distances(data: bytes) -> np.ndarray:
    """Decompresses the half distances of a block, uint8 [BLOCK_WORDS, 32]; valid only for positions that are stored.

    Raises ``ValueError`` if the bytes are not a block.
    """
    plain = decompressed(data, BLOCK_WORDS * NUM_SQUARES)
    return np.frombuffer(plain, np.uint8).reshape(BLOCK_WORDS, NUM_SQUARES)


class KnownSlices(NamedTuple):
    """The slices that moves out of a slice can lead to.

    Attributes:
        slices, words: see ``layout.lookup``.
        halves: uint8 [words, 32], half distances.
    """

    slices: np.ndarray
    words: np.ndarray
    halves: np.ndarray


class Dating(NamedTuple):
    """A slice whose distances are being computed, with one side to move.

    Attributes:
        values: uint32 [words, 2], won and lost positions.
        halves: uint8 [words, 32], half distances; for a position not yet dated, the one by moves out of the slice (see
            ``date_position``).
        seeds: uint32 [words, 2], positions with a capture, and positions for which that entry of ``halves`` counts.
        dated: uint32 [words, 2], won and lost positions dated so far.
    """

    values: np.ndarray
    halves: np.ndarray
    seeds: np.ndarray
    dated: np.ndarray


@njit(cache=True)
def lookup_half(own, opp, kings, known):
    """(value, half distance) of a position for its side to move, from ``KnownSlices``; half distance is 0 for draws."""
    if opp == 0:
        return 1, 1
    if own == 0:
        return -1, 0
    word, bit = locate(own, opp, kings, known.slices)
    won, lost = known.words[word, 0] >> bit & 1, known.words[word, 1] >> bit & 1
    return np.int64(won) - np.int64(lost), np.int64(known.halves[word, bit])


@njit(cache=True)
def _date_child(own, opp, kings, won, known, best):
    """``best`` after taking into account a move to a position, which is seen by the side that made the move."""
    value, half = lookup_half(turned(opp), turned(own), turned(kings), known)
    if won:
        return min(best, half + 1) if value == -1 else best
    return max(best, half)


@njit(cache=True)
def date_position(own, opp, kings, won, known, moves):
    """Half distance of a won or lost position by its moves out of the slice alone.

    Returns:
        If won, the smallest half distance, or ``NO_HALF`` without a winning move of that kind; if lost, the largest, or
        0.
    """
    best = NO_HALF if won else 0
    if jumpers_of(own, opp, kings) != 0:
        for i in range(generate(own, opp, kings, moves, EVERY_PATH)):
            best = _date_child(moves[i].own, moves[i].opp, moves[i].kings, won, known, best)
        return best
    free = np.uint32(~(own | opp) & np.uint32(FAR_ROW))
    for direction in range(2):
        landings = np.uint32(step(own & ~kings, direction) & free)
        while landings != 0:
            land = np.uint32(landings & (~landings + np.uint32(1)))
            landings ^= land
            after = np.uint32(own ^ (land | step(land, direction ^ 2)))
            best = _date_child(after, opp, np.uint32(kings | land), won, known, best)
    return best


@njit(cache=True, nogil=True)
def date_rows(low, high, grid, known, mine, moves):
    """Sets ``halves`` and ``seeds`` by the moves out of the slice, in rows ``low`` to ``high - 1``.

    Args:
        known: ``KnownSlices``.
        mine: ``Dating``.
        moves: buffer [MAX_MOVES] of ``MOVE``.
    """
    known, moves, grid, mine = borrowed(known), borrowed(moves), borrowed(grid), borrowed(mine)
    values, seeds = mine.values, mine.seeds
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    for row in range(low, high):
        taken_by_row, word_of_row = place_row(grid, row, ranks, pieces)
        for rank in range(grid.sizes[grid.order[NUM_KINDS - 1]]):
            word = word_of_row + rank
            taken = place_fast(grid, rank, taken_by_row, ranks, pieces)
            others = pieces[grid.roamer]
            places = values[word, 0] | values[word, 1]
            captures = np.uint32(places & capture_places(grid, pieces, taken))
            seeds[word, 0] |= captures
            while places != 0:
                bit = np.uint32(places & (~places + np.uint32(1)))
                places ^= bit
                pieces[grid.roamer] = others | bit
                own, opp, kings = seen_by_mover(grid, pieces)
                won = values[word, 0] & bit != 0
                half = date_position(own, opp, kings, won, known, moves)
                mine.halves[word, lowest_bit(bit)] = half
                counts = captures & bit != 0 or half != (NO_HALF if won else 0)
                seeds[word, 1] |= bit if counts else np.uint32(0)
            pieces[grid.roamer] = others


@njit(cache=True)
def _due(places, halves, word, level, exactly):
    """Those of ``places`` whose half distance is ``level`` or, unless ``exactly``, less."""
    due = np.uint32(0)
    while places != 0:
        bit = np.uint32(places & (~places + np.uint32(1)))
        places ^= bit
        half = halves[word, lowest_bit(bit)]
        if half == level or (half < level and not exactly):
            due |= bit
    return due


@njit(cache=True)
def _set_halves(places, halves, word, level):
    while places != 0:
        halves[word, lowest_bit(places)] = level
        places &= places - np.uint32(1)


@njit(cache=True, nogil=True)
def date_level(low, high, grid, level, winning, mine, theirs):
    """Dates the lost or (``winning``) the won positions of half distance ``level`` in rows ``low`` to ``high - 1``.

    Args:
        mine: ``Dating``.
        theirs: uint32 [words, 2], ``Dating.dated`` of the other side to move.

    Returns:
        Number of words with positions that are not dated yet.
    """
    mine, theirs, grid = borrowed(mine), borrowed(theirs), borrowed(grid)
    values, halves, seeds, dated = mine.values, mine.halves, mine.seeds, mine.dated
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    outcome = 0 if winning else 1
    left = 0
    for row in range(low, high):
        taken_by_row, word_of_row = place_row(grid, row, ranks, pieces)
        for rank in range(grid.sizes[grid.order[NUM_KINDS - 1]]):
            word = word_of_row + rank
            undated = np.uint32(values[word, outcome] & ~dated[word, outcome])
            if undated == 0:
                continue
            taken = place_fast(grid, rank, taken_by_row, ranks, pieces)
            won, lost = sweep_word(grid, ranks, taken, word, theirs)
            captures, seeded = seeds[word, 0], seeds[word, 1]
            quiet = np.uint32(undated & ~captures)
            if winning:
                now = np.uint32(quiet & won)
                now |= _due(np.uint32(undated & seeded & ~now), halves, word, level, True)
            else:
                now = np.uint32(quiet & lost)
                late = np.uint32(now & seeded)
                now ^= late ^ _due(late, halves, word, level, False)
                now |= _due(np.uint32(undated & captures), halves, word, level, True)
            _set_halves(now, halves, word, level)
            dated[word, outcome] |= now
            left += now != undated
    return left


class EndlessWinError(ValueError):
    """Values that contradict the rules: positions that are won only because of one another."""


def solve_distances(layout: Layout, known: KnownSlices, values: Values, halves: Halves, workers: Workers) -> None:
    """Computes the half distances of all positions of a pair of slices from its values.

    ``halves`` are set; they must be zero before, as they remain for draws. Raises ``EndlessWinError`` if the values are
    wrong, or a half distance is too large for a byte.
    """
    seeds, dated = np.zeros((2, layout.words, 2), np.uint32), np.zeros((2, layout.words, 2), np.uint32)
    sides = [Dating(values[side], halves[side], seeds[side], dated[side]) for side in range(2)]
    grids = grids_of(layout)

    def advance(side: int, level: int, winning: bool) -> int:
        state = grids[side], level, winning, sides[side], dated[1 - side]
        return workers.over_rows(grids[side], lambda low, high: date_level(low, high, *state))

    def date(grid: Grid, mine: Dating) -> None:
        workers.over_rows(grid, lambda low, high: date_rows(low, high, grid, known, mine, new_moves()))

    for grid, mine in zip(grids, sides, strict=True):
        date(grid, mine)
    for level in range(MAX_HALF + 1):
        left = sum(advance(side, level, False) for side in range(2))
        left += sum(advance(side, level + 1, True) for side in range(2))
        if not left:
            return
    name = layout.material.name
    raise EndlessWinError(
        f"slice {name}: a win takes more than {2 * MAX_HALF} plies, so its values are wrong: remove {name}.wdl and "
        "build it again"
    )
