"""One-ply search in chess endgames: the children of many positions judged by a network in one batch."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import chess
import numpy as np

from .chess_positions import CLASSES, MOST_MEN, men_of

LOSS, DRAW, WIN = 0, 2, 4
"""Places in ``CLASSES``. The class of a position is ``WIN`` minus its class for the other side."""
Judge = Callable[[np.ndarray], np.ndarray]


class Children(NamedTuple):
    """What N positions lead to.

    Attributes:
        men: int16 [M, 4], the M children that only a network can judge, each seen by its own side to move.
        parents: int64 [M], places of their parents.
        settled: int64 [N], the best class for the parent that the rules alone give it, ``LOSS`` if none.
    """

    men: np.ndarray
    parents: np.ndarray
    settled: np.ndarray


def _settled(board: chess.Board) -> int | None:
    """The class of a position for its side to move, where the rules alone give it."""
    if board.is_checkmate():
        return LOSS
    if board.is_stalemate() or board.is_insufficient_material():
        return DRAW
    return None


def children_of(boards: Sequence[chess.Board]) -> Children:
    """The children of positions of at most 4 men; boards are as before afterwards.

    A mate, a stalemate, and too few men to mate, as after many captures, are judged by the rules, as is a position
    without a legal move itself. Men know nothing of a capture en passant: a child in which there is one is judged as if
    there were none.
    """
    rows: list[list[int]] = []
    parents: list[int] = []
    settled = np.full(len(boards), LOSS, np.int64)
    for place, board in enumerate(boards):
        known = _settled(board)
        if known is not None:
            settled[place] = known
            continue
        for move in list(board.legal_moves):
            board.push(move)
            answer = _settled(board)
            if answer is None:
                rows.append(men_of(board))
                parents.append(place)
            else:
                settled[place] = max(settled[place], WIN - answer)
            board.pop()
    return Children(np.array(rows, np.int16).reshape(-1, MOST_MEN), np.array(parents, np.int64), settled)


def one_ply_search(judge: Judge, children: Children) -> np.ndarray:
    """int64 [N]: the best class for each parent among what the rules give and what ``judge`` says of its children."""
    found = children.settled.copy()
    np.maximum.at(found, children.parents, len(CLASSES) - 1 - judge(children.men))
    return found
