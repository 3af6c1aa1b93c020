"""Exact values of many positions from table files, in the order in which these lie in the files.

A block of a file holds some 28,000 positions. Asked in any order, most of many positions would each decode one; in the
order of the files each block is decoded about once, and further positions of the same blocks cost little. Slower than
``dense.DenseTables`` for millions of positions, but tables of seven pieces in memory take gigabytes and minutes first.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np
from numba import njit

from engine.bitboard import FAR_ROW, HOME_ROW
from engine.random_words import new_random, random_below
from engine.tablebase import open_tablebase
from engine.tablebase.folder import SHIPPED, default_folder
from engine.tablebase.layout import add_slice, layout_of, locate, no_slices
from engine.tablebase.material import MAX_PIECES, MIN_PIECES, Material, materials_between, pairs_up_to, slices_of
from engine.tablebase.store import find_files
from engine.tablebase.wdl_codec import BLOCK_WORDS

_CHUNK = 1 << 15  # positions probed between two reports
_CACHE_BYTES = 256 << 20
_TRIES = 200  # of putting a piece elsewhere, for each position


class FileTables:
    """Exact values from the files of a folder; what it lacks of few pieces comes with the package. A context manager.

    Args:
        folder: None for the default one, which need not be there.
        report: told what part, 0 to 1, of the values asked for is known.

    Raises:
        TableFileError: a file is damaged or foreign.
        OSError: the folder cannot be read.
    """

    def __init__(self, folder: Path | None, report: Callable[[float], object] = lambda part: None) -> None:
        place = default_folder() if folder is None else folder
        there = folder is not None or place.exists()
        folders = [place, SHIPPED] if there else [SHIPPED]
        self._pairs = {pair for pair, kind in find_files(folders) if kind == "wdl"}
        self._tables, self.report = open_tablebase(folder, _CACHE_BYTES), report

    def __contains__(self, material: object) -> bool:
        return isinstance(material, Material) and material.pair in self._pairs

    @property
    def pieces(self) -> int:
        """The most pieces up to which there is a table of every slice that can have one."""
        lacking = [material.pieces for material in materials_between(MIN_PIECES, MAX_PIECES) if material not in self]
        return min(lacking, default=MAX_PIECES + 1) - 1

    def lookup(self, positions: np.ndarray) -> np.ndarray:
        """Values int8 [N] (1 win, 0 draw, -1 loss, for the side to move) of positions uint32 [N, 3 or more].

        Raises:
            MissingTableError: no table covers one of them.
        """
        order, values = file_order(positions), np.empty(len(positions), np.int8)
        for start in range(0, len(order), _CHUNK):
            rows = order[start : start + _CHUNK]
            values[rows] = self._tables.probe_wdl_many(positions[rows])
            if len(order) > _CHUNK:  # those who ask for less show their own progress
                self.report((start + len(rows)) / len(order))
        return values

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tables.close()


@cache
def _directory() -> np.ndarray:
    """Offset of each slice if the files, each of whole blocks, lay one behind the other; pairs share one."""
    slices, start = no_slices(), 0
    for pair in pairs_up_to(MAX_PIECES):
        for material in slices_of(pair):
            add_slice(slices, material, start)
        start += -(-layout_of(pair).words // BLOCK_WORDS) * BLOCK_WORDS
    return slices


def beside(positions: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Positions with one piece on another square, of the same blocks of the files: about ``count`` times as many.

    Args:
        positions: uint32 [N, 4], of slices that can have tables.
        seed: any integer.

    Returns:
        uint32 [M, 4], distinct ones, sorted; plies are 0.
    """
    found = np.zeros((count * len(positions), 4), np.uint32)
    n = _displaced(positions, _directory(), count, new_random(seed), found)
    return np.unique(found[:n], axis=0)


@njit(cache=True, nogil=True)
def _displaced(positions, slices, count, state, found):
    n = 0
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        block, left = locate(own, opp, kings, slices)[0] // BLOCK_WORDS, count
        for _ in range(_TRIES):
            if left == 0:
                break
            piece = np.uint32(1) << np.uint32(random_below(state, 32))
            place = np.uint32(1) << np.uint32(random_below(state, 32))
            if (own | opp) & piece == 0 or (own | opp) & place != 0:
                continue
            if kings & piece == 0 and place & (FAR_ROW if own & piece else HOME_ROW):
                continue
            for side, word in enumerate((own, opp, kings)):
                found[n, side] = word ^ (piece | place) if word & piece else word
            if locate(found[n, 0], found[n, 1], found[n, 2], slices)[0] // BLOCK_WORDS == block:
                n += 1
                left -= 1
    return n


def file_order(positions: np.ndarray) -> np.ndarray:
    """int64 [N]: rows of positions uint32 [N, 3 or more] in the order of the table files."""
    places = np.empty(len(positions), np.int64)
    _places(positions, _directory(), places)
    return np.argsort(places, kind="stable")


@njit(cache=True, nogil=True)
def _places(positions, slices, places):
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        places[i] = locate(own, opp, kings, slices)[0] if own != 0 and opp != 0 else -1
