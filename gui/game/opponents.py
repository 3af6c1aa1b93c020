"""Opponents: their kinds, their strength, and how they are made."""

import math
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from engine.board import Board
from engine.errors import DraughtsError
from engine.players import Player, PlayerError, WatchablePlayer, make_simple_player
from engine.players.alphabeta import MAX_DEPTH
from engine.players.levels import LEVELS, Level, level_named
from engine.players.rollout import ENDLESS as MAX_ROLLOUTS
from engine.players.spec import (
    CHAMPION,
    AlphaBetaSpec,
    BackendName,
    HubSpec,
    NetworkSpec,
    PlayerSpec,
    RandomSpec,
    RolloutSpec,
    at_level,
)
from engine.retired import present_backend, present_search
from engine.search import BOARD_SEARCH, SearchConfig
from engine.shell_words import split_words

Kind = Literal["level", "random", "rollout", "alphabeta", "network", "external"]
KIND_NAMES: dict[Kind, str] = {
    "level": "level with a name",
    "network": "network",
    "alphabeta": "alpha-beta",
    "rollout": "roll-outs",
    "random": "random",
    "external": "external engine",
}
SHIPPED_NAME = "Crownhead"
USUAL_LEVEL = "casual"  # default level
_INTERPRETERS = re.compile(r"(python|pypy)[0-9.]*|node|perl|ruby|java|mono|dotnet|wine|env|sh|bash", re.IGNORECASE)
_SUFFIX = re.compile(r"\.(py|js|pl|rb|jar|exe|dll|sh)$", re.IGNORECASE)
_ADVISER_S = 0.5  # seconds for a hint, and for each position of a report
_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0)
_AMOUNTS: dict[Kind, tuple[tuple[int, ...], str, str]] = {  # stops of the slider, unit in singular and plural
    "network": (
        (1, 10, 25, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200),
        "simulation",
        "simulations",
    ),
    "rollout": ((1, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, MAX_ROLLOUTS), "roll-out", "roll-outs"),
    "alphabeta": (tuple(range(1, 21)), "ply", "plies"),
}

GAME_SEARCH = BOARD_SEARCH.model_copy(update={"noise_fraction": 0.0, "temperature": 0.5, "temperature_plies": 12})
"""Settings of an opponent's search. Its games vary in the first moves, which are drawn by visits."""


class OpponentError(DraughtsError):
    """An opponent is not possible: its settings contradict each other, or its kind is not available here."""


class OpponentSpec(BaseModel):
    """All settings of an opponent; can be stored as JSON. Settings of the search that no longer exist are ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    kind: Kind = Field("network", description="what plays")
    level: str = Field(USUAL_LEVEL, max_length=40, description="name of the level")
    checkpoint: str | None = Field(None, description="network: its folder; null for the shipped network")
    command: str | None = Field(None, description="external engine: the command that starts it")
    timed: bool = Field(False, description="whether strength is seconds per move, not an amount of search")
    seconds: float = Field(1.0, ge=0.05, le=600, description="seconds per move, if strength is given in seconds")
    rollouts: int = Field(1000, ge=1, le=MAX_ROLLOUTS, description="roll-outs per move")
    depth: int = Field(8, ge=1, le=MAX_DEPTH, description="plies that alpha-beta searches")
    search: Annotated[SearchConfig, BeforeValidator(present_search)] = Field(
        GAME_SEARCH, description="network: settings of its search"
    )
    vary: bool = Field(True, description="network: use the noise and the temperature of its search, so that games vary")
    ponder: bool = Field(False, description="network: searches while the other side thinks")
    backend: Annotated[BackendName, BeforeValidator(present_backend)] = Field(
        "auto", description="network: backend that computes it"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "OpponentSpec":
        if self.kind == "external" and not (self.command or "").strip():
            raise ValueError("an external engine needs the command that starts it")
        if self.kind == "level":
            level_named(self.level)
        return self

    def changed(self, **changes: object) -> "OpponentSpec":
        """A copy with changed values; raises ``OpponentError`` if one is out of range or contradicts another."""
        try:
            return OpponentSpec.model_validate({**dict(self), **changes})
        except ValidationError as error:
            first = error.errors()[0]
            where = " ".join(str(part) for part in first["loc"])
            text = first["msg"].removeprefix("Value error, ")
            raise OpponentError(f"{where}: {text}" if where else text) from error

    @property
    def player(self) -> PlayerSpec:
        """The player's specification; for a network without the settings of ``search``."""
        match self.kind:
            case "level":
                return at_level(level_named(self.level))
            case "network":
                return NetworkSpec(self.checkpoint or CHAMPION, backend=self.backend, ponder=self.ponder)
            case "external":
                return HubSpec((self.command or "").strip())
            case "rollout":
                return RolloutSpec(MAX_ROLLOUTS if self.by_time else self.rollouts)
            case "alphabeta":
                return AlphaBetaSpec(MAX_DEPTH if self.by_time else self.depth)
            case "random":
                return RandomSpec()

    @property
    def by_time(self) -> bool:
        """Whether the strength is given in seconds per move."""
        return self.kind == "external" or (self.timed and self.kind not in ("random", "level"))

    @property
    def amount(self) -> int | float:
        """Strength in seconds, simulations, roll-outs or plies; 0 if it cannot be set."""
        if self.by_time:
            return self.seconds
        amounts = {"network": self.search.num_simulations, "rollout": self.rollouts, "alphabeta": self.depth}
        return amounts.get(self.kind, 0)

    @property
    def name(self) -> str:
        """Short name, for the player tags of a game."""
        if self.kind == "level":
            return level_named(self.level).title
        if self.kind == "network":
            return Path(self.checkpoint).name if self.checkpoint else SHIPPED_NAME
        if self.kind == "external":
            return _engine_name(self.command or "")
        return self.kind if self.kind == "random" else f"{self.kind}:{self.amount:g}{'s' if self.by_time else ''}"

    @property
    def label(self) -> str:
        name = self.name if self.kind in ("level", "network", "external") else KIND_NAMES[self.kind]
        strength = strength_text(self)
        return f"{name}, {strength}" if strength else name


def adviser_of(kinds: Sequence[str]) -> OpponentSpec:
    """The player for hints, analyses and reports: the champion, or alpha-beta if there are no networks."""
    return OpponentSpec(kind="network" if "network" in kinds else "alphabeta", timed=True, seconds=_ADVISER_S)


def _engine_name(command: str) -> str:
    """Name of an engine before it tells its own: its program, or the script that an interpreter runs."""
    try:
        words = split_words(command)
    except ValueError:
        words = command.split()
    names = [Path(word).name for word in words]
    if _INTERPRETERS.fullmatch(names[0]):
        names = [name for word, name in zip(words[1:], names[1:], strict=True) if not word.startswith("-")] or names
    return _SUFFIX.sub("", names[0]) or names[0]


def strength_steps(spec: OpponentSpec) -> tuple[int | float, ...]:
    """The stops of the strength slider, weakest first; () if the strength cannot be set."""
    if spec.kind == "level":
        return tuple(range(1, len(LEVELS) + 1))
    if spec.by_time:
        return _SECONDS
    return _AMOUNTS[spec.kind][0] if spec.kind in _AMOUNTS else ()


def strength_position(spec: OpponentSpec) -> int:
    """Index of the stop nearest to the strength, by ratio; 0 if there are no stops."""
    if spec.kind == "level":
        return LEVELS.index(level_named(spec.level))
    steps = strength_steps(spec)
    amount = math.log(max(spec.amount, 0.01))
    return min(range(len(steps)), key=lambda index: abs(amount - math.log(steps[index])), default=0)


def with_strength(spec: OpponentSpec, position: int) -> OpponentSpec:
    """The opponent with the strength of a stop of the slider; ``position`` is limited to the slider."""
    steps = strength_steps(spec)
    if not steps:
        return spec
    position = max(0, min(position, len(steps) - 1))
    amount = steps[position]
    if spec.kind == "level":
        return spec.changed(level=LEVELS[position].name)
    if spec.by_time:
        return spec.changed(seconds=amount)
    if spec.kind == "network":
        return spec.changed(search=spec.search.model_copy(update={"num_simulations": amount}))
    return spec.changed(rollouts=amount) if spec.kind == "rollout" else spec.changed(depth=amount)


def strength_text(spec: OpponentSpec) -> str:
    """The strength in words, such as ``400 simulations``; "" if it cannot be set."""
    if spec.by_time:
        return f"{spec.seconds:g} s"
    if spec.kind == "level":
        return level_text(level_named(spec.level))
    if spec.kind not in _AMOUNTS:
        return ""
    _, one, more = _AMOUNTS[spec.kind]
    return f"{spec.amount} {one if spec.amount == 1 else more}"


def level_text(level: Level) -> str:
    """A level's rank and rating, such as ``level 4 of 19, Elo 340``; the first level has Elo 0."""
    return f"level {LEVELS.index(level) + 1} of {len(LEVELS)}, Elo {level.elo}"


class CheckpointEntry(NamedTuple):
    """A network to choose from; Elo and half of its 95 % interval are None if it has no rating."""

    name: str
    folder: str
    elo: float | None = None
    plus_minus: float | None = None
    detail: str = ""

    @property
    def label(self) -> str:
        if self.elo is None:
            return f"{self.name} — not rated"
        spread = "" if self.plus_minus is None else f" ± {self.plus_minus:.0f}"
        return f"{self.name} — Elo {self.elo:.0f}{spread}"


# Makes the player of a spec. May take seconds; raises a ValueError of one line if it fails. If ``spec.by_time``, the
# player must be able to search for ``spec.seconds``.
PlayerFactory = Callable[[OpponentSpec], Player]


class Opponents:
    """Makes opponents. Functions that need other packages are passed in.

    Args:
        network, external: make players of these kinds, outside the window's thread; None: there are no such players.
        find_checkpoints: returns the available networks, called outside the window's thread.
    """

    def __init__(
        self,
        network: PlayerFactory | None = None,
        external: PlayerFactory | None = None,
        find_checkpoints: Callable[[], Sequence[CheckpointEntry]] = tuple,
    ) -> None:
        self._factories: dict[Kind, PlayerFactory] = dict.fromkeys(("alphabeta", "rollout", "random"), _simple)
        if network is not None:
            self._factories |= {"network": network, "level": network}
        if external is not None:
            self._factories["external"] = external
        self._find_checkpoints = find_checkpoints

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(kind for kind in KIND_NAMES if kind in self._factories)

    def checkpoints(self) -> tuple[CheckpointEntry, ...]:
        """The available networks, strongest first, then those without a rating by name. May take seconds."""
        entries = self._find_checkpoints()
        return tuple(sorted(entries, key=lambda entry: (entry.elo is None, -(entry.elo or 0.0), entry.name)))

    def make(self, spec: OpponentSpec) -> Player:
        """Makes the player of a spec; may take seconds. Raises ``PlayerError`` or another ``ValueError``."""
        if spec.kind not in self._factories:
            raise PlayerError(f"{KIND_NAMES[spec.kind]}: not available here; choose {', '.join(self.kinds)}")
        return self._factories[spec.kind](spec)


def _simple(spec: OpponentSpec) -> Player:
    player = spec.player
    assert not isinstance(player, NetworkSpec)
    made = make_simple_player(player, spec.seconds if spec.by_time else None, secrets.randbits(32))
    if isinstance(made, WatchablePlayer):
        made.begin(Board()).advance(0.0)  # what a first search compiles or loads is not time of a clock
    return made
