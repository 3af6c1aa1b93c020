"""From a file back to all values of a pair of slices: captures are looked up, the second side looks one step ahead."""

import numpy as np
from numba import njit

from ..bitboard import borrowed
from ..interrupts import map_threads
from ..movegen import jumpers_of, new_moves
from .layout import NUM_KINDS, Layout, add_slice, locate
from .slice_file import SliceFile
from .solve import LOST, WON, Workers, free_places, grid_of, place_fast, place_row, seen_by_mover, settle_position
from .wdl_codec import BLOCK_WORDS, BlockCodec


def decode_file(file: SliceFile, layout: Layout, workers: Workers) -> np.ndarray:
    """What a file of values holds, uint32 [words, 2]; right only where ``wdl_codec`` keeps a value."""
    grid, priors = grid_of(layout, False), file.priors()
    values = np.zeros((file.header.blocks * BLOCK_WORDS, 2), np.uint32)
    edges = np.linspace(0, file.header.blocks, min(file.header.blocks, 4 * workers.threads) + 1).astype(int)

    def decode(low: int, high: int) -> None:
        codec = BlockCodec(grid, priors)
        for block in range(low, high):
            values[block * BLOCK_WORDS : (block + 1) * BLOCK_WORDS] = codec.decode(block, file.block(block))

    map_threads(workers, decode, edges[:-1].tolist(), edges[1:].tolist())
    return values[: layout.words]


@njit(cache=True, nogil=True)
def _complete_rows(low, high, grid, solved, kept, values, moves):
    """Fills ``values`` with the positions of the first side to move: captures settled, others from their kept copy.

    Args:
        solved: directory and values of the slices that captures lead to.
        kept: directory in which this slice begins at word 0, and what its file keeps (``decode_file``).
        values: uint32 [words, 2], set.
    """
    (slices, words), (here, there) = borrowed(solved), borrowed(kept)
    values, moves = borrowed(values), borrowed(moves)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    for row in range(low, high):
        taken_by_row, word_of_row = place_row(grid, row, ranks, pieces)
        for rank in range(grid.sizes[grid.order[NUM_KINDS - 1]]):
            word = word_of_row + rank
            taken = place_fast(grid, rank, taken_by_row, ranks, pieces)
            others = pieces[grid.roamer]
            places = free_places(grid.roamer, taken)
            while places != 0:
                bit = np.uint32(places & (~places + np.uint32(1)))
                places ^= bit
                pieces[grid.roamer] = others | bit
                own, opp, kings = seen_by_mover(grid, pieces)
                if jumpers_of(own, opp, kings) != 0:
                    state = settle_position(own, opp, kings, slices, words, moves)
                    won, lost = state == WON, state == LOST
                else:
                    at, place = locate(own, opp, kings, here)
                    won = there[at, 0] >> place & np.uint32(1) != 0
                    lost = there[at, 1] >> place & np.uint32(1) != 0
                values[word, 0] |= bit if won else np.uint32(0)
                values[word, 1] |= bit if lost else np.uint32(0)
            pieces[grid.roamer] = others


def restore_pair(
    file: SliceFile, layout: Layout, slices: np.ndarray, words: np.ndarray, workers: Workers
) -> np.ndarray:
    """All values of a pair from its file: uint32 [2, words, 2], see ``solve.solve_pair``.

    Args:
        slices, words: directory and values of every slice that captures and promotions can lead to.
    """
    values, todo = np.zeros((2, layout.words, 2), np.uint32), np.zeros((layout.words, 2), np.uint32)
    first, second = grid_of(layout, False), grid_of(layout, True)
    here = slices.copy()
    add_slice(here, layout.material, 0)
    tables = (slices, words), (here, decode_file(file, layout, workers))
    workers.over_rows(first, lambda low, high: _complete_rows(low, high, first, *tables, values[0], new_moves()))
    workers.settle(second, slices, words, values[1], todo)
    workers.sweep(second, values[1], todo, values[0])
    return values
