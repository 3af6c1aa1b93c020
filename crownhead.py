"""Crownhead's front door: the command line. Each command imports what it needs when it runs, so that help is quick."""

import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from selfplay.command_line import endgames, players
from selfplay.command_line.options import MAX_SEED, PLAYER, Backend, Fen, Json, print_json
from selfplay.command_line.reproduce import reproduce

if TYPE_CHECKING:
    from engine.board import Board
    from engine.players import Player
    from gui.endgame_info import OracleAnswer
    from gui.opponents import CheckpointEntry, OpponentSpec


class Interrupted(Exception):  # noqa: N818
    """The user has pressed Ctrl-C; the message says what was saved, if the command knows."""


class _Commands(TyperGroup):
    """All commands. Typer ends a program that is interrupted without a word: this hands the reason on instead."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted(*error.args) from error


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
)
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXPECTED = (ValueError, OSError)  # the project's own errors say what is wrong in one line


def _tell_version(wanted: bool) -> None:
    if not wanted:
        return
    from engine.version import installed_version

    print(f"crownhead {installed_version()}")
    raise typer.Exit


@app.callback()
def options(
    tell_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Print the version.")
    ] = False,
) -> None:
    """AlphaZero-style self-play engine for English draughts: train, measure, analyse."""


@app.command()
def train(
    preset: Annotated[str, typer.Option(help="smoke, quick, laptop, gpu, popic or maddocks.")] = "quick",
    run: Annotated[Path | None, typer.Option(help="Folder of the run; runs/PRESET if left out.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in this folder.")] = False,
    pool: Annotated[str | None, typer.Option(help="local (threads of this process) or ray.")] = None,
    address: Annotated[str | None, typer.Option(help="Ray cluster to join; implies --pool ray.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0.01, help="Train so long; with --resume, longer.")] = None,
    backend: Annotated[
        str | None, typer.Option(help="Of inference, like numba-int16; short for --set selfplay.backend=...")
    ] = None,
    init: Annotated[
        str | None, typer.Option(metavar="NET", help="Begin with this network's weights, not with random ones.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, like search.c_puct=2; with --resume, from here on.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train from the rules alone: self-play, learning, gating and promotion, in one folder."""
    from selfplay.commands import train_command

    folder = run or Path("runs") / preset
    settings = [*(settings or ()), *([f"selfplay.backend={backend}"] if backend else ())]
    try:
        figures = train_command(folder, preset, resume, pool, address, minutes, settings, quiet=as_json, init=init)
    except KeyboardInterrupt as error:
        if not (folder / "state.json").exists():
            raise
        raise KeyboardInterrupt(
            f"saved; `crownhead train --run {shlex.quote(str(folder))} --resume` goes on"
        ) from error
    if as_json:
        print_json(figures)


@app.command()
def pretrain(
    games: Annotated[Path, typer.Argument(help="A collection of games in PDN.")],
    out: Annotated[Path, typer.Option(help="Folder of the network.")],
    net: Annotated[str, typer.Option(help="Size of a new network, like 4x48, or the folder of one.")] = "4x48",
    minutes: Annotated[float, typer.Option(min=0.01, help="Of training; reading and tests come on top.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Of the split and the order of the games.")] = 1,
    as_json: Json = False,
) -> None:
    """Learn moves and results from recorded games; measured on games that were left out. Ctrl-C saves."""
    from learner.expert.commands import pretrain_command

    figures = pretrain_command(games, out, net, minutes, seed, quiet=as_json)
    if as_json:
        print_json(figures)


@app.command()
def play(
    opponent: Annotated[
        str | None,
        typer.Option(metavar="PLAYER", help=PLAYER),
    ] = None,
    simulations: Annotated[int | None, typer.Option(min=1, help="Of a network, per move.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.05, max=600, help="Per move, instead.")] = None,
    backend: Backend = "auto",
    side: Annotated[str | None, typer.Option(help="Yours: black, white, both or none.")] = None,
    fen: Fen = None,
    menu: Annotated[bool, typer.Option("--menu", help="Begin with the menu.")] = False,
    text: Annotated[bool, typer.Option("--text", help="In the terminal, with the network's first five moves.")] = False,
) -> None:
    """Open the board and play. Without options: the game as last chosen in the menu, or an unfinished one goes on."""
    if text:
        from selfplay.text_play import text_play

        text_play(opponent or "champion", simulations, seconds, side or "black", fen, backend)
        return
    from engine.fen import START_FEN
    from gui.app import run
    from gui.launch import plan_for, spec_of

    plan = None
    if any(option is not None for option in (opponent, simulations, seconds, side, fen)) or backend != "auto":
        spec = spec_of(opponent or "champion", simulations, seconds, backend)
        if spec.kind == "network":
            _check_network(spec.checkpoint)
        elif spec.kind == "external":
            _start_engine(spec)  # says whether there is such a program; it runs when it is asked for a move
        plan = plan_for(spec, side or "black", fen or START_FEN)
    run(_make_network, _start_engine, _find_networks, _ask_oracle, plan=plan, menu=menu)


def _check_network(checkpoint: str | None) -> None:
    """Says what is wrong with a checkpoint before a window opens."""
    from learner.checkpoint import read_info
    from selfplay.players import CHAMPION, checkpoint_folder

    read_info(checkpoint_folder(checkpoint or CHAMPION))


def _make_network(spec: "OpponentSpec") -> "Player":
    """The board's way to networks: ``gui`` knows no torch."""
    from selfplay.compiling import made_beside_compiling

    def make() -> "Player":
        from selfplay.players import board_player

        seconds = spec.seconds if spec.timed else None
        return board_player(spec.checkpoint, spec.name, spec.search, seconds, spec.vary, spec.backend, spec.ponder)

    return made_beside_compiling(make)


def _start_engine(spec: "OpponentSpec") -> "Player":
    """The board's way to external engines."""
    from engine.players import HubPlayer

    return HubPlayer(spec.command or "", spec.seconds)


def _find_networks() -> "list[CheckpointEntry]":
    """The networks that the board's menu offers."""
    from gui.opponents import CheckpointEntry
    from selfplay.players import rated_networks

    return [
        CheckpointEntry(f"{run} {folder.name}", str(folder), elo, error, f"Promoted network of {folder.parent.parent}")
        for run, folder, elo, error in rated_networks()
    ]


def _ask_oracle(board: "Board") -> "OracleAnswer":
    """The board's way to the endgame oracle."""
    from selfplay.knowledge import shared_oracle

    return shared_oracle().probe(board)


COMMANDS: tuple[Callable[..., None], ...] = (
    players.match,
    players.ladder,
    players.convert,
    players.blunders,
    players.analyse,
    players.engine,
    players.export,
    players.teach,
    players.card,
    players.perft,
    players.bench,
    endgames.probe,
)
for command in COMMANDS:
    app.command()(command)
for name, group in (("tablebase", endgames.tablebase), ("oracle", endgames.oracle), ("reproduce", reproduce)):
    app.add_typer(group, name=name)


def main() -> None:
    """Runs the command line. Bad input ends with one line on standard error and exit code 2."""
    try:
        sys.exit(app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0)
    except (Interrupted, KeyboardInterrupt) as error:  # the latter before any command has begun
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is saved: a second Ctrl-C must not change the code
        print(": ".join(["crownhead: interrupted", *map(str, error.args)]), file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        usage = getattr(error, "format_message", None)  # an error of the command line itself
        if usage is None and (not isinstance(error, EXPECTED) or os.environ.get("CROWNHEAD_DEBUG")):
            raise
        message = f"{usage()} (see --help)" if usage else str(error)
        print(f"crownhead: {' '.join(message.split())}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)


if __name__ == "__main__":
    main()
