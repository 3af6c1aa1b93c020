"""When a game is a draw, and which moves begin its counts anew. Boards and kernels share this."""

from numba import njit

from .rules import played

REPETITIONS_TO_DRAW: int = played.REPETITIONS_TO_DRAW
REVERSIBLE_PLIES_TO_DRAW: int = played.REVERSIBLE_PLIES_TO_DRAW


@njit(cache=True, inline="always")
def is_reversible(own, opp, kings, move):
    """Whether a move (of ``movegen.MOVE``) in a position neither takes a piece nor moves a man.

    Any other move is irreversible: no earlier position comes back after it.
    """
    return move.opp == opp and (move.own & ~move.kings) == (own & ~kings)
