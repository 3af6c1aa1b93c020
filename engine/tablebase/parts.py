"""Parts of a pair of slices that can be solved one after another: a part for each place of the *leading* men.

Men only advance. So where one side's men stand can change only towards placements that are further ahead, and a pair
falls into parts that lead to one another in one direction. (Lake, Schaeffer and Lu 1994 divide slices by the rank of
the foremost man; all men of one side make smaller parts.) Placements equally far ahead do not lead to one another.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from ..bitboard import NUM_SQUARES, squares_of
from .layout import FIRST_SQUARE, Layout, placements

SQUARES_A_ROW = 4
_ROWS = NUM_SQUARES // SQUARES_A_ROW


class Parts(NamedTuple):
    """How a pair is divided.

    Attributes:
        lead: kind of the men whose placement numbers the parts, 0 or 2; None: the pair is one part.
        total: number of parts. words: of each part, which lie one after the other.
    """

    lead: int | None
    total: int
    words: int


@cache
def parts_of(layout: Layout) -> Parts:
    """The parts of a pair: one for each place of the men whose index is the slowest, if there are such."""
    slowest = next((kind for kind in layout.order if layout.counts[kind]), layout.order[-1])
    if slowest % 2 == 1 or slowest == layout.order[-1]:
        return Parts(None, 1, layout.words)
    return Parts(slowest, layout.sizes[slowest], layout.strides[slowest])


@cache
def waves_of(layout: Layout) -> list[list[int]]:
    """All parts, those that lead to no other one first; the parts of a wave lead only to those of waves before."""
    lead = parts_of(layout).lead
    if lead is None:
        return [[0]]
    masks = placements(lead, layout.counts[lead]).masks
    ahead = np.array([sum(_advance(square, lead) for square in squares_of(int(mask))) for mask in masks])
    return [np.flatnonzero(ahead == sum_).tolist() for sum_ in range(int(ahead.max()), -1, -1) if (ahead == sum_).any()]


def _advance(square: int, kind: int) -> int:
    row = square // SQUARES_A_ROW
    return row if FIRST_SQUARE[kind] == 0 else _ROWS - 1 - row


def parts_ahead(layout: Layout, part: int) -> list[int]:
    """The parts that a step of a leading man leads to from this one."""
    lead = parts_of(layout).lead
    if lead is None:
        return []
    table = placements(lead, layout.counts[lead])
    return np.unique(table.ranks[table.first[part] : table.first[part + 1]]).tolist()
