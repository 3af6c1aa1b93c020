"""What the searching players share: random numbers, and a line of play in which repetitions can be seen.

A **line** is uint32 [N, 4]: consecutive positions of one game, each as ``own``, ``opp``, ``kings`` seen by its side to
move, and its reversible plies. It begins with the game's positions since the last irreversible move, so that draws by
repetition reach back into the game; the searched moves follow.
"""

import numpy as np
from numba import njit

from ..bitboard import turned
from ..board import Board
from ..draw_rules import REPETITIONS_TO_DRAW, REVERSIBLE_PLIES_TO_DRAW, is_reversible

LONGEST_HISTORY = REVERSIBLE_PLIES_TO_DRAW + 1  # no position of a game that goes on has more of them behind it
_SHORTEST_CYCLE = 4  # plies until a position can occur again


def new_line(room: int) -> np.ndarray:
    """A line with room for a game's history and ``room`` plies after it."""
    return np.zeros((LONGEST_HISTORY + room, 4), np.uint32)


def start_line(board: Board, line: np.ndarray) -> int:
    """Writes the game's history into ``line`` and returns the index of the present position."""
    history = board.history()[-LONGEST_HISTORY:]
    last = len(history) - 1
    for i, words in enumerate(history):
        line[i] = (*words, board.reversible_plies - last + i)
    return last


@njit(cache=True)
def play(line, now, move):
    """Writes the position after ``move`` (of ``MOVE``) behind position ``now`` of the line."""
    goes_on = is_reversible(line[now, 0], line[now, 1], line[now, 2], move)
    line[now + 1, 0] = turned(move.opp)
    line[now + 1, 1] = turned(move.own)
    line[now + 1, 2] = turned(move.kings)
    line[now + 1, 3] = np.uint32(line[now, 3] + np.uint32(1)) if goes_on else np.uint32(0)


@njit(cache=True)
def repeated(line, now, root):
    """Whether position ``now`` of the line is a draw by repetition in a search that began at position ``root``.

    It is if it has occurred once after the root, where both sides could repeat at will, or as often as the rules ask
    (WCDF, 1.32.1) with the game's own positions. With ``root = now`` only the rules count.
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
    """Whether position ``now`` of the line is a draw by the rules, if its side to move has a move."""
    return line[now, 3] >= REVERSIBLE_PLIES_TO_DRAW or repeated(line, now, now)
