"""Named levels of play, and the player that plays at such a level.

All levels use the champion's student. Weak levels draw their move from its policy, flattened by a temperature, without
a search: they play natural moves and overlook what only a search finds. Stronger levels search a little and draw their
move by visits. ``docs/measured.md`` tells how the numbers were found.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..board import Board, Move
from ..search import SearchConfig
from .base import Player, PlayerSpecError


class Level(NamedTuple):
    """A level of play.

    Attributes:
        name: name on the command line, after ``level:``.
        title: name for people.
        temperature: temperature for drawing a move by visits, or by the policy if ``simulations`` is 0.
        simulations: simulations of the search per move.
        elo: measured Elo difference to the first level.
    """

    name: str
    title: str
    temperature: float
    simulations: int
    elo: int

    @property
    def search(self) -> SearchConfig:
        """Settings of the search; the temperature is the same for all moves of a game."""
        return SearchConfig(
            num_simulations=self.simulations,
            noise_fraction=0.0,
            temperature=self.temperature,
            final_temperature=self.temperature,
        )


LEVELS = (
    Level("beginner", "Beginner", 8.0, 0, 0),
    Level("novice", "Novice", 4.8, 0, 130),
    Level("learner", "Learner", 3.5, 0, 250),
    Level("casual", "Casual player", 2.7, 0, 340),
    Level("hobby", "Hobby player", 2.23, 0, 420),
    Level("regular", "Regular", 1.77, 0, 540),
    Level("club-novice", "Club novice", 1.51, 0, 610),
    Level("club", "Club player", 1.26, 0, 750),
    Level("club-leader", "Club leader", 1.015, 0, 840),
    Level("county", "County player", 0.77, 0, 910),
    Level("county-champion", "County champion", 0.23, 0, 1020),
    Level("candidate", "Candidate", 0.5, 16, 1130),
    Level("expert", "Expert", 0.5, 32, 1200),
    Level("senior-expert", "Senior expert", 0.5, 64, 1310),
    Level("master", "Master", 0.5, 128, 1390),
    Level("senior-master", "Senior master", 0.5, 320, 1520),
    Level("grandmaster", "Grandmaster", 0.5, 640, 1620),
    Level("world-class", "World-class player", 0.5, 1280, 1720),
    Level("legend", "Legend", 0.5, 2560, 1800),
)


def level_named(name: str) -> Level:
    """The level of that name; raises ``PlayerSpecError`` if there is none."""
    for level in LEVELS:
        if level.name == name:
            return level
    raise PlayerSpecError(f"'level:{name[:40]}' is no player: levels are {', '.join(level.name for level in LEVELS)}")


class LevelPlayer:
    """Plays at a level. Its strength does not depend on time: it has no attribute ``seconds``.

    Args:
        player: searches with ``level.search`` and draws its moves at random (``explore``).
    """

    def __init__(self, level: Level, player: Player) -> None:
        self.name = f"level:{level.name}"
        self._player = player

    def seed(self, seed: int) -> None:
        self._player.seed(seed)

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        return self._player.choose(boards)
