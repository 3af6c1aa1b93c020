"""Settings of a new game: players, position, clock. No pygame."""

from collections.abc import Mapping
from typing import NamedTuple

from engine.fen import START_FEN, Color
from engine.players.time_control import TimeControl

from .opponents import OpponentSpec

BOTH = frozenset(Color)
PERSON = "Human"  # the name of people in games


class PlayerNames:
    """What games call their players: people all alike, engines as they call themselves once they have said it."""

    def __init__(self) -> None:
        self._titles: dict[OpponentSpec, str] = {}

    def learn(self, spec: OpponentSpec, title: str) -> bool:
        """Notes what an agent calls itself; False if that is no news."""
        new = title not in (spec.name, self._titles.get(spec))
        if new:
            self._titles[spec] = title
        return new

    def of(self, humans: frozenset[Color], agents: Mapping[Color, OpponentSpec]) -> dict[Color, str]:
        names = {color: self._titles.get(spec, spec.name) for color, spec in agents.items()}
        return names | dict.fromkeys(humans, PERSON)


class GamePlan(NamedTuple):
    """What the menu decides before a game.

    Attributes:
        agents: who plays a colour where no person (``humans``) does, and who gives hints and analyses.
        fen, opening: the position to start from and PDN moves made there at once.
    """

    humans: frozenset[Color] = frozenset({Color.BLACK})
    agents: Mapping[Color, OpponentSpec] = dict.fromkeys(Color, OpponentSpec(kind="network"))
    fen: str = START_FEN
    opening: tuple[str, ...] = ()
    control: TimeControl = TimeControl()
