"""Crownhead's front door: the command line. Each command imports what it needs when it runs, so that help is quick."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

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
    help="AlphaZero-style self-play engine for English draughts: train, measure, analyse.",
)
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXPECTED = (ValueError, OSError)  # the project's own errors say what is wrong in one line

tablebase = typer.Typer(help="Exact endgame tables: build, check and describe them.", no_args_is_help=True)
app.add_typer(tablebase, name="tablebase")

reproduce = typer.Typer(
    help="Do the experiments of papers again, beside their published figures.", no_args_is_help=True
)
app.add_typer(reproduce, name="reproduce")
oracle = typer.Typer(
    help="The endgame oracle: networks that judge endgames, measured on exact tables.", no_args_is_help=True
)
app.add_typer(oracle, name="oracle")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object last.")]
Fen = Annotated[str | None, typer.Option(help="Position, like B:W21,22,K23:B1-4,K30; the start position if left out.")]
Tables = Annotated[
    Path | None, typer.Option("--dir", help="Folder of the tables; if left out, one in the user's cache.")
]
Net = Annotated[
    str | None,
    typer.Option("--net", help="Folder of an oracle, a network or a run, or best: a run's best; if none, as shipped."),
]
Pieces = Annotated[int, typer.Option(min=2, max=7, help="Positions of 2 to so many pieces.")]
Positions = Annotated[int, typer.Option(min=1, help="How many positions.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the positions drawn.")]
_PLAYER = "random, rollout:N, alphabeta:N, champion, hub:COMMAND, or FOLDER[@ORACLE]."


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
    try:
        figures = train_command(folder, preset, resume, pool, address, minutes, settings or [], quiet=as_json)
    except KeyboardInterrupt as error:
        if not (folder / "state.json").exists():
            raise
        raise KeyboardInterrupt(
            f"saved; `crownhead train --run {shlex.quote(str(folder))} --resume` goes on"
        ) from error
    if as_json:
        _print_json(figures)


@app.command()
def match(
    player_a: Annotated[str, typer.Argument(metavar="PLAYER", help=_PLAYER)],
    player_b: Annotated[str, typer.Argument(metavar="PLAYER", help="The opponent.")],
    games: Annotated[int, typer.Option(min=1, help="Games, in colour-swapped pairs.")] = 100,
    simulations: Annotated[int | None, typer.Option(min=0, help="Per move of network players [64].")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Per move, instead of simulations.")] = None,
    clock: Annotated[
        str | None, typer.Option(metavar="BASE+INC", help="Fischer clock, like 60+0.6; who oversteps it loses.")
    ] = None,
    openings: Annotated[
        str, typer.Option(help="ballots, random:K (K random plies), or file:PATH (FENs a line, or PDN games).")
    ] = "ballots",
    sprt: Annotated[
        str | None, typer.Option(metavar="ELO0,ELO1", help="End as soon as the results speak for one of the two.")
    ] = None,
    pdn: Annotated[Path | None, typer.Option(help="Write the games to this file, while they are played.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the games that --pdn has already.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes [one a core; 1 for networks without a time, whose games go in step]."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and players.")] = 1,
    as_json: Json = False,
) -> None:
    """Play a match between two players and report the Elo difference with its error."""
    from selfplay.match_commands import match_command

    figures = match_command(
        player_a,
        player_b,
        games,
        simulations,
        seconds,
        clock,
        openings,
        sprt,
        pdn,
        resume,
        jobs,
        seed,
        quiet=as_json,
    )
    if as_json:
        _print_json(figures)


@app.command()
def ladder(
    run: Annotated[Path, typer.Argument(help="Folder of the run.")],
    games: Annotated[int, typer.Option(min=1, help="Of every two who meet, in colour-swapped pairs.")] = 20,
    anchors: Annotated[
        str, typer.Option(metavar="PLAYER,...", help="Fixed opponents.")
    ] = "random,rollout:200,alphabeta:4,alphabeta:8,alphabeta:12",
    networks: Annotated[
        int | None, typer.Option(min=2, help="So many promoted networks, evenly spaced; all if left out.")
    ] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Everybody meets everybody.")] = False,
    simulations: Annotated[int | None, typer.Option(min=0, help="Per move of network players [64].")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Per move, instead of simulations.")] = None,
    openings: Annotated[str, typer.Option(help="As for match.")] = "random:3",
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; one a core if left out.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and players.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder of games and report; RUN/ladder if left out.")] = None,
    as_json: Json = False,
) -> None:
    """Rate a run's promoted networks by games with each other and with anchors. Given again, it goes on."""
    from selfplay.ladder_commands import ladder_command

    figures = ladder_command(
        run,
        games,
        anchors,
        networks,
        everybody,
        simulations,
        seconds,
        openings,
        jobs,
        seed,
        out,
        quiet=as_json,
    )
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
    net: Annotated[Path, typer.Option(help="Folder of a checkpoint or a run.")] = Path("champion"),
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
def play(
    opponent: Annotated[
        str | None,
        typer.Option(metavar="PLAYER", help="random, rollout:N, alphabeta:N, champion or FOLDER[@ORACLE]."),
    ] = None,
    simulations: Annotated[int | None, typer.Option(min=1, help="Of a network, per move.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.05, max=600, help="Per move, instead.")] = None,
    side: Annotated[str | None, typer.Option(help="Yours: black, white, both or none.")] = None,
    fen: Fen = None,
    menu: Annotated[bool, typer.Option("--menu", help="Begin with the menu.")] = False,
) -> None:
    """Open the board and play. Without options: the game as last chosen in the menu, or an unfinished one goes on."""
    from engine.fen import START_FEN
    from gui.app import run
    from gui.launch import plan_for, spec_of

    plan = None
    if any(option is not None for option in (opponent, simulations, seconds, side, fen)):
        spec = spec_of(opponent or "champion", simulations, seconds)
        if spec.kind == "network":
            _check_network(spec.checkpoint)
        plan = plan_for(spec, side or "black", fen or START_FEN)
    run(_make_network, _start_engine, _find_networks, _ask_oracle, plan=plan, menu=menu)


def _check_network(checkpoint: str | None) -> None:
    """Says what is wrong with a checkpoint before a window opens."""
    from learner.checkpoint import read_info
    from selfplay.players import CHAMPION, checkpoint_folder

    read_info(checkpoint_folder(checkpoint or CHAMPION))


def _make_network(spec: "OpponentSpec") -> "Player":
    """The board's way to networks: ``gui`` knows no torch."""
    from selfplay.players import board_player

    seconds = spec.seconds if spec.timed else None
    return board_player(spec.checkpoint, spec.name, spec.search, seconds, spec.vary, spec.threads)


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


@app.command()
def engine(
    player: Annotated[str, typer.Argument(metavar="PLAYER", help="Who answers; as for match.")] = "champion",
    simulations: Annotated[int, typer.Option(min=1, help="Of a network, per move, where no level is set.")] = 400,
) -> None:
    """Serve other programs: speak the Hub protocol (version 2, English draughts) on standard input and output."""
    from selfplay.engine_command import engine_command

    engine_command(player, simulations)


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
    """Count wins, draws and losses of every slice, with the longest win; files are compared with their checksums."""
    from engine.tablebase.commands import stats_command

    figures = stats_command(folder, pieces, quiet=as_json)
    if as_json:
        _print_json(figures)


@tablebase.command("encode")
def tablebase_encode(
    output: Annotated[Path, typer.Argument(help="File to write.")],
    pieces: Annotated[int, typer.Option(min=2, max=7, help="All tables of 2 to so many pieces.")] = 5,
    folder: Tables = None,
    net: Annotated[Path | None, typer.Option(help="Pair network to code with; trained now if left out.")] = None,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Of training, without --net; coding takes minutes more.")
    ] = 12.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the training.")] = 1,
    as_json: Json = False,
) -> None:
    """Code all tables into one small file: a network and its corrections, exact value for value."""
    from learner.endgame.codec_commands import encode_command

    figures = encode_command(folder, pieces, output, net, minutes, seed, quiet=as_json)
    if as_json:
        _print_json(figures)


@tablebase.command("decode")
def tablebase_decode(
    file: Annotated[Path, typer.Argument(help="File that encode wrote.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder for the tables; those in it are replaced.")],
    as_json: Json = False,
) -> None:
    """Write the ordinary tables that a coded file holds, checked against its checksum."""
    from learner.endgame.codec_commands import decode_command

    figures = decode_command(file, folder, quiet=as_json)
    if as_json:
        _print_json(figures)


@app.command()
def probe(
    fens: Annotated[
        list[str] | None, typer.Argument(metavar="[FEN]...", help="Positions; - reads more, a line each.")
    ] = None,
    net: Net = None,
    folder: Tables = None,
    as_json: Json = False,
) -> None:
    """Judge endgames by the oracle and, as far as tables reach, exactly. Without FENs, reads standard input."""
    from learner.endgame.probe_command import probe_command
    from selfplay.players import network_folder

    answers = probe_command(fens or [], network_folder(net), folder, quiet=as_json)
    if as_json:
        _print_json(answers)


@oracle.command("train")
def oracle_train(
    out: Annotated[Path, typer.Option(help="Folder of the training; given again, it goes on.")],
    kind: Annotated[str | None, typer.Option(help="Of a new network: pair (the default) or wang.")] = None,
    net: Annotated[str | None, typer.Option(help="Train this network on instead.")] = None,
    freeze_body: Annotated[
        bool, typer.Option("--freeze-body", help="Only the WDL head of a self-play network.")
    ] = False,
    pieces: Pieces = 5,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Train so long; tables and calibration take up to a minute more.")
    ] = 30.0,
    seed: Seed = 1,
    folder: Tables = None,
    as_json: Json = False,
) -> None:
    """Train an endgame network on samples of the exact tables, and make an oracle of it. Ctrl-C saves."""
    from learner.endgame.commands import oracle_train_command
    from selfplay.players import network_folder

    figures = oracle_train_command(
        kind, network_folder(net), freeze_body, pieces, minutes, seed, folder, out, quiet=as_json
    )
    if as_json:
        _print_json(figures)


@oracle.command("calibrate")
def oracle_calibrate(
    nets: Annotated[list[Path], typer.Argument(metavar="NETWORK...", help="Folders of endgame networks.")],
    out: Annotated[Path, typer.Option(help="Folder of the oracle.")],
    budget: Annotated[float, typer.Option(min=1, help="Evaluations per position, on the mean.")] = 64.0,
    positions: Positions = 100_000,
    seed: Seed = 1,
    folder: Tables = None,
    as_json: Json = False,
) -> None:
    """Make one oracle of several networks: temperatures and thresholds are chosen on the validation split."""
    from learner.endgame.commands import oracle_calibrate_command

    figures = oracle_calibrate_command(nets, folder, out, budget, positions, seed, quiet=as_json)
    if as_json:
        _print_json(figures)


@oracle.command("validate")
def oracle_validate(
    net: Net = None,
    pieces: Pieces = 5,
    positions: Positions = 100_000,
    seed: Seed = 1,
    folder: Tables = None,
    as_json: Json = False,
) -> None:
    """Measure an oracle on positions of the test split, which no network is trained on."""
    from learner.endgame.commands import oracle_validate_command
    from selfplay.players import network_folder

    figures = oracle_validate_command(network_folder(net), pieces, positions, seed, folder, quiet=as_json)
    if as_json:
        _print_json(figures)


@oracle.command("report")
def oracle_report(
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("oracle-report"),
    net: Net = None,
    pieces: Pieces = 5,
    positions: Positions = 100_000,
    seed: Seed = 1,
    folder: Tables = None,
    as_json: Json = False,
) -> None:
    """Measure an oracle and write a report: one HTML page, its figures as PNG, all numbers as JSON."""
    from learner.endgame.commands import oracle_report_command
    from selfplay.players import network_folder

    figures = oracle_report_command(network_folder(net), pieces, positions, seed, folder, out, quiet=as_json)
    if as_json:
        _print_json(figures)


@reproduce.command("wang")
def reproduce_wang(
    experiment: Annotated[
        str | None, typer.Option(help="sampling, pieces, transfer, threshold or compression; all if left out.")
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Of all trainings together; tests and coding take up to as long again.")
    ] = 30.0,
    pieces: Annotated[int, typer.Option(min=4, max=6, help="The most pieces.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("wang-report"),
    seed: Seed = 1,
    folder: Tables = None,
    as_json: Json = False,
) -> None:
    """Do the experiments of Wang 2023 (endgame networks) again, beside the published figures."""
    from learner.reproduce.wang import wang_command

    figures = wang_command(experiment, minutes, pieces, seed, folder, out, quiet=as_json)
    if as_json:
        _print_json(figures)


def main() -> None:
    """Runs the command line. Bad input ends with one line on standard error and exit code 2."""
    try:
        sys.exit(app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0)
    except (Interrupted, KeyboardInterrupt) as error:  # the latter before any command has begun
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
