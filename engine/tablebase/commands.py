"""What ``crownhead tablebase build``, ``verify`` and ``stats`` do: progress, tables of figures, and those of --json."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..console import progress_console
from .build import Builder
from .dense import Step
from .folder import SHIPPED, build_advice, default_folder
from .stats import table_stats
from .store import find_files
from .verify import Verifier


class StepProgress:
    """A bar on standard error while pairs of slices are worked on: rate and time left, by what was worked on here."""

    def __init__(self, title: str, quiet: bool) -> None:
        console = progress_console(quiet)
        columns = TimeElapsedColumn(), BarColumn(20), TextColumn("{task.percentage:.0f} %")
        self._progress = Progress(
            *columns, TextColumn("{task.description}"), console=console, disable=not console.is_terminal
        )
        self._title = title
        self._task = self._progress.add_task(title, total=None)
        self._began = perf_counter()
        self._worked = 0

    def __call__(self, step: Step) -> None:
        """Takes note of a pair that has been done."""
        if step.solved:
            self._worked += step.words
        self._progress.update(self._task, total=step.total, completed=step.done, description=self.text(step))

    def text(self, step: Step) -> str:
        """Rate and time left after a step."""
        if not self._worked:  # pairs found in the folder take no time
            return f"{self._title} after {step.pair.name}"
        rate = self._worked / (perf_counter() - self._began)
        left = timedelta(seconds=round((step.total - step.done) / rate))
        return f"{left} left, {self._title} after {step.pair.name}, {rate / 1e3:,.0f} k words/s"

    def over(self, steps: Iterator[Step]) -> list[Step]:
        """Shows the progress of steps until they end; returns them."""
        taken = []
        with self._progress:
            for step in steps:
                taken.append(step)
                self(step)
        return taken


def build_command(folder: Path | None, pieces: int, distance: bool, quiet: bool) -> dict[str, Any]:
    """Builds what a folder lacks; see ``crownhead tablebase build --help``."""
    began = perf_counter()
    folder = folder or default_folder()
    try:
        steps = StepProgress("building", quiet).over(Builder(folder, pieces, distance).run())
    except KeyboardInterrupt as error:
        advice = build_advice(folder, pieces, distance)
        raise KeyboardInterrupt(f"the slices that were done are in {folder}; {advice} goes on") from error
    files = [path for (pair, _), path in find_files([folder]).items() if pair.pieces <= pieces]
    figures = {
        "folder": str(folder),
        "pieces": pieces,
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "slices_built": sum(step.solved for step in steps),
        "slices_kept": sum(not step.solved for step in steps),
        "seconds": round(perf_counter() - began, 3),
    }
    Console(quiet=quiet).print(
        f"2-{pieces} pieces in {folder}: {figures['files']} files, {figures['bytes']:,} bytes; "
        f"{figures['slices_built']} pairs of slices built, {figures['slices_kept']} there already, "
        f"in {figures['seconds']:.1f} s.\n"
        "Values know neither draws by repetition nor the 80-ply rule."
    )
    return figures


def verify_command(folder: Path | None, pieces: int | None, quiet: bool) -> dict[str, Any]:
    """Checks every position of a folder; see ``crownhead tablebase verify --help``."""
    began = perf_counter()
    if folder is None:
        folder = default_folder() if default_folder().exists() else SHIPPED
    files = find_files([folder])
    if not files:
        raise ValueError(f"{folder} has no tables; build them with {build_advice(folder, pieces, False)}")
    pieces = pieces or max(pair.pieces for pair, _ in files)
    distances = max((pair.pieces for pair, kind in files if kind == "distance" and pair.pieces <= pieces), default=0)
    verifier = Verifier(folder, pieces, distances)
    StepProgress("verifying", quiet).over(verifier.run())
    figures = {
        "folder": str(folder),
        "pieces": pieces,
        "positions": sum(_positions(folder, n) for n in range(2, pieces + 1)),
        "distances": distances,
        "seconds": round(perf_counter() - began, 3),
    }
    what = f", and the distance of those of up to {distances}," if distances else ""
    Console(quiet=quiet).print(
        f"{folder} is right: the value of each of {figures['positions']:,} positions of 2-{pieces} pieces{what} "
        f"follows from those of its successors ({figures['seconds']:.1f} s)."
    )
    return figures


def _positions(folder: Path, pieces: int) -> int:
    total = table_stats([folder], pieces)["pieces"][str(pieces)]
    return int(total["win"] + total["draw"] + total["loss"])


def stats_command(folder: Path | None, pieces: int | None, quiet: bool) -> dict[str, Any]:
    """What the tables of a folder hold; see ``crownhead tablebase stats --help``."""
    folders = [folder] if folder else [path for path in (default_folder(), SHIPPED) if path.exists()]
    figures = table_stats(folders, pieces)
    if not quiet:
        for title, rows in (("Slices", figures["slices"]), ("Pieces", figures["pieces"])):
            _print_counts(title, rows)
    return figures


def _print_counts(title: str, rows: dict[str, dict[str, Any]]) -> None:
    table = Table(title, "win", "draw", "loss", "longest win", "where (Black to move)", box=None)
    for name, row in rows.items():
        cells = [f"{row[key]:,}" for key in ("win", "draw", "loss")]
        longest = "" if row["longest_win"] is None else f"{row['longest_win']} plies"
        table.add_row(name, *cells, longest, row["longest_win_fen"] or "")
    for column in table.columns[1:5]:
        column.justify = "right"
    Console().print(table)
