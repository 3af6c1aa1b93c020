"""``crownhead convert``: how many won endgames a player wins against a perfect opponent."""

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from engine.board import Board
from engine.console import Console, Table
from engine.fen import Color, format_fen
from engine.players import TablebasePlayer
from engine.players.spec import TablebaseSpec
from engine.tablebase import open_tablebase
from engine.tablebase.dense import DenseTables, load_tables
from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import materials
from learner.endgame.data import EndgameSampler

from ..games.openings import MatchError, Opening
from ..matches.commands import open_pool, settings_of, tell_ignored
from ..matches.match import play_games
from ..matches.record import FORFEIT
from ..matches.tasks import Pairing, make_tasks
from ..progress import MatchProgress
from ..requests import ConvertRequest

PIECES = 5  # most pieces of the tables that come with the package
_DRAWN_AT_ONCE = 4  # times the number asked for: about half of all positions are won for the side to move
_SHOWN = 10  # most positions printed that were not won


class Conversion(TypedDict):
    """How many positions were won.

    ``possible`` counts the positions that perfect play wins under the draw rules, ``won`` those of them that the player
    won. ``share`` is won / possible (0 to 1), ``longest`` the longest win in plies; None if there are none.
    """

    positions: int
    possible: int
    won: int
    share: float | None
    longest: int | None


class PiecesConversion(Conversion):
    pieces: int


class NotWon(TypedDict):
    """A position that was not won: why its game ended, and after how many plies."""

    fen: str
    pieces: int
    plies: int
    termination: str


class ConvertFigures(Conversion):
    """Results of ``crownhead convert``; ``not_won`` has the positions that perfect play wins and the player did not."""

    player: str
    time_control: str
    simulations: int | None
    by_pieces: list[PiecesConversion]
    not_won: list[NotWon]


class _Ending(NamedTuple):
    game: NotWon  # whether won or not
    won: bool
    possible: bool


def won_positions(pieces: int, number: int, seed: int, tables: DenseTables | None = None) -> list[Board]:
    """Random positions that the side to move, Black, wins, drawn uniformly from all with this number of pieces.

    Args:
        tables: tables of at least ``pieces`` pieces; None: load those that come with the package.
    """
    sampler = EndgameSampler(tables or load_tables(SHIPPED, pieces), list(materials(pieces)), seed)
    boards: list[Board] = []
    while len(boards) < number:
        drawn = sampler.draw(_DRAWN_AT_ONCE * number)
        won = drawn.positions[drawn.values == 1]
        boards += [Board(format_fen(Color.BLACK, *map(int, position[:3]))) for position in won]
    return boards[:number]


def board_of(pieces: int) -> Board:
    """Any position with this number of pieces, to check that tables cover this number."""
    return Board("B:WK32:B" + ",".join(f"K{square}" for square in range(1, pieces)))


def winnable(board: Board, player: TablebasePlayer) -> bool:
    """Whether ``player`` wins the position against itself under the draw rules; raises ``MissingTableError``."""
    game = next(play_games(player, player, [(0, Opening("endgame", board))]))
    return game.score == 1.0


def convert_command(request: ConvertRequest, quiet: bool) -> ConvertFigures:
    """Plays out won endgames; see ``crownhead convert --help``.

    Raises:
        MissingTableError: there are no tables with distances for this number of pieces.
    """
    control, folder = request.control, None if request.folder is None else str(request.folder)
    pairing = Pairing(request.spec, TablebaseSpec(folder), control, request.simulations, request.seed)
    settings_of(request.spec, pairing.conditions)  # raises now if there is no such network
    if not quiet:
        tell_ignored([request.spec], control)
    boards = _positions(request)
    starts = [(2 * index, Opening("endgame", board)) for index, board in enumerate(boards)]  # even: player has Black
    defence, over = TablebasePlayer(folder), dict[int, _Ending]()
    pool = open_pool(request.jobs, request.address, pairing, len(starts))
    with MatchProgress(len(starts), quiet) as progress, pool:
        for _, game in pool.play(make_tasks(pairing, starts, pool.jobs)):
            board, won = boards[game.index // 2], game.score == 1.0
            if won and game.termination == FORFEIT:  # such a game says nothing about the player
                raise MatchError(f"the defence has failed: {game.error}")
            ended: NotWon = {
                "fen": board.fen(),
                "pieces": len(board.piece_map()),
                "plies": len(game.moves),
                "termination": game.termination,
            }
            defence.seed(request.seed + game.index)  # games end in any order
            over[game.index] = _Ending(ended, won, won or winnable(board, defence))
            progress.game(game)
    found = [over[index] for index in sorted(over)]
    figures: ConvertFigures = {
        **_counts(found),
        "player": request.player,
        "time_control": str(control),
        "simulations": request.simulations,
        "by_pieces": [
            {**_counts([one for one in found if one.game["pieces"] == n]), "pieces": n}
            for n in sorted({one.game["pieces"] for one in found})
        ],
        "not_won": [one.game for one in found if one.possible and not one.won],
    }
    if not quiet:
        _print(figures)
    return figures


def _positions(request: ConvertRequest) -> list[Board]:
    """Draws the positions; raises ``MissingTableError`` before the first game if the opponent lacks a table."""
    with open_tablebase(request.folder) as tables:
        tables.probe_distance(board_of(request.pieces))  # raises at once if all tables are missing
        values, numbers = load_tables(SHIPPED, request.pieces), range(2, request.pieces + 1)
        boards = [board for n in numbers for board in won_positions(n, request.positions, request.seed, values)]
        tables.probe_distance_many(np.array([board.words() for board in boards], np.uint32))
    return boards


def _counts(found: Sequence[_Ending]) -> Conversion:
    possible = [one for one in found if one.possible]
    won = [one.game["plies"] for one in possible if one.won]
    return {
        "positions": len(found),
        "possible": len(possible),
        "won": len(won),
        "share": len(won) / len(possible) if possible else None,
        "longest": max(won, default=None),
    }


def _print(figures: ConvertFigures) -> None:
    console = Console()
    table = Table("pieces", "positions", "possible", "won", "share", "longest win, plies")
    lines: list[tuple[str, Conversion]] = [(str(line["pieces"]), line) for line in figures["by_pieces"]]
    for pieces, line in [*lines, ("all", figures)]:
        share = "" if line["share"] is None else f"{line['share']:.2%}"
        numbers = str(line["positions"]), str(line["possible"]), str(line["won"])
        table.add_row(pieces, *numbers, share, str(line["longest"] or ""))
    console.print(table)
    failed = figures["not_won"]
    for one in failed[:_SHOWN]:
        console.print(f"not won: {one['fen']} ({one['termination']}, {one['plies']} plies)")
    if len(failed) > _SHOWN:
        console.print(f"and {len(failed) - _SHOWN} more: see --json")
