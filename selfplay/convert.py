"""``crownhead convert``: how many won endgames a player wins against perfect defence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from engine.board import Board
from engine.fen import Color, format_fen
from engine.players import TablebasePlayer
from engine.players.spec import TablebaseSpec
from engine.tablebase import open_tablebase
from engine.tablebase.dense import DenseTables, load_tables
from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import materials
from learner.endgame.data import EndgameSampler

from .match import play_games
from .match_commands import choose_jobs, settings_of
from .match_pool import MatchPool, Pairing, make_tasks
from .openings import Opening
from .progress import MatchProgress
from .requests import ConvertRequest
from .results import Result

PIECES = 5  # of the exact values that come with the package
_DRAWN_AT_ONCE = 4  # times the positions wanted: about half of all are won for the side to move
_SHOWN = 10  # positions that were not won


@dataclass(frozen=True)
class Conversion:
    """A won position and what became of it.

    Attributes:
        board: the winning side is to move.
        won: the player has won it.
        possible: perfect play wins it within the rules of the game, draws by repetition and 80 plies included.
        plies: of the game.
        termination: how it ended.
    """

    board: Board
    won: bool
    possible: bool
    plies: int
    termination: str

    @property
    def pieces(self) -> int:
        """On the board."""
        return len(self.board.piece_map())


def won_positions(pieces: int, number: int, seed: int, tables: DenseTables | None = None) -> list[Board]:
    """Positions of exactly so many pieces that the side to move, Black, wins; all such are equally likely.

    Args:
        tables: of at least so many pieces; those that come with the package are loaded if None.
    """
    sampler = EndgameSampler(tables or load_tables(SHIPPED, pieces), list(materials(pieces)), seed)
    boards: list[Board] = []
    while len(boards) < number:
        drawn = sampler.draw(_DRAWN_AT_ONCE * number)
        won = drawn.positions[drawn.values == 1]
        boards += [Board(format_fen(Color.BLACK, *map(int, position[:3]))) for position in won]
    return boards[:number]


def board_of(pieces: int) -> Board:
    """Some position of so many pieces, to ask tables whether they know such."""
    return Board("B:WK32:B" + ",".join(f"K{square}" for square in range(1, pieces)))


def winnable(board: Board, player: TablebasePlayer) -> bool:
    """Whether perfect play against perfect defence wins within the rules of the game.

    Raises:
        MissingTableError: no table of distances covers a position on the way.
    """
    game = next(play_games(player, player, [(0, Opening("endgame", board))]))
    return game.score == 1.0


@dataclass(frozen=True)
class Share:
    """How many won positions a player has won.

    Attributes:
        possible: of the positions, those that perfect play wins under the rules; only these count in ``won``.
        share: of the possible ones. longest: plies of the longest game that was won.
    """

    positions: int
    possible: int
    won: int
    share: float | None
    longest: int | None


@dataclass(frozen=True)
class PiecesShare(Share):
    """Of positions of so many pieces."""

    pieces: int


@dataclass(frozen=True)
class NotWon:
    """A position that perfect play wins."""

    fen: str
    pieces: int
    plies: int
    termination: str


@dataclass(frozen=True)
class ConversionReport(Share, Result):
    """Of all positions; ``simulations`` are None with a time, and for the default."""

    player: str
    time_control: str
    simulations: int | None
    by_pieces: list[PiecesShare]
    not_won: list[NotWon]


def convert_command(request: ConvertRequest, quiet: bool) -> ConversionReport:
    """Lets a player win won endgames; see ``crownhead convert --help``.

    Raises:
        MissingTableError: there are no tables of distances, or not for so many pieces.
    """
    control, folder = request.control, None if request.folder is None else str(request.folder)
    pairing = Pairing(request.spec, TablebaseSpec(folder), control, request.simulations, request.seed)
    settings_of(request.spec, pairing.conditions)  # says now whether there is such a network
    boards = _positions(request)
    starts = [(2 * index, Opening("endgame", board)) for index, board in enumerate(boards)]  # even: Black
    defence, found = TablebasePlayer(folder, request.seed), list[Conversion]()
    jobs = choose_jobs(request.jobs, pairing, len(starts))
    with MatchProgress(len(starts), quiet) as progress, MatchPool(jobs) as pool:
        for _, game in pool.play(make_tasks(pairing, starts, jobs)):
            board, won = boards[game.index // 2], game.score == 1.0
            possible = won or winnable(board, defence)
            found.append(Conversion(board, won, possible, len(game.moves), game.termination))
            progress.game(game)
    by_pieces = [
        PiecesShare(*_share([one for one in found if one.pieces == n]), n)
        for n in sorted({one.pieces for one in found})
    ]
    lost = [one for one in found if one.possible and not one.won]
    not_won = [NotWon(one.board.fen(), one.pieces, one.plies, one.termination) for one in lost]
    report = ConversionReport(
        *_share(found), request.player, str(control), request.simulations, by_pieces=by_pieces, not_won=not_won
    )
    if not quiet:
        _print(report)
    return report


def _positions(request: ConvertRequest) -> list[Board]:
    """Those to be won; a missing table of the defence is told here, before the first game."""
    with open_tablebase(request.folder) as tables:
        tables.probe_distance(board_of(request.pieces))  # if all are missing, at once
        values, numbers = load_tables(SHIPPED, request.pieces), range(2, request.pieces + 1)
        boards = [board for n in numbers for board in won_positions(n, request.positions, request.seed, values)]
        tables.probe_distance_many(np.array([board.words() for board in boards], np.uint32))
    return boards


def _share(found: Sequence[Conversion]) -> tuple[int, int, int, float | None, int | None]:
    """The fields of a ``Share``."""
    possible = [conversion for conversion in found if conversion.possible]
    won = [conversion.plies for conversion in possible if conversion.won]
    return len(found), len(possible), len(won), len(won) / len(possible) if possible else None, max(won, default=None)


def _print(report: ConversionReport) -> None:
    console = Console()
    table = Table("pieces", "positions", "possible", "won", "share", "longest win")
    for line in (*report.by_pieces, report):
        pieces = str(line.pieces) if isinstance(line, PiecesShare) else "all"
        share = "" if line.share is None else f"{line.share:.2%}"
        numbers = map(str, (line.positions, line.possible, line.won))
        table.add_row(pieces, *numbers, share, "" if line.longest is None else f"{line.longest} plies")
    console.print(table)
    for one in report.not_won[:_SHOWN]:
        console.print(f"not won: {one.fen} ({one.termination}, {one.plies} plies)", markup=False)
    if len(report.not_won) > _SHOWN:
        console.print(f"and {len(report.not_won) - _SHOWN} more: see --json")
