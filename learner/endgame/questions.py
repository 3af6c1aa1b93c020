"""Positions of the validation split that an oracle is calibrated on."""

from typing import NamedTuple

import numpy as np

from engine.tablebase.material import Material, materials_between

from .data import VALIDATION, EndgameBatch, EndgameSampler, Values, draw_positions, labelled
from .reached import around, with_tables
from .trust import is_close

_FRESH = 2000  # positions whose values need not be known


class Questions(NamedTuple):
    """Where samples of the validation split come from; see ``calibrate_oracle``."""

    tables: Values
    positions: int
    seed: int
    reached: np.ndarray | None

    def draw(self, low: int, high: int, number: int, quiet: bool = False) -> EndgameBatch:
        """Samples of ``low`` to ``high`` pieces, half of them around games where there are any.

        Args:
            number: added to the seed: the number of pieces for which a search is chosen.
        """
        materials, seed = materials_between(low, high), self.seed + number
        few = self._around(low, high, seed)
        uniform = EndgameSampler(self.tables, materials, seed, VALIDATION, quiet).draw(self.positions - len(few))
        if len(few) == 0:
            return uniform
        reached = labelled(few, self.tables)
        return EndgameBatch(*(np.concatenate(columns) for columns in zip(uniform, reached, strict=True)))

    def fresh(self, pieces: int, close: bool) -> np.ndarray:
        """Positions uint32 [N, 4] whose values need not be known, half of them around games where there are any.

        Args:
            close: only those with about as many pieces on both sides (``trust.is_close``), or only others.
        """
        sides = [(own, pieces - own) for own in range(1, pieces) if (abs(2 * own - pieces) <= 1) == close]
        materials = [
            Material(m, own - m, n, opp - n) for own, opp in sides for m in range(own + 1) for n in range(opp + 1)
        ]
        few = np.zeros((0, 4), np.uint32)
        if self.reached is not None:
            few = around(self.reached, pieces, pieces, VALIDATION, self.seed, _FRESH)
            few = few[is_close(few) == close][: _FRESH // 2]
        return np.concatenate([draw_positions(materials, _FRESH - len(few), self.seed), few])

    def _around(self, low: int, high: int, seed: int) -> np.ndarray:
        if self.reached is None:
            return np.zeros((0, 4), np.uint32)
        return with_tables(around(self.reached, low, high, VALIDATION, seed, self.positions // 2))
