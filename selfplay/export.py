"""``crownhead export``: a network as a file for other programs, and on request how true that file is."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from .requests import ExportRequest
from .results import Result
from .threads import use_single_thread

CHECK_GAMES = 100
_SIMULATIONS = 64
_CONCURRENCY = 64
_MATCH_SEED = 1
_MAX_PLIES = 240  # of a game: won endgames without tables may be shuffled for long


@dataclass(frozen=True)
class ExportReport(Result):
    """A file that was written.

    Attributes:
        digest: of the checkpoint.
        check: figures of ``check_export``, if they were asked for. match: with the network, if int8 was to be checked.
    """

    path: str
    format: str
    precision: str
    digest: str
    bytes: int
    seconds: float
    check: dict[str, Any] | None = None
    match: MatchResult | None = None

    def figures(self) -> dict[str, Any]:
        """See ``Result.figures``."""
        figures = {name: value for name, value in self.__dict__.items() if name not in ("check", "match")}
        if self.check is None:
            return figures
        match = {} if self.match is None else {"match": self.match.summary()}
        return {**figures, "check": {**self.check, **match}}


def export_command(request: ExportRequest, quiet: bool, games: int = CHECK_GAMES) -> ExportReport:
    """Exports a network; see ``crownhead export --help``.

    Args:
        games: of the match that checks int8; 0: none.

    Raises:
        ValueError: the checkpoint cannot be read, or a package is missing.
        StorageError: the file cannot be written.
    """
    use_single_thread()
    loaded, out, format = load_checkpoint(checkpoint_folder(request.checkpoint)), request.out, request.kind
    metadata = {"digest": loaded.info.digest, "crownhead": installed_version()}
    start = time.perf_counter()
    if format == "onnx":
        export_onnx(loaded.network, out, request.int8, metadata=metadata)
    else:
        export_torchscript(loaded.network, out, metadata)
    seconds = time.perf_counter() - start
    precision = "int8" if request.int8 else "float32"
    report = ExportReport(str(out), format, precision, loaded.info.digest, out.stat().st_size, seconds)
    if request.check:
        report = replace(report, check=check_export(out, format, loaded.network))
        if request.int8 and games:
            with MatchProgress(games, quiet) as progress:
                result = exported_match(out, format, loaded.network, games, on_game=progress.game)
            report = replace(report, match=result)
    if not quiet:
        _print(report)
    return report


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


def _print(report: ExportReport) -> None:
    console, check, match = Console(), report.check, report.match
    title = f"{report.path}: {report.format}, {report.precision}, {report.bytes:,} bytes"
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
    if match is not None:
        score = f"+{match.wins} ={match.draws} -{match.losses}, Elo {match.elo:+.0f} ± {match.elo_error:.0f}"
        table.add_row(f"match at {_SIMULATIONS} simulations", score)
    console.print(table)
