"""``crownhead games``: writes games of self-play as PDN."""

from typing import BinaryIO, TypedDict

from engine.board import Board
from engine.console import Console
from engine.fen import Color
from engine.files import atomic_write
from engine.outcomes import RESULTS
from engine.pdn import PdnGame, format_game

from .games.records import GameRecord
from .games.shards import read_shard
from .requests import GamesRequest, RequestError
from .run.reached import shards_of

_WINNERS = {1: Color.BLACK, 0: None, -1: Color.WHITE}
_DIGEST = 12  # letters of a network's digest that name the players


class GamesFigures(TypedDict):
    """Games that were written as PDN."""

    path: str
    games: int


def games_command(request: GamesRequest, quiet: bool) -> GamesFigures:
    """Writes the games; see ``crownhead games --help``.

    Raises:
        RequestError: the file exists already.
        ReachedError, ShardError, StorageError: there are no games, or they cannot be read or written.
        OtherGameError: they are of another game than this process plays.
    """
    if request.out.exists():
        raise RequestError(f"{request.out} exists already: choose another name")
    shards, count = shards_of(request.run), 0

    def write(file: BinaryIO) -> None:
        nonlocal count
        for record in (record for path in shards for record in read_shard(path).iter_games()):
            file.write((("\n" if count else "") + format_game(pdn_of(record))).encode())
            count += 1

    atomic_write(request.out, write)
    if not quiet:
        Console().print(f"{count} games in {request.out}", highlight=False, soft_wrap=True)
    return {"path": str(request.out), "games": count}


def pdn_of(record: GameRecord) -> PdnGame:
    """A game of self-play as PDN; both players are named by the digest of the network.

    Raises ``RecordError`` if its moves are not legal.
    """
    record.positions()  # raises
    board = Board(record.start_fen)
    for index in record.moves:
        board.push(board.distinct_moves[index])
    names = dict.fromkeys(map(str, Color), record.network[:_DIGEST])
    result = RESULTS[_WINNERS[record.result]]
    return PdnGame.from_board(
        board, {"Event": "self-play", **names, "Result": result, "Termination": record.termination}
    )
