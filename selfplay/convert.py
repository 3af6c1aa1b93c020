"""``crownhead convert``: how many won endgames a player wins against perfect defence."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from engine.board import Board
from engine.fen import Color, format_fen
from engine.players import TablebasePlayer
from engine.tablebase import open_tablebase
from engine.tablebase.dense import DenseTables
from engine.tablebase.folder import SHIPPED
from engine.tablebase.load import load_tables
from engine.tablebase.material import materials
from learner.endgame.data import EndgameSampler

from .match import play_games
from .match_commands import choose_jobs, inspect_player, make_pairing, time_control
from .match_pool import MatchPool, make_tasks
from .openings import MatchError, Opening
from .progress import MatchProgress

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


def convert_command(
    player: str,
    pieces: int,
    positions: int,
    simulations: int | None,
    seconds: float | None,
    folder: Path | None,
    jobs: int | None,
    seed: int,
    quiet: bool,
) -> dict[str, Any]:
    """Lets a player win won endgames; see ``crownhead convert --help``.

    Args:
        folder: of the defence's tables.

    Raises:
        MatchError: too many pieces.
        MissingTableError: there are no tables of distances, or not for so many pieces.
    """
    if pieces > PIECES:
        raise MatchError(f"--pieces {pieces}: exact values of 2 to {PIECES} pieces are at hand")
    control = time_control(simulations, seconds, None)
    defence = TablebasePlayer(folder, seed)
    facts = (inspect_player(player, simulations, control), inspect_player(defence.name, None, control))
    with open_tablebase(folder) as tables:  # a missing table is told before the first game
        tables.probe_distance(board_of(pieces))  # and if all are missing, at once
        values = load_tables(SHIPPED, pieces)
        boards = [board for n in range(2, pieces + 1) for board in won_positions(n, positions, seed, values)]
        tables.probe_distance_many(np.array([board.words() for board in boards], np.uint32))
    pairing = make_pairing(facts, control, simulations, seed)
    starts = [(2 * index, Opening("endgame", board)) for index, board in enumerate(boards)]  # even: Black
    found: list[Conversion] = []
    with (
        MatchProgress(len(starts), quiet) as progress,
        MatchPool(choose_jobs(jobs, facts, control, len(starts))) as pool,
    ):
        for _, game in pool.play(make_tasks(pairing, starts, pool.jobs)):
            board, won = boards[game.index // 2], game.score == 1.0
            possible = won or winnable(board, defence)
            found.append(Conversion(board, won, possible, len(game.moves), game.termination))
            progress.game(game)
    limit = {"time_control": str(control), "simulations": simulations if control.kind == "none" else None}
    figures = {"player": player, **limit, **_figures(found)}
    if not quiet:
        _print(figures)
    return figures


def _figures(found: Sequence[Conversion]) -> dict[str, Any]:
    by_pieces: dict[int, list[Conversion]] = defaultdict(list)
    for conversion in found:
        by_pieces[conversion.pieces].append(conversion)
    lines = [{"pieces": pieces, **_share(by_pieces[pieces])} for pieces in sorted(by_pieces)]
    lost = [
        {"fen": one.board.fen(), "pieces": one.pieces, "plies": one.plies, "termination": one.termination}
        for one in found
        if one.possible and not one.won
    ]
    return {**_share(found), "by_pieces": lines, "not_won": lost}


def _share(found: Sequence[Conversion]) -> dict[str, Any]:
    possible = [conversion for conversion in found if conversion.possible]
    won = [conversion for conversion in possible if conversion.won]
    return {
        "positions": len(found),
        "possible": len(possible),
        "won": len(won),
        "share": len(won) / len(possible) if possible else None,
        "longest": max((conversion.plies for conversion in won), default=None),
    }


def _print(figures: dict[str, Any]) -> None:
    console = Console()
    table = Table("pieces", "positions", "possible", "won", "share", "longest win")
    for line in [*figures["by_pieces"], {"pieces": "all", **figures}]:
        share = "" if line["share"] is None else f"{line['share']:.2%}"
        numbers = (str(line[key]) for key in ("pieces", "positions", "possible", "won"))
        table.add_row(*numbers, share, "" if line["longest"] is None else f"{line['longest']} plies")
    console.print(table)
    for one in figures["not_won"][:_SHOWN]:
        console.print(f"not won: {one['fen']} ({one['termination']}, {one['plies']} plies)", markup=False)
    if len(figures["not_won"]) > _SHOWN:
        console.print(f"and {len(figures['not_won']) - _SHOWN} more: see --json")
