"""Players: random, UCT with random roll-outs, alpha-beta, endgame tables, rules, external engines, and tree search with
an evaluator passed by the caller; also the players' names on the command line.
"""

from .alphabeta import AlphaBetaPlayer
from .base import Player, PlayerError, PlayerSpecError
from .hub import EngineError, HubPlayer
from .rollout import RolloutPlayer
from .simple import RandomPlayer, TablebasePlayer, make_simple_player
from .spec import PlayerSpec, parse_player
from .watching import MoveThought, Purpose, Thinking, Thought, WatchablePlayer

__all__ = [
    "AlphaBetaPlayer",
    "EngineError",
    "HubPlayer",
    "MoveThought",
    "Player",
    "PlayerError",
    "PlayerSpec",
    "PlayerSpecError",
    "Purpose",
    "RandomPlayer",
    "RolloutPlayer",
    "TablebasePlayer",
    "Thinking",
    "Thought",
    "WatchablePlayer",
    "make_simple_player",
    "parse_player",
]
