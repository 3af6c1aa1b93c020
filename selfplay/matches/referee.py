"""Asks players for their moves: on many boards at once, or on one board with a clock."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from engine.board import Board, Move
from engine.players import HubPlayer, WatchablePlayer
from engine.players.base import Player
from engine.players.time_control import TimeControl, give_time, search_time

from ..games.openings import MatchError

GRACE_S = 0.05  # a clock may be overrun by this without loss: a busy machine causes such delays


class Answer(NamedTuple):
    """Answer of a player: a move or the exception raised; its value of the position, seconds taken; None: unknown."""

    move: Move | Exception
    value: float | None = None
    elapsed_s: float | None = None


def ask_all(player: Player, boards: Sequence[Board]) -> list[Answer]:
    """A player's answer for each board. If asking for all boards fails, the player is asked for each board alone.

    Values come from the attribute ``values`` of the player, if it has one.
    """
    if not boards:
        return []
    try:
        moves = list(player.choose(boards))
        if len(moves) != len(boards):
            raise MatchError(f"{len(moves)} moves named for {len(boards)} boards")
        values = getattr(player, "values", None) or [None] * len(boards)
        return [Answer(move, value) for move, value in zip(moves, values, strict=True)]
    except Exception as error:
        if len(boards) == 1:
            return [Answer(error)]
    return [answer for board in boards for answer in ask_all(player, [board])]


def ask_timed(player: Player, board: Board, control: TimeControl, remaining_s: float, moves_made: int) -> Answer:
    """A player's answer for one board, with the time taken.

    Args:
        remaining_s: seconds left on its clock.
        moves_made: number of its moves so far in this game.
    """
    begun = time.perf_counter()
    try:
        distinct = board.distinct_moves
        if len(distinct) == 1:  # legal moves differ only in the path of the same capture
            return Answer(distinct[0], None, time.perf_counter() - begun)
        budget = give_time(player, control, remaining_s, moves_made)
        if budget is None or not isinstance(player, WatchablePlayer):
            answer = ask_all(player, [board])[0]
            return answer._replace(elapsed_s=time.perf_counter() - begun)
        thinking = player.begin(board)
        if isinstance(player, HubPlayer):  # it keeps its own time
            while thinking.advance(player.patience):
                pass
        else:
            # Keeping the search tree of the last move took some of the time already.
            thinking.advance(max(0.0, begun + search_time(budget) - time.perf_counter()))
        value = thinking.thought().value
        move = thinking.choose()  # last: after it a player may ponder on the next position
        return Answer(move, value, time.perf_counter() - begun)
    except Exception as error:
        return Answer(error, None, time.perf_counter() - begun)
