"""``crownhead games``: writes games of self-play as PDN."""

from pathlib import Path
from typing import BinaryIO, TypedDict

from engine.board import Board
from engine.console import Console
from engine.fen import Color
from engine.files import atomic_write
from engine.outcomes import RESULTS
from engine.pdn import PdnGame, format_game

from .games.records import GAME, GameRecord
from .games.shards import read_shard
from .requests import GamesRequest, RequestError
from .run.config import read_config
from .run.folder import RunFolder
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
    shards, opponent, count = shards_of(request.run), _opponent_of(request.run), 0

    def write(file: BinaryIO) -> None:
        nonlocal count
        for record in (record for path in shards for record in read_shard(path).iter_games()):
            file.write((("\n" if count else "") + format_game(pdn_of(record, opponent))).encode())
            count += 1

    atomic_write(request.out, write)
    if not quiet:
        Console().print(f"{count} games in {request.out}", highlight=False, soft_wrap=True)
    return {"path": str(request.out), "games": count}


def _opponent_of(place: Path) -> str | None:
    """Digest of the network that all games of a run are against, of whose folder or shards ``place`` is; None if there
    is none."""
    for run in (RunFolder(place), RunFolder(place.parent)):
        if place in (run.path, run.shards) and run.config_path.is_file():
            opponent = read_config(run.config_path).opponent
            return None if opponent is None else opponent.digest
    return None


def pdn_of(record: GameRecord, opponent: str | None = None) -> PdnGame:
    """A game of self-play as PDN; the players are named by the digests of their networks.

    Raises ``RecordError`` if its moves are not legal.

    Args:
        opponent: digest of the network that has played the side without samples; None: one network has played both.
    """
    record.positions()  # raises
    board = Board(record.start_fen)
    turns = [board.turn]
    for index in record.moves:
        board.push(board.distinct_moves[index])
        turns.append(board.turn)
    names = dict.fromkeys(map(str, Color), record.network[:_DIGEST])
    if opponent is not None:
        own = {turns[ply] for ply in record.samples.ply[record.samples.kind == GAME].tolist()}
        names = dict.fromkeys(names, "?")  # a game without samples does not tell
        for side in own:
            names |= {str(side): record.network[:_DIGEST], str(side.other): opponent[:_DIGEST]}
    result = RESULTS[_WINNERS[record.result]]
    return PdnGame.from_board(
        board, {"Event": "self-play", **names, "Result": result, "Termination": record.termination}
    )
