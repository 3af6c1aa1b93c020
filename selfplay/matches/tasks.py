"""Divides the games of a match into tasks, which go to other processes and machines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.players.spec import HubSpec, NetworkSpec, PlayerSpec
from engine.players.time_control import TimeControl

from ..conditions import Conditions
from ..games.openings import Opening
from .match import NO_CLOCK

LOCKSTEP = 128  # games side by side in one process
_TASK_GAMES = 32  # games of a task if several processes share a match between untimed networks


@dataclass(frozen=True)
class Pairing:
    """Two players and their conditions, see ``Conditions``; ``player_a`` has Black in games with an even index."""

    player_a: PlayerSpec
    player_b: PlayerSpec
    control: TimeControl = NO_CLOCK
    simulations: int | None = None
    seed: int = 0
    backend: str = "auto"
    plain: bool = False

    @property
    def players(self) -> tuple[PlayerSpec, PlayerSpec]:
        return self.player_a, self.player_b

    @property
    def conditions(self) -> Conditions:
        seconds = None if self.control.kind == "none" else self.control.base_s
        batch = _TASK_GAMES if self.lockstep else 1
        return Conditions(self.simulations, seconds, backend=self.backend, batch=batch, plain=self.plain)

    @property
    def lockstep(self) -> bool:
        """Whether games are played side by side, to batch evaluations: true for untimed networks."""
        external = any(isinstance(player, HubSpec) for player in self.players)
        networks = any(isinstance(player, NetworkSpec) for player in self.players)
        return self.control.kind == "none" and networks and not external


@dataclass(frozen=True)
class Task:
    """Games for one process: the pairing, and index and opening of each game.

    Attributes:
        folders: folder that names a network (perhaps that of a run) → folder of the checkpoint that plays.
    """

    pairing: Pairing
    starts: tuple[tuple[int, Opening], ...]
    folders: Mapping[str, str] = field(default_factory=dict)


def make_tasks(pairing: Pairing, starts: Sequence[tuple[int, Opening]], jobs: int) -> list[Task]:
    """Divides games into tasks: one game each, or many games where they are played side by side.

    The random numbers of a task depend only on the pairing's seed and the index of its first game.
    """
    size = 1
    if pairing.lockstep:
        size = LOCKSTEP if jobs == 1 else _TASK_GAMES
    return [Task(pairing, tuple(starts[first : first + size])) for first in range(0, len(starts), size)]
