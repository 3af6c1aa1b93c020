"""Determines the theme of a puzzle from its position and its line."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ..board import Board, Move
from ..fen import Color
from ..knowledge.squares import has_the_move
from .puzzle import Goal, Theme

_SHOTS = (Theme.SHOT_1, Theme.SHOT_2, Theme.SHOT_3, Theme.SHOT_4)
_ENDING = 7  # largest number of pieces of an ending
_BREAKTHROUGH = 9  # largest number of plies until the man is crowned
_BLOCKED_MEN = {Color.WHITE: (20, 12), Color.BLACK: (13, 21)}  # First Position: the winner's man and the loser's man


class Trade(NamedTuple):
    """Numbers of pieces that the side to move loses and captures in the captures that begin a line; ``offered``: those
    that it loses before its last capture, so that a piece which is taken back at the end does not count."""

    given: int
    taken: int
    offered: int


def trade_of(moves: Sequence[Move]) -> Trade:
    """Counts captured pieces until the opponent's reply is not a capture.

    Args:
        moves: moves of a line; the first is made by the side whose trade is counted.
    """
    given = taken = offered = 0
    for place, (move, reply) in enumerate(pairwise((*moves, Move(0, 0)))):
        if place % 2 == 0:
            taken += len(move.captured)
            offered = given if move.captured else offered
            if not reply.captured:
                break
        else:
            given += len(move.captured)
    return Trade(given, taken, offered)


def theme_of(board: Board, moves: Sequence[Move], goal: Goal) -> Theme:
    """The theme of a puzzle with position ``board`` and line ``moves``; the first move is the only right one."""
    pieces = board.piece_map()
    own = [square for square, (color, _) in pieces.items() if color is board.turn]
    if _is_first_position(board) and goal is Goal.WIN:
        return Theme.FIRST_POSITION
    if moves[0].captured:
        return Theme.CAPTURE
    trade = trade_of(moves)
    if 0 < trade.given < trade.taken:
        return _SHOTS[min(trade.offered, len(_SHOTS)) - 1]
    if goal is Goal.WIN and _crowns(board, moves[:_BREAKTHROUGH]):
        return Theme.BREAKTHROUGH
    if len(pieces) > _ENDING:
        return Theme.ATTACK if goal is Goal.WIN else Theme.DEFENCE
    even = 2 * len(own) == len(pieces)
    return Theme.OPPOSITION if goal is Goal.WIN and even and _gets_the_move(board, moves) else Theme.ENDING


def _is_first_position(board: Board) -> bool:
    """Whether this is the First Position: two kings, and two men on ``_BLOCKED_MEN``, where the man of the side to move
    stops the other."""
    pieces = board.piece_map()
    mine, others = _BLOCKED_MEN[board.turn]
    men = {square: color for square, (color, king) in pieces.items() if not king}
    return len(pieces) == 4 and men == {mine: board.turn, others: board.turn.other}


def _crowns(board: Board, moves: Sequence[Move]) -> bool:
    """Whether the side to move has no king yet and gets one by ``moves``."""
    after, color = board.copy(), board.turn
    if (color, True) in board.piece_map().values():
        return False
    for move in moves:
        after.push(move)
    return (color, True) in after.piece_map().values()


def _gets_the_move(board: Board, moves: Sequence[Move]) -> bool:
    """Whether the side to move has *the move* (the opposition) after its first move and the captures that follow."""
    after = board.copy()
    for place, move in enumerate(moves):
        if place % 2 == 0 and place > 0 and not move.captured:
            break
        after.push(move)
    return has_the_move(after) == (after.turn is board.turn)
