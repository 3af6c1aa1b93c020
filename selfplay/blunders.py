"""``crownhead blunders``: moves that throw away a win or a draw, by exact endgame tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from engine.board import Move
from engine.players.base import close_player
from engine.players.spec import PlayerSpec
from engine.tablebase import open_tablebase
from learner.endgame.progress import OracleProgress
from learner.endgame.validation import wilson_interval

from .conditions import Conditions
from .convert import board_of
from .decisions import Decision, drawn_decisions, recorded_decisions
from .match_commands import settings_of
from .openings import MatchError
from .requests import BlundersRequest
from .results import Result

MOST_DRAWN = 6  # pieces of positions that are drawn: the values of all are held in memory
_TOGETHER = 32  # positions that a network without a time judges side by side
_SHOWN = 10
_NAMES = {1: "win", 0: "draw", -1: "loss"}


@dataclass(frozen=True)
class Answer:
    """What a player did in a decision."""

    player: str
    decision: Decision
    move: Move

    @property
    def change(self) -> tuple[int, int]:
        """Value for the player before and after the move."""
        return self.decision.best, self.decision.value_of(self.move)

    @property
    def blunder(self) -> bool:
        """The move has made it worse."""
        before, after = self.change
        return after < before


@dataclass(frozen=True)
class Counts:
    """Answers counted.

    Attributes:
        positions: where moves differ in value. share: of blunders in them. interval: of it, 95 %.
    """

    positions: int
    blunders: int
    share: float
    interval: tuple[float, float]
    win_to_draw: int
    win_to_loss: int
    draw_to_loss: int


@dataclass(frozen=True)
class PiecesCounts(Counts):
    """With so many pieces on the board."""

    pieces: int


@dataclass(frozen=True)
class PlayerCounts(Counts):
    """Of one player."""

    player: str
    by_pieces: list[PiecesCounts]


@dataclass(frozen=True)
class Blunder:
    """A move that made it worse."""

    player: str
    fen: str
    move: str
    was: str
    became: str


@dataclass(frozen=True)
class BlundersReport(Result):
    """What players did in decisions.

    Attributes:
        games: the file that they come from; None if they were drawn.
        simulations: None with a time, and for the default.
    """

    games: str | None
    pieces: int
    time_control: str
    simulations: int | None
    players: list[PlayerCounts]
    blunders: list[Blunder]


def blunders_command(request: BlundersRequest, quiet: bool) -> BlundersReport:
    """Counts blunders; see ``crownhead blunders --help``.

    Raises:
        MatchError: there is no decision in the games.
        MissingTableError: no tables of so many pieces.
    """
    conditions = Conditions(request.simulations, request.seconds, batch=_TOGETHER if request.seconds is None else 1)
    if request.spec is not None:
        settings_of(request.spec, conditions)  # says now whether there is such a network
    with OracleProgress(quiet) as progress:
        decisions = _decisions(request, progress)
        if request.spec is None:
            answers = [Answer(one.player, one, one.move) for one in decisions if one.move is not None]
        else:
            chosen = _sample(decisions, request.positions, request.seed)
            answers = list(_answers(request.spec, chosen, conditions, progress))
    games, control = str(request.games) if request.games else None, str(request.control)
    players = [_player([one for one in answers if one.player == name]) for name in {one.player: 0 for one in answers}]
    blunders = [_blunder(answer) for answer in answers if answer.blunder]
    report = BlundersReport(games, request.pieces, control, request.simulations, players, blunders)
    if not quiet:
        _print(report)
    return report


def _decisions(request: BlundersRequest, progress: OracleProgress) -> list[Decision]:
    with open_tablebase(request.folder) as tables:
        tables.probe_wdl(board_of(request.pieces))  # missing tables are told at once
        progress.phase("looking for decisions")
        if request.games is None:
            positions, seed = request.positions, request.seed
            return drawn_decisions(request.pieces, positions, seed, request.folder, tables, progress.tables)
        decisions = recorded_decisions(request.games, request.pieces, tables)
        if not decisions:
            what = f"no move of at most {request.pieces} pieces could be a blunder"
            raise MatchError(f"games in {request.games}: {what}")
        return decisions


def _sample(decisions: Sequence[Decision], number: int, seed: int) -> list[Decision]:
    """So many different ones, or all, in random order."""
    different = list({(one.board.turn, one.board.words()): one for one in decisions}.values())
    order = np.random.default_rng(seed).permutation(len(different))
    return [different[index] for index in order[:number]]


def _answers(
    spec: PlayerSpec, decisions: Sequence[Decision], conditions: Conditions, progress: OracleProgress
) -> Iterator[Answer]:
    from .players import make_player

    progress.phase(f"asking {spec.text}", len(decisions))
    player, together = make_player(spec, conditions), conditions.batch
    try:
        for first in range(0, len(decisions), together):
            part = decisions[first : first + together]
            for decision, move in zip(part, player.choose([one.board for one in part]), strict=True):
                yield Answer(spec.text, decision, move)
            progress.done(first + len(part))
    finally:
        close_player(player)


def _player(answers: Sequence[Answer]) -> PlayerCounts:
    numbers = sorted({one.decision.pieces for one in answers})
    parts = [PiecesCounts(*_counts([one for one in answers if one.decision.pieces == n]), n) for n in numbers]
    return PlayerCounts(*_counts(answers), answers[0].player, parts)


def _counts(answers: Sequence[Answer]) -> tuple[int, int, float, tuple[float, float], int, int, int]:
    """The fields of ``Counts``."""
    kinds = Counter(answer.change for answer in answers if answer.blunder)
    blunders, n = kinds.total(), len(answers)
    return n, blunders, blunders / n, wilson_interval(blunders, n), kinds[1, 0], kinds[1, -1], kinds[0, -1]


def _blunder(answer: Answer) -> Blunder:
    board, (was, became) = answer.decision.board, answer.change
    return Blunder(answer.player, board.fen(), board.pdn(answer.move), _NAMES[was], _NAMES[became])


def _print(report: BlundersReport) -> None:
    console = Console()
    for player in report.players:
        title = player.player
        table = Table("pieces", "decisions", "blunders", "share", "win→draw", "win→loss", "draw→loss", title=title)
        for line in (*player.by_pieces, player):
            pieces = str(line.pieces) if isinstance(line, PiecesCounts) else "all"
            kinds = map(str, (line.win_to_draw, line.win_to_loss, line.draw_to_loss))
            table.add_row(pieces, str(line.positions), str(line.blunders), f"{line.share:.2%}", *kinds)
        console.print(table)
    for one in report.blunders[:_SHOWN]:
        text = f"{one.player}: {one.fen} {one.move}: a {one.was} became a {one.became}"
        console.print(text, markup=False, highlight=False)
    if len(report.blunders) > _SHOWN:
        console.print(f"and {len(report.blunders) - _SHOWN} more: see --json")
