"""Decisions: endgame positions whose moves differ in value by exact tables, so that a move can be a blunder.

The tables ignore draws by repetition and the 80-ply rule.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from engine.board import Board, Move
from engine.errors import PdnError
from engine.fen import Color, format_fen
from engine.files import read_text
from engine.pdn import read_games
from engine.tablebase import MissingTableError, Tablebase
from engine.tablebase.build import Step
from engine.tablebase.dense import load_tables
from engine.tablebase.folder import SHIPPED, build_advice, default_folder
from engine.tablebase.material import MIN_PIECES, materials_between
from learner.endgame.data import EndgameSampler
from learner.endgame.labels import FileTables
from learner.endgame.resolve import children_of

from .convert import PIECES as SHIPPED_PIECES

_DRAWN_AT_ONCE = 8  # times the number asked for: a sixth of all positions are decisions
_CHUNK = 1 << 14  # positions whose moves are valued at once
_DRAWS = 100  # most attempts to find enough decisions: with two pieces there are few

Words = tuple[int, int, int]


@dataclass(frozen=True)
class Decision:
    """A position with the exact value of each move; a decision if these values differ (``matters``).

    Attributes:
        values: ``Board.words`` of the position after each move → value for the side that moved: 1 win, 0 draw, -1 loss.
        player: name of the player who made ``move``; "" if there is no move yet.
    """

    board: Board
    values: dict[Words, int]
    player: str = ""
    move: Move | None = None

    @property
    def matters(self) -> bool:
        """Whether the moves differ in value."""
        return len(set(self.values.values())) > 1

    @property
    def best(self) -> int:
        """Value of the position for the side to move."""
        return max(self.values.values())

    @property
    def pieces(self) -> int:
        own, opp, _ = self.board.words()
        return (own | opp).bit_count()

    def value_of(self, move: Move) -> int:
        """Value of ``move`` for the side that makes it: 1, 0 or -1."""
        after = self.board.copy()
        after.push(move)
        return self.values[after.words()]

    @property
    def change(self) -> tuple[int, int]:
        """Values for the player before and after its move."""
        assert self.move is not None
        return self.best, self.value_of(self.move)

    @property
    def blunder(self) -> bool:
        before, after = self.change
        return after < before


def move_values(positions: np.ndarray, tables: Tablebase) -> list[dict[Words, int]]:
    """Returns ``Decision.values`` for each position (uint32 [N, 3 or more]: own, opp, kings).

    Raises ``MissingTableError`` if no table covers the position after a move.
    """
    behind, parents = children_of(positions, np.arange(len(positions)))
    ends = np.cumsum(np.bincount(parents, minlength=len(positions)))
    values = np.ones(len(behind), np.int8)  # a move that takes the last piece wins
    goes_on = behind[:, 0] != 0
    values[goes_on] = -tables.probe_wdl_many(behind[goes_on])
    worth = list(zip(zip(*behind[:, :3].T.tolist(), strict=True), values.tolist(), strict=True))
    return [dict(worth[first:end]) for first, end in pairwise([0, *ends.tolist()])]


def drawn_decisions(
    pieces: int,
    number: int,
    seed: int,
    folder: Path | None,
    tables: Tablebase,
    report: Callable[[Step], None] = lambda step: None,
) -> list[Decision]:
    """At most ``number`` random decisions, drawn uniformly from those of 2 to ``pieces`` pieces, Black to move.

    Args:
        folder: folder of the tables, used for more than ``SHIPPED_PIECES`` pieces; None: the default folder.
        report: called for each table loaded into memory, see ``load_tables``; with 6 pieces loading takes minutes.

    Raises:
        MissingTableError: a table of up to ``pieces`` pieces is lacking.
    """
    with FileTables(folder) as there:
        if there.pieces < pieces:
            place = folder or default_folder()
            advice = build_advice(place, pieces, False)
            raise MissingTableError(f"{place} lacks tables of up to {pieces} pieces; build them with {advice}")
    values = load_tables(SHIPPED if pieces <= SHIPPED_PIECES else folder, pieces, report=report)
    sampler = EndgameSampler(values, materials_between(MIN_PIECES, pieces), seed)
    found: dict[Words, Decision] = {}
    at_once, left = min(_CHUNK, _DRAWN_AT_ONCE * number), _DRAWS * _DRAWN_AT_ONCE * number
    while left > 0 and len(found) < number:
        drawn, before = sampler.draw(at_once), len(found)
        left -= at_once
        positions = drawn.positions[drawn.values >= 0, :3]  # a lost position has no blunders
        for (own, opp, kings), worth in zip(positions.tolist(), move_values(positions, tables), strict=True):
            if (own, opp, kings) not in found and len(set(worth.values())) > 1:
                found[own, opp, kings] = Decision(Board(format_fen(Color.BLACK, own, opp, kings)), worth)
        if at_once == _CHUNK and len(found) == before:
            break  # these are all that there are
    return list(found.values())[:number]


def recorded_decisions(path: Path, pieces: int, tables: Tablebase) -> tuple[list[Decision], list[str]]:
    """Decisions of at most ``pieces`` pieces in recorded games, with the moves made, in the order of the file.

    Returns:
        The decisions, and a message for each game that cannot be read.

    Raises:
        StorageError: the file cannot be read.
    """
    unread: list[str] = []
    moves = _recorded_moves(path, pieces, lambda error: unread.append(str(error)))
    decisions = list[Decision]()
    while some := list(islice(moves, _CHUNK)):
        worth = move_values(np.array([board.words() for board, _, _ in some], np.uint32), tables)
        made = (Decision(board, values, who, move) for (board, who, move), values in zip(some, worth, strict=True))
        decisions += (decision for decision in made if decision.matters)
    return decisions, unread


def _recorded_moves(path: Path, pieces: int, report: Callable[[PdnError], None]) -> Iterator[tuple[Board, str, Move]]:
    for game in read_games(read_text(path), report):
        board = Board(game.start_fen)
        for node in game.moves:
            own, opp, _ = board.words()
            if (own | opp).bit_count() <= pieces:
                yield Board(board.fen()), game.headers.get(str(board.turn), "?"), node.move
            board.push(node.move)
