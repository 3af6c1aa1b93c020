"""Animations of moves: position of the moving piece and fading of captured pieces at a time. No pygame."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from engine.board import Move
from engine.fen import Color

from ..game.squares import square_between

CROWN_SECONDS = 0.28


def eased(share: float) -> float:
    """Maps a fraction of the way (0 to 1) to one with a smooth start and end."""
    share = min(1.0, max(0.0, share))
    return share * share * (3 - 2 * share)


class MoveAnimation(NamedTuple):
    """The animation of a move along ``path``; begins at time ``begin`` and takes ``hop`` seconds per step or jump.

    Attributes:
        color, king: the piece as it was before the move.
        captured: (PDN number, colour, is king), in the order of capture.
        crowned: whether the move ends in a promotion.
    """

    path: tuple[int, ...]
    color: Color
    king: bool
    captured: tuple[tuple[int, Color, bool], ...]
    crowned: bool
    begin: float
    hop: float

    @property
    def travel(self) -> float:
        return self.hop * (len(self.path) - 1)

    @property
    def seconds(self) -> float:
        return self.travel + (CROWN_SECONDS if self.crowned else 0.0)

    def done(self, now: float) -> bool:
        return now >= self.begin + self.seconds

    def leg(self, now: float) -> tuple[int, int, float]:
        """The two squares between which the piece is, and the eased fraction of the way to the second."""
        passed = min(max(0.0, now - self.begin), self.travel) / self.hop
        index = min(int(passed), len(self.path) - 2)
        return self.path[index], self.path[index + 1], eased(passed - index)

    def fading(self, now: float) -> list[tuple[int, Color, bool, float]]:
        """The captured pieces that are still visible: (PDN number, colour, is king, opacity 0 to 1)."""
        passed = max(0.0, now - self.begin) / self.hop
        shown = [(n, color, king, 1.0 - eased(passed - i - 0.3)) for i, (n, color, king) in enumerate(self.captured)]
        return [piece for piece in shown if piece[3] > 0.0]

    def crowning(self, now: float) -> float:
        """Fraction of the crowning that is done, 0 to 1; 0 while the piece still moves."""
        return min(1.0, max(0.0, now - self.begin - self.travel) / CROWN_SECONDS) if self.crowned else 0.0


def animate(
    move: Move,
    before: Mapping[int, tuple[Color, bool]],
    after: Mapping[int, tuple[Color, bool]],
    now: float,
    hop: float,
) -> MoveAnimation:
    """The animation of a move between two positions (maps of PDN number → (colour, is king))."""
    path = move.path or (move.start, move.end)
    color, king = before[move.start]
    taken = [square_between(a, b) for a, b in pairwise(path)] if move.captured else []
    captured = tuple((number, *before[number]) for number in taken if number in before)
    return MoveAnimation(path, color, king, captured, after[move.end][1] and not king, now, hop)
