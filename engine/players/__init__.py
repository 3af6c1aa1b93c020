"""Players that need no network: random, UCT with random roll-outs, alpha-beta; and how the command line names them."""

import re

from .alphabeta import AlphaBetaPlayer
from .base import Player, PlayerError
from .random_player import RandomPlayer
from .rollout import RolloutPlayer

__all__ = ["AlphaBetaPlayer", "Player", "PlayerError", "RandomPlayer", "RolloutPlayer", "parse_player"]
_NUMBERED = re.compile(r"(rollout|alphabeta):?(.*)", re.DOTALL)
_SHOWN = 40  # characters of a wrong text that a message repeats


def parse_player(text: str, seconds: float | None = None) -> Player | None:
    """The player that ``random``, ``rollout:SIMULATIONS`` or ``alphabeta:DEPTH`` names; None for any other text.

    Args:
        seconds: time limit per move of ``alphabeta``, beside its depth.

    Raises:
        PlayerError: the number is missing, no number, or out of range.
    """
    if text == "random":
        return RandomPlayer()
    match = _NUMBERED.fullmatch(text)
    if match is None:
        return None
    kind, number = match.groups()
    if not re.fullmatch("[0-9]{1,9}", number):
        example = "rollout:200" if kind == "rollout" else "alphabeta:8"
        raise PlayerError(f"{text[:_SHOWN]!r} lacks its number: write it like {example}")
    if kind == "rollout":
        return RolloutPlayer(int(number))
    return AlphaBetaPlayer(int(number), seconds)
