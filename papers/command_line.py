"""The commands ``reproduce``: experiments of papers, and chess endings. Each imports what it needs when it runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from selfplay.command_line.options import MAX_GAMES, MAX_SEED, Json, Seed, Tables, request_command

reproduce = typer.Typer(
    help="Do experiments of papers again, beside their published figures, and code chess endings.", no_args_is_help=True
)
_MOST_COMPARED = 1_000_000_000
Out = Annotated[Path, typer.Option(help="Folder for the report; an earlier one is replaced.")]
RunOut = Annotated[Path, typer.Option(help="Folder for runs and report; earlier runs in it continue.")]
RunSeed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of weights, games and players.")]


@reproduce.command("wang")
def reproduce_wang(
    experiment: Annotated[
        str | None,
        typer.Option(help="Experiment: sampling, pieces, transfer, threshold or compression; all if left out."),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(min=0.01, help="Minutes of all trainings; tables, tests and coding take 3 or more in addition."),
    ] = 30.0,
    pieces: Annotated[int, typer.Option(min=4, max=6, help="Largest number of pieces.")] = 5,
    as_published: Annotated[
        bool,
        typer.Option(
            "--published-settings",
            help="Train Wang's network with the published learning rate and batch size, which needs hours instead of "
            "minutes.",
        ),
    ] = False,
    out: Out = Path("wang-report"),
    seed: Seed = 1,
    folder: Tables = None,
    quiet: Json = False,
) -> Any:
    """Reproduce the experiments of Wang 2023 (endgame networks), beside the published figures."""
    from .wang import wang_command

    return wang_command(experiment, minutes, pieces, seed, folder, out, quiet, as_published)


@reproduce.command("popic")
def reproduce_popic(
    experiment: Annotated[
        str | None, typer.Option(help="Settings: popic (as published) or own (preset quick); both if left out.")
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(
            min=0.01,
            help="Minutes of all trainings in this folder; the last gate and the games take some more.",
        ),
    ] = 30.0,
    games: Annotated[
        int, typer.Option(min=2, max=MAX_GAMES, help="Games of the last version against each before it.")
    ] = 50,
    out: RunOut = Path("popic-report"),
    seed: RunSeed = 1,
    quiet: Json = False,
) -> Any:
    """Reproduce the self-play of Popič, Bošković and Brest 2021, beside this project's in the same time."""
    from .popic import popic_command

    return popic_command(experiment, minutes, games, seed, out, quiet)


@dataclass(frozen=True)
class MaddocksRequest:
    """Reproduce Maddocks's agent: train it, and let it play against roll-out MCTS."""

    selfplay_games: Annotated[int, typer.Option(min=1, help="Games of self-play in each iteration.")] = 100
    comparison_games: Annotated[
        int, typer.Option(min=2, help="Largest number of games of a new network against the best.")
    ] = 40
    searches: Annotated[
        int, typer.Option(min=1, max=200_000, help="Simulations per move, of the agent and its opponent.")
    ] = 50
    exploration: Annotated[float, typer.Option(min=0.01, max=20, help="PUCT constant of the agent's search.")] = 1.5
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Score at which a new network replaces the best one.")
    ] = 0.55
    epochs: Annotated[
        float, typer.Option(min=0.01, max=100, help="Mean number of times that each sample is trained on.")
    ] = 5.0
    iterations: Annotated[int, typer.Option(min=1, help="Largest number of new networks.")] = 100
    minutes: Annotated[float, typer.Option(min=0.01, help="Largest number of minutes of training in this folder.")] = (
        15.0
    )
    games: Annotated[int, typer.Option(min=1, help="Games of the match against roll-out MCTS.")] = 100
    out: RunOut = Path("maddocks-report")
    seed: RunSeed = 1

    def execute(self, quiet: bool) -> Any:
        from .maddocks import maddocks_command

        return maddocks_command(self, quiet)


reproduce.command("maddocks")(request_command(MaddocksRequest, MaddocksRequest.execute))


@reproduce.command("larson")
def reproduce_larson(
    games: Annotated[Path, typer.Argument(help="A collection of expert games in PDN.")],
    experiment: Annotated[
        str | None, typer.Option(help="Network: published (Larson's) or own (this project's); both if left out.")
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Minutes of all trainings; reading 10,000 games and tests take 2 more.")
    ] = 30.0,
    out: Out = Path("larson-report"),
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="Seed of the split, the weights and the order of the games.")
    ] = 1,
    quiet: Json = False,
) -> Any:
    """Reproduce Larson 2016: predict expert moves with the published network and with one of this project."""
    from .larson import larson_command

    return larson_command(games, experiment, minutes, seed, out, quiet)


@reproduce.command("abdalla")
def reproduce_abdalla(
    syzygy: Annotated[Path, typer.Option(metavar="DIR", help="Folder of Syzygy tables of 3 and 4 men (*.rtbw).")],
    experiment: Annotated[
        str | None, typer.Option(help="Experiment: time, accuracy, search or storage; all if left out.")
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Minutes of labelling and both trainings; tests take one more.")
    ] = 6.0,
    out: Out = Path("abdalla-report"),
    seed: Seed = 1,
    quiet: Json = False,
) -> Any:
    """Reproduce the experiments of Abdalla 2024 (chess endgame networks), beside the published figures."""
    from .abdalla import abdalla_command

    return abdalla_command(experiment, minutes, syzygy, seed, out, quiet)


@reproduce.command("chess-encode")
def chess_encode(
    file: Annotated[Path, typer.Argument(help="File to write.")],
    quiet: Json = False,
) -> Any:
    """Solve all chess endings of 3 and 4 men, and code their values into one small file."""
    from .chess_commands import encode_command

    return encode_command(file, quiet)


@reproduce.command("chess-decode")
def chess_decode(
    file: Annotated[Path, typer.Argument(help="A file of chess-encode.")],
    out: Annotated[
        Path | None, typer.Option(metavar="NPZ", help="File of NumPy arrays to write the values to.")
    ] = None,
    syzygy: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of Syzygy tables (*.rtbw) to compare values with.")
    ] = None,
    positions: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST_COMPARED, help="Positions of each ending to compare; if left out, 1000."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, help="Seed of these positions; if left out, 1.")
    ] = None,
    quiet: Json = False,
) -> Any:
    """Decode coded chess endings, and check every value by the checksum of those that were encoded."""
    from .chess_commands import decode_command

    return decode_command(file, out, syzygy, positions, seed, quiet)
