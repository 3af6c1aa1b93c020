"""Players: random, UCT with random roll-outs, alpha-beta, endgame tables, external engines, and the search with an
evaluator that is handed in; how the command line names them.
"""

import re

from .alphabeta import MAX_DEPTH, AlphaBetaPlayer
from .base import Player, PlayerError, PlayerSpecError
from .hub import PREFIX, EngineError, HubPlayer
from .random_player import RandomPlayer
from .rollout import MAX_SIMULATIONS, RolloutPlayer
from .tablebase_player import TablebasePlayer
from .watching import MoveThought, Purpose, Thinking, Thought, WatchablePlayer

__all__ = [
    "AlphaBetaPlayer",
    "EngineError",
    "HubPlayer",
    "MoveThought",
    "Player",
    "PlayerError",
    "PlayerSpecError",
    "Purpose",
    "RandomPlayer",
    "RolloutPlayer",
    "TablebasePlayer",
    "Thinking",
    "Thought",
    "WatchablePlayer",
    "parse_player",
]
_EXAMPLES = {"random": "random", "rollout": "rollout:200", "alphabeta": "alphabeta:8"}
_SHOWN = 40  # characters of a wrong text that a message repeats


def parse_player(text: str, seconds: float | None = None) -> Player | None:
    """The player that ``random``, ``rollout:SIMULATIONS``, ``alphabeta:DEPTH``, ``tablebase``, ``tablebase:FOLDER`` or
    ``hub:COMMAND`` names.

    Args:
        text: what stands before a colon decides; None is returned if it is none of these names.
        seconds: time limit per move of ``alphabeta``, beside its depth, and of an external engine.

    Raises:
        PlayerSpecError: the number is missing, no number, out of range, or too much; or there is no such program.
        PlayerError: ``seconds`` is not above 0.
    """
    if text.startswith(PREFIX):
        return HubPlayer(text.removeprefix(PREFIX), seconds)
    kind, colon, number = text.partition(":")
    if kind == "tablebase":
        return TablebasePlayer(number or None)
    if kind not in _EXAMPLES:
        return None
    if kind == "random" and not colon:
        return RandomPlayer()
    if kind == "random" or not re.fullmatch("[0-9]{1,9}", number):
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
        raise PlayerSpecError(f"{shown!r} is no player: write it like {_EXAMPLES[kind]}")
    if kind == "rollout":
        return RolloutPlayer(_in_range(text, number, MAX_SIMULATIONS))
    return AlphaBetaPlayer(_in_range(text, number, MAX_DEPTH), seconds)


def _in_range(text: str, number: str, most: int) -> int:
    """``number`` as an integer in 1 to ``most``; else PlayerSpecError."""
    if not 1 <= int(number) <= most:
        raise PlayerSpecError(f"{text!r} is no player: its number is not in 1 to {most}")
    return int(number)
