"""A line of play to click through, with the moves of each position and their results in games. No pygame."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.board import Board, Move
from engine.openings import opening_of
from engine.position_keys import key_of

from ..game.snapshot import MoveRow, Snapshot
from .game_library import GameLibrary, Played


class TreeRow(NamedTuple):
    """A legal move, the games in which it was made, and a search's result for it (None if unknown).

    Moves that lead to the same position share one row.
    """

    move: Move
    pdn: str
    played: Played
    thought: MoveRow | None = None


class OpeningTree:
    """A line of play with a cursor, from which one can turn off at any position.

    Attributes:
        boards: the start position, and the position after every move of the line.
        ply: position of the cursor.
    """

    def __init__(self, boards: Sequence[Board], ply: int) -> None:
        self.boards = list(boards)
        self._keys = [key_of(board) for board in boards]
        self.ply = ply

    @property
    def board(self) -> Board:
        """The position at the cursor."""
        return self.boards[self.ply]

    @property
    def key(self) -> int:
        """Key of the position at the cursor, see ``engine.position_keys``."""
        return self._keys[self.ply]

    @property
    def line(self) -> tuple[Move, ...]:
        """The moves up to the cursor."""
        return tuple(self.board.move_stack)

    @property
    def opening(self) -> str:
        """Name and ballot of the line up to the cursor; "" if it has none."""
        return opening_of(self._keys[: self.ply + 1])

    def go_to(self, ply: int) -> None:
        """Puts the cursor after the first ``ply`` moves, limited to the line."""
        self.ply = min(max(0, ply), len(self.boards) - 1)

    def play(self, move: Move) -> None:
        """Makes a move at the cursor. If the line continues differently, its rest is dropped.

        Raises:
            IllegalMoveError: the move is not legal.
        """
        after = self.board.copy()
        after.push(move)
        key, following = key_of(after), self.ply + 1
        if following == len(self.boards) or self._keys[following] != key:
            self.boards[following:], self._keys[following:] = [after], [key]
        self.ply = following

    def rows(self, played: Sequence[Played], snapshot: Snapshot | None) -> tuple[TreeRow, ...]:
        """The legal moves, sorted by number of games, then by preference of the search.

        Args:
            played: moves played in the position at the cursor.
            snapshot: snapshot of a search; ignored if it is of another position.
        """
        board = self.board
        counts = {one.after: one for one in played}
        thoughts = snapshot.moves if snapshot is not None and snapshot.fen == board.fen() else ()
        known = {thought.move: (place, thought) for place, thought in enumerate(thoughts)}
        rows = []
        for index, move in enumerate(board.distinct_moves):
            after = board.copy()
            after.push(move)
            key = key_of(after)
            place, thought = known.get(move, (len(known) + index, None))
            rows.append((place, TreeRow(move, board.pdn(move), counts.get(key, Played(key)), thought)))
        return tuple(row for _, row in sorted(rows, key=lambda pair: (-pair[1].played.games, pair[0])))


def gathered(libraries: Sequence[GameLibrary], key: int) -> list[Played]:
    """The moves played in a position, summed over several libraries, in no order; raises ``StorageError``. A file in a
    folder that is one of them is not counted again."""
    sums: dict[int, Played] = {}
    for library in libraries:
        if any(folder.holds(library) for folder in libraries):
            continue
        for one in library.played(key):
            before = sums.get(one.after, Played(one.after))
            counts = (mine + more for mine, more in zip(before[1:], one[1:], strict=True))
            sums[one.after] = Played(one.after, *counts)
    return list(sums.values())
