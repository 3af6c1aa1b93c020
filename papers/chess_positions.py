"""Chess positions of three and four men as numbers: drawn at random, labelled by Syzygy tables, split by their hash.

A position is a row of four int16 **men**, seen by the side to move: if Black is to move, ranks are mirrored and colours
exchanged. A man (here: any chess piece) is ``64 * kind + square``; kinds 0-5 are the own king, queen, rook, bishop,
knight and pawn, 6-11 the opponent's; squares are those of python-chess (a1 = 0, b1 = 1, ...). The own king comes first,
then the opponent's, then the others in increasing order; with three men the fourth is ``NO_MAN``. Positions are drawn
without castling rights and without captures en passant.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import chess
import chess.syzygy
import numpy as np

from .chess_moves import IMAGES

MOST_MEN = 4
NO_MAN = -1
NUM_KINDS = 12
CLASSES = ("loss", "blessed loss", "draw", "cursed win", "win")
"""Values for the side to move, in the order of Syzygy's numbers -2 to 2; the second and fourth are draws by the 50-move
rule."""
TRAIN, TEST = 0, 1
TEST_SHARE = 16
"""One position in 16 is kept for tests, with all its mirror images."""
_KIND_OF_TYPE = (0, 5, 4, 3, 2, 1, 0)  # by python-chess's types, pawn 1 to king 6
_TYPES = (chess.QUEEN, chess.ROOK, chess.BISHOP, chess.KNIGHT, chess.PAWN)
_LETTERS = " PNBRQK"  # by python-chess's types
_MAN_BITS = 10
_UNREADABLE = (OSError, AssertionError, ValueError, IndexError, OverflowError, RecursionError, struct.error)
_TRIED = 50  # positions of each table that are probed in advance
_DRAWN = 256
# Number of men → number of ways to set them up; the order of the two men beside the kings does not matter.
_WAYS = {3: 64 * 63 * 62 * 10, 4: 64 * 63 * 62 * 61 * 10 * 10 // 2}


class SyzygyError(ValueError):
    """Syzygy tables are missing or cannot be read."""


class Labelled(NamedTuple):
    """N positions: int16 [N, 4] men, and int64 [N] classes (indices in ``CLASSES``)."""

    men: np.ndarray
    classes: np.ndarray


def table_name(board: chess.Board) -> str:
    """Name of the table of a position, like KQvKR."""
    return chess.syzygy.normalize_tablename(chess.syzygy.calc_key(board))


def _captured(name: str) -> Iterator[str]:
    """Names of the tables with more than two men that captures lead to, also captures that promote a pawn."""
    white, black = name.split("v")
    for losing, taking in ((white, black), (black, white)):
        for man in losing[1:]:
            after = losing.replace(man, "", 1)
            promoted = [taking.replace("P", kind, 1) for kind in "QRBN"] if man != "P" and "P" in taking else []
            for other in (taking, *promoted):
                if len(after) + len(other) > 2:
                    yield chess.syzygy.normalize_tablename(f"{after}v{other}")


def _has_men(path: Path, name: str) -> bool:
    """Whether a table is of the men that its name says, by its first bytes; python-chess would look for others forever.

    Behind five bytes stands for each file of the leading pawn, or once if there is none: one byte, or two if both sides
    have pawns, and a byte for each man, with half of it for each side to move: 1 to 6 for White, 9 to 14 for Black.
    """
    strong, weak = name.split("v")
    expected = sorted([*map(_LETTERS.index, strong), *(8 + _LETTERS.index(man) for man in weak)])
    before = 2 if "P" in strong and "P" in weak else 1
    with path.open("rb") as file:
        file.seek(5)
        parts = [file.read(before + len(expected))[before:] for _ in range(4 if "P" in name else 1)]
    shifts = (0,) if strong == weak else (0, 4)
    return all(sorted(man >> shift & 15 for man in part) == expected for part in parts for shift in shifts)


class SyzygyTables:
    """The win/draw/loss tables of 3 and 4 men in a folder.

    Attributes:
        missing: names of tables that the folder lacks.
        left_out: names of tables whose positions cannot be judged because of these.
        men: numbers of men of positions that can be judged: 3, 4 or both.
        paths: existing files.

    Raises:
        SyzygyError: there is no such folder, it holds none of the tables, or one cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SyzygyError(f"--syzygy {folder}: no such folder; it has to hold Syzygy tables (KQvK.rtbw ...)")
        paths = {name: folder / f"{name}.rtbw" for name in sorted(chess.syzygy.tablenames(piece_count=MOST_MEN))}
        self.missing = [name for name, path in paths.items() if not path.is_file()]
        lacking = set(self.missing)
        self.left_out = [name for name in paths if name in lacking or lacking.intersection(_captured(name))]
        self.paths = [path for name, path in paths.items() if name not in lacking]
        if len(self.left_out) == len(paths):
            raise SyzygyError(f"--syzygy {folder}: none of the Syzygy tables of 3 and 4 men (KQvK.rtbw ...) serves")
        self.men = sorted({len(name) - 1 for name in paths if name not in self.left_out})
        self._tables = chess.syzygy.Tablebase()
        for path in self.paths:
            self._tables.add_file(str(path), load_dtz=False)
        self._excluded = frozenset(self.left_out)
        for name in paths:
            if name not in self._excluded:
                self._try(name, paths[name])

    def _try(self, name: str, path: Path) -> None:
        """Probes random positions of a table, to find damage before the work; raises ``SyzygyError``."""
        strong, weak = name.split("v")
        pieces = [chess.Piece.from_symbol(kind) for kind in (*strong, *weak.lower())]
        source, boards = Random(0), list[chess.Board]()
        while len(boards) < _TRIED:
            board = chess.Board(None)
            board.set_piece_map(dict(zip(source.sample(chess.SQUARES, len(pieces)), pieces, strict=True)))
            board.turn = source.random() < 0.5
            if board.is_valid():
                boards.append(board)
        try:
            if not _has_men(path, name):
                raise ValueError("it is not of the men that its name says")
            for board in boards:
                self._tables.probe_wdl_table(board)
        except _UNREADABLE as error:
            raise SyzygyError(f"{path}: is no readable Syzygy table: {error or type(error).__name__}") from error

    def close(self) -> None:
        """Closes the files."""
        self._tables.close()

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(path.stat().st_size for path in self.paths)

    def holds(self, board: chess.Board) -> bool:
        """Whether the tables cover a position and all positions after captures."""
        return table_name(board) not in self._excluded

    def probe(self, board: chess.Board) -> int:
        """The index of the position's value in ``CLASSES``; raises ``SyzygyError`` if a table is damaged."""
        try:
            return self._tables.probe_wdl(board) + 2
        except _UNREADABLE as error:
            name = table_name(board)
            raise SyzygyError(f"Syzygy table {name}, or one that a capture leads to from there, is damaged") from error


def draw_board(men: Sequence[int], source: Random) -> chess.Board:
    """A legal position, drawn uniformly from all with these numbers of men (3, 4 or both), either side to move.

    Men are set up at random until the position is legal.
    """
    ways = [_WAYS[n] for n in men]
    while True:
        squares = source.sample(chess.SQUARES, source.choices(men, ways)[0])
        board = chess.Board(None)
        board.set_piece_at(squares[0], chess.Piece(chess.KING, chess.WHITE))
        board.set_piece_at(squares[1], chess.Piece(chess.KING, chess.BLACK))
        for square in squares[2:]:
            board.set_piece_at(square, chess.Piece(source.choice(_TYPES), source.random() < 0.5))
        board.turn = source.random() < 0.5
        if board.is_valid():
            return board


def men_of(board: chess.Board) -> list[int]:
    """The men of a position, as a row of ``Labelled.men``."""
    flip, turn = (0 if board.turn else 56), board.turn
    kings, others = [0, 0], []
    for color in (turn, not turn):
        side = 0 if color == turn else 1
        occupied = board.occupied_co[color]
        for square in chess.scan_forward(occupied):
            man = 64 * (6 * side + _KIND_OF_TYPE[board.piece_type_at(square) or 0]) + (square ^ flip)
            if board.kings >> square & 1:
                kings[side] = man
            else:
                others.append(man)
    return [*kings, *sorted(others), *[NO_MAN] * (MOST_MEN - 2 - len(others))]


def canonical(men: np.ndarray) -> np.ndarray:
    """The canonical mirror image of each position (int16 [N, 4]): the same for all images of a position.

    Positions without pawns have eight images, others two. The smallest of them in numeric order is taken, so the own
    king is on files a-d; without pawns in the triangle a1-d1-d4.
    """
    kinds, squares = men >> 6, men & 63
    pawns = ((kinds == 5) | (kinds == 11)).any(1)
    best = np.full(len(men), np.iinfo(np.int64).max)
    chosen = men.copy()
    for number, image in enumerate(IMAGES):
        found = np.where(men == NO_MAN, 1 << _MAN_BITS, 64 * kinds + image[squares])
        found[:, 2:].sort(1)
        order = found[:, 0] << 3 * _MAN_BITS | found[:, 1] << 2 * _MAN_BITS | found[:, 2] << _MAN_BITS | found[:, 3]
        better = (order < best) & (~pawns | (number < 2))
        best[better] = order[better]
        chosen[better] = np.where(found == 1 << _MAN_BITS, NO_MAN, found)[better]
    return chosen


def split_of(men: np.ndarray) -> np.ndarray:
    """int64 [N]: ``TEST`` or ``TRAIN``, by a hash of the canonical image, so all images are in the same split."""
    words = canonical(men).astype(np.uint64)
    mixed = np.zeros(len(men), np.uint64)
    for column in words.T:
        mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.where(mixed % np.uint64(TEST_SHARE) == 0, TEST, TRAIN)


def draw_boards(tables: SyzygyTables, split: int, men: Sequence[int], source: Random) -> Iterator[chess.Board]:
    """Yields positions of one split without end, drawn by ``draw_board``, that the tables can judge."""
    while True:
        boards = [board for board in (draw_board(men, source) for _ in range(_DRAWN)) if tables.holds(board)]
        rows = np.array([men_of(board) for board in boards], np.int16).reshape(-1, MOST_MEN)
        yield from (boards[place] for place in np.flatnonzero(split_of(rows) == split))


def label(tables: SyzygyTables, boards: Sequence[chess.Board]) -> Labelled:
    """Labels positions with their classes."""
    rows = np.array([men_of(board) for board in boards], np.int16).reshape(-1, MOST_MEN)
    return Labelled(rows, np.array([tables.probe(board) for board in boards], np.int64))
