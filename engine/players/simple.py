"""Players without a network, made from their specifications."""

from .alphabeta import AlphaBetaPlayer
from .base import Player
from .hub import HubPlayer
from .random_player import RandomPlayer
from .rollout import RolloutPlayer
from .spec import AlphaBetaSpec, HubSpec, RandomSpec, RolloutSpec, SimpleSpec, TablebaseSpec
from .tablebase_player import TablebasePlayer


def make_simple_player(spec: SimpleSpec, seconds: float | None = None, seed: int = 0) -> Player:
    """The player of a specification. Files are opened and programs started when it is first asked for a move.

    Args:
        seconds: time limit per move of ``alphabeta``, beside its depth, and of an external engine.
        seed: of its random numbers.

    Raises:
        PlayerSpecError: there is no such program.
        PlayerError: ``seconds`` is not above 0.
    """
    match spec:
        case RandomSpec():
            return RandomPlayer(seed)
        case RolloutSpec(simulations):
            return RolloutPlayer(simulations, seed=seed)
        case AlphaBetaSpec(depth):
            return AlphaBetaPlayer(depth, seconds, seed)
        case TablebaseSpec(folder):
            return TablebasePlayer(folder, seed)
        case HubSpec(command):
            return HubPlayer(command, seconds)
