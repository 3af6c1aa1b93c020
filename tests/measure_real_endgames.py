"""How often the shipped oracle is right in endgames of recorded games: run it with a collection in PDN.

Every position of 2-5 pieces that the games hold counts once, whoever is to move. It prints a table and keeps nothing.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from engine.tablebase import open_tablebase
from learner.endgame.oracle import open_oracle
from learner.endgame.resolve import Resolved
from learner.expert.games import read_expert_games

PIECES = 5


def few_pieces(path: Path) -> np.ndarray:
    """The distinct positions of at most ``PIECES`` pieces, both sides having some: uint32 [N, 4]."""
    positions = read_expert_games(path).samples.positions.copy()
    positions[:, 3] = 0
    few = np.bitwise_count(positions[:, 0] | positions[:, 1]) <= PIECES
    return np.unique(positions[few & (positions[:, 0] > 0) & (positions[:, 1] > 0)], axis=0)


def say(what: str, found: Resolved, exact: np.ndarray) -> None:
    right = found.values == exact
    sure = found.probabilities.max(axis=1) > 0.99
    print(f"{what:20} {right.mean():8.2%} right; of {sure.sum():,} it is 99 % sure of, {(sure & ~right).sum()} wrong")


def main() -> None:
    torch.set_num_threads(1)
    positions = few_pieces(Path(sys.argv[1]))
    oracle = open_oracle()
    with open_tablebase() as tables:
        exact = tables.probe_wdl_many(positions)
    print(f"{len(positions):,} positions of 2-{PIECES} pieces")
    say("with capture search", oracle.capture_search(positions), exact)
    say("with all searches", oracle.search(positions), exact)


if __name__ == "__main__":
    main()
