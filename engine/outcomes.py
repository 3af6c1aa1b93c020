"""How games end, and the numbers of outcomes.

One numbering serves samples, a network's WDL output, proofs in a search tree, and answers of endgame tables. Outcomes
are those of the side to move, but in a node of the tree, see ``search.tree``. A *value* is 1, 0 or -1 instead:
``DRAW - outcome``; the outcome for the other side is ``LOSS - outcome``. Only the coded bits of table files have an
order of their own (``tablebase.wdl_codec``).
"""

import enum
from typing import NamedTuple

from .fen import Color
from .rules import played

WIN, DRAW, LOSS = 0, 1, 2
UNKNOWN = 3  # not proven, not in the tables, a game without a result, or a sample that is no position of a game
OUTCOMES = ("win", "draw", "loss")
"""Names of WIN, DRAW and LOSS."""


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
