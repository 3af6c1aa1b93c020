"""A player that searches two plies and then judges by the first rule that applies, of a list learnt from the tables."""

from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from ..bitboard import turned
from ..board import Board, Move
from ..draw_rules import REPETITIONS_TO_DRAW
from ..knowledge.exchanges import is_quiet
from ..knowledge.rules import OUTCOMES, Judge, load_rules
from ..movegen import DISTINCT, generate, new_moves
from .base import OneByOne

_WON = 10_000.0
_SEEN = 4_500.0  # malus of a good position for each earlier occurrence, so that a win makes progress
_DULL = 1.0  # malus of others, so that of equal ones it takes a new one
_MORE = 1_000.0  # value of each piece ahead where the rules say draw
_PLIES = 2  # from a move to the next one of the same side
_CACHED = 100_000  # positions whose value is kept: those of a game are looked at again at every move
_UNRULY = 4  # plies by which positions that are not quiet are searched deeper than two

Words = tuple[int, int, int]


class RulesPlayer(OneByOne):
    """Searches its moves and the replies, and deeper while either side could capture; then judges by rules.

    Wins with fewer estimated plies are better, and losses with fewer plies worse. Among equal moves it takes the first.

    A position where it has been in this game is worth what its search found there, not what the estimate says. So it
    leaves places whose estimate is too good (minimax LRTA*: S. Koenig, Minimax real-time heuristic search, 2001).

    Args:
        path: a file of rules; the rules of the package if None.

    Raises:
        RulesError: the file is damaged or has another version.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.name = "rules" if path is None else f"rules:{path}"
        self._judge = Judge(load_rules(None if path is None else Path(path)))
        self._moves = new_moves()
        self._judged = lru_cache(_CACHED)(partial(self._value, plies=_UNRULY))

    def seed(self, seed: int) -> None:
        """Does nothing: the player uses no random numbers."""

    def choose_from(self, board: Board, moves: list[Move]) -> Move:
        seen = board.history()
        *before, now = seen[(len(seen) - 1) % 2 :: 2]  # where it was to move
        found: dict[Words, float] = {}
        for words in before:
            found[words] = max(self._values(words, found)) - _PLIES
        reached = seen[len(seen) % 2 :: 2]  # where its opponent was to move
        scores = [
            _scored(value, reached.count(after))
            for after, value in zip(self._successors(now), self._values(now, found), strict=True)
        ]
        return moves[scores.index(max(scores))]

    def _values(self, words: Words, found: dict[Words, float]) -> list[float]:
        """Value of each move, in the order of ``Board.distinct_moves``; ``found``: values of positions, if known."""
        return [
            min(
                (found[answer] if answer in found else self._judged(answer) for answer in self._successors(after)),
                default=_WON,
            )
            for after in self._successors(words)
        ]

    def _value(self, words: Words, plies: int) -> float:
        """Value of a position for its side to move; ``plies``: plies that may still be searched."""
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
        """The positions after each move, seen by the opponent."""
        if not words[0]:
            return []
        own, opp, kings = words
        count = generate(np.uint32(own), np.uint32(opp), np.uint32(kings), self._moves, DISTINCT)
        return [(_turned(o), _turned(p), _turned(k)) for p, o, k, _ in self._moves[:count].tolist()]


def _turned(word: int) -> int:
    return int(turned(np.uint32(word)))


def _scored(value: float, times: int) -> float:
    """The value of a move to a position that has been there ``times`` times in the game."""
    if times >= REPETITIONS_TO_DRAW - 1:
        return 0.0  # it draws
    return value - (_SEEN if value > 0.0 else _DULL) * times
