"""Positions that 16-bit integers are calibrated on, and that answers are compared on.

Random games are good enough: measured with two trained networks (3x32 and 5x64), 32 to 1024 of their positions do as
well as 2000 positions of self-play.
"""

from functools import cache

import numpy as np

from engine.board import Board

CALIBRATION_POSITIONS = 64
_MAX_PLIES = 120


@cache
def random_positions(number: int, seed: int = 0) -> np.ndarray:
    """Positions of random games, from the opening to the endgame: uint32 [number, 4]; shared, not to be changed."""
    rng = np.random.default_rng(seed)
    positions: list[tuple[int, ...]] = []
    board = Board()
    while len(positions) < number:
        legal = board.legal_moves
        if not legal or board.ply >= _MAX_PLIES or board.outcome():
            board = Board()
            continue
        positions.append((*board.words(), board.reversible_plies))
        board.push(legal[rng.integers(len(legal))])
    return np.array(positions, np.uint32).reshape(number, 4)
