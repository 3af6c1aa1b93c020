"""Settings of a new game: players, position, clock. No pygame."""

from collections.abc import Mapping
from typing import NamedTuple

from engine.fen import START_FEN, Color
from engine.players.time_control import TimeControl

from .opponents import OpponentSpec

BOTH = frozenset(Color)
PERSON = "Human"  # name of people in games


class PlayerNames:
    """Names of players in games: people all have the same name; engines the one they tell, once it is known."""

    def __init__(self) -> None:
        self._titles: dict[OpponentSpec, str] = {}

    def learn(self, spec: OpponentSpec, title: str) -> bool:
        """Notes the name that an agent has told; returns False if it was known."""
        new = title not in (spec.name, self._titles.get(spec))
        if new:
            self._titles[spec] = title
        return new

    def of(self, humans: frozenset[Color], agents: Mapping[Color, OpponentSpec]) -> dict[Color, str]:
        names = {color: self._titles.get(spec, spec.name) for color, spec in agents.items()}
        return names | dict.fromkeys(humans, PERSON)


class GamePlan(NamedTuple):
    """Settings of a game before it begins.

    Attributes:
        humans: sides that people play.
        agents: agent of each side, which plays it if no person does.
        fen, opening: start position, and PDN moves that are made at once.
        control: time control.
    """

    humans: frozenset[Color] = frozenset({Color.BLACK})
    agents: Mapping[Color, OpponentSpec] = dict.fromkeys(Color, OpponentSpec(kind="network"))
    fen: str = START_FEN
    opening: tuple[str, ...] = ()
    control: TimeControl = TimeControl()
