"""``crownhead export``: a network as a file for other programs, and on request how true that file is."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.table import Table

from engine.players.search_player import SearchPlayer
from engine.search import SearchConfig
from engine.version import installed_version
from learner.checkpoint import load_checkpoint
from learner.inference import TorchEvaluator
from learner.inference.export import ExportedNetwork, ExportFormat, check_export, export_onnx, export_torchscript
from learner.network import Network

from .match import MatchGame, MatchResult, make_openings, play_match
from .players import checkpoint_folder
from .progress import MatchProgress
from .threads import use_single_thread

CHECK_GAMES = 100
_SIMULATIONS = 64
_CONCURRENCY = 64
_MATCH_SEED = 1
_MAX_PLIES = 240  # of a game: won endgames without tables may be shuffled for long


class ExportError(ValueError):
    """An export that cannot be made as asked."""


def export_command(
    checkpoint: str, out: Path, format: str, int8: bool, check: bool, quiet: bool, games: int = CHECK_GAMES
) -> dict[str, Any]:
    """Exports a network; see ``crownhead export --help``.

    Args:
        checkpoint: folder of a checkpoint or a run, or ``champion``.
        out: the file to write.
        format: ``onnx`` or ``torchscript``.
        check: compare the file's answers with the network's, and if it is int8, let the two play a match.
        games: of that match; 0: none.

    Returns:
        ``path``, ``format``, ``precision``, ``digest`` (of the checkpoint), ``bytes``, ``seconds``; with ``check`` also
        ``check``: the figures of ``check_export`` and, of int8, ``match`` (``MatchResult.summary``).

    Raises:
        ExportError: no such format, or int8 in TorchScript.
        ValueError: the checkpoint cannot be read, or a package is missing.
        StorageError: the file cannot be written.
    """
    if format not in get_args(ExportFormat):
        raise ExportError(f"--format {format}: choose one of {', '.join(get_args(ExportFormat))}")
    if int8 and format != "onnx":
        raise ExportError("--int8 is for --format onnx: TorchScript files hold float32")
    use_single_thread()
    loaded = load_checkpoint(checkpoint_folder(checkpoint))
    metadata = {"digest": loaded.info.digest, "crownhead": installed_version()}
    start = time.perf_counter()
    if format == "onnx":
        export_onnx(loaded.network, out, int8, metadata=metadata)
    else:
        export_torchscript(loaded.network, out, metadata)
    figures: dict[str, Any] = {
        "path": str(out),
        "format": format,
        "precision": "int8" if int8 else "float32",
        "digest": loaded.info.digest,
        "bytes": out.stat().st_size,
        "seconds": time.perf_counter() - start,
    }
    if check:
        kind: ExportFormat = "onnx" if format == "onnx" else "torchscript"
        figures["check"] = check_export(out, kind, loaded.network)
        if int8 and games:
            with MatchProgress(games, quiet) as progress:
                result = exported_match(out, kind, loaded.network, games, on_game=progress.game)
            figures["check"]["match"] = result.summary()
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


def _print(figures: dict[str, Any]) -> None:
    console = Console()
    title = f"{figures['path']}: {figures['format']}, {figures['precision']}, {figures['bytes']:,} bytes"
    if "check" not in figures:
        console.print(title, markup=False)
        return
    check = figures["check"]
    table = Table("beside the network in float32", "", title=title)
    table.add_row(f"policy divergence on {check['positions']} positions (nats)", f"{check['policy_kl']:.6f}")
    table.add_row("same best move", f"{check['top1_agreement']:.2%}")
    table.add_row("error of a probability of win, draw, loss", f"{check['wdl_error']:.5f}")
    table.add_row("error of the value (root mean square)", f"{check['value_error']:.5f}")
    accuracies = f"{check['endgame_accuracy']:.2%} (network {check['endgame_accuracy_network']:.2%})"
    table.add_row(f"right in {check['endgames']} endgames", accuracies)
    if match := check.get("match"):
        score = f"+{match['wins']} ={match['draws']} -{match['losses']}"
        table.add_row(
            f"match at {_SIMULATIONS} simulations", f"{score}, Elo {match['elo']:+.0f} ± {match['elo_error']:.0f}"
        )
    console.print(table)
