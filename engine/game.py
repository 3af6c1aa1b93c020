"""The game that this process plays: English draughts, unless the environment names another of ``GAMES``.

A process plays one game, because compiled code calls the rules of its game directly: see ``engine.rules``.
"""

import os
import sys
from typing import Literal, get_args

GameName = Literal["english", "russian"]
GAMES: tuple[GameName, ...] = get_args(GameName)
ENGLISH: GameName = "english"
GAME_VARIABLE = "CROWNHEAD_GAME"  # processes that this one starts read it, too
GAME = os.environ.get(GAME_VARIABLE) or ENGLISH

if GAME not in GAMES:
    print(f"crownhead: {GAME_VARIABLE} is {GAME[:40]!r}: choose one of {', '.join(GAMES)}", file=sys.stderr)
    raise SystemExit(2)


class OtherGameError(ValueError):
    """Something belongs to another game than the one that this process plays.

    Attributes:
        what: name of this thing.
        game: the one that it belongs to, of ``GAMES``.
    """

    def __init__(self, what: str, game: str) -> None:
        # The usual game needs no variable; without it, the command line finds out whether everything is of one game.
        advice = f"unset {GAME_VARIABLE}" if game == ENGLISH else f"set {GAME_VARIABLE}={game}"
        super().__init__(f"{what} is of {game} draughts, this process plays {GAME}: {advice}")
        self.what, self.game = what, game


def check_game(what: str, game: str) -> None:
    """Raises ``OtherGameError`` unless ``game`` is the one that this process plays, ``ValueError`` if it is none of
    ``GAMES``, as in a file of a later version."""
    if game not in GAMES:
        known = " and ".join(GAMES)
        raise ValueError(f"{what} is of {game[:40]!r}, which this version does not play: it plays {known}")
    if game != GAME:
        raise OtherGameError(what, game)
