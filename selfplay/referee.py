"""Asking players for their moves: on many boards at once, or on one with a clock."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from engine.board import Board, Move
from engine.players import HubPlayer, WatchablePlayer
from engine.players.base import Player
from engine.players.time_control import TimeControl, give_time, search_time

from .openings import MatchError

GRACE_S = 0.05  # a clock may be overrun by this, which a busy machine takes now and then; it then shows 0


class Answer(NamedTuple):
    """What a player says to a board: a move or what it raised; its value of the position if known; seconds it took."""

    move: Move | Exception
    value: float | None = None
    elapsed_s: float | None = None


def ask_all(player: Player, boards: Sequence[Board]) -> list[Answer]:
    """A player's answer for each board. If the whole question fails, each board is asked about alone.

    Values come from the attribute ``values`` of players that have it.
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
    """A player's answer for one board, and how long it took.

    Args:
        remaining_s: on its clock. moves_made: by it in this game.
    """
    begun = time.perf_counter()
    try:
        distinct = board.distinct_moves
        if len(distinct) == 1:  # two ways of capturing the same
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
            # To take the tree along took time, too.
            thinking.advance(max(0.0, begun + search_time(budget) - time.perf_counter()))
        value = thinking.thought().value
        move = thinking.choose()  # after it a player may ponder, and its thoughts are about the next position
        return Answer(move, value, time.perf_counter() - begun)
    except Exception as error:
        return Answer(error, None, time.perf_counter() - begun)
