"""Players by their text, as tests name them."""

from typing import Any

from engine.players import Player, parse_player
from selfplay.conditions import Conditions
from selfplay.players import make_player


def player_of(text: object, **conditions: Any) -> Any:
    """The player of a text, made for these ``Conditions``."""
    player: Player = make_player(parse_player(str(text)), Conditions(**conditions))
    return player
