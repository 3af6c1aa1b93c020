"""Compression of win/draw/loss values, in blocks of words that can be decoded separately.

Only values that a prober cannot derive are coded. These are the values of the pair's slice with the *first* side to
move (the other follows by looking one ply ahead), in positions without a capture (captures lead to fewer pieces). If
the layout has several copies of a position, only the one whose roamer has the lowest bit is coded.

A position's value is probably that of positions one step away. So values are coded bit by bit (won? if not, lost?) with
adaptive probabilities for each of 1,024 contexts. A context is the value decoded for the roamer one step further back
in either direction, and the numbers of backward steps of the other pieces that lead to won, drawn and lost positions of
the same block. Positions that are not coded get their most probable value, so that they can be used as context. Each
slice has its own table of initial probabilities, stored in its file.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import borrowed, step
from ..interrupts import map_threads
from .captures import capture_places
from .coder import STATE_SIZE, code_bit, finish_encoding, model, start_decoding, start_encoding
from .layout import NUM_KINDS, Layout
from .solve import Grid, canonical_places, place_word
from .solver import Workers

BLOCK_WORDS = 1024
NUM_CONTEXTS = 1024
NUM_MODELS = 2 * NUM_CONTEXTS  # won or not; if not won: lost or not
WON, LOST, DRAWN, NOT_YET = range(4)
"""States in contexts, numbered in the order in which values are coded; files depend on them. See ``outcomes``."""
_MAX_NEIGHBOURS = 32
BLOCK_BYTES = 1 << 17  # enough for any block: 31 * 1,024 positions with two coded bits, of at most 16 bits each
_PRIOR_COUNT = 60
_SURVEYED_BLOCKS = 256
_PRIOR_SCALE = 8.0  # stored probabilities are rounded to 1/8 of a unit of log-odds


@njit(cache=True, inline="always")
def _state_at(word, bit, known, filled):
    if known[word] & bit == 0:
        return NOT_YET
    if filled[word, 0] & bit != 0:
        return WON
    return LOST if filled[word, 1] & bit != 0 else DRAWN


@njit(cache=True)
def _find_neighbours(grid, ranks, taken, word, first_word, neighbours):
    """Writes the indices in the block of the words that a backward step of a piece leads to; returns their number."""
    n = 0
    for kind in range(NUM_KINDS):
        entry = grid.base[kind] + ranks[kind]
        for i in range(grid.first[entry], grid.first[entry + 1]):
            after = word + grid.jumps[i]
            if first_word <= after < word and grid.targets[i] & taken == 0 and n < _MAX_NEIGHBOURS:
                neighbours[n] = after - first_word
                n += 1
    return n


@njit(cache=True, inline="always")
def _context(here, bit, neighbours, n, known, filled):
    won = drawn = lost = 0
    for j in range(n):
        state = _state_at(neighbours[j], bit, known, filled)
        won += state == WON
        lost += state == LOST
        drawn += state == DRAWN
    left, right = _state_at(here, step(bit, 2), known, filled), _state_at(here, step(bit, 3), known, filled)
    return (((left * 4 + right) * 4 + min(won, 3)) * 4 + min(drawn, 3)) * 4 + min(lost, 3)


class Buffers(NamedTuple):
    """Input and output arrays for coding one block.

    Attributes:
        models: uint32 [NUM_MODELS], initial models of the slice's blocks; adapted.
        state, data: state and buffer of the coder.
        filled: uint32 [BLOCK_WORDS, 2], set to the block's values, guessed where they are not coded.
        known: uint32 [BLOCK_WORDS], set to the positions that have a value in ``filled``.
        tally: int64 [NUM_MODELS, 2]; numbers of zeros and ones of each model are added.
    """

    models: np.ndarray
    state: np.ndarray
    data: np.ndarray
    filled: np.ndarray
    known: np.ndarray
    tally: np.ndarray


@njit(cache=True, nogil=True)
def code_block(first_word, grid, values, buffers, decoding):
    """Encodes or decodes one block; the caller starts the coder before and finishes it afterwards.

    Args:
        first_word: first word of the block in the slice; the block ends after ``BLOCK_WORDS`` words or with the slice.
        values: uint32 [words, 2], won and lost positions of the slice; read when encoding.
    """
    values, grid, (models, state, data, filled, known, tally) = borrowed(values), borrowed(grid), borrowed(buffers)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    neighbours = np.zeros(_MAX_NEIGHBOURS, np.int64)
    filled[:] = 0
    known[:] = 0
    for word in range(first_word, min(first_word + BLOCK_WORDS, grid.words)):
        here = word - first_word
        taken = place_word(grid, word, ranks, pieces)
        places = canonical_places(grid.roamer, taken, pieces[grid.roamer])
        if places == 0:
            continue
        captures = capture_places(grid, pieces, taken)
        n = _find_neighbours(grid, ranks, taken, word, first_word, neighbours)
        while places != 0:
            bit = np.uint32(places & (~places + np.uint32(1)))
            places ^= bit
            context = _context(here, bit, neighbours, n, known, filled)
            if captures & bit != 0:
                won = models[context] >> 31
                lost = models[NUM_CONTEXTS + context] >> 31
            else:
                won = np.int64(0) if decoding else np.int64(values[word, 0] & bit != 0)
                won = code_bit(state, data, models, context, won, decoding)
                tally[context, won] += 1
                lost = 0
                if not won:
                    lost = np.int64(0) if decoding else np.int64(values[word, 1] & bit != 0)
                    lost = code_bit(state, data, models, NUM_CONTEXTS + context, lost, decoding)
                    tally[NUM_CONTEXTS + context, lost] += 1
            known[here] |= bit
            if won:
                filled[here, 0] |= bit
            elif lost:
                filled[here, 1] |= bit


class BlockCodec:
    """Encodes and decodes the blocks of one slice. Not thread-safe, because of its buffers.

    Args:
        grid: grid of the pair with its first side to move.
        priors: int8 [NUM_MODELS, 2]: log-odds of a one in eighths, and their weight as a count of bits; see ``survey``.
    """

    def __init__(self, grid: Grid, priors: np.ndarray) -> None:
        self._grid = grid
        odds = 1 / (1 + np.exp(-priors[:, 0] / _PRIOR_SCALE))
        self._start = np.array(
            [model(p, n) for p, n in zip(odds.tolist(), priors[:, 1].tolist(), strict=True)], np.uint32
        )
        self._buffers = Buffers(
            models=np.zeros(NUM_MODELS, np.uint32),
            state=np.zeros(STATE_SIZE, np.int64),
            data=np.zeros(BLOCK_BYTES, np.uint8),
            filled=np.zeros((BLOCK_WORDS, 2), np.uint32),
            known=np.zeros(BLOCK_WORDS, np.uint32),
            tally=np.zeros((NUM_MODELS, 2), np.int64),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        arrays = (part for part in (*self._grid, *self._buffers) if isinstance(part, np.ndarray))
        return sum(part.nbytes for part in arrays)

    def encode(self, block: int, values: np.ndarray) -> bytes:
        """Encodes one block of a slice's ``values``, uint32 [words, 2]."""
        buffers = self._buffers
        buffers.models[:] = self._start
        start_encoding(buffers.state)
        code_block(block * BLOCK_WORDS, self._grid, values, buffers, False)
        return buffers.data[: finish_encoding(buffers.state, buffers.data)].tobytes()

    def decode(self, block: int, data: bytes) -> np.ndarray:
        """Decodes the values of a block, uint32 [BLOCK_WORDS, 2]: a buffer that the next call overwrites.

        Valid only in positions without a capture whose roamer has the lowest bit of its kind.
        """
        buffers = self._buffers
        buffers.models[:] = self._start
        buffers.data[: len(data)] = np.frombuffer(data, np.uint8)
        start_decoding(buffers.state, buffers.data, 0, len(data))
        code_block(block * BLOCK_WORDS, self._grid, buffers.filled, buffers, True)
        return buffers.filled

    def survey(self, values: np.ndarray) -> np.ndarray:
        """Priors for a slice with these values, from encoding at most ``_SURVEYED_BLOCKS`` blocks on trial."""
        tally = self._buffers.tally
        tally[:] = 0
        for block in np.unique(np.linspace(0, num_blocks(self._grid) - 1, _SURVEYED_BLOCKS).astype(int)):
            self.encode(int(block), values)
        total = tally.sum(axis=1)
        odds = np.log((tally[:, 1] + 0.02) / (tally[:, 0] + 0.02)) * _PRIOR_SCALE
        priors = np.stack([np.clip(np.rint(odds), -127, 127), np.minimum(total, _PRIOR_COUNT)], axis=1)
        return np.where(total[:, None] > 0, priors, 0).astype(np.int8)


def num_blocks(layout: Layout | Grid) -> int:
    return -(-layout.words // BLOCK_WORDS)


def no_priors() -> np.ndarray:
    """Priors without any information."""
    return np.zeros((NUM_MODELS, 2), np.int8)


def encode_slice(grid: Grid, values: np.ndarray, workers: Workers) -> tuple[np.ndarray, list[bytes]]:
    """Encodes a slice's ``values``, uint32 [words, 2], with the first side to move; returns priors and blocks."""
    priors = BlockCodec(grid, no_priors()).survey(values)
    blocks = num_blocks(grid)
    edges = np.linspace(0, blocks, min(blocks, 64) + 1).astype(int)

    def encode(low: int, high: int) -> list[bytes]:
        codec = BlockCodec(grid, priors)
        return [codec.encode(block, values) for block in range(low, high)]

    parts = map_threads(workers, encode, edges[:-1].tolist(), edges[1:].tolist())
    return priors, [block for part in parts for block in part]
