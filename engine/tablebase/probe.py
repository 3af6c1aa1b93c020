"""Exact endgame values: open the tables of a folder and probe them.

    with open_tablebase() as tables:
        tables.probe_wdl(Board("W:WK10:BK19"))

(or ``tables = open_tablebase()``, and ``tables.close()`` later).
Values do not include draws by repetition and the 80-ply rule.
"""

import os
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..board import Board
from ..files import StorageError
from ..game import ENGLISH, check_game
from ..outcomes import DRAW, UNKNOWN
from .folder import SHIPPED, SHIPPED_KINGS, build_advice, default_folder
from .material import MAX_PIECES, Material
from .probing import FULL, KNOWN, Tables, first_impossible
from .store import BlockStore, find_copies

Default = TypeVar("Default")
CACHE_BYTES = 64 << 20
DRAWN_PLIES = -1


class MissingTableError(ValueError, KeyError):
    """No available table covers a position. Also a ``KeyError``, as for the tables of python-chess."""

    __str__ = ValueError.__str__  # that of KeyError puts the message in quotes


class Tablebase:
    """Tables of endgames, read block by block. Thread-safe. Made by ``open_tablebase``; a context manager.

    Attributes:
        max_pieces: largest number of pieces of any table; for positions with fewer, a table may still be missing.

    Raises (each method):
        TableFileError: a file is found to be damaged when a part of it is read for the first time.
        ValueError: the tables are closed; or an array is not uint32 [N, 3 or more], or has an impossible position (two
            pieces on a square, a king without a piece, a man on its promotion row, no piece at all).
    """

    def __init__(self, store: BlockStore, folders: list[Path]) -> None:
        self._store = store
        self._folders = folders
        self.max_pieces = max((pair.pieces for pair in store.pairs), default=0)

    def probe_wdl(self, board: Board) -> int:
        """Value for the side to move: 1 win, 0 draw, -1 loss; raises ``MissingTableError`` if it is in no table."""
        return int(self._known(_words_of(board), False)[0])

    def get_wdl(self, board: Board, default: Default | None = None) -> int | Default | None:
        """Value for the side to move, or ``default`` if no table covers the position."""
        scores, there = self._probe(_words_of(board), False)
        return int(scores[0]) if there[0] else default

    def probe_distance(self, board: Board) -> int | None:
        """Plies to the end of the game with best play (shortest way of the winner, longest of the loser); None for a
        draw.

        Raises:
            MissingTableError: no table with distances covers the position.
        """
        plies = int(self.probe_distance_many(_words_of(board))[0])
        return None if plies == DRAWN_PLIES else plies

    def probe_wdl_many(self, positions: np.ndarray) -> np.ndarray:
        """Values int8 [N] for the sides to move of positions uint32 [N, 3 or more]: own, opp, kings.

        Raises:
            MissingTableError: no table covers one of them.
        """
        return self._known(positions, False).astype(np.int8)

    def get_wdl_many(self, positions: np.ndarray, default: int) -> np.ndarray:
        """Values int8 [N], ``default`` where no table covers the position; see ``probe_wdl_many``."""
        scores, there = self._probe(positions, False)
        return np.where(there, scores, default).astype(np.int8)

    def probe_distance_many(self, positions: np.ndarray) -> np.ndarray:
        """Plies to the end of the game, int16 [N], ``DRAWN_PLIES`` for draws, of positions uint32 [N, 3 or more].

        Raises:
            MissingTableError: no table with distances covers one of them.
        """
        scores = self._known(positions, True)
        return np.where(scores == 0, DRAWN_PLIES, FULL - np.abs(scores)).astype(np.int16)

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Outcomes and distances for a search, see ``LeafOracle.judge``."""
        scores, there = self._probe(positions, False, patient)
        outcomes = np.where(there, DRAW - scores, UNKNOWN).astype(np.uint8)
        plies = np.full(len(positions), -1, np.int16)
        decided = np.flatnonzero(scores)
        if distances and len(decided):
            scores, there = self._probe(positions[decided], True, patient)
            plies[decided] = np.where(there, FULL - np.abs(scores), -1)
        return outcomes, plies

    def compiled(self) -> Tables:
        """Tables for compiled code, see ``LeafOracle.compiled``."""
        return self._store.compiled()

    def _probe(self, positions: np.ndarray, distances: bool, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Scores int64 [N] (0 where unknown), and whether they are known, bool [N]."""
        scores, states = self._store.probe(_checked(positions), distances, patient)
        there = states == KNOWN
        scores[~there] = 0
        return scores, there

    def _known(self, positions: np.ndarray, distances: bool) -> np.ndarray:
        """Scores int64 [N]; raises ``MissingTableError`` if one is unknown."""
        scores, there = self._probe(positions, distances)
        if not there.all():
            raise self._missing(positions[~there], " with distances" if distances else "")
        return scores

    def _missing(self, positions: np.ndarray, what: str) -> MissingTableError:
        own, opp, kings = (int(word) for word in positions[0, :3])
        pieces = (own | opp).bit_count()
        if pieces > MAX_PIECES:
            return MissingTableError(f"there are tables of at most {MAX_PIECES} pieces; this position has {pieces}")
        counts = ((own & ~kings), (own & kings), (opp & ~kings), (opp & kings))
        material = Material(*(word.bit_count() for word in counts))
        if not material.solvable:
            return MissingTableError(f"with {pieces} pieces, there are only tables of as many on both sides")
        folders = self._folders or [default_folder()]
        return MissingTableError(
            f"no table{what} in {' and '.join(map(str, folders))} covers slice {material.name}; "
            f"build it with {build_advice(folders[0], pieces, bool(what))}"
        )

    def close(self) -> None:
        """Closes the files; later probes raise ``ValueError``."""
        self._store.close()

    def __enter__(self) -> "Tablebase":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _words_of(board: Board) -> np.ndarray:
    words = board.words()
    if not any(words):
        raise ValueError("an empty board: there is nothing to look up")
    return np.array([words], np.uint32)


def _checked(positions: np.ndarray) -> np.ndarray:
    """The positions as a contiguous array; raises ``ValueError`` as described at ``Tablebase``."""
    if not isinstance(positions, np.ndarray):
        raise ValueError(f"positions are a {type(positions).__name__}, not an array uint32 [N, 3 or more]")
    if positions.dtype != np.uint32 or positions.ndim != 2 or positions.shape[1] < 3:
        raise ValueError(f"positions are {positions.dtype} {list(positions.shape)}, not uint32 [N, 3 or more]")
    positions = np.ascontiguousarray(positions)
    row = first_impossible(positions)
    if row >= 0:
        own, opp, kings = positions[row, :3].tolist()
        words = f"own {own:#010x}, opp {opp:#010x}, kings {kings:#010x}"
        raise ValueError(
            f"position {row} is impossible ({words}): a square with two pieces, a king without a piece, "
            "a man on its promotion row, or no piece at all"
        )
    return positions


def open_tablebase(folder: str | Path | None = None, cache_bytes: int = CACHE_BYTES, shipped: bool = True) -> Tablebase:
    """Opens the tables of a folder.

    Args:
        folder: folder of tables; None: ``default_folder()``, which need not exist.
        cache_bytes: limit of memory for values and, separately, for distances.
        shipped: whether tables that the folder lacks are read from those of the package, which have up to 5 pieces.

    Raises:
        TableFileError: a file is damaged or foreign.
        StorageError: the folder does not exist, cannot be read, or holds no tables.
        OtherGameError: this process does not play English draughts.
    """
    check_game("the set of endgame tables", ENGLISH)
    if folder is not None and not find_copies([Path(folder)]):
        advice = build_advice(Path(folder), None, False)
        raise StorageError(None, f"{folder} holds no tables: name another folder, or build some with {advice}")
    folders = [Path(folder)] if folder is not None else [path for path in [default_folder()] if os.path.exists(path)]
    folders += [SHIPPED, SHIPPED_KINGS] if shipped else []
    return Tablebase(BlockStore(find_copies(folders), cache_bytes), folders)
