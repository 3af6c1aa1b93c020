"""An experiment done again, whatever it is about: rows of published and measured figures, printed and reported."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import rich.table

from engine.console import Console
from learner.report import Block, Cell, Figure, Report, Section, Table, Text, percent, title_in, write_report

Facts = Mapping[str, str | int | float]
PUBLISHED, MEASURED = "published", "measured"
_MISSING = "–"


class ReproduceError(ValueError):
    """Experiments that cannot be done as they were asked for."""


def chosen_experiments(
    experiment: str | None, known: Iterable[str], minutes: float, out: Path, title: str
) -> list[str]:
    """The names of the experiments to do, all of them where none is named.

    Raises ``ReproduceError`` for an unknown experiment, no minutes or endless ones, or another report in its place.
    """
    names = list(known)
    if experiment is not None and experiment not in names:
        raise ReproduceError(f"--experiment {experiment}: there is none of that name: choose {', '.join(names)}")
    if not 0 < minutes < math.inf:
        raise ReproduceError(f"--minutes {minutes:g}: the trainings need more than none, and not for ever")
    if out.exists() and not out.is_dir():
        raise ReproduceError(f"--out {out}: is a file, not a folder for the report")
    there = title_in(out)
    if there not in (None, title):
        raise ReproduceError(f"--out {out}: holds the report “{there}”; choose another folder")
    return names if experiment is None else [experiment]


class Measure(NamedTuple):
    """Something that is measured, and shown in a column, or in two where a figure of it was published.

    Attributes:
        key: its name in rows and in JSON.
        kind: "share" (0 to 1, in per cent), "count", "bytes", "microseconds" or "number" (two digits).
    """

    key: str
    title: str
    kind: Literal["share", "count", "bytes", "microseconds", "number"] = "share"

    def shown(self, value: float | None) -> Cell:
        """A value as it stands in a table."""
        if value is None or self.kind == "share":
            return percent(value)
        if self.kind == "number":
            return f"{value:.1e}" if 0 < value < 0.01 else f"{value:.2g}" if value < 100 else f"{value:,.0f}"
        return f"{value:,.1f} µs" if self.kind == "microseconds" else round(value)


@dataclass(frozen=True)
class Row:
    """One setting of an experiment: values by the key of their measure; what is missing is not known."""

    name: str
    published: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """What an experiment gave.

    Attributes:
        name: as on the command line. question: what it asks, one paragraph.
        notes: what was scaled down, and what else must be known to compare the figures.
        tables: in the report, its figures in other forms.

    Raises:
        ValueError: a row has a value of a measure that there is not, or a share that is none.
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
        """Measure, which of the two, and the heading of every column."""
        for measure in self.measures:
            published = any(measure.key in row.published for row in self.rows)
            if published:
                yield measure, PUBLISHED, f"{measure.title}, published"
            if any(measure.key in row.measured for row in self.rows):
                yield measure, MEASURED, f"{measure.title}, measured" if published else measure.title

    def table(self) -> Table:
        """All rows, published figures beside measured ones."""
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
        """Prints the rows, a line for each measure, and the notes: readable on a terminal of 80 columns."""
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
    """Which published figures were reached, and which not, of these rows and measures, each the better the higher.

    ``why`` tells what stands between a figure that was missed and the published one.
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

    ``report.json`` holds ``facts`` and, by name, ``experiments`` (``Experiment.to_json``). Raises ``ReportError`` if
    two figures have the same name, ``StorageError`` if a file cannot be written.
    """
    about = Table("How it was run", ["", "value"], list(facts.items()))
    sections = [Section("About", [Text(introduction), about]), *(experiment.section() for experiment in experiments)]
    data = {"facts": dict(facts), "experiments": {e.name: e.to_json() for e in experiments}}
    return write_report(folder, Report(title, sections, data))


def run_experiments(
    folder: Path, title: str, introduction: str, facts: Callable[[], Facts], steps: Sequence[tuple[str, Step]]
) -> tuple[Path, list[Experiment]]:
    """Does experiments one after the other, and writes the report anew after each: what is done is never lost.

    A report of some of them says in its facts which are missing.

    Args:
        facts: asked before each writing.
        steps: names of experiments, and what does them. Where a name occurs again, the later one takes its place: an
            experiment that takes long can give what it has so far.

    Returns:
        The path of the report's page, and the experiments.

    Raises:
        KeyboardInterrupt: the user has asked for it; the message says what the report holds.
        ReportError, StorageError: see ``report_experiments``.
    """
    found: dict[str, Experiment] = {}
    written: list[str] = []
    page = folder
    try:
        for place, (name, step) in enumerate(steps):
            found[name] = step()
            left = list(dict.fromkeys(other for other, _ in steps[place + 1 :]))
            missing = {"not done, or not whole": ", ".join(left)} if left else {}
            page = report_experiments(folder, title, introduction, {**facts(), **missing}, list(found.values()))
            written = list(found)
    except KeyboardInterrupt as error:
        if not written:
            raise KeyboardInterrupt("no experiment was done yet, so there is no report") from error
        raise KeyboardInterrupt(f"the report in {folder} holds what was done: {', '.join(written)}") from error
    return page, list(found.values())


def print_experiments(page: Path, experiments: Sequence[Experiment], quiet: bool) -> dict[str, Any]:
    """Prints what was found and where the report is, unless quiet; returns by name ``Experiment.to_json``."""
    console = Console(quiet=quiet)
    for experiment in experiments:
        experiment.print(console)
    console.print(f"Report: {page}", soft_wrap=True)
    return {experiment.name: experiment.to_json() for experiment in experiments}
