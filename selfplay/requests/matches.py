"""Requests whose games are matches, and what is counted in games."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..command_line.options import MAX_GAMES, MAX_SEED, PLAYER, Backend, Tables
from .options import Address, DistanceTables, GameSeed, Jobs, Limited, RequestError, Seconds, Simulations, player_of

if TYPE_CHECKING:
    from engine.players.spec import PlayerSpec

    from ..games_command import GamesFigures
    from ..match_queue import QueueFigures
    from ..matches.commands import MatchFigures
    from ..matches.ladder_commands import LadderFigures
    from ..measures.blunders import BlundersFigures
    from ..measures.convert import ConvertFigures
    from ..rating.sprt import Sprt

_ANCHOR = re.compile(r"""\s*hub:(?:"[^"]*"|'[^']*'|[^,])*|[^,]+""")  # of a list; a command may have commas in quotes


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
        return player_of(self.player_a), player_of(self.player_b)

    def test(self) -> "Sprt | None":
        """A new test, None without ``sprt``; raises ``MatchError`` if ``sprt`` cannot be read."""
        from ..rating.sprt import Sprt

        return None if self.sprt is None else Sprt.parse(self.sprt)

    def execute(self, quiet: bool) -> "MatchFigures":
        from ..matches.commands import match_command

        return match_command(self, quiet)


@dataclass(frozen=True)
class MatchesRequest:
    """Play the matches of a file, one after another, and show their results in one table. Run again to continue.

    Each line holds the arguments of a crownhead match, like: champion alphabeta:8 --seconds 0.1 --games 200
    """

    file: Annotated[Path, typer.Argument(help="File with one match per line; # begins a comment.")]
    out: Annotated[Path, typer.Option(help="Folder for the games.")] = Path("matches")

    def execute(self, quiet: bool) -> "QueueFigures":
        from ..match_queue import matches_command

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
    anchors: Annotated[
        str, typer.Option(metavar="PLAYER,...", help="Fixed opponents; commas in a hub:COMMAND stand in quotes.")
    ] = "random,rollout:200,alphabeta:4,alphabeta:8,alphabeta:12"
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
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of processes; if left out one per core.")] = None
    address: Address = None
    seed: GameSeed = 1
    out: Annotated[
        Path | None, typer.Option(help="Folder for games and report; if left out RUN/ladder, with --doublings ladder.")
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.doublings is not None and (self.seconds is not None or self.networks is not None):
            raise RequestError("--doublings rates one network by simulations: leave --seconds and --networks out")
        if self.doublings is not None and self.simulations == 0:
            raise RequestError("--doublings begins with --simulations: give it at least 1, or leave it out")
        _ = self.fixed  # checks them

    @property
    def target(self) -> Path:
        """Folder of games and report."""
        return self.out or (Path("ladder") if self.doublings is not None else self.run / "ladder")

    @cached_property
    def fixed(self) -> "tuple[PlayerSpec, ...]":
        """The anchors; raises ``PlayerError`` if one of them is not a player."""
        return tuple(player_of(text) for text in map(str.strip, _ANCHOR.findall(self.anchors)) if text)

    def execute(self, quiet: bool) -> "LadderFigures":
        from ..matches.ladder_commands import ladder_command

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
        from ..measures.convert import PIECES

        super().__post_init__()
        if self.pieces > PIECES:
            raise RequestError(f"--pieces {self.pieces}: exact values are known for 2 to {PIECES} pieces")
        _ = self.spec  # checks it

    @cached_property
    def spec(self) -> "PlayerSpec":
        """The player that has to win; raises ``PlayerError`` if it is not a player."""
        return player_of(self.player)

    def execute(self, quiet: bool) -> "ConvertFigures":
        from ..measures.convert import convert_command

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
        bool, typer.Option("--reasons", help="Give a reason for each blunder; takes about a second each.")
    ] = False
    pieces: Annotated[int, typer.Option(min=2, max=7, help="Endgames of 2 to this many pieces.")] = 5
    positions: Annotated[int | None, typer.Option(min=1, help="Number of positions to ask the player about [500].")] = (
        None
    )
    simulations: Simulations = None
    seconds: Seconds = None
    folder: Tables = None
    seed: Annotated[int | None, typer.Option(min=0, max=MAX_SEED, help="Seed of the positions drawn [1].")] = None

    def __post_init__(self) -> None:
        from ..measures.blunders import MOST_DRAWN

        super().__post_init__()
        if self.player is None and self.games is None:
            raise RequestError("name a PLAYER, or recorded games by --games FILE, or both")
        asked = {name: getattr(self, name) for name in ("positions", "simulations", "seconds", "seed")}
        if self.player is None and (given := [f"--{name}" for name, value in asked.items() if value is not None]):
            raise RequestError(f"without a PLAYER nobody is asked for a move: leave {' and '.join(given)} out")
        if self.games is None and self.strict:
            raise RequestError("--strict is for recorded games: name them by --games, or leave it out")
        if self.games is None and self.pieces > MOST_DRAWN:
            raise RequestError(
                f"--pieces {self.pieces}: random positions have up to {MOST_DRAWN} pieces; more only with --games"
            )
        _ = self.spec  # checks it

    @cached_property
    def spec(self) -> "PlayerSpec | None":
        """The player to judge, None if only games are; raises ``PlayerError`` if it is not a player."""
        return None if self.player is None else player_of(self.player)

    def execute(self, quiet: bool) -> "BlundersFigures":
        from ..measures.blunders import blunders_command

        return blunders_command(self, quiet)


@dataclass(frozen=True)
class GamesRequest:
    """Write the games of self-play in a run's folder as PDN, for the board's openings and for other programs."""

    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or of its shards.")]
    out: Annotated[Path, typer.Option(help="PDN file to write; it must not exist yet.")]

    def execute(self, quiet: bool) -> "GamesFigures":
        from ..games_command import games_command

        return games_command(self, quiet)
