"""A match between two players of one's own, from ballots, both sides of each; the games can be kept as PDN.

python examples/own_match.py --games 40 --pdn games.pdn
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from engine.board import Board, Move
from selfplay.games.openings import make_openings
from selfplay.matches.match import play_match


class Greedy:
    """Leaves the opponent as few moves as it can. What a player needs is ``name``, ``seed`` and ``choose``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seed(0)

    def seed(self, seed: int) -> None:
        """The same seed and the same boards give the same moves."""
        self._random = random.Random(seed)

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        """One move for each board: games of a match are played side by side."""
        return [min(board.legal_moves, key=lambda move, board=board: self._cost(board, move)) for board in boards]

    def _cost(self, board: Board, move: Move) -> tuple[float, ...]:
        after = board.copy()
        after.push(move)
        return len(after.legal_moves), self._random.random()


class Hoarder(Greedy):
    """Brings up its rear: moves the piece that is nearest to its own side."""

    def _cost(self, board: Board, move: Move) -> tuple[float, ...]:
        row = (move.start - 1) // 4  # 0 is the row of Black's first men
        from_home = row if str(board.turn) == "Black" else 7 - row
        return from_home, self._random.random()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pdn", type=Path, help="file for the games")
    options = parser.parse_args()
    if options.games < 1:
        parser.error("--games must be at least 1")
    if options.seed < 0:
        parser.error("--seed must be at least 0")
    if options.pdn and not options.pdn.absolute().parent.is_dir():  # told now, not after the games
        parser.error(f"--pdn {options.pdn}: there is no such folder")

    first, second = Greedy("greedy"), Hoarder("hoarder")
    openings = make_openings("ballots", (options.games + 1) // 2, options.seed)
    result = play_match(first, second, openings, options.games, seed=options.seed, max_plies=200)
    for name, value in result.summary().items():
        print(f"{name}: {value}")
    for error in result.errors:
        print("forfeited:", error)
    if options.pdn:
        options.pdn.write_text("\n".join(game.to_pdn() for game in result.played), "utf-8")


if __name__ == "__main__":
    main()
