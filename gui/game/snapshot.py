"""Immutable snapshots of searches, for the views."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from engine.board import Board, Move
from engine.fen import Color
from engine.players import MoveThought, Thought
from engine.players.watching import Unit, Wdl

from .endgame_info import Verdict
from .game_report import GameReport

Mode = Literal["play", "analyse", "hint", "report"]
Status = Literal["loading", "thinking", "done", "stopped", "failed"]
_LONGEST_LINE = 16  # plies of the principal variation


def of_black(wdl: Wdl | None, turn: Color) -> Wdl | None:
    """Converts win, draw, loss of the side to move (``turn``) to those of Black."""
    return wdl if wdl is None or turn is Color.BLACK else (wdl[2], wdl[1], wdl[0])


@dataclass(frozen=True)
class MoveRow(MoveThought):
    """One line of the table of moves; ``share``: its fraction (0 to 1) of all visits."""

    pdn: str = ""
    share: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """The state of a search, or of a game report, at one moment.

    Attributes:
        number: number of the request.
        player: name of the player.
        fen, ply, turn: the position that is searched.
        moves: moves, the best first.
        pv, pv_pdn: expected line of play, as moves and in PDN.
        value, wdl: P(win) - P(loss), and win, draw, loss, seen by ``turn``; None if unknown.
        count: work done, in ``unit``.
        seconds: seconds since the search began.
        per_second: ``unit`` per second.
        depth: plies searched in full; None for a search without a depth.
        progress: fraction of the work that is done, 0 to 1; None if it has no end.
        move: the move to play or to show, if the status is "done" and the mode "play" or "hint".
        report: the report so far, in the mode "report".
        error: one line, if the status is "failed".
    """

    number: int
    mode: Mode
    status: Status
    player: str
    fen: str
    ply: int
    turn: Color
    moves: tuple[MoveRow, ...] = ()
    pv: tuple[Move, ...] = ()
    pv_pdn: tuple[str, ...] = ()
    wdl: Wdl | None = None
    value: float | None = None
    count: int = 0
    unit: Unit = "simulations"
    seconds: float = 0.0
    per_second: float = 0.0
    depth: int | None = None
    progress: float | None = None
    move: Move | None = None
    report: GameReport = field(default_factory=GameReport)
    error: str | None = None

    @property
    def busy(self) -> bool:
        return self.status in ("loading", "thinking")

    @property
    def counted(self) -> str:
        """The unit of ``count``, in the singular if it is 1."""
        return self.unit.removesuffix("s") if self.count == 1 else self.unit

    @property
    def black_wdl(self) -> Wdl | None:
        return of_black(self.wdl, self.turn)

    @property
    def black_value(self) -> float | None:
        """P(win) - P(loss) of Black; None if unknown."""
        return self.value if self.value is None or self.turn is Color.BLACK else -self.value

    @property
    def score(self) -> float | None:
        """Expected score of Black, 0 to 1; None if unknown."""
        return None if self.black_value is None else (1 + self.black_value) / 2


def rows_of(board: Board, thoughts: Sequence[MoveThought]) -> tuple[MoveRow, ...]:
    visits = max(1, sum(thought.visits for thought in thoughts))
    return tuple(
        MoveRow(**vars(thought), pdn=board.pdn(thought.move), share=thought.visits / visits) for thought in thoughts
    )


def with_verdict(snapshot: Snapshot, verdict: Verdict | None) -> Snapshot:
    """The snapshot with the tables' results of all moves and their line to the end, if they have them."""
    if verdict is None or verdict.fen != snapshot.fen or not verdict.moves:
        return snapshot
    searched = {row.move: row for row in snapshot.moves}
    places = {move: place for place, move in enumerate(searched)}
    # moves that are equal by the tables are sorted by preference of the search
    known = sorted(verdict.moves, key=lambda known: (*known.rank, places.get(known.move, len(places))))
    rows = []
    for move, pdn, exact, plies in known:
        row = searched.get(move) or MoveRow(move, pdn=pdn)
        rows.append(replace(row, proof=exact, proof_plies=None if plies is None else plies - 1))
    shown = replace(snapshot, moves=tuple(rows))
    return replace(shown, pv=verdict.line, pv_pdn=verdict.line_pdn) if verdict.line else shown


def line_of(board: Board, thought: Thought) -> tuple[tuple[Move, ...], tuple[str, ...]]:
    """The expected line of play, at most ``_LONGEST_LINE`` plies, as moves and in PDN."""
    line = thought.line[:_LONGEST_LINE]
    return line, board.pdn_line(line)
