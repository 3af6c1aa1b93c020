"""Requests about trainings and networks."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.game import ENGLISH, GAME, GAMES, check_game

from ..command_line.options import Backend, Games
from .options import Address, DistanceTables, Jobs, Net, RequestError

if TYPE_CHECKING:
    from ..commands import TrainFigures
    from ..export import ExportFigures
    from ..measures.bench import BenchFigures
    from ..measures.board_rates import BoardFigures
    from ..measures.card import CardFigures
    from ..run.status import StatusFigures

POOLS = "local", "threads", "ray"


@dataclass(frozen=True)
class TrainRequest:
    """Train a network from the rules alone: self-play, learning, gating and promotion, in one folder."""

    preset: Annotated[
        str | None, typer.Option(help="Preset of the settings: smoke, quick, laptop or gpu; quick if left out.")
    ] = None
    game: Annotated[str | None, typer.Option(help=f"Game: {' or '.join(GAMES)}; english if left out.")] = None
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run; runs/PRESET if left out, runs/GAME-PRESET of another game.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in this folder.")] = False
    pool: Annotated[str | None, typer.Option(help="Kind of actors: local (processes), threads, or ray.")] = None
    address: Annotated[str | None, typer.Option(help="Ray cluster to join; implies --pool ray.")] = None
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="Minutes of training, from the first games on; with --resume, additional minutes."),
    ] = None
    backend: Annotated[
        str | None,
        typer.Option(help="Inference backend, like numba-int16; short for --set selfplay.backend=..."),
    ] = None
    init: Annotated[
        str | None,
        typer.Option(metavar="NET", help="Begin with this network's weights in place of random ones."),
    ] = None
    teacher: Annotated[
        str | None,
        typer.Option(metavar="NET", help="Learn from this network's answers as well; see --set teacher.*"),
    ] = None
    against: Annotated[
        str | None,
        typer.Option(metavar="NET", help="Play all games against this network, which does not learn: an adversary."),
    ] = None
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Keep a copy of the run at this URL (s3://...); --resume without a run continues it.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, like search.c_puct=2; with --resume, from now on.")
    ] = None

    def __post_init__(self) -> None:
        if self.pool not in (None, *POOLS):
            raise RequestError(f"--pool {self.pool!r}: choose one of {', '.join(POOLS)}")
        if self.address and self.pool not in (None, "ray"):
            raise RequestError(f"--address joins a Ray cluster: leave --pool {self.pool} out")
        if self.game not in (None, *GAMES):
            raise RequestError(f"--game {self.game!r}: choose one of {', '.join(GAMES)}")
        for what, option, given in (
            ("network", "--init", self.init),
            ("teacher", "--teacher", self.teacher),
            ("opponent", "--against", self.against),
        ):
            if self.resume and given:
                raise RequestError(f"a resumed run keeps its own {what}: {option} cannot be given with --resume")
        named = {setting.partition("=")[0] for setting in self.settings or ()}
        for option, key, value in (
            ("--minutes", "loop.minutes", self.minutes),
            ("--backend", "selfplay.backend", self.backend),
            ("--pool", "pool", self.pool),
            ("--address", "address", self.address),
        ):
            if value is not None and key in named:
                raise RequestError(f"{option} and --set {key} are the same setting: leave one of them out")

    @property
    def folder(self) -> Path:
        from ..run.config import DEFAULT_PRESET

        game, preset = self.game or GAME, self.preset or DEFAULT_PRESET
        return self.run or Path("runs") / (preset if game == ENGLISH else f"{game}-{preset}")

    @property
    def places(self) -> dict[str, str | None]:
        """Settings ``pool``, ``address`` and ``mirror`` from the options."""
        pool = {"pool": self.pool or "ray", "address": self.address} if self.pool or self.address else {}
        return {**pool, **({"mirror": self.mirror} if self.mirror else {})}

    @property
    def all_settings(self) -> list[str]:
        """Settings ``key=value`` from ``--set``, ``--backend`` and ``--minutes``."""
        minutes = [] if self.minutes is None or self.resume else [f"loop.minutes={self.minutes}"]
        backend = [f"selfplay.backend={self.backend}"] if self.backend else []
        return [*(self.settings or ()), *backend, *minutes]

    def execute(self, quiet: bool) -> "TrainFigures":
        if self.game is not None:
            check_game("the option --game", self.game)
        from ..commands import train_command

        return train_command(self, quiet)


@dataclass(frozen=True)
class StatusRequest:
    """Show the state of a run, during training or afterwards: machines, rates, losses, gates, faults."""

    run: Annotated[Path, typer.Argument(help="Folder of the run.")]
    minutes: Annotated[float, typer.Option(min=0.1, help="Minutes over which rates are averaged.")] = 5.0
    watch: Annotated[bool, typer.Option("--watch", help="Update the display every two seconds.")] = False
    prometheus: Annotated[
        int | None,
        typer.Option(
            min=1024, max=65535, metavar="PORT", help="Serve metrics for Prometheus on this port of 127.0.0.1."
        ),
    ] = None

    def execute(self, quiet: bool) -> "StatusFigures":
        from ..run.page import status_command

        return status_command(self, quiet)


@dataclass(frozen=True)
class ExportRequest:
    """Write a network to an ONNX file, which programs in other languages can run."""

    checkpoint: Net
    out: Annotated[Path, typer.Option(help="ONNX file to write.")]
    check: Annotated[bool, typer.Option("--check", help="Compare the file's answers with the network's.")] = False

    def execute(self, quiet: bool) -> "ExportFigures":
        from ..export import export_command

        return export_command(self, quiet)


@dataclass(frozen=True)
class CardRequest:
    """Make all measurements of a network and write its model card: matches, endgames, first move.

    Takes about 40 minutes on two cores. Run again to continue; if the student has changed, its matches are played
    again.
    """

    net: Net
    run: Annotated[
        Path | None, typer.Option(help="Run that made the network, for its configuration and its ladder.")
    ] = None
    folder: DistanceTables = None
    games: Games = None
    out: Annotated[Path | None, typer.Option(help="Folder for card and games; the network's own if left out.")] = None
    jobs: Jobs = None
    address: Address = None

    def execute(self, quiet: bool) -> "CardFigures":
        from ..measures.card import card_command

        return card_command(self, quiet)


@dataclass(frozen=True)
class BenchRequest:
    """Measure move generation, search, network, self-play and learner on this machine, with one thread."""

    net: Annotated[str | None, typer.Option(help="Network size to measure, like 4x48 (the default).")] = None
    board: Annotated[
        str | None, typer.Option(metavar="NET", help="Measure only how fast this network searches one position.")
    ] = None
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        from engine.players.spec import BackendName, one_of

        one_of(self.backend, BackendName, "backend")
        if self.net is not None and self.board is not None:
            raise RequestError("--board measures only the network that it names: leave --net out")

    def execute(self, quiet: bool) -> "BenchFigures | BoardFigures":
        if self.board is not None:
            from ..measures.board_rates import board_rates_command

            return board_rates_command(self, quiet)
        from ..measures.bench import bench_command

        return bench_command(self, quiet)
