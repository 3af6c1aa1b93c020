"""Quotes the readable rule about endgames that says of a position what the tables say."""

import numpy as np

from ..board import Board
from ..knowledge.exchanges import is_quiet
from ..knowledge.rules import Judge, load_rules
from ..outcomes import DRAW, OUTCOMES

MOST_PIECES = 5  # of the positions in which the rules were tested


class RuleQuotes:
    """Quotes rules of the package, see ``docs/endgames/rules.md``; not thread-safe."""

    def __init__(self) -> None:
        self._judge: Judge | None = None

    def quote(self, board: Board, value: int) -> str:
        """``Rule 12, with White to move, where no rule before it applies: if ..., it is a win.``

        Args:
            value: the tables' value of the position for its side to move.

        Returns:
            "" if either side could capture, there are too many pieces, or the rule that decides errs here.
        """
        own, opp, kings = board.words()
        few = own and opp and (own | opp).bit_count() <= MOST_PIECES
        if not few or not is_quiet(np.uint32(own), np.uint32(opp), np.uint32(kings)):
            return ""
        self._judge = self._judge or Judge(load_rules())
        number, _ = self._judge.judge(own, opp, kings)
        rule = self._judge.rules.rules[number]
        if rule.outcome != DRAW - value or not rule.conditions:
            return ""
        conditions = ", and ".join(rule.words)
        place = f"with {board.turn} to move" + (", where no rule before it applies" if number else "")
        return f"Rule {number + 1}, {place}: if {conditions}, it is a {OUTCOMES[rule.outcome]}."
