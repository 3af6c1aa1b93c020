"""The commands ``crownhead tablebase build``, ``info``, ``verify`` and ``stats``."""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from ..console import Console, Display, Table
from .build import Builder
from .costs import TableCosts, distance_costs, table_costs
from .dense import Step
from .folder import SHIPPED, SHIPPED_KINGS, build_advice, default_folder
from .layout import layout_of
from .material import MIN_PIECES, Material, materials, materials_between, pairs_up_to, parse_name
from .plan import Task, needed_bytes, rooms
from .slice_file import Kind, SliceCounts, SliceFile
from .store import find_files
from .verify import Verifier

_WORTH_TELLING_S = 10.0  # smallest cost, in seconds of one core, that a build announces


class StepProgress:
    """A progress bar on standard error with rate and time left, estimated from the pairs solved by this process."""

    def __init__(self, title: str, quiet: bool) -> None:
        columns = TimeElapsedColumn(), BarColumn(20), TextColumn("{task.percentage:.0f} %")
        self._progress = Display(quiet, *columns, TextColumn("{task.description}"))
        self._title = title
        self._task = self._progress.add_task(title, total=None)
        self._began = perf_counter()
        self._done = self._total = self._worked = 0
        self._pair: Material | None = None  # the pair being solved
        self._found = 0  # words of it that an earlier process has solved

    def __call__(self, step: Step) -> None:
        if step.solved:
            self._worked += step.words - (self._found if step.pair == self._pair else 0)
        self._done, self._total = step.done, step.total
        self._show(f"after {step.pair.name}", 0)

    def within(self, pair: Material, part: float) -> None:
        """Shows the pair being solved; ``part``: fraction of it that is done, 0 to 1; first, what was found so."""
        more = round(layout_of(pair).words * part)
        if pair != self._pair:
            self._pair, self._found = pair, more
        self._show(f"in {pair.name}", more)

    def _show(self, where: str, more: int) -> None:
        done, total = self._done + more, self._total or None
        self._progress.update(self._task, total=total, completed=done, description=self.text(where, more))

    def text(self, where: str, more: int = 0) -> str:
        """Text with time left, ``where`` and rate; ``more``: number of words done in the pair being solved."""
        worked = self._worked + max(0, more - self._found)
        if not worked or not self._total:  # no rate is known: pairs found in the folder take no time
            return f"{self._title} {where}"
        rate = worked / (perf_counter() - self._began)
        left = timedelta(seconds=round((self._total - self._done - more) / rate))
        return f"{left} left, {self._title} {where}, {rate / 1e3:,.0f} k words/s"

    def over(self, steps: Iterator[Step]) -> list[Step]:
        """Runs all steps with a progress bar, and returns them."""
        taken = []
        with self._progress:
            for step in steps:
                taken.append(step)
                self(step)
        return taken


def build_command(
    folder: Path | None,
    pieces: int,
    distance: bool,
    quiet: bool,
    names: list[str] | None = None,
    steps_in: Callable[[Path], Iterator[Step]] | None = None,
) -> dict[str, Any]:
    """Builds the files that a folder lacks; see ``crownhead tablebase build --help``.

    Args:
        names: names of slices to build, with those that they need; all if None.
        steps_in: returns the steps of the build in a folder; None: those of a ``Builder``.
    """
    began = perf_counter()
    folder = folder or default_folder()
    if names is None:
        _tell_costs(folder, pieces, distance, quiet)
    try:
        progress = StepProgress("building", quiet)
        running = steps_in(folder) if steps_in else builder_steps(folder, pieces, distance, names, progress.within)
        steps = progress.over(running)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"the slices that were done are in {folder}; the same command goes on") from error
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
    Console(quiet=quiet, soft_wrap=True).print(
        f"2-{pieces} pieces in {folder}: {figures['files']} files, {figures['bytes']:,} bytes; "
        f"{figures['slices_built']} pairs of slices built, {figures['slices_kept']} there already, "
        f"in {figures['seconds']:.1f} s.\n"
        "Values know neither draws by repetition nor the 80-ply rule."
    )
    return figures


def builder_steps(
    folder: Path, pieces: int, distance: bool, names: list[str] | None, report: Callable[[Material, float], None]
) -> Iterator[Step]:
    """The steps of a ``Builder``; raises ``ValueError`` if a name is not a slice of at most ``pieces`` pieces."""
    only = None if names is None else {parse_name(name.strip()).pair for name in names}
    too_many = [pair.name for pair in only or [] if pair.pieces > pieces]
    if too_many:
        most = max(pair.pieces for pair in only or [])
        raise ValueError(f"{too_many[0]} has more than {pieces} pieces: add --pieces {most}")
    return Builder(folder, pieces, distance, only, report=report).run()


def _tell_costs(folder: Path, pieces: int, distance: bool, quiet: bool) -> None:
    """Prints files, time and memory that a build needs, before it begins."""
    folders = [folder] if folder.exists() else []
    costs = table_costs(folders, pieces)
    size, seconds = sum(cost["bytes_more"] for cost in costs), sum(cost["core_seconds_more"] for cost in costs)
    if distance:
        more, longer = distance_costs(folders, pieces)
        size, seconds = size + more, seconds + longer
    if seconds >= _WORTH_TELLING_S:
        task = Task(tuple(pairs_up_to(pieces)), pieces if distance else 0)
        memory = _amount(needed_bytes(task).memory)
        least, disk = map(_amount, needed_bytes(task, rooms(task)[-1]))
        Console(quiet=quiet, soft_wrap=True).print(
            f"This takes about {_amount(size)} of files, {_time(seconds)} of one core's time, "
            f"and {memory} of memory; where there is not so much, {least} of memory and {disk} of disk."
        )


def info_command(folder: Path | None, quiet: bool) -> dict[str, Any]:
    """Prints existing tables and the costs of others; see ``crownhead tablebase info --help``."""
    folders = [folder] if folder else [path for path in (default_folder(), SHIPPED) if path.exists()]
    costs = table_costs(folders)
    distances = [pair.pieces for pair, kind in find_files(folders) if kind == "distance"]
    complete = takewhile(lambda cost: distances.count(cost["pieces"]) == cost["pairs"], costs)
    names, most = [str(path) for path in folders], max((cost["pieces"] for cost in complete), default=0)
    if not quiet:
        _print_costs(costs)
        known = f"distances up to {most} pieces" if most else "no distances"
        Console(soft_wrap=True).print(
            f"In {' and '.join(names)}; {known}. Times are those of one core of a Zen 4. "
            "Memory is that of a build without distances; where it does not suffice, the disk is used."
        )
    return {"folders": names, "distances": most, "pieces": costs}


def _print_costs(costs: list[TableCosts]) -> None:
    table = Table("pieces", "pairs of slices", "there", "bytes", "the others", "time of a core", "memory", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for cost in costs:
        more = cost["pairs"] > cost["pairs_there"]
        cells = [str(cost[key]) for key in ("pieces", "pairs", "pairs_there")]
        cells += [
            _amount(cost["bytes_there"]) if cost["pairs_there"] else "",
            _amount(cost["bytes_more"]) if more else "",
        ]
        table.add_row(*cells, _time(cost["core_seconds_more"]) if more else "", _amount(cost["memory"]) if more else "")
    Console().print(table)


def _amount(size: int) -> str:
    if size >= 1e9:
        return f"{size / 1e9:,.1f} GB"
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,} bytes"


def _time(seconds: float) -> str:
    return f"{seconds / 60:,.0f} minutes" if seconds >= 100 else f"{seconds:.0f} s"


def verify_command(folder: Path | None, pieces: int | None, quiet: bool, resume: bool = False) -> dict[str, Any]:
    """Checks every position of a folder; see ``crownhead tablebase verify --help``."""
    began = perf_counter()
    if folder is None:
        folder = default_folder() if default_folder().exists() else SHIPPED
    files = find_files([folder])
    if not files:
        raise ValueError(f"{folder} has no tables; build them with {build_advice(folder, pieces, False)}")
    pieces = pieces or max(pair.pieces for pair, _ in files)
    distances, some = _distances_in(files, pieces)
    progress = StepProgress("verifying", quiet)
    verifier = Verifier(folder, pieces, distances, resume=resume, report=progress.within)
    progress.over(verifier.run())
    counts = slice_counts([folder], lambda pair: pair.pieces <= pieces)
    positions = {material: count.win + count.draw + count.loss for material, count in counts.items()}
    figures = {
        "folder": str(folder),
        "pieces": pieces,
        "positions": sum(positions.values()),
        "distances": distances,
        "found_before": sum(count for material, count in positions.items() if material.pair in verifier.before),
        "seconds": round(perf_counter() - began, 3),
    }
    what = f", and the distance of those of up to {distances}," if distances else ""
    left = (
        f" Not checked are distances of {some} pieces, of which some files are lacking: "
        f"{build_advice(folder, some, True)} makes them."
        if some
        else ""
    )
    earlier = f"; an earlier check found {figures['found_before']:,} of them right" if verifier.before else ""
    Console(quiet=quiet, soft_wrap=True).print(
        f"{folder} is right: the value of each of {figures['positions']:,} positions of 2-{pieces} pieces{what} "
        f"follows from those of its successors ({figures['seconds']:.1f} s{earlier}).{left}"
    )
    return figures


def _distances_in(files: Iterable[tuple[Material, Kind]], pieces: int) -> tuple[int, int]:
    """Up to how many pieces, at most ``pieces``, all distances are there (0 for none); and the most pieces of which
    some are, if these are more (else 0)."""
    there = {pair for pair, kind in files if kind == "distance" and pair.pieces <= pieces}
    lacking = min((pair.pieces for pair in pairs_up_to(pieces) if pair not in there), default=pieces + 1)
    complete, most = lacking - 1 if lacking > MIN_PIECES else 0, max((pair.pieces for pair in there), default=0)
    return complete, most if most > complete else 0


def stats_command(folder: Path | None, pieces: int | None, quiet: bool) -> dict[str, Any]:
    """Prints counts of the positions in tables; see ``crownhead tablebase stats --help``."""
    places = default_folder(), SHIPPED, SHIPPED_KINGS
    folders = [folder] if folder else [path for path in places if path.exists()]
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


def slice_counts(
    folders: Iterable[Path], wanted: Callable[[Material], bool] = lambda pair: True
) -> dict[Material, SliceCounts]:
    """Counts of all slices with a table in the folders, in the order in which slices are solved.

    Raises ``TableFileError`` if a file is damaged or foreign, ``OSError`` if a folder cannot be read.

    Args:
        wanted: says of a pair whether its files are read.
    """
    files = {key: path for key, path in find_files(folders).items() if wanted(key[0])}
    found: dict[str, SliceCounts] = {}
    kinds: tuple[Kind, ...] = ("wdl", "distance")  # only files of distances have the longest wins
    for kind in kinds:
        for (_, other), path in files.items():
            if other == kind:
                with SliceFile(path, checked=True) as file:
                    found |= file.header.slices
    most = max((pair.pieces for pair, _ in files), default=0)
    return {m: found[m.name] for m in materials_between(MIN_PIECES, most) if m.name in found}


def table_stats(folders: Iterable[Path], pieces: int | None = None) -> dict[str, Any]:
    """Figures of ``crownhead tablebase stats --json``; raises ``ValueError`` if there is no table of these pieces.

    Args:
        pieces: only slices with this number of pieces; all if None.

    Returns:
        ``slices``: counts by name; ``pieces``: sums by number of pieces, where all slices have a table. Where some lack
        distances, the longest win is None.
    """
    folders = list(folders)
    counts = slice_counts(folders, lambda pair: pieces is None or pair.pieces == pieces)
    if not counts:
        what = "" if pieces is None else f" of {pieces} pieces"
        raise ValueError(
            f"{' and '.join(map(str, folders))} has no table{what}; "
            f"build it with {build_advice(folders[0], pieces, False)}"
        )
    by_pieces = {}
    for n in sorted({material.pieces for material in counts}):
        if all(material in counts for material in materials(n)):
            by_pieces[str(n)] = _total([counts[material] for material in materials(n)])
    return {"pieces": by_pieces, "slices": {m.name: _total([count]) for m, count in counts.items()}}


def _total(counts: list[SliceCounts]) -> dict[str, Any]:
    dated = all(count.longest_win is not None for count in counts if count.win)  # else another win may be longer
    longest = max(counts, key=lambda count: count.longest_win or 0) if dated else None
    return {
        "win": sum(count.win for count in counts),
        "draw": sum(count.draw for count in counts),
        "loss": sum(count.loss for count in counts),
        "longest_win": longest and longest.longest_win,
        "longest_win_fen": longest and longest.longest_fen,
    }
