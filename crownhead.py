"""Crownhead's front door: the command line. Each command imports what it needs when it runs, so that help is quick."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="AlphaZero-style self-play engine for English draughts: train, measure, analyse.",
)
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXPECTED = (ValueError, OSError)  # the project's own errors say what is wrong in one line

tablebase = typer.Typer(help="Exact endgame tables: build, check and describe them.", no_args_is_help=True)
app.add_typer(tablebase, name="tablebase")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object last.")]
Fen = Annotated[str | None, typer.Option(help="Position, like B:W21,22,K23:B1-4,K30; the start position if left out.")]
Tables = Annotated[
    Path | None, typer.Option("--dir", help="Folder of the tables; if left out, one in the user's cache.")
]


def _print_json(figures: Any) -> None:
    print(json.dumps(figures))


@app.command()
def train(
    preset: Annotated[str, typer.Option(help="smoke, quick, laptop or gpu.")] = "quick",
    run: Annotated[Path | None, typer.Option(help="Folder of the run; runs/PRESET if left out.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in this folder.")] = False,
    pool: Annotated[str | None, typer.Option(help="local (threads of this process) or ray.")] = None,
    address: Annotated[str | None, typer.Option(help="Ray cluster to join; implies --pool ray.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0.01, help="Train so long; with --resume, longer.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="key=value, like search.c_puct=2.")] = None,
    as_json: Json = False,
) -> None:
    """Train from the rules alone: self-play, learning, gating and promotion, in one folder."""
    from selfplay.commands import train_command

    folder = run or Path("runs") / preset
    figures = train_command(folder, preset, resume, pool, address, minutes, settings or [], quiet=as_json)
    if as_json:
        _print_json(figures)


@app.command()
def match(
    player_a: Annotated[
        str, typer.Argument(metavar="PLAYER", help="random, rollout:N, alphabeta:N or FOLDER[@ORACLE].")
    ],
    player_b: Annotated[str, typer.Argument(metavar="PLAYER", help="The opponent.")],
    games: Annotated[int, typer.Option(min=1, help="Games, in colour-swapped pairs.")] = 100,
    simulations: Annotated[int | None, typer.Option(min=0, help="Per move of network players [64].")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Per move, instead of simulations.")] = None,
    openings: Annotated[str, typer.Option(help="ballots or random:K (K random plies).")] = "ballots",
    pdn: Annotated[Path | None, typer.Option(help="Write the games to this file.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and players.")] = 1,
    as_json: Json = False,
) -> None:
    """Play a match between two players and report the Elo difference with its error."""
    from selfplay.commands import match_command

    figures = match_command(player_a, player_b, games, simulations, seconds, openings, pdn, seed, quiet=as_json)
    if as_json:
        _print_json(figures)


@app.command()
def perft(
    depth: Annotated[int, typer.Argument(min=0, max=30, help="Plies.")],
    fen: Fen = None,
    distinct: Annotated[bool, typer.Option("--distinct", help="Count captures to the same position once.")] = False,
    divide: Annotated[bool, typer.Option("--divide", help="Also count below each move.")] = False,
    as_json: Json = False,
) -> None:
    """Count the positions after exactly DEPTH plies: the move generator's check and speed test."""
    from engine.perft import perft_report

    report = perft_report(depth, fen, distinct, divide)
    if as_json:
        _print_json(report)
        return
    for move, nodes in report.get("divide", {}).items():
        print(f"{move}: {nodes}")
    print(f"{report['nodes']} positions at depth {depth} in {report['seconds']:.3f} s", end="")
    print(f" ({report['nodes_per_second'] / 1e6:.1f} M/s)")


@app.command()
def analyse(
    fen: Annotated[str, typer.Argument(help="Position, like B:W21,22,K23:B1-4,K30.")],
    net: Annotated[Path, typer.Option(help="Folder of a checkpoint or a run.")],
    simulations: Annotated[int, typer.Option(min=1, help="Of the search.")] = 800,
    oracle: Annotated[str, typer.Option(help="Of endgames: off, tablebase or network.")] = "tablebase",
    as_json: Json = False,
) -> None:
    """Show what a network's search thinks of a position: moves with visits, prior and value; the expected line."""
    from selfplay.commands import analyse_command

    figures = analyse_command(fen, net, simulations, oracle, quiet=as_json)
    if as_json:
        _print_json(figures)


@app.command()
def bench(
    net: Annotated[str, typer.Option(help="Network size to measure, like 4x48.")] = "4x48",
    as_json: Json = False,
) -> None:
    """Measure move generation, search, network, self-play and learner on this machine, with one thread."""
    from selfplay.commands import bench_command

    figures = bench_command(net, quiet=as_json)
    if as_json:
        _print_json(figures)


@tablebase.command("build")
def tablebase_build(
    pieces: Annotated[int, typer.Option(min=2, max=7, help="Tables of 2 to so many pieces.")] = 5,
    folder: Tables = None,
    distance: Annotated[bool, typer.Option("--distance", help="Also how many plies every win takes.")] = False,
    as_json: Json = False,
) -> None:
    """Solve endgames from the rules alone, ignoring repetition and the 80-ply rule. What is there is kept."""
    from engine.tablebase.commands import build_command

    figures = build_command(folder, pieces, distance, quiet=as_json)
    if as_json:
        _print_json(figures)


@tablebase.command("verify")
def tablebase_verify(
    pieces: Annotated[int | None, typer.Option(min=2, max=7, help="Check 2 to so many; all if left out.")] = None,
    folder: Tables = None,
    as_json: Json = False,
) -> None:
    """Check every position of the tables against all its successors."""
    from engine.tablebase.commands import verify_command

    figures = verify_command(folder, pieces, quiet=as_json)
    if as_json:
        _print_json(figures)


@tablebase.command("stats")
def tablebase_stats(
    pieces: Annotated[int | None, typer.Option(min=2, max=7, help="Only so many pieces.")] = None,
    folder: Tables = None,
    as_json: Json = False,
) -> None:
    """Count wins, draws and losses of every slice, with the longest win."""
    from engine.tablebase.commands import stats_command

    figures = stats_command(folder, pieces, quiet=as_json)
    if as_json:
        _print_json(figures)


def main() -> None:
    """Runs the command line. Bad input ends with one line on standard error and exit code 2."""
    try:
        sys.exit(app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0)
    except KeyboardInterrupt:
        print("crownhead: interrupted", file=sys.stderr)
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
