"""Parts of a pair of slices that can be solved one after another: a part for each placement of one side's men.

Men only advance, so the placement of one side's men can only change to placements further ahead. A pair is thus divided
into parts that lead to one another in one direction only. (Lake, Schaeffer and Lu 1994 divide slices by the rank of the
foremost man; all men of one side give smaller parts.) Placements that are equally far ahead do not lead to one another.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from ..bitboard import NUM_SQUARES, squares_of
from .layout import FIRST_SQUARE, Layout, placements

SQUARES_A_ROW = 4
_ROWS = NUM_SQUARES // SQUARES_A_ROW


class Parts(NamedTuple):
    """The division of a pair into parts.

    Attributes:
        lead: kind (0 or 2) of the men whose placement's rank is the number of a part; None if the pair is one part.
        total: number of parts.
        words: number of words of each part; parts are contiguous.
    """

    lead: int | None
    total: int
    words: int


@cache
def parts_of(layout: Layout) -> Parts:
    """The parts of a pair: one for each placement of the men, if the slowest index is that of men; else one part."""
    slowest = next((kind for kind in layout.order if layout.counts[kind]), layout.order[-1])
    if slowest % 2 == 1 or slowest == layout.order[-1]:
        return Parts(None, 1, layout.words)
    return Parts(slowest, layout.sizes[slowest], layout.strides[slowest])


@cache
def waves_of(layout: Layout) -> list[list[int]]:
    """All parts in waves, beginning with the parts that lead to no other. Parts lead only to parts of earlier waves."""
    lead = parts_of(layout).lead
    if lead is None:
        return [[0]]
    masks = placements(lead, layout.counts[lead]).masks
    ahead = np.array([sum(_advance(square, lead) for square in squares_of(int(mask))) for mask in masks])
    return [np.flatnonzero(ahead == sum_).tolist() for sum_ in range(int(ahead.max()), -1, -1) if (ahead == sum_).any()]


def _advance(square: int, kind: int) -> int:
    row = square // SQUARES_A_ROW
    return row if FIRST_SQUARE[kind] == 0 else _ROWS - 1 - row
