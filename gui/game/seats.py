"""The players and the clock of a saved game, stored next to its file, so that the game can continue unchanged."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from engine.fen import Color
from engine.players.time_control import LONGEST_S, TimeControl

from .clocks import Clock, TimeControlText
from .opponents import OpponentSpec
from .plan import BOTH, PERSON, GamePlan

if TYPE_CHECKING:
    from .controller import GameController

SUFFIX = ".json"
_LARGEST_FILE = 1 << 16  # bytes of the largest file that is read
Side = Literal["black", "white"]
_SIDES: dict[Color, Side] = {Color.BLACK: "black", Color.WHITE: "white"}


class Seats(BaseModel):
    """The players and clocks of a game; can be stored as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    version: Literal[1] = Field(1, description="version of this file's format")
    humans: tuple[Side, ...] = Field((), max_length=2, description="sides that people play")
    agents: dict[Side, OpponentSpec] = Field(min_length=2, description="agent of each side, plays it if no person does")
    time_control: TimeControlText = "-"
    seconds_left: dict[Side, float] = Field({}, description="seconds left on the clocks")

    @field_validator("seconds_left")
    @classmethod
    def _times_of_both(cls, left: dict[Side, float]) -> dict[Side, float]:
        if left and (len(left) != len(_SIDES) or not all(0 <= seconds < math.inf for seconds in left.values())):
            raise ValueError("the clocks must have a time for both sides or for none")
        return left

    @classmethod
    def of(cls, humans: frozenset[Color], agents: Mapping[Color, OpponentSpec], clock: Clock) -> "Seats":
        """The seats of a game in play."""
        left = {_SIDES[color]: clock.remaining(color) for color in Color}
        return cls(
            humans=tuple(_SIDES[color] for color in Color if color in humans),
            agents={_SIDES[color]: agents[color] for color in Color},
            time_control=str(clock.control),
            seconds_left={side: seconds for side, seconds in left.items() if seconds is not None},
        )

    @property
    def plan(self) -> GamePlan:
        """The players and time control as a plan, without the start position."""
        humans = frozenset(color for color in Color if _SIDES[color] in self.humans)
        agents = {color: self.agents[_SIDES[color]] for color in Color}
        return GamePlan(humans, agents, control=TimeControl.parse(self.time_control))

    @property
    def left(self) -> dict[Color, float]:
        """Seconds on the clocks; empty without clocks."""
        return {color: min(self.seconds_left[_SIDES[color]], LONGEST_S) for color in Color if self.seconds_left}

    def data(self) -> bytes:
        return self.model_dump_json(indent=1).encode() + b"\n"


def seats_path(game: Path) -> Path:
    """Path of the seats of a game; ``game``: path of the game's file."""
    return game.with_suffix(SUFFIX)


def read_seats(game: Path) -> Seats | None:
    """Reads the seats of a game; None if they were not stored or cannot be read."""
    try:
        with seats_path(game).open("rb") as file:
            return Seats.model_validate_json(file.read(_LARGEST_FILE))
    except (OSError, ValidationError):
        return None


def _to_be_had(plan: GamePlan, kinds: Sequence[str]) -> bool:
    return all(plan.agents[color].kind in kinds for color in BOTH - plan.humans)


def take_up(controller: "GameController", path: Path, stand_in: GamePlan) -> None:
    """Continues a saved game with the same players and the same times on the clocks.

    If the players are unknown or not available, those of ``stand_in`` continue an unfinished game, and the game gets
    their names.

    Raises:
        DraughtsError, StorageError: the game cannot be read; the current game remains.
    """
    session = controller.session
    session.load_file(path)
    controller.autosave.resume(path)
    seats = read_seats(path)
    if seats is not None and _to_be_had(seats.plan, controller.kinds):
        controller.resume(seats.plan, seats.left)
    elif session.ending is not None:
        controller.loaded()
    else:
        humans = frozenset(color for color in Color if session.names[color] == PERSON) or stand_in.humans
        controller.resume(GamePlan(humans, stand_in.agents, control=stand_in.control))
        controller.name_players()
