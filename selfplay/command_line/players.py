"""Commands about players: ``match``, ``ladder``, ``analyse`` and others. They import what they need when they run."""

from typing import Annotated

import typer

from selfplay import requests
from selfplay.results import Result

from .options import Fen, Json, print_json, takes_request


@takes_request
def match(request: requests.MatchRequest, quiet: bool) -> Result:
    """Play a match between two players and report the Elo difference with its error."""
    from selfplay.match_commands import match_command

    return match_command(request, quiet)


@takes_request
def ladder(request: requests.LadderRequest, quiet: bool) -> Result:
    """Rate a run's promoted networks, or one network with more and more simulations, by games with each other and with
    anchors. Given again, it goes on.
    """
    from selfplay.ladder_commands import ladder_command

    return ladder_command(request, quiet)


@takes_request
def convert(request: requests.ConvertRequest, quiet: bool) -> Result:
    """Let a player win won endgames against perfect defence, under the rules of the game.

    The defence needs tables with distances: `crownhead tablebase build --pieces 5 --distance --dir DIR`. In the user's
    cache they serve the player as well.
    """
    from selfplay.convert import convert_command

    return convert_command(request, quiet)


@takes_request
def blunders(request: requests.BlundersRequest, quiet: bool) -> Result:
    """Count the moves that throw away a win or a draw, by exact tables, where there is something to throw away.

    Without PLAYER the moves made in the games are judged, else what the player would move. Tables of six pieces are
    built by `crownhead tablebase build --pieces 6 --dir DIR`; in the user's cache they serve the player as well.
    """
    from selfplay.blunders import blunders_command

    return blunders_command(request, quiet)


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


@takes_request
def analyse(request: requests.AnalyseRequest, quiet: bool) -> Result:
    """Show what a network's search thinks of a position: moves with visits, prior and value; the expected line."""
    from selfplay.commands import analyse_command

    return analyse_command(request, quiet)


@takes_request
def engine(request: requests.EngineRequest) -> None:
    """Serve other programs: speak the Hub protocol (version 2, English draughts) on standard input and output."""
    from selfplay.engine_command import engine_command

    engine_command(request)


@takes_request
def bench(request: requests.BenchRequest, quiet: bool) -> Result:
    """Measure move generation, search, network, self-play and learner on this machine, with one thread."""
    if request.board is not None:
        from selfplay.board_rates import board_rates_command

        return board_rates_command(request, quiet)
    from selfplay.bench import bench_command

    return bench_command(request, quiet)


@takes_request
def card(request: requests.CardRequest, quiet: bool) -> Result:
    """Measure a network as a whole and write its model card: matches, endgames, 8 bits, first move.

    Takes about 40 minutes on two cores. Given again, it goes on; if the student is another by then, its matches are
    played again.
    """
    from selfplay.model_card import card_command

    return card_command(request, quiet)


@takes_request
def export(request: requests.ExportRequest, quiet: bool) -> Result:
    """Write a network to a file that programs in other languages can run."""
    from selfplay.export import export_command

    return export_command(request, quiet)
