"""What the options of several requests are, and what they may not be."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from engine.players.spec import PlayerSpec
    from engine.players.time_control import TimeControl

Net = Annotated[str, typer.Argument(help="Folder of a checkpoint or a run, or champion.")]
Simulations = Annotated[int | None, typer.Option(min=0, help="Simulations per move of network players [64].")]
Seconds = Annotated[float | None, typer.Option(min=0.001, help="Seconds per move, instead of simulations.")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Number of processes; if left out one per core, or 1 for networks without a time limit."),
]
Address = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Play on this Ray cluster, with one process per CPU."),
]
GameSeed = Annotated[int, typer.Option(min=0, help="Seed of openings and players.")]
DistanceTables = Annotated[
    Path | None,
    typer.Option("--dir", help="Tables with distances, for perfect play; if left out, the user's, then the package's."),
]


class RequestError(ValueError):
    """Options contradict each other, or cannot be fulfilled."""


class Limited:
    """A request with limits of the players' searches: simulations, seconds or a clock, of which at most one is given.

    Raises:
        RequestError: more than one limit is given.
        TimeControlError: ``clock`` is not a Fischer clock, or a time is out of range.
        PlayerError: there is no such backend.
    """

    simulations: int | None
    seconds: float | None
    clock: str | None = None
    backend: str = "auto"

    def __post_init__(self) -> None:
        from engine.players.spec import BackendName, one_of

        one_of(self.backend, BackendName, "backend")
        _ = self.control  # checks it

    @cached_property
    def control(self) -> "TimeControl":
        """The time limit of each player."""
        from engine.players.time_control import TimeControl

        limits = {"--simulations": self.simulations, "--seconds": self.seconds, "--clock": self.clock}
        given = [name for name, value in limits.items() if value is not None]
        if len(given) > 1:
            one = f"{' or '.join(given)}, not both" if len(given) == 2 else f"one of {', '.join(given)}"
            raise RequestError(f"give {one}")
        if self.seconds is not None:
            return TimeControl("move", self.seconds)
        return TimeControl.parse_fischer(self.clock) if self.clock is not None else TimeControl()


def player_of(text: str) -> "PlayerSpec":
    """The player that a text names; raises ``PlayerSpecError``."""
    from engine.players.spec import parse_player

    return parse_player(text)
