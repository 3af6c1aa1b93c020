"""Repeated experiments of papers: rows of published and measured figures, printed and written as a report."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import rich.table

from engine.console import Console
from learner.report import Block, Cell, Figure, Report, Section, Table, Text, check_title, percent, write_report

Facts = Mapping[str, str | int | float]
PUBLISHED, MEASURED = "published", "measured"
_MISSING = "–"


class ReproduceError(ValueError):
    """Experiments cannot be done with these options."""


def chosen_experiments(
    experiment: str | None, known: Iterable[str], minutes: float, out: Path, title: str
) -> list[str]:
    """The names of the experiments to do: ``experiment``, or all if it is None.

    Raises ``ReproduceError`` for an unknown experiment, minutes that are not positive and finite, or if ``out`` is a
    file, ``ReportError`` if it holds another report.
    """
    names = list(known)
    if experiment is not None and experiment not in names:
        raise ReproduceError(f"--experiment {experiment}: there is none of that name: choose {', '.join(names)}")
    if not 0 < minutes < math.inf:
        raise ReproduceError(f"--minutes {minutes:g}: must be above 0 and finite")
    if out.exists() and not out.is_dir():
        raise ReproduceError(f"--out {out}: is a file, not a folder for the report")
    check_title(out, title, "--out")
    return names if experiment is None else [experiment]


class ShuffledRows:
    """Row numbers 0 to ``size - 1`` without end, each as often as every other, in an order that changes."""

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._random = size, np.random.default_rng(seed)
        self._order = np.zeros(0, np.int64)

    def take(self, n: int) -> np.ndarray:
        """The next ``n`` row numbers, int64 [n]."""
        rounds = max(0, -(-(n - len(self._order)) // self._size))
        self._order = np.concatenate([self._order, *(self._random.permutation(self._size) for _ in range(rounds))])
        chosen, self._order = self._order[:n], self._order[n:]
        return chosen


class Measure(NamedTuple):
    """A measured quantity, shown in one column, or in two if published figures of it exist.

    Attributes:
        key: its name in rows and in JSON.
        title: heading of its columns.
        kind: "share" (0 to 1, shown in percent), "count", "bytes", "microseconds" or "number" (two digits).
    """

    key: str
    title: str
    kind: Literal["share", "count", "bytes", "microseconds", "number"] = "share"

    def shown(self, value: float | None) -> Cell:
        """Formats a value for a table."""
        if value is None or self.kind == "share":
            return percent(value)
        if self.kind == "number":
            return f"{value:.1e}" if 0 < value < 0.01 else f"{value:.2g}" if value < 100 else f"{value:,.0f}"
        return f"{value:,.1f} µs" if self.kind == "microseconds" else round(value)


@dataclass(frozen=True)
class Row:
    """One setting of an experiment: key of a measure → value, published and measured; missing values are unknown."""

    name: str
    published: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """Results of an experiment.

    Attributes:
        name: name on the command line.
        question: the question that it answers, in one paragraph.
        notes: what was scaled down, and other information needed to compare the figures.
        tables: more tables for the report, with figures in other forms.

    Raises:
        ValueError: a row has a value of an unknown measure, a negative one, or a share above 1.
    """

    name: str
    title: str
    question: str
    measures: Sequence[Measure]
    rows: Sequence[Row]
    figures: Sequence[Figure]
    notes: Sequence[str]
    tables: Sequence[Table] = ()

    def __post_init__(self) -> None:
        kinds = {measure.key: measure.kind for measure in self.measures}
        for row in self.rows:
            for key, value in [*row.published.items(), *row.measured.items()]:
                if key not in kinds:
                    raise ValueError(f"experiment {self.name}, row {row.name!r}: there is no measure {key!r}")
                if value < 0 or (kinds[key] == "share" and value > 1):
                    raise ValueError(f"experiment {self.name}, row {row.name!r}: {key} cannot be {value}")

    def to_json(self) -> dict[str, Any]:
        """``title``, ``rows`` (``name``; ``published`` and ``measured``: every measure, null if unknown), ``notes``."""
        rows = [
            {
                "name": row.name,
                PUBLISHED: {measure.key: row.published.get(measure.key) for measure in self.measures},
                MEASURED: {measure.key: row.measured.get(measure.key) for measure in self.measures},
            }
            for row in self.rows
        ]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}

    def _columns(self) -> Iterator[tuple[Measure, str, str]]:
        """Yields (measure, ``PUBLISHED`` or ``MEASURED``, heading) of every column."""
        for measure in self.measures:
            published = any(measure.key in row.published for row in self.rows)
            if published:
                yield measure, PUBLISHED, f"{measure.title}, published"
            if any(measure.key in row.measured for row in self.rows):
                yield measure, MEASURED, f"{measure.title}, measured" if published else measure.title

    def table(self) -> Table:
        """Table of all rows, with published figures beside measured ones."""
        columns = list(self._columns())
        rows = [
            [row.name, *(measure.shown(getattr(row, which).get(measure.key)) for measure, which, _ in columns)]
            for row in self.rows
        ]
        return Table(self.title, ["", *(heading for _, _, heading in columns)], rows)

    def section(self) -> Section:
        blocks: list[Block] = [Text(self.question), self.table(), *self.tables, *self.figures, *map(Text, self.notes)]
        return Section(self.title, blocks)

    def print(self, console: Console) -> None:
        """Prints the rows, with one line per measure to fit 80 columns, and the notes."""
        shown = rich.table.Table(title=self.title, title_justify="left", title_style="bold", show_lines=True)
        shown.add_column("", min_width=14)
        shown.add_column("", no_wrap=True)
        both = (PUBLISHED, MEASURED) if any(row.published for row in self.rows) else (MEASURED,)
        for heading in both:
            shown.add_column(heading, justify="right", no_wrap=True)
        for row in self.rows:
            known = [measure for measure in self.measures if measure.key in {**row.published, **row.measured}]
            columns = (
                [_printed(measure.shown(getattr(row, which).get(measure.key))) for measure in known] for which in both
            )
            shown.add_row(row.name, *map("\n".join, ([measure.title for measure in known], *columns)))
        console.print(shown)
        for note in self.notes:
            console.print(note, highlight=False, style="dim")


def comparison_note(rows: Sequence[Row], measures: Sequence[Measure], why: str) -> str:
    """A note on which published figures were reached and which were missed.

    Args:
        measures: measures to compare; larger values are better.
        why: explanation added if a figure was missed.
    """
    both = [
        (f"{row.name}, {measure.title}", measure, row.published[measure.key], row.measured[measure.key])
        for row in rows
        for measure in measures
        if measure.key in row.published and measure.key in row.measured
    ]
    missed = [
        f"{name} ({measure.shown(here)}, published {measure.shown(there)})"
        for name, measure, there, here in both
        if here < there
    ]
    if not both:
        return "No published figure is of what was measured here."
    reached = f"Of the {len(both)} published figures beside measured ones {len(both) - len(missed)} are reached"
    return f"{reached}; missed: {'; '.join(missed)}. {why}" if missed else f"{reached}."


Step = Callable[[], Experiment]


def _printed(cell: Cell) -> str:
    if cell is None:
        return _MISSING
    return cell if isinstance(cell, str) else f"{cell:,}"


def report_experiments(
    folder: Path, title: str, introduction: str, facts: Facts, experiments: Sequence[Experiment]
) -> Path:
    """Writes the report of experiments (``report.write_report``); returns the path of the page.

    ``report.json`` has the keys ``facts`` and ``experiments`` (name → ``Experiment.to_json``). Raises ``ReportError``
    if two figures have the same name, ``StorageError`` if a file cannot be written.
    """
    about = Table("How it was run", ["", "value"], list(facts.items()))
    sections = [Section("About", [Text(introduction), about]), *(experiment.section() for experiment in experiments)]
    data = {"facts": dict(facts), "experiments": {e.name: e.to_json() for e in experiments}}
    return write_report(folder, Report(title, sections, data))


def run_experiments(
    folder: Path, title: str, introduction: str, facts: Callable[[], Facts], steps: Sequence[tuple[str, Step]]
) -> tuple[Path, list[Experiment]]:
    """Runs experiments one after another, and rewrites the report after each, so that no result is lost.

    An incomplete report names the missing experiments in its facts.

    Args:
        facts: returns the facts; called before each writing.
        steps: (name, function that runs the experiment). A later step with the same name replaces the result of the
            earlier one, so a long experiment can report intermediate results.

    Returns:
        The path of the report's page, and the experiments.

    Raises:
        KeyboardInterrupt: Ctrl-C; the message says what the report contains.
        ReportError, StorageError: see ``report_experiments``.
    """
    found: dict[str, Experiment] = {}

    def write(left: Sequence[tuple[str, Step]]) -> Path:
        names = ", ".join(dict.fromkeys(name for name, _ in left))
        missing = {"not done, or not whole": names} if left else {}
        return report_experiments(folder, title, introduction, {**facts(), **missing}, list(found.values()))

    page, done = folder, 0
    try:
        for name, step in steps:
            found[name] = step()
            done += 1
            page = write(steps[done:])
    except KeyboardInterrupt as error:
        if not found:
            raise KeyboardInterrupt("no experiment was done yet, so there is no report") from error
        write(steps[done:])  # it may have come while the report was written
        raise KeyboardInterrupt(f"the report in {folder} holds what was done: {', '.join(found)}") from error
    return page, list(found.values())


def print_experiments(page: Path, experiments: Sequence[Experiment], quiet: bool) -> dict[str, Any]:
    """Prints the results and the path of the report, unless ``quiet``; returns name → ``Experiment.to_json``."""
    console = Console(quiet=quiet)
    for experiment in experiments:
        experiment.print(console)
    console.print(f"Report: {page}", soft_wrap=True)
    return {experiment.name: experiment.to_json() for experiment in experiments}
