"""The command line of Crownhead. Each command imports what it needs when it runs, so that ``--help`` is quick."""

import contextlib
import json
import logging
import math
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from crownhead_board import annotate, play
from engine.code_cache import drop_code_cache
from engine.errors import PartlyReadError
from engine.game import GAME, GAME_VARIABLE, OtherGameError
from papers.command_line import reproduce
from selfplay import requests
from selfplay.command_line import endgames
from selfplay.command_line.options import MAX_SEED, Fen, Json, request_command
from selfplay.command_line.puzzles import puzzles
from selfplay.requests import PlayRequest, TrainRequest


class Interrupted(Exception):  # noqa: N818
    """The user has pressed Ctrl-C; the message says what was saved, if the command gave one."""


class _Commands(TyperGroup):
    """All commands. With ``--json``, prints the figures that a command returns, or those that it yields one by one.

    Typer would end an interrupted program without a message: this raises ``Interrupted`` with the message instead.
    """

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt as error:
            raise Interrupted from error

    def invoke(self, ctx: Any) -> None:
        try:
            figures, as_json = super().invoke(ctx), ctx.obj  # see ``options.Json``
            if isinstance(figures, Iterator) and not as_json:
                deque(figures, 0)  # runs the command, which shows its figures itself
            elif isinstance(figures, Iterator):
                _print_array(figures)
            elif as_json:
                print(json.dumps(figures))
        except PartlyReadError as error:
            if ctx.obj:
                print(json.dumps(error.figures))
            raise
        except KeyboardInterrupt as error:
            raise Interrupted(*error.args) from error

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        _refuse_infinite(command)
        return command


def _refuse_infinite(command: Any) -> None:
    """Lets every number that is an option of a command, or of a group's commands, be finite."""
    for inner in getattr(command, "commands", {}).values():
        _refuse_infinite(inner)
    for option in getattr(command, "params", ()):
        option.callback = option.callback or _finite


def _finite(ctx: Any, option: Any, value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not finite", ctx, option)
    return value


def _print_array(figures: Iterator[Any]) -> None:
    """Prints a JSON array, one element per line as soon as it is known; closes it even after an error."""
    before = "["
    try:
        for element in figures:
            print(before + json.dumps(element), end="", flush=True)
            before = ",\n"
    finally:
        if before != "[":
            print("]")


app = typer.Typer(cls=_Commands, add_completion=False, pretty_exceptions_enable=False)
EXIT_BAD_INPUT = 2
_LONGEST_MESSAGE = 300  # characters
_OF_OTHER_GAME = "CROWNHEAD_OF_OTHER_GAME"  # environment variable: for what this command was started again
EXIT_INTERRUPTED = 130
EXPECTED = (ValueError, OSError)  # errors whose message is printed without a traceback


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
    modules: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="MODULE", help="Module or file with your own family of networks."),
    ] = None,
) -> None:
    """AlphaZero-style self-play engine for English draughts: train, measure, analyse."""
    if modules or os.environ.get("CROWNHEAD_IMPORT"):
        from learner.own_modules import import_modules, name_modules

        if modules:
            name_modules(modules)
        import_modules()


app.command("train")(request_command(TrainRequest, TrainRequest.execute))


@app.command()
def pretrain(
    games: Annotated[Path, typer.Argument(help="A collection of games in PDN.")],
    out: Annotated[Path, typer.Option(help="Folder for the network.")],
    net: Annotated[str, typer.Option(help="Size of a new network, like 4x48, or the folder of one.")] = "4x48",
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Minutes of training; reading and tests take some more.")
    ] = 10.0,
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="Seed of the split and of the order of the games.")
    ] = 1,
    quiet: Json = False,
) -> Any:
    """Learn moves and results from recorded games, and measure on games that were held out.

    Ctrl-C saves the network. A network that is in --out is replaced; to train it further, name it by --net, too.
    """
    from learner.expert.commands import pretrain_command

    return pretrain_command(games, out, net, minutes, seed, quiet)


@app.command()
def perft(
    depth: Annotated[int, typer.Argument(min=0, max=30, help="Number of plies.")],
    fen: Fen = None,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Count captures that lead to the same position once.")
    ] = False,
    divide: Annotated[bool, typer.Option("--divide", help="Also count the positions after each move.")] = False,
    quiet: Json = False,
) -> Any:
    """Count the positions after exactly DEPTH plies, to check and time the move generator."""
    from engine.perft import perft_report

    if divide and depth == 0:
        raise ValueError("--divide counts after each move: choose a DEPTH of at least 1")
    report = perft_report(depth, fen, distinct, divide)
    if not quiet:
        for move, nodes in report.get("divide", {}).items():
            print(f"{move}: {nodes}")
        print(f"{report['nodes']} positions at depth {depth} in {report['seconds']:.3f} s", end="")
        print(f" ({report['nodes_per_second'] / 1e6:.1f} M/s)")
    return report


app.command()(annotate)
app.command("play")(request_command(PlayRequest, play))
for request in (
    requests.MatchRequest,
    requests.MatchesRequest,
    requests.LadderRequest,
    requests.ConvertRequest,
    requests.BlundersRequest,
    requests.GamesRequest,
    requests.AnalyseRequest,
    requests.EngineRequest,
    requests.StatusRequest,
    requests.ExportRequest,
    requests.CardRequest,
    requests.BenchRequest,
):
    app.command(request.__name__.removesuffix("Request").lower())(request_command(request, request.execute))
app.command()(endgames.probe)
app.command()(endgames.classics)
app.command()(endgames.rules)
for name, group in (
    ("tablebase", endgames.tablebase),
    ("oracle", endgames.oracle),
    ("puzzles", puzzles),
    ("reproduce", reproduce),
):
    app.add_typer(group, name=name)


def main() -> None:
    """Runs the command line. Bad input ends with one line on standard error and exit code 2."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # rather than lose a result for a sign that the terminal has not
    if os.environ.get("COLUMNS") == "0":  # some programs that start others say so; nothing of --help would have room
        del os.environ["COLUMNS"]
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # schedulers send it; it then saves like Ctrl-C
    try:
        if sys.stdout is None and os.name != "nt":  # Windows has none without a terminal
            raise ValueError("standard output is closed: send it to a file, or to /dev/null")
        _check_arguments(sys.argv)
        sys.exit(app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0)
    except (Interrupted, KeyboardInterrupt) as error:  # the latter before a command has begun
        for number in (signal.SIGINT, signal.SIGTERM):  # all is saved: a second signal must not change the exit code
            signal.signal(number, signal.SIG_IGN)
        print(": ".join(["crownhead: interrupted", *map(str, error.args)]), file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except ModuleNotFoundError as error:
        from learner.report import REPORT_PACKAGES, missing_message

        if (error.name or "").partition(".")[0] not in REPORT_PACKAGES:
            raise
        print(f"crownhead: {missing_message()}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
    except Exception as error:
        if isinstance(error, OtherGameError) and GAME_VARIABLE not in os.environ:
            _play_other(error)
        of_gpu = type(error).__name__ == "OutOfMemoryError"  # torch's, which is not imported here
        if (of_gpu or isinstance(error, MemoryError)) and not os.environ.get("CROWNHEAD_DEBUG"):
            print(": ".join(["crownhead: out of memory", *filter(None, [_one_line(str(error))])]), file=sys.stderr)
            sys.exit(EXIT_BAD_INPUT)
        usage = getattr(error, "format_message", None)  # an error of the command line itself
        if usage is None and (not isinstance(error, EXPECTED) or os.environ.get("CROWNHEAD_DEBUG")):
            raise
        advice = "write it before the command" if getattr(error, "option_name", "") == "--import" else "see --help"
        # Without one of its commands a group shows its help, and the error says nothing.
        message = f"{usage() or 'name one of its commands'} ({advice})" if usage else str(error)
        if isinstance(error, OtherGameError) and (first := os.environ.get(_OF_OTHER_GAME)):
            message = f"{error.what} is of {error.game} draughts, {first} of {GAME}: they do not go together"
        print(f"crownhead: {_one_line(message)}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)


def _play_other(error: OtherGameError) -> None:
    """Starts the command again, in a process that plays another game."""
    os.environ |= {GAME_VARIABLE: error.game, _OF_OTHER_GAME: error.what}
    if os.name != "nt":
        drop_code_cache()
        os.execv(sys.executable, sys.orig_argv)
    with subprocess.Popen(sys.orig_argv) as process:  # Windows cannot replace a process
        while True:
            with contextlib.suppress(KeyboardInterrupt):  # the other one gets it, too
                sys.exit(process.wait())


def _check_arguments(arguments: list[str]) -> None:
    """Raises ``ValueError`` for an argument that is not UTF-8, as it could not be stored or shown, or that is empty.

    A shell's variable that is not set is empty; many options would take it for one left out, or for this folder.
    """
    for before, argument in pairwise(arguments):
        if any("\ud800" <= character <= "\udfff" for character in argument):
            raise ValueError(f"the argument {argument.encode('utf-8', 'replace').decode()[:80]!r} is not UTF-8")
        option, _, value = argument.partition("=") if argument.startswith("--") else (before, "", argument)
        if not value.strip() and argument != option:
            if option.startswith("-"):
                raise ValueError(f"the value of {option} is empty: give one, or leave the option out")
            raise ValueError(f"the argument behind {option} is empty")


def _one_line(message: str) -> str:
    """A message as one line; a long message is shortened to its beginning and end."""
    line = " ".join(message.split())
    return (
        line
        if len(line) <= _LONGEST_MESSAGE
        else f"{line[: _LONGEST_MESSAGE // 2 - 3]} ... {line[2 - _LONGEST_MESSAGE // 2 :]}"
    )


if __name__ == "__main__":
    main()
