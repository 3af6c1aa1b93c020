"""Compressed half distances: blocks of the same words as in ``wdl_codec``, one byte a position, packed by zstd.

As there, only what a prober cannot find out is kept: won and lost positions with the first side to move and without a
capture, in the copy whose roamer has the lowest bit. Every other byte repeats the one of the word before, which costs
next to nothing.
"""

import numpy as np
import zstandard
from numba import njit

from ..bitboard import NUM_SQUARES, borrowed, lowest_bit
from ..movegen import jumpers_of
from .layout import NUM_KINDS
from .solve import Grid, canonical_places, place_word, seen_by_mover
from .wdl_codec import BLOCK_WORDS

_ZSTD_LEVEL = 12


@njit(cache=True, nogil=True)
def _keep_needed(first_word, grid, values, halves, kept):
    """Copies the bytes that must be kept into ``kept`` [BLOCK_WORDS, 32], and repeats them down the columns."""
    values, halves, kept = borrowed(values), borrowed(halves), borrowed(kept)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    for word in range(first_word, first_word + BLOCK_WORDS):
        here = word - first_word
        for b in range(NUM_SQUARES):
            kept[here, b] = kept[here - 1, b] if here else 0
        if word >= grid.words:
            continue
        taken = place_word(grid, word, ranks, pieces)
        others = pieces[grid.roamer]
        places = canonical_places(grid.roamer, taken, others) & (values[word, 0] | values[word, 1])
        while places != 0:
            bit = np.uint32(places & (~places + np.uint32(1)))
            places ^= bit
            pieces[grid.roamer] = others | bit
            own, opp, kings = seen_by_mover(grid, pieces)
            if jumpers_of(own, opp, kings) == 0:
                kept[here, lowest_bit(bit)] = halves[word, lowest_bit(bit)]
        pieces[grid.roamer] = others


def kept_distances(block: int, grid: Grid, values: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """What a file holds of one block of a slice: uint8 [BLOCK_WORDS, 32].

    Args:
        values, halves: uint32 [words, 2] and uint8 [words, 32] of the slice.
    """
    kept = np.zeros((BLOCK_WORDS, NUM_SQUARES), np.uint8)
    _keep_needed(block * BLOCK_WORDS, grid, values, halves, kept)
    return kept


def encode_distances(block: int, grid: Grid, values: np.ndarray, halves: np.ndarray) -> bytes:
    """One block of a slice's half distances, see ``kept_distances``."""
    kept = kept_distances(block, grid, values, halves)
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(kept.tobytes())


def decode_distances(data: bytes) -> np.ndarray:
    """The half distances of a block, uint8 [BLOCK_WORDS, 32]; right only where one had to be kept (see above).

    Raises:
        ValueError: the bytes are not a block.
    """
    try:
        plain = zstandard.ZstdDecompressor().decompress(data, max_output_size=BLOCK_WORDS * NUM_SQUARES)
        return np.frombuffer(plain, np.uint8).reshape(BLOCK_WORDS, NUM_SQUARES)
    except zstandard.ZstdError as error:
        raise ValueError(f"a block of distances does not unpack ({error})") from error
