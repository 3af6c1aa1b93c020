"""Draws random endgame positions that have a given value in the tables."""

import numpy as np

from ..bitboard import BIT_OF_SQUARE, FAR_ROW, HOME_ROW
from ..movegen import jumpers_of
from ..tablebase import Tablebase
from ..tablebase.material import Material

_AT_ONCE = 512  # placements drawn in one batch
_MOST_DRAWN = 1 << 15  # placements drawn before the search is given up
_NO_TABLE = 9


def draw_positions(
    tables: Tablebase, material: Material, value: int, number: int, rng: np.random.Generator
) -> np.ndarray:
    """Draws positions of a slice in which the side to move cannot capture and that have the value ``value``.

    All such positions are equally likely. Raises ``TableFileError`` if a table is damaged.

    Args:
        value: 1 win, 0 draw, -1 loss, for the side to move.
        number: number of positions to draw; the same one may be drawn twice.

    Returns:
        uint32 [n, 3]: own, opp, kings. n is less than ``number`` if such positions are rare, and 0 if there are none or
        no table covers the slice.
    """
    found = np.zeros((0, 3), np.uint32)
    for _ in range(0, _MOST_DRAWN, _AT_ONCE):
        positions = _placements(material, rng)
        quiet = positions[[not jumpers_of(*words) for words in positions]]
        values = tables.get_wdl_many(quiet, _NO_TABLE)
        found = np.concatenate([found, quiet[values == value]])
        if len(found) >= number or (values == _NO_TABLE).any():
            break
    return found[:number]


def _placements(material: Material, rng: np.random.Generator) -> np.ndarray:
    """Draws ``_AT_ONCE`` random placements of a slice and returns those without a man on its promotion row.

    Returns:
        uint32 [n, 3]: own, opp, kings.
    """
    bits = np.uint32(1) << BIT_OF_SQUARE.astype(np.uint32)
    order = rng.permuted(np.tile(bits, (_AT_ONCE, 1)), axis=1)[:, : material.pieces]
    edges = np.cumsum((material.own_men, material.own_kings, material.opp_men))
    kinds = [np.bitwise_or.reduce(part, axis=1, dtype=np.uint32) for part in np.split(order, edges, axis=1)]
    own_men, own_kings, opp_men, opp_kings = kinds
    positions = np.stack([own_men | own_kings, opp_men | opp_kings, own_kings | opp_kings], axis=1)
    return positions[(own_men & np.uint32(FAR_ROW)) | (opp_men & np.uint32(HOME_ROW)) == 0]
