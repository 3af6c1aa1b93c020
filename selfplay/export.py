"""``crownhead export``: a network as a file for other programs, and on request how true that file is."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from rich.console import Console
from rich.table import Table

from engine.players.search_player import SearchPlayer
from engine.search import SearchConfig
from engine.version import installed_version
from learner.checkpoint import load_checkpoint
from learner.inference import TorchEvaluator
from learner.inference.export import ExportedNetwork, ExportFormat, check_export, export_onnx, export_torchscript
from learner.network import Network

from .match import play_match
from .match_record import MatchGame, MatchResult, MatchSummary
from .openings import make_openings
from .players import checkpoint_folder
from .progress import MatchProgress
from .requests import ExportRequest
from .threads import use_single_thread

CHECK_GAMES = 100
_SIMULATIONS = 64
_CONCURRENCY = 64
_MATCH_SEED = 1
_MAX_PLIES = 240  # of a game: won endgames without tables may be shuffled for long


class ExportCheck(TypedDict):
    """How true a file is to its network in float32: see ``check_export``, and of int8 its match with the network."""

    positions: int
    policy_kl: float
    top1_agreement: float
    wdl_error: float
    value_error: float
    endgames: int
    endgame_accuracy: float
    endgame_accuracy_network: float
    match: NotRequired[MatchSummary]


class ExportFigures(TypedDict):
    """An exported file; ``digest`` is that of the checkpoint, ``check`` is there if it was asked for."""

    path: str
    format: ExportFormat
    precision: str
    digest: str
    bytes: int
    seconds: float
    check: NotRequired[ExportCheck]


def export_command(request: ExportRequest, quiet: bool, games: int = CHECK_GAMES) -> ExportFigures:
    """Exports a network; see ``crownhead export --help``.

    Args:
        games: of the match that checks int8; 0: none.
    """
    use_single_thread()
    loaded = load_checkpoint(checkpoint_folder(request.checkpoint))
    out, format = request.out, cast(ExportFormat, request.format)
    metadata = {"digest": loaded.info.digest, "crownhead": installed_version()}
    start = time.perf_counter()
    if format == "onnx":
        export_onnx(loaded.network, out, request.int8, metadata=metadata)
    else:
        export_torchscript(loaded.network, out, metadata)
    seconds = time.perf_counter() - start
    figures: ExportFigures = {
        "path": str(out),
        "format": format,
        "precision": "int8" if request.int8 else "float32",
        "digest": loaded.info.digest,
        "bytes": out.stat().st_size,
        "seconds": seconds,
    }
    if request.check:
        figures["check"] = cast(ExportCheck, check_export(out, format, loaded.network))
        if request.int8 and games:
            with MatchProgress(games, quiet) as progress:
                match = exported_match(out, format, loaded.network, games, on_game=progress.game)
            figures["check"]["match"] = match.summary()
    if not quiet:
        _print(figures)
    return figures


def exported_match(
    path: Path,
    format: ExportFormat,
    network: Network,
    games: int,
    simulations: int = _SIMULATIONS,
    on_game: Callable[[MatchGame], bool | None] | None = None,
) -> MatchResult:
    """A match of an exported file against its network in float32, at equal simulations, from ballots; ``on_game``: see
    ``match.play_match``.
    """
    config = SearchConfig(num_simulations=simulations)
    exported = SearchPlayer(path.name, ExportedNetwork(path, format), config)
    exact = SearchPlayer("float32", TorchEvaluator(network, precision="float32"), config)
    openings = make_openings("ballots", (games + 1) // 2, _MATCH_SEED)
    return play_match(
        exported,
        exact,
        openings,
        games,
        seed=_MATCH_SEED,
        concurrency=_CONCURRENCY,
        max_plies=_MAX_PLIES,
        on_game=on_game,
    )


def _print(figures: ExportFigures) -> None:
    console, check = Console(), figures.get("check")
    title = "{path}: {format}, {precision}, {bytes:,} bytes".format(**figures)
    if check is None:
        console.print(title, markup=False)
        return
    table = Table("beside the network in float32", "", title=title)
    table.add_row(f"policy divergence on {check['positions']} positions (nats)", f"{check['policy_kl']:.6f}")
    table.add_row("same best move", f"{check['top1_agreement']:.2%}")
    table.add_row("error of a probability of win, draw, loss", f"{check['wdl_error']:.5f}")
    table.add_row("error of the value (root mean square)", f"{check['value_error']:.5f}")
    accuracies = f"{check['endgame_accuracy']:.2%} (network {check['endgame_accuracy_network']:.2%})"
    table.add_row(f"right in {check['endgames']} endgames", accuracies)
    if match := check.get("match"):
        score = "+{wins} ={draws} -{losses}, Elo {elo:+.0f} ± {elo_error:.0f}".format(**match)
        table.add_row(f"match at {_SIMULATIONS} simulations", score)
    console.print(table)
