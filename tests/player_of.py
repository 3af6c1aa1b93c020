"""Makes players from their texts, for tests."""

from typing import Any

from engine.players import Player, parse_player
from selfplay.conditions import Conditions
from selfplay.players import make_player


def player_of(text: object, **conditions: Any) -> Any:
    """Makes the player of a text for some ``Conditions``."""
    player: Player = make_player(parse_player(str(text)), Conditions(**conditions))
    return player
