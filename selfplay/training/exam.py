"""The endgame exam: how often a network's win/draw/loss head is right in endgames with a known exact value."""

from functools import cache
from pathlib import Path

import numpy as np

from engine.tablebase.dense import load_tables
from engine.tablebase.material import MIN_PIECES, materials_between
from engine.tablebase.probe import SHIPPED
from learner.endgame.data import TEST, EndgameBatch, EndgameSampler
from learner.endgame.oracle import open_oracle

PIECES = 4  # most pieces of the tables with distances that come with the package
_SEED = 20_230  # fixed: every network of every run is asked about the same positions


@cache
def exam_questions(positions: int) -> EndgameBatch:
    """Uniform samples of endgames of 2 to 4 pieces from the test split, on which no network is trained."""
    tables = load_tables(SHIPPED, PIECES, threads=1)
    return EndgameSampler(tables, materials_between(MIN_PIECES, PIECES), _SEED, TEST).draw(positions)


def exam_accuracy(folder: Path, positions: int) -> float:
    """Fraction of right answers of a checkpoint's network with capture search; raises ``CheckpointError``."""
    questions = exam_questions(positions)
    return float(np.mean(open_oracle(folder).capture_search(questions.positions).values == questions.values))
