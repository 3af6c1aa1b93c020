"""Game records replayed move by move on a board, independently of ``GameRecord.positions``."""

from collections.abc import Iterator

from engine.board import Board
from engine.players.base import search_moves
from selfplay.games.records import GameRecord


def boards_of(record: GameRecord) -> Iterator[Board]:
    """Yields one board, before the first move and after each move."""
    board = Board(record.start_fen)
    yield board
    for index in record.moves:
        board.push(search_moves(board)[index])
        yield board


def final_board(record: GameRecord) -> Board:
    """The final position, with all moves made."""
    for board in boards_of(record):
        final = board
    return final
