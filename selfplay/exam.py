"""The endgame exam: how often a network's win/draw/loss head is right where the exact value is known."""

from pathlib import Path

import numpy as np

from engine.tablebase.dense import load_tables
from engine.tablebase.material import materials
from engine.tablebase.probe import SHIPPED
from learner.endgame.data import TEST, EndgameSampler
from learner.endgame.oracle import open_oracle

PIECES = 4  # most pieces of the tables with distances that come with the package
_SEED = 20_230  # the same questions for every network of every run


class EndgameExam:
    """Uniform samples of the exact endgames of 2-4 pieces, of the test split: no network is trained on them."""

    def __init__(self, positions: int) -> None:
        tables = load_tables(SHIPPED, PIECES, threads=1)
        every = [material for n in range(2, PIECES + 1) for material in materials(n)]
        self._questions = EndgameSampler(tables, every, _SEED, TEST).draw(positions)

    def accuracy(self, folder: Path) -> float:
        """Share of right answers (0 to 1) of a checkpoint's network with capture search; raises ``CheckpointError``."""
        answers = open_oracle(folder).capture_search(self._questions.positions).values
        return float(np.mean(answers == self._questions.values))
