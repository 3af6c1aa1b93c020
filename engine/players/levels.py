"""Opponents with names, from a beginner to the champion, and the player that plays at such a level.

All judge with the champion's student. Weak ones draw their move from its policy, flattened by a temperature: they play
what looks natural to it, do not calculate, and overlook what is seen only by calculating. Stronger ones search a
little and draw among the moves they have visited. How the figures were found is told in ``docs/measured.md``.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..board import Board, Move
from ..search import SearchConfig
from .base import Player, PlayerSpecError


class Level(NamedTuple):
    """A level.

    Attributes:
        name: as on the command line, behind ``level:``. title: for people.
        temperature: of the draw among visits, or among the policy's moves where nothing is searched.
        simulations: of the search per move.
        elo: above the first level, as measured.
    """

    name: str
    title: str
    temperature: float
    simulations: int
    elo: int

    @property
    def search(self) -> SearchConfig:
        """Settings of its search; the temperature is the same for all moves of a game."""
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
    """Plays at a level, however much time there is.

    Args:
        player: searches as ``level.search`` says, and explores.
    """

    def __init__(self, level: Level, player: Player) -> None:
        self.name = f"level:{level.name}"
        self._player = player

    def seed(self, seed: int) -> None:
        self._player.seed(seed)

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        return self._player.choose(boards)
