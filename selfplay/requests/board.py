"""Requests about a single game or position."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..command_line.options import Backend, Fen
from .options import RequestError, player_of

if TYPE_CHECKING:
    from engine.players.spec import NetworkSpec, PlayerSpec

    from ..commands import AnalyseFigures


def _has_simulations(spec: "PlayerSpec") -> bool:
    """Whether ``--simulations`` limits the player's search: a level has its own."""
    from engine.players.spec import NetworkSpec

    return isinstance(spec, NetworkSpec) and spec.level is None


@dataclass(frozen=True)
class PlayRequest:
    """Open the board and play. Without options: continue an unfinished game, or play as last chosen in the menu."""

    opponent: Annotated[
        str | None,
        typer.Option(
            metavar="PLAYER",
            help="level:NAME, champion, FOLDER (the last two also @800, @ponder and the like), alphabeta:N, rollout:N, "
            "random or hub:COMMAND; with --text any player.",
        ),
    ] = None
    simulations: Annotated[int | None, typer.Option(min=1, help="Simulations of a network per move.")] = None
    seconds: Annotated[
        float | None, typer.Option(min=0.05, max=600, help="Seconds per move, in place of simulations or depth.")
    ] = None
    backend: Backend = "auto"
    side: Annotated[str | None, typer.Option(help="Your side: black, white, both or none.")] = None
    fen: Fen = None
    menu: Annotated[bool, typer.Option("--menu", help="Begin with the menu.")] = False
    puzzles: Annotated[Path | None, typer.Option(metavar="FILE", help="Begin with the puzzles of this file.")] = None
    text: Annotated[bool, typer.Option("--text", help="Play in the terminal, with the network's five best moves.")] = (
        False
    )

    def __post_init__(self) -> None:
        if self.text and (self.menu or self.puzzles is not None):
            raise RequestError("--text plays a game in the terminal: leave --menu and --puzzles out")
        if self.simulations is not None and self.seconds is not None:
            raise RequestError("give --simulations or --seconds, not both")
        if self.simulations is not None and self.opponent and not _has_simulations(player_of(self.opponent)):
            raise RequestError(f"{self.opponent} has no simulations to choose: leave --simulations out")


@dataclass(frozen=True)
class AnalyseRequest:
    """Search a position with a network: show its moves with visits, prior and value, and the expected line."""

    fen: Annotated[str, typer.Argument(help="Position, like B:W21,22,K23:B1-4,K30.")]
    net: Annotated[str, typer.Option(help="Folder of a checkpoint or a run, or champion.")] = "champion"
    simulations: Annotated[
        int | None, typer.Option(min=1, help="Simulations of the search; 800 if neither this nor the network says.")
    ] = None
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

        from engine.players.spec import OracleName, one_of, parse_tree_player

        named = parse_tree_player(self.net)
        if None not in (self.simulations, named.simulations):
            raise RequestError(f"--net {self.net} has simulations of its own: leave --simulations out")
        oracle: OracleName = named.oracle if self.oracle is None else one_of(self.oracle, OracleName, "oracle")
        return replace(named, oracle=oracle, ponder=False, impartial=True)

    def execute(self, quiet: bool) -> "AnalyseFigures":
        from ..commands import analyse_command

        return analyse_command(self, quiet)


@dataclass(frozen=True)
class EngineRequest:
    """Serve a player to other programs: speak the Hub protocol (version 2, English draughts) on stdin and stdout."""

    player: Annotated[str, typer.Argument(metavar="PLAYER", help="Player to serve; as for match.")] = "champion"
    simulations: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Simulations per move of a network, if the other program sets no limit; 400 if left out, 20,000 nodes "
            "of alpha-beta.",
        ),
    ] = None
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        from engine.players.spec import BackendName, NetworkSpec, check_simulations, one_of

        check_simulations(self.simulations or 0)
        one_of(self.backend, BackendName, "backend")
        network = self.spec if isinstance(self.spec, NetworkSpec) and self.spec.level is None else None
        if self.simulations is not None and network is None:
            raise RequestError(f"{self.player} has no simulations to choose: leave --simulations out")
        if network is not None and network.ponder:
            raise RequestError(f"{self.player}: the other program says when to ponder: leave @ponder out")
        if self.backend != "auto" and (network is None or network.alphabeta):
            raise RequestError(f"{self.player} has no backend to choose: leave --backend out")

    @cached_property
    def spec(self) -> "PlayerSpec":
        """The player to serve; raises ``PlayerError`` if it is not a player."""
        return player_of(self.player)

    def execute(self) -> None:
        from ..engine_command import engine_command

        engine_command(self)
