"""How games end, and the numbers of outcomes.

Outcomes are classes in samples, in a network's WDL output and in judgements. They are those of the side to move, in the
order win, draw, loss. A *value* is 1, 0 or -1 instead: ``DRAW - class``. Kernels of tables and of search trees have
codes of their own, which also say what is not known yet.
"""

import enum
from typing import NamedTuple

from .fen import Color
from .rules import played

WIN, DRAW, LOSS = 0, 1, 2
NO_RESULT = 3  # neither: a game without one, or a sample that is no position of a game
OUTCOMES = ("win", "draw", "loss")
"""Names of the classes."""


class Termination(enum.Enum):
    """Why a game ended."""

    NO_MOVES = "no legal move"
    REPETITION = "threefold repetition"
    REVERSIBLE_PLIES = f"{played.REVERSIBLE_PLIES_TO_DRAW} plies without capture or man move"


class Outcome(NamedTuple):
    """How a game ended; ``winner`` is None for a draw."""

    termination: Termination
    winner: Color | None

    @property
    def result(self) -> str:
        """PDN result, who moves first in the start position first: in English draughts ``1-0`` means Black won."""
        return RESULTS[self.winner]


FIRST_TO_MOVE = Color(played.FIRST_TO_MOVE)
RESULTS = {FIRST_TO_MOVE: "1-0", FIRST_TO_MOVE.other: "0-1", None: "1/2-1/2"}
