"""Searches one position with an evaluator of one's own and prints what the search found.

python examples/own_evaluator.py --fen "B:W18,23,32:B11,K1" --simulations 800
"""

import argparse
from math import isfinite

import numpy as np

from engine.board import Board
from engine.errors import FenError
from engine.players.search_player import SearchPlayer
from engine.search import SearchConfig


class ManOrKing:
    """Judges by material: a man counts 1, a king ``king``."""

    def __init__(self, king: float) -> None:
        self.king = king

    def evaluate(self, positions: np.ndarray) -> tuple[None, np.ndarray]:
        """No policy (equal priors) and win/draw/loss logits [N, 3] for the side to move."""
        own, opp, kings = positions[:, 0], positions[:, 1], positions[:, 2]
        lead = self._material(own, kings) - self._material(opp, kings)
        return None, np.stack([lead, np.zeros_like(lead), -lead], 1)

    def _material(self, side: np.ndarray, kings: np.ndarray) -> np.ndarray:
        worth = np.bitwise_count(side & ~kings) + self.king * np.bitwise_count(side & kings)
        return worth.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fen", default="B:W18,23,32:B11,K1", help="position to search")
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--king", type=float, default=1.5, help="what a king is worth in men")
    options = parser.parse_args()

    try:
        board = Board(options.fen)
    except FenError as error:
        parser.error(str(error))
    if not board.legal_moves:
        parser.error(f"--fen {options.fen}: {board.turn} has no legal move")
    if not 1 <= options.simulations <= 1_000_000:
        parser.error("--simulations must be from 1 to 1,000,000")
    if not isfinite(options.king):
        parser.error("--king must be a finite number")
    config = SearchConfig(num_simulations=options.simulations)
    result, line, choice = SearchPlayer("material", ManOrKing(options.king), config).analyse(board)
    moves = board.distinct_moves

    print(board)
    print(f"{'move':8} {'visits':>6} {'value':>6} {'draw':>6}")
    for index in np.argsort(-result.visits):
        name, visits = board.pdn(moves[index]), result.visits[index]
        print(f"{name:8} {visits:6} {result.values[index]:6.2f} {result.draws[index]:6.2f}")
    win, draw, loss = result.wdl
    print(f"root: win {win:.2f}, draw {draw:.2f}, loss {loss:.2f}, {result.simulations} simulations")

    print("best:", board.pdn(moves[choice]))
    print("principal line:", *board.pdn_line(line))


if __name__ == "__main__":
    main()
