"""What is settled before a game: who plays, from where, with which clock. No pygame."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.fen import START_FEN, Color
from engine.players.time_control import TimeControl

from .opponents import OpponentSpec

BOTH = frozenset(Color)
PERSON = "Human"  # the name of people in games


@dataclass(frozen=True)
class GamePlan:
    """What the menu decides before a game.

    Attributes:
        humans: the colours that people play.
        agents: who plays a colour where no person does, and who gives hints and analyses.
        fen, opening: the position to start from and PDN moves made there at once.
    """

    humans: frozenset[Color] = frozenset({Color.BLACK})
    agents: Mapping[Color, OpponentSpec] = field(
        default_factory=lambda: {color: OpponentSpec(kind="network") for color in Color}
    )
    fen: str = START_FEN
    opening: tuple[str, ...] = ()
    control: TimeControl = field(default_factory=TimeControl)
