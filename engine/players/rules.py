"""A player that knows nothing but the rules found in the tables: two plies, then the first rule that applies."""

from pathlib import Path

import numpy as np

from ..bitboard import turned
from ..board import Board, Move
from ..knowledge.exchanges import is_quiet
from ..knowledge.rules import OUTCOMES, Judge, load_rules
from ..movegen import DISTINCT, generate, new_moves
from .base import OneByOne

_WON = 10_000.0
_SEEN = 4_500.0  # what a position that has occurred before is worth less: a win must get on
_MORE = 1_000.0  # worth of a piece where the rules say draw
_UNRULY = 4  # plies that a position which is not quiet is followed, beyond the two

Words = tuple[int, int, int]


class RulesPlayer(OneByOne):
    """Looks at each of its moves and each answer, and on while something can be captured; then asks the rules.

    A win is worth the more the fewer plies the rules think it takes, a loss the less. Among equal moves it takes the
    first.

    Args:
        path: of a file of rules; those that come with the package if None.

    Raises:
        RulesError: the file is damaged or another version's.
        OSError: it cannot be read.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.name = "rules" if path is None else f"rules:{path}"
        self._judge = Judge(load_rules(None if path is None else Path(path)))
        self._moves = new_moves()

    def seed(self, seed: int) -> None:
        """Nothing here is left to chance."""

    def choose_from(self, board: Board, moves: list[Move]) -> Move:
        seen = board.history()
        return max(moves, key=lambda move: self._score(board, move, seen))

    def _score(self, board: Board, move: Move, seen: list[Words]) -> float:
        after = board.copy()
        after.push(move)
        answers = self._successors(after.words())
        worst = min((self._value(answer, _UNRULY) for answer in answers), default=_WON)
        return worst - _SEEN * seen.count(after.words())

    def _value(self, words: Words, plies: int) -> float:
        """What a position is worth for its side to move."""
        successors = self._successors(words)
        if not successors:
            return -_WON
        own, opp, kings = words
        if plies and not is_quiet(np.uint32(own), np.uint32(opp), np.uint32(kings)):
            return max(-self._value(after, plies - 1) for after in successors)
        rule, left = self._judge.judge(*words)
        match OUTCOMES[self._judge.rules.rules[rule].outcome]:
            case "win":
                return _WON / 2 - left
            case "loss":
                return left - _WON / 2
        return _MORE * (own.bit_count() - opp.bit_count())

    def _successors(self, words: Words) -> list[Words]:
        """The positions behind all moves, seen by the opponent."""
        if not words[0]:
            return []
        own, opp, kings = words
        count = generate(np.uint32(own), np.uint32(opp), np.uint32(kings), self._moves, DISTINCT)
        return [(_turned(o), _turned(p), _turned(k)) for p, o, k, _ in self._moves[:count].tolist()]


def _turned(word: int) -> int:
    return int(turned(np.uint32(word)))
