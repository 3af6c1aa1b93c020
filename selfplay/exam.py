"""The endgame exam: how often a network's win/draw/loss head is right in endgames with a known exact value."""

from pathlib import Path

import numpy as np

from engine.tablebase.dense import load_tables
from engine.tablebase.material import materials
from engine.tablebase.probe import SHIPPED
from learner.endgame.data import TEST, EndgameSampler
from learner.endgame.oracle import open_oracle

PIECES = 4  # most pieces of the tables with distances that come with the package
_SEED = 20_230  # fixed: every network of every run is asked about the same positions


class EndgameExam:
    """Uniform samples of endgames of 2 to 4 pieces from the test split, on which no network is trained."""

    def __init__(self, positions: int) -> None:
        tables = load_tables(SHIPPED, PIECES, threads=1)
        every = [material for n in range(2, PIECES + 1) for material in materials(n)]
        self._questions = EndgameSampler(tables, every, _SEED, TEST).draw(positions)

    def accuracy(self, folder: Path) -> float:
        """Fraction of right answers of a checkpoint's network with capture search; raises ``CheckpointError``."""
        answers = open_oracle(folder).capture_search(self._questions.positions).values
        return float(np.mean(answers == self._questions.values))
