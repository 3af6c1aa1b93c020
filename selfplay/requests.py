"""Requests: each class is a command, its fields are the options, its docstring is the help.

A request checks its values when it is made. Nothing of the engine is loaded before that, so that ``--help`` is quick.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.game import ENGLISH, GAME, GAMES, check_game

from .command_line.options import MAX_GAMES, PLAYER, Backend, Fen, Games, Seed, Tables

if TYPE_CHECKING:
    from engine.players.spec import NetworkSpec, PlayerSpec
    from engine.players.time_control import TimeControl

    from .bench import BenchFigures
    from .blunders import BlundersFigures
    from .board_rates import BoardFigures
    from .commands import AnalyseFigures, TrainFigures
    from .convert import ConvertFigures
    from .export import ExportFigures
    from .games_command import GamesFigures
    from .ladder_commands import LadderFigures
    from .match_commands import MatchFigures
    from .match_queue import QueueFigures
    from .model_card import CardFigures
    from .run_status import StatusFigures
    from .sprt import Sprt

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
    typer.Option("--dir", help="Tables with distances, for perfect defence; if left out, those in the user's cache."),
]


class RequestError(ValueError):
    """Options contradict each other, or cannot be fulfilled."""


class Limited:
    """A request with limits of the players' searches: simulations, seconds or a clock, of which at most one is given.

    Raises:
        RequestError: more than one limit is given, or ``clock`` is not a Fischer clock.
        TimeControlError: the clock cannot be read, or a time is out of range.
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
        control = TimeControl.parse(self.clock) if self.clock is not None else TimeControl()
        if self.clock is not None and control.kind != "fischer":
            raise RequestError(f"--clock {self.clock}: write seconds and increment, like 60+0.6")
        return control


@dataclass(frozen=True)
class MatchRequest(Limited):
    """Play a match between two players and report the Elo difference with its error."""

    player_a: Annotated[str, typer.Argument(metavar="PLAYER", help=PLAYER)]
    player_b: Annotated[str, typer.Argument(metavar="PLAYER", help="The opponent.")]
    games: Annotated[int, typer.Option(min=1, max=MAX_GAMES, help="Games, in colour-swapped pairs.")] = 100
    simulations: Simulations = None
    seconds: Seconds = None
    clock: Annotated[
        str | None, typer.Option(metavar="BASE+INC", help="Fischer clock, like 60+0.6; 0.05 s over time loses.")
    ] = None
    openings: Annotated[
        str, typer.Option(help="ballots, random:K (K random plies), or file:PATH (one FEN per line, or PDN games).")
    ] = "ballots"
    sprt: Annotated[
        str | None,
        typer.Option(metavar="ELO0,ELO1", help="Stop as soon as the results decide between these two Elo differences."),
    ] = None
    pdn: Annotated[Path | None, typer.Option(help="Write the games to this file as they are played.")] = None
    resume: Annotated[bool, typer.Option("--resume", help="Keep the games that are already in the --pdn file.")] = False
    jobs: Jobs = None
    address: Address = None
    seed: GameSeed = 1
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.test()
        if self.resume and self.pdn is None:
            raise RequestError("--resume continues the games of a file: name it with --pdn")
        if self.pdn is not None and not self.resume and self.pdn.is_file() and self.pdn.stat().st_size:
            raise RequestError(f"{self.pdn} exists already: continue its games with --resume, or name another file")
        _ = self.players  # checks them

    @cached_property
    def players(self) -> "tuple[PlayerSpec, PlayerSpec]":
        """The two players; raises ``PlayerError`` if one of them is not a player."""
        return _player(self.player_a), _player(self.player_b)

    def test(self) -> "Sprt | None":
        """A new test, None without ``sprt``; raises ``MatchError`` if ``sprt`` cannot be read."""
        from .sprt import Sprt

        return None if self.sprt is None else Sprt.parse(self.sprt)

    def execute(self, quiet: bool) -> "MatchFigures":
        from .match_commands import match_command

        return match_command(self, quiet)


@dataclass(frozen=True)
class MatchesRequest:
    """Play the matches of a file, one after another, and show their results in one table. Run again to continue.

    Each line holds the arguments of a crownhead match, like: champion alphabeta:8 --seconds 0.1 --games 200
    """

    file: Annotated[Path, typer.Argument(help="File with one match per line; # begins a comment.")]
    out: Annotated[Path, typer.Option(help="Folder for the games.")] = Path("matches")

    def execute(self, quiet: bool) -> "QueueFigures":
        from .match_queue import matches_command

        return matches_command(self, quiet)


@dataclass(frozen=True)
class LadderRequest(Limited):
    """Rate a run's promoted networks, or one network with more and more simulations, by games with each other and with
    anchors. Run again to continue.
    """

    run: Annotated[Path, typer.Argument(help="Folder of the run; with --doublings of a network, or champion.")]
    games: Annotated[
        int, typer.Option(min=1, max=MAX_GAMES, help="Games of each pairing, in colour-swapped pairs.")
    ] = 20
    anchors: Annotated[str, typer.Option(metavar="PLAYER,...", help="Fixed opponents.")] = (
        "random,rollout:200,alphabeta:4,alphabeta:8,alphabeta:12"
    )
    networks: Annotated[
        int | None, typer.Option(min=2, help="Number of promoted networks, evenly spaced; all if left out.")
    ] = None
    doublings: Annotated[
        int | None,
        typer.Option(min=1, max=12, help="Rate one network with --simulations [32], doubled up to this many times."),
    ] = None
    everybody: Annotated[bool, typer.Option("--all", help="Every player meets every other.")] = False
    simulations: Simulations = None
    seconds: Seconds = None
    openings: Annotated[str, typer.Option(help="Openings of the games, written as for match.")] = "random:3"
    jobs: Jobs = None
    address: Address = None
    seed: GameSeed = 1
    out: Annotated[Path | None, typer.Option(help="Folder for games and report; RUN/ladder if left out.")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.doublings is not None and (self.seconds is not None or self.networks is not None):
            raise RequestError("--doublings rates one network by simulations: leave --seconds and --networks out")
        _ = self.fixed  # checks them

    @property
    def target(self) -> Path:
        """Folder of games and report."""
        return self.out or (Path("ladder") if self.doublings is not None else self.run / "ladder")

    @cached_property
    def fixed(self) -> "tuple[PlayerSpec, ...]":
        """The anchors; raises ``PlayerError`` if one of them is not a player."""
        return tuple(_player(text) for text in map(str.strip, self.anchors.split(",")) if text)

    def execute(self, quiet: bool) -> "LadderFigures":
        from .ladder_commands import ladder_command

        return ladder_command(self, quiet)


@dataclass(frozen=True)
class ConvertRequest(Limited):
    """Measure how many won endgames a player wins against perfect defence, under the game's draw rules.

    The defence needs tables with distances: `crownhead tablebase build --pieces 5 --distance --dir DIR`. Tables in the
    user's cache are used by the player, too.
    """

    player: Annotated[str, typer.Argument(metavar="PLAYER", help="Player that must win; as for match.")] = "champion"
    pieces: Annotated[int, typer.Option(min=2, max=5, help="Endgames of 2 to this many pieces.")] = 5
    positions: Annotated[int, typer.Option(min=1, help="Won positions for each number of pieces.")] = 250
    simulations: Simulations = None
    seconds: Seconds = None
    folder: DistanceTables = None
    jobs: Jobs = None
    address: Address = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of the positions.")] = 1

    def __post_init__(self) -> None:
        from .convert import PIECES

        super().__post_init__()
        if self.pieces > PIECES:
            raise RequestError(f"--pieces {self.pieces}: exact values are known for 2 to {PIECES} pieces")
        _ = self.spec  # checks it

    @cached_property
    def spec(self) -> "PlayerSpec":
        """The player that has to win; raises ``PlayerError`` if it is not a player."""
        return _player(self.player)

    def execute(self, quiet: bool) -> "ConvertFigures":
        from .convert import convert_command

        return convert_command(self, quiet)


@dataclass(frozen=True)
class BlundersRequest(Limited):
    """Count moves that lose a win or a draw, by exact tables, in positions whose moves differ in value.

    With PLAYER its moves are judged, without it the moves made in the games. Tables of six pieces are built by
    `crownhead tablebase build --pieces 6 --dir DIR`; tables in the user's cache are used by the player, too.
    """

    player: Annotated[str | None, typer.Argument(metavar="[PLAYER]", help="Player to judge; as for match.")] = None
    games: Annotated[Path | None, typer.Option(help="Take positions from these games (PDN), not random ones.")] = None
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a file in which a game cannot be read.")] = False
    reasons: Annotated[
        bool, typer.Option("--reasons", help="Give a reason for each blunder; takes part of a second.")
    ] = False
    pieces: Annotated[int, typer.Option(min=2, max=7, help="Endgames of 2 to this many pieces.")] = 5
    positions: Annotated[int, typer.Option(min=1, help="Number of positions to ask the player about.")] = 500
    simulations: Simulations = None
    seconds: Seconds = None
    folder: Tables = None
    seed: Seed = 1

    def __post_init__(self) -> None:
        from .blunders import MOST_DRAWN

        super().__post_init__()
        if self.player is None and self.games is None:
            raise RequestError("name a PLAYER, or recorded games by --games FILE, or both")
        if self.games is None and self.pieces > MOST_DRAWN:
            raise RequestError(
                f"--pieces {self.pieces}: random positions have up to {MOST_DRAWN} pieces; more only with --games"
            )
        _ = self.spec  # checks it

    @cached_property
    def spec(self) -> "PlayerSpec | None":
        """The player to judge, None if only games are; raises ``PlayerError`` if it is not a player."""
        return None if self.player is None else _player(self.player)

    def execute(self, quiet: bool) -> "BlundersFigures":
        from .blunders import blunders_command

        return blunders_command(self, quiet)


@dataclass(frozen=True)
class GamesRequest:
    """Write the games of self-play in a run's folder as PDN, for the board's openings and for other programs."""

    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or of its shards.")]
    out: Annotated[Path, typer.Option(help="PDN file to write; it must not exist yet.")]

    def execute(self, quiet: bool) -> "GamesFigures":
        from .games_command import games_command

        return games_command(self, quiet)


@dataclass(frozen=True)
class AnalyseRequest:
    """Search a position with a network: show its moves with visits, prior and value, and the expected line."""

    fen: Annotated[str, typer.Argument(help="Position, like B:W21,22,K23:B1-4,K30.")]
    net: Annotated[str, typer.Option(help="Folder of a checkpoint or a run, or champion.")] = "champion"
    simulations: Annotated[int, typer.Option(min=1, help="Simulations of the search.")] = 800
    oracle: Annotated[
        str | None, typer.Option(help="Endgame oracle of the search: off or tablebase (the default).")
    ] = None
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        _ = self.spec  # checks it

    @cached_property
    def spec(self) -> "NetworkSpec":
        """The network, impartial and with ``oracle``; raises ``PlayerError`` if there is no such network or oracle."""
        from dataclasses import replace

        from engine.players.spec import OracleName, one_of, parse_network

        named = parse_network(self.net)
        oracle: OracleName = named.oracle if self.oracle is None else one_of(self.oracle, OracleName, "oracle")
        return replace(named, oracle=oracle, ponder=False, impartial=True)

    def execute(self, quiet: bool) -> "AnalyseFigures":
        from .commands import analyse_command

        return analyse_command(self, quiet)


@dataclass(frozen=True)
class EngineRequest:
    """Serve a player to other programs: speak the Hub protocol (version 2, English draughts) on stdin and stdout."""

    player: Annotated[str, typer.Argument(metavar="PLAYER", help="Player to serve; as for match.")] = "champion"
    simulations: Annotated[
        int, typer.Option(min=1, help="Simulations per move of a network, if the other program sets no limit.")
    ] = 400
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        from engine.players.spec import BackendName, check_simulations, one_of

        check_simulations(self.simulations)
        one_of(self.backend, BackendName, "backend")
        _ = self.spec  # checks it

    @cached_property
    def spec(self) -> "PlayerSpec":
        """The player to serve; raises ``PlayerError`` if it is not a player."""
        return _player(self.player)

    def execute(self) -> None:
        from .engine_command import engine_command

        engine_command(self)


@dataclass(frozen=True)
class BenchRequest:
    """Measure move generation, search, network, self-play and learner on this machine, with one thread."""

    net: Annotated[str, typer.Option(help="Network size to measure, like 4x48.")] = "4x48"
    board: Annotated[
        str | None, typer.Option(metavar="NET", help="Measure only how fast this network searches one position.")
    ] = None
    backend: Backend = "auto"

    def execute(self, quiet: bool) -> "BenchFigures | BoardFigures":
        if self.board is not None:
            from .board_rates import board_rates_command

            return board_rates_command(self, quiet)
        from .bench import bench_command

        return bench_command(self, quiet)


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
        from .model_card import card_command

        return card_command(self, quiet)


@dataclass(frozen=True)
class ExportRequest:
    """Write a network to an ONNX file, which programs in other languages can run."""

    checkpoint: Net
    out: Annotated[Path, typer.Option(help="ONNX file to write.")]
    check: Annotated[bool, typer.Option("--check", help="Compare the file's answers with the network's.")] = False

    def execute(self, quiet: bool) -> "ExportFigures":
        from .export import export_command

        return export_command(self, quiet)


@dataclass(frozen=True)
class TrainRequest:
    """Train a network from the rules alone: self-play, learning, gating and promotion, in one folder."""

    preset: Annotated[str, typer.Option(help="Preset of the settings: smoke, quick, laptop or gpu.")] = "quick"
    game: Annotated[str | None, typer.Option(help=f"Game: {' or '.join(GAMES)}; english if left out.")] = None
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run; runs/PRESET if left out, runs/GAME-PRESET of another game.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in this folder.")] = False
    pool: Annotated[str | None, typer.Option(help="Kind of actors: local (processes), threads, or ray.")] = None
    address: Annotated[str | None, typer.Option(help="Ray cluster to join; implies --pool ray.")] = None
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Minutes of training; with --resume, additional minutes.")
    ] = None
    backend: Annotated[
        str | None, typer.Option(help="Inference backend, like numba-int16; short for --set selfplay.backend=...")
    ] = None
    init: Annotated[
        str | None, typer.Option(metavar="NET", help="Begin with this network's weights in place of random ones.")
    ] = None
    teacher: Annotated[
        str | None,
        typer.Option(metavar="NET", help="Learn from this network's answers as well; see --set teacher.*"),
    ] = None
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Keep a copy of the run at this URL (s3://...); --resume without a run continues it."
        ),
    ] = None
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, like search.c_puct=2; with --resume, from now on.")
    ] = None

    def __post_init__(self) -> None:
        if self.mirror is not None and not self.mirror.strip():
            raise RequestError("--mirror is empty: name a location, like s3://BUCKET/RUN")
        if self.game not in (None, *GAMES):
            raise RequestError(f"--game {self.game!r}: choose one of {', '.join(GAMES)}")
        for what, option, given in (("network", "--init", self.init), ("teacher", "--teacher", self.teacher)):
            if self.resume and given:
                raise RequestError(f"a resumed run keeps its own {what}: {option} cannot be given with --resume")

    @property
    def folder(self) -> Path:
        game = self.game or GAME
        return self.run or Path("runs") / (self.preset if game == ENGLISH else f"{game}-{self.preset}")

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
            check_game("the run", self.game)
        from .commands import train_command

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
        from .run_page import status_command

        return status_command(self, quiet)


@dataclass(frozen=True)
class PlayRequest:
    """Open the board and play. Without options: continue an unfinished game, or play as last chosen in the menu."""

    opponent: Annotated[str | None, typer.Option(metavar="PLAYER", help=PLAYER)] = None
    simulations: Annotated[int | None, typer.Option(min=1, help="Simulations of a network per move.")] = None
    seconds: Annotated[float | None, typer.Option(min=0.05, max=600, help="Seconds per move, instead.")] = None
    backend: Backend = "auto"
    side: Annotated[str | None, typer.Option(help="Your side: black, white, both or none.")] = None
    fen: Fen = None
    menu: Annotated[bool, typer.Option("--menu", help="Begin with the menu.")] = False
    puzzles: Annotated[Path | None, typer.Option(metavar="FILE", help="Begin with the puzzles of this file.")] = None
    text: Annotated[bool, typer.Option("--text", help="Play in the terminal, with the network's five best moves.")] = (
        False
    )


def _player(text: str) -> "PlayerSpec":
    from engine.players.spec import parse_player

    return parse_player(text)
