"""Measures the bytes for the values of 2-5 pieces in different formats, and prints a table.

Choices of positions: both sides to move; only the first side (the other follows by one ply of search); the first side
in positions without a capture (captures are looked up; such positions repeat the value before them). Formats of values,
in blocks of ``BLOCK`` positions that can be read separately: two bits each; runs of equal values, with a byte for value
and length up to 63; two bits each, compressed by Zstandard; the arithmetic coder of the table files.
"""

import sys

import numpy as np
import zstandard
from numba import njit
from solved_tables import solve_tables

from engine.bitboard import turned
from engine.movegen import jumpers_of
from engine.tablebase.layout import NUM_KINDS, layout_of
from engine.tablebase.material import pairs_up_to
from engine.tablebase.solve import canonical_places, grid_of, place_word
from engine.tablebase.solver import Workers
from engine.tablebase.wdl_codec import encode_slice

BLOCK = 16_384
LONGEST_RUN = 63
ZSTD_LEVEL = 19


@njit
def values_of(grid, words, skip_captures):
    """Values uint8 (0 draw, 1 win, 2 loss) of a slice's positions in their order."""
    values = np.empty(words.shape[0] * 32, np.uint8)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    n = 0
    for word in range(words.shape[0]):
        taken = place_word(grid, word, ranks, pieces)
        others = pieces[grid.roamer]
        places = canonical_places(grid.roamer, taken, others)
        while places != 0:
            bit = np.uint32(places & (~places + np.uint32(1)))
            places ^= bit
            pieces[grid.roamer] = others | bit
            own, opp = np.uint32(pieces[0] | pieces[1]), np.uint32(pieces[2] | pieces[3])
            kings = np.uint32(pieces[1] | pieces[3])
            if grid.second:
                own, opp, kings = turned(opp), turned(own), turned(kings)
            if skip_captures and jumpers_of(own, opp, kings) != 0:
                values[n] = values[n - 1] if n else 0
            else:
                values[n] = 1 if words[word, 0] & bit else 2 if words[word, 1] & bit else 0
            n += 1
        pieces[grid.roamer] = others
    return values[:n].copy()


@njit
def num_runs(values):
    """Number of runs of equal values, of at most ``LONGEST_RUN`` each and not across blocks."""
    runs, length = 0, 0
    for i in range(values.shape[0]):
        if i % BLOCK == 0 or length == LONGEST_RUN or values[i] != values[i - 1]:
            runs += 1
            length = 0
        length += 1
    return runs


def two_bits(values: np.ndarray) -> bytes:
    padded = np.zeros(-(-len(values) // 4) * 4, np.uint8)
    padded[: len(values)] = values
    quads = padded.reshape(-1, 4)
    return bytes(quads[:, 0] | quads[:, 1] << 2 | quads[:, 2] << 4 | quads[:, 3] << 6)


def zstd_bytes(values: np.ndarray) -> int:
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=False, write_content_size=False)
    return sum(len(compressor.compress(two_bits(values[i : i + BLOCK]))) for i in range(0, len(values), BLOCK))


def main(pieces: int) -> None:
    tables = solve_tables(pieces)
    sizes = {way: [0, 0, 0] for way in ("both sides", "first side", "first side, no captures")}
    coded = positions = 0
    with Workers() as workers:
        for pair in pairs_up_to(pieces):
            layout = layout_of(pair)
            slices = [pair] if pair.symmetric else [pair, pair.swapped()]
            for side, material in enumerate(slices):
                grid, words = grid_of(layout, side == 1), tables.slice_rows(material)
                if side == 0:
                    priors, blocks = encode_slice(grid, words, workers)
                    packed = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(priors.tobytes())
                    coded += len(packed) + sum(map(len, blocks))
                for way, skips in (("both sides", False), ("first side", False), ("first side, no captures", True)):
                    if side == 0 or way == "both sides":
                        values = values_of(grid, words, skips)
                        positions += len(values) * (way == "both sides")
                        for i, size in enumerate((-(-len(values) // 4), num_runs(values), zstd_bytes(values))):
                            sizes[way][i] += size
    print(f"{positions:,} positions of 2-{pieces} pieces, bytes:")
    for way, (dense, runs, zstd) in sizes.items():
        print(f"{way:>24}: two bits {dense:>12,}  runs {runs:>12,}  zstd {zstd:>12,}")
    print(f"{'first side, no captures':>24}: arithmetic coder, priors included {coded:,}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
