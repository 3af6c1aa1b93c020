"""Commands about players: ``match``, ``ladder``, ``analyse`` and others. They import what they need when they run."""

from pathlib import Path
from typing import Annotated

import typer

from .options import MAX_GAMES, PLAYER, Backend, Fen, Json, Seed, Tables, print_json


def match(
    player_a: Annotated[str, typer.Argument(metavar="PLAYER", help=PLAYER)],
    player_b: Annotated[str, typer.Argument(metavar="PLAYER", help="The opponent.")],
    games: Annotated[int, typer.Option(min=1, max=MAX_GAMES, help="Games, in colour-swapped pairs.")] = 100,
    simulations: Annotated[int | None, typer.Option(min=0, help="Per move of network players [64].")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Per move, instead of simulations.")] = None,
    clock: Annotated[
        str | None,
        typer.Option(metavar="BASE+INC", help="Fischer clock, like 60+0.6; 0.05 s too late loses."),
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
        typer.Option(min=1, help="Processes; one a core if left out, or 1 for networks without a time, in step."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and players.")] = 1,
    backend: Backend = "auto",
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
        backend=backend,
    )
    if as_json:
        print_json(figures)


def ladder(
    run: Annotated[Path, typer.Argument(help="Folder of the run; with --doublings a network's, or champion.")],
    games: Annotated[
        int, typer.Option(min=1, max=MAX_GAMES, help="Of every two who meet, in colour-swapped pairs.")
    ] = 20,
    anchors: Annotated[
        str, typer.Option(metavar="PLAYER,...", help="Fixed opponents.")
    ] = "random,rollout:200,alphabeta:4,alphabeta:8,alphabeta:12",
    networks: Annotated[
        int | None, typer.Option(min=2, help="So many promoted networks, evenly spaced; all if left out.")
    ] = None,
    doublings: Annotated[
        int | None,
        typer.Option(min=1, max=12, help="Instead: one network with --simulations [32], and so many times doubled."),
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
    """Rate a run's promoted networks, or one network with more and more simulations, by games with each other and with
    anchors. Given again, it goes on.
    """
    from selfplay.ladder_commands import ladder_command

    figures = ladder_command(
        run,
        games,
        anchors,
        networks,
        doublings,
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
        print_json(figures)


def convert(
    player: Annotated[str, typer.Argument(metavar="PLAYER", help="Who has to win; as for match.")] = "champion",
    pieces: Annotated[int, typer.Option(min=2, max=5, help="Endgames of 2 to so many pieces.")] = 5,
    positions: Annotated[int, typer.Option(min=1, help="Won positions of each number of pieces.")] = 250,
    simulations: Annotated[int | None, typer.Option(min=0, help="Per move of a network [64].")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Per move, instead of simulations.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Tables of the defence; if left out, those in the user's cache.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; as for match.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the positions.")] = 1,
    as_json: Json = False,
) -> None:
    """Let a player win won endgames against perfect defence, under the rules of the game.

    The defence needs tables with distances: `crownhead tablebase build --pieces 5 --distance --dir DIR`. In the user's
    cache they serve the player as well.
    """
    from selfplay.convert import convert_command

    figures = convert_command(player, pieces, positions, simulations, seconds, folder, jobs, seed, quiet=as_json)
    if as_json:
        print_json(figures)


def blunders(
    player: Annotated[str | None, typer.Argument(metavar="[PLAYER]", help="Who is asked; as for match.")] = None,
    games: Annotated[Path | None, typer.Option(help="Positions of these games (PDN), not drawn ones.")] = None,
    pieces: Annotated[int, typer.Option(min=2, max=7, help="Endgames of 2 to so many pieces.")] = 5,
    positions: Annotated[int, typer.Option(min=1, help="That the player is asked about.")] = 500,
    simulations: Annotated[int | None, typer.Option(min=0, help="Per move of a network [64].")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="Per move, instead of simulations.")] = None,
    folder: Tables = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Count the moves that throw away a win or a draw, by exact tables, where there is something to throw away.

    Without PLAYER the moves made in the games are judged, else what the player would move. Tables of six pieces are
    built by `crownhead tablebase build --pieces 6 --dir DIR`; in the user's cache they serve the player as well.
    """
    from selfplay.blunders import blunders_command

    figures = blunders_command(player, games, pieces, positions, simulations, seconds, folder, seed, quiet=as_json)
    if as_json:
        print_json(figures)


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
        print_json(report)
        return
    for move, nodes in report.get("divide", {}).items():
        print(f"{move}: {nodes}")
    print(f"{report['nodes']} positions at depth {depth} in {report['seconds']:.3f} s", end="")
    print(f" ({report['nodes_per_second'] / 1e6:.1f} M/s)")


def analyse(
    fen: Annotated[str, typer.Argument(help="Position, like B:W21,22,K23:B1-4,K30.")],
    net: Annotated[str, typer.Option(help="Folder of a checkpoint or a run, or champion.")] = "champion",
    simulations: Annotated[int, typer.Option(min=1, help="Of the search.")] = 800,
    oracle: Annotated[str | None, typer.Option(help="Of endgames: off or tablebase (the default).")] = None,
    backend: Backend = "auto",
    as_json: Json = False,
) -> None:
    """Show what a network's search thinks of a position: moves with visits, prior and value; the expected line."""
    from selfplay.commands import analyse_command

    figures = analyse_command(fen, net, simulations, oracle, quiet=as_json, backend=backend)
    if as_json:
        print_json(figures)


def engine(
    player: Annotated[str, typer.Argument(metavar="PLAYER", help="Who answers; as for match.")] = "champion",
    simulations: Annotated[int, typer.Option(min=1, help="Of a network, per move, where no level is set.")] = 400,
    backend: Backend = "auto",
) -> None:
    """Serve other programs: speak the Hub protocol (version 2, English draughts) on standard input and output."""
    from selfplay.engine_command import engine_command

    engine_command(player, simulations, backend)


def bench(
    net: Annotated[str, typer.Option(help="Network size to measure, like 4x48.")] = "4x48",
    board: Annotated[
        str | None,
        typer.Option(metavar="NET", help="Instead: how fast this network searches one position."),
    ] = None,
    backend: Backend = "auto",
    as_json: Json = False,
) -> None:
    """Measure move generation, search, network, self-play and learner on this machine, with one thread."""
    from selfplay.commands import bench_command

    figures = bench_command(net, board, quiet=as_json, backend=backend)
    if as_json:
        print_json(figures)


def card(
    net: Annotated[str, typer.Argument(help="Folder of a checkpoint or a run, or champion.")],
    run: Annotated[Path | None, typer.Option(help="The run it comes from: its configuration, and its ladder.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Tables with distances, for perfect defence; as for convert.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of card and games; the network's own if left out.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; as for match.")] = None,
    as_json: Json = False,
) -> None:
    """Measure a network as a whole and write its model card: matches, endgames, 8 bits, first move.

    Takes about 40 minutes on two cores. Given again, it goes on; if the student is another by then, its matches are
    played again.
    """
    from selfplay.model_card import card_command

    figures = card_command(net, run, folder, out, jobs, quiet=as_json)
    if as_json:
        print_json(figures)


def teach(
    net: Annotated[str, typer.Argument(help="Folder of a checkpoint or a run, or champion.")],
    samples: Annotated[Path, typer.Option(help="Folder of the samples; those that are there count, too.")],
    games: Annotated[
        int, typer.Option(min=0, max=MAX_GAMES, help="To play, 50 to a file; files of the seed stay.")
    ] = 0,
    epochs: Annotated[
        float, typer.Option(min=0, max=100, help="How often each sample is learnt from; 0: only play.")
    ] = 3,
    simulations: Annotated[int, typer.Option(min=100, max=20_000, help="Per move of these games.")] = 1500,
    units: Annotated[int, typer.Option(min=32, max=4096, help="Of the student's wide layer, in steps of 32.")] = 512,
    anew: Annotated[
        bool, typer.Option("--anew", help="Begin with random weights, not with the student there is.")
    ] = False,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Teach a small, fast network for the board by searches in games of a network, or of its student; needs hours.

    It is written beside the network and plays in its place where time limits the search.
    """
    from selfplay.teaching import teach_command

    figures = teach_command(net, samples, games, epochs, simulations, units, seed, quiet=as_json, anew=anew)
    if as_json:
        print_json(figures)


def export(
    checkpoint: Annotated[str, typer.Argument(help="Folder of a checkpoint or a run, or champion.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    format: Annotated[str, typer.Option(help="onnx or torchscript.")] = "onnx",
    int8: Annotated[bool, typer.Option("--int8", help="Quantised to 8 bits, where the format is onnx.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Compare it with the network; play a match if int8.")] = False,
    as_json: Json = False,
) -> None:
    """Write a network to a file that programs in other languages can run."""
    from selfplay.export import export_command

    figures = export_command(checkpoint, out, format, int8, check, quiet=as_json)
    if as_json:
        print_json(figures)
