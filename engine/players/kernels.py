"""Kernels that the searching players share: a line of play in which repetitions can be found.

A **line** is uint32 [N, 4]: consecutive positions of one game. Each has ``own``, ``opp``, ``kings`` seen by its side to
move, and its number of reversible plies. The line begins with the game's positions since the last irreversible move,
since these count for draws by repetition; the searched moves follow.
"""

import numpy as np
from numba import njit

from ..bitboard import turned
from ..board import Board
from ..draw_rules import REPETITIONS_TO_DRAW, REVERSIBLE_PLIES_TO_DRAW, is_reversible

LONGEST_HISTORY = REVERSIBLE_PLIES_TO_DRAW + 1  # most positions since an irreversible move in a game that goes on
_SHORTEST_CYCLE = 4  # fewest plies after which a position can occur again


def new_line(plies: int) -> np.ndarray:
    """An empty line for a game's history and ``plies`` plies after it."""
    return np.zeros((LONGEST_HISTORY + plies, 4), np.uint32)


def start_line(board: Board, line: np.ndarray) -> int:
    """Writes the game's history into ``line`` and returns the index of the current position."""
    history = board.history()[-LONGEST_HISTORY:]
    last = len(history) - 1
    for i, words in enumerate(history):
        line[i] = (*words, board.reversible_plies - last + i)
    return last


@njit(cache=True)
def play(line, now, move):
    """Writes the position after ``move`` (a ``MOVE``) to index ``now + 1`` of the line."""
    goes_on = is_reversible(line[now, 0], line[now, 1], line[now, 2], move)
    line[now + 1, 0] = turned(move.opp)
    line[now + 1, 1] = turned(move.own)
    line[now + 1, 2] = turned(move.kings)
    line[now + 1, 3] = np.uint32(line[now, 3] + np.uint32(1)) if goes_on else np.uint32(0)


@njit(cache=True)
def repeated(line, now, root):
    """Whether position ``now`` of the line is a draw by repetition in a search that began at position ``root``.

    It is if it occurred before after the root, since the sides could then repeat it again; or if it has occurred as
    often as the rules of the game require (WCDF, 1.32.1). With ``root = now`` only the rules count.
    """
    earlier = 0
    for back in range(_SHORTEST_CYCLE, min(np.int64(line[now, 3]), now) + 1, 2):
        then = now - back
        if line[then, 0] == line[now, 0] and line[then, 1] == line[now, 1] and line[then, 2] == line[now, 2]:
            earlier += 1
            if then > root or earlier == REPETITIONS_TO_DRAW - 1:
                return True
    return False


@njit(cache=True)
def drawn(line, now):
    """Whether position ``now`` of the line is a draw by the rules, provided its side to move has a legal move."""
    return line[now, 3] >= REVERSIBLE_PLIES_TO_DRAW or repeated(line, now, now)
