"""Measures how fast tables are probed, and how long a search waits for them, by number of pieces.

    python tests/measure_probing.py FOLDER [PIECES ...]

Prints a table. Positions are random. *Cold*: time until the answer for one position after another, with and without
waiting for blocks that are not in memory. *Warm*: the same positions many times in one batch, with all blocks in
memory.
"""

import sys
import time

import numpy as np

from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.probing import first_impossible

POSITIONS, REPEATS, MEN = 1000, 200, 0.6
PAUSE = 0.0005  # seconds between positions, as in a search
CACHE_BYTES = 256 << 20


def random_positions(pieces: int, seed: int = 1) -> np.ndarray:
    """Positions uint32 [POSITIONS, 3]: own, opp, kings; half of the pieces belong to each side."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < POSITIONS:
        bits = 1 << rng.permutation(32)[:pieces]
        kings = bits[rng.random(pieces) > MEN].sum()
        position = np.array([[bits[: pieces // 2].sum(), bits[pieces // 2 :].sum(), kings]], np.uint32)
        if first_impossible(position) < 0:
            found.append(position)
    return np.concatenate(found)


def waits(tables: Tablebase, positions: np.ndarray, patient: bool) -> str:
    """Milliseconds until an answer: median, 99th percentile, and maximum."""
    seconds = []
    for row in range(len(positions)):
        begin = time.perf_counter()
        tables.judge(positions[row : row + 1], patient)
        seconds.append(time.perf_counter() - begin)
        time.sleep(PAUSE)
    return " / ".join(f"{1000 * np.quantile(seconds, part):.2f}" for part in (0.5, 0.99, 1.0))


def warm_rate(tables: Tablebase, positions: np.ndarray) -> float:
    """Probes per second, the best of three batches."""
    many = np.random.default_rng(2).permutation(np.tile(positions, (REPEATS, 1)))
    tables.probe_wdl_many(many)
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        tables.probe_wdl_many(many)
        seconds.append(time.perf_counter() - begin)
    return len(many) / min(seconds)


def main(folder: str, counts: list[int]) -> None:
    print("pieces | cold, ms, waiting | cold, ms, not waiting | warm, probes a second")
    for pieces in counts:
        positions = random_positions(pieces)
        with open_tablebase(folder, shipped=False) as tables:
            hurried = waits(tables, positions, patient=False)
        with open_tablebase(folder, CACHE_BYTES, shipped=False) as tables:
            patient = waits(tables, positions, patient=True)
            print(f"{pieces} | {patient} | {hurried} | {warm_rate(tables, positions) / 1e6:.2f} M")


if __name__ == "__main__":
    main(sys.argv[1], [int(number) for number in sys.argv[2:]] or [4, 5, 6, 7])
