"""Reports of experiments: sections of text, tables and figures, written as Markdown, HTML, JSON and PNG files."""

import base64
import html
import importlib.util
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from markdown_it import MarkdownIt

from engine.files import StorageError, atomic_write, make_folder, remove_stale_temporaries

Cell = str | int | float | None
Item = TypeVar("Item")

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]<>|#~&$])")
_MARKED_SIGN = re.compile(r"\\(.)")
_MARKDOWN_START = re.compile(r"^(\d*)([-+=.)])")  # a list or an underline, where a paragraph begins with it
_NUMBER = re.compile(r"[-+−]?[0-9][0-9.,]*( ?(%|µs))?")
_MISSING = "–"
_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; max-width: 70rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2 { line-height: 1.2; color: #1f4e79; }
h2 { border-bottom: 1px solid #ccd6e0; margin-top: 2.5rem; padding-bottom: .2rem; }
em { color: #555; font-size: .9rem; font-style: normal; }
table { border-collapse: collapse; margin-bottom: 1.5rem; }
th, td { padding: .2rem .8rem; border-bottom: 1px solid #e3e8ee; text-align: left; }
th { border-bottom: 2px solid #1f4e79; }
td { font-variant-numeric: tabular-nums; }
"""


class ReportError(ValueError):
    """A report that cannot be written as it is; the message names the part and says what is wrong."""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _marked(text: str) -> str:
    return _MARKDOWN_SIGNS.sub(r"\\\1", _one_line(text))


def _shown(cell: Cell) -> str:
    if cell is None:
        return _MISSING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell


@dataclass(frozen=True)
class Text:
    """One paragraph of plain text: signs that Markdown or HTML would read are shown as they are."""

    text: str

    def markdown(self) -> str:
        return _MARKDOWN_START.sub(r"\1\\\2", _marked(self.text))


@dataclass(frozen=True)
class Table:
    """A table; whole numbers get thousands separators, other numbers four digits, None becomes a dash.

    Raises ``ReportError`` if there is no column, or a row of another length than the header.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        if not self.header:
            raise ReportError(f"table {self.caption!r} has no column")
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.header):
                raise ReportError(
                    f"table {self.caption!r}: row {number} has {len(row)} cells, the header {len(self.header)}"
                )

    def _cells(self) -> tuple[list[list[str]], list[bool]]:
        """All cells as text, and which columns hold numbers: never the first, which holds names."""
        rows = [[_shown(cell) for cell in row] for row in self.rows]
        numeric = [
            column > 0 and all(row[column] == _MISSING or _NUMBER.fullmatch(row[column]) is not None for row in rows)
            for column in range(len(self.header))
        ]
        return rows, numeric

    def markdown(self) -> str:
        rows, numeric = self._cells()
        lines = [[_marked(cell) for cell in row] for row in [self.header, *rows]]
        lines.insert(1, ["---:" if right else "---" for right in numeric])
        return f"*{_marked(self.caption)}*\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Figure:
    """A picture, stored as ``{name}.png``; the caption also stands in for it where it cannot be seen.

    Raises ``ReportError`` if the name is not made of a-z, 0-9, ``-`` and ``_``, or the bytes are no PNG image.
    """

    name: str
    png: bytes = field(repr=False)
    caption: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ReportError(f"figure name {self.name!r}: only a-z, 0-9, - and _ are allowed")
        if not self.png.startswith(_PNG_SIGNATURE):
            raise ReportError(f"figure {self.name!r} is not a PNG image")

    @property
    def file_name(self) -> str:
        return f"{self.name}.png"

    def markdown(self) -> str:
        caption = _marked(self.caption)
        return f"![{caption}]({self.file_name})\n\n*{caption}*"


Block = Text | Table | Figure


class Section(NamedTuple):
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]


class Report(NamedTuple):
    """A report: what people read (title, sections) and what programs read (``data``, written as it is)."""

    title: str
    sections: Sequence[Section]
    data: Mapping[str, Any]

    def figures(self) -> Iterator[Figure]:
        return (block for section in self.sections for block in section.blocks if isinstance(block, Figure))


def percent(share: float | None, digits: int = 2) -> str | None:
    """A fraction, 0 to 1, as tables show it; None is a dash."""
    return None if share is None else f"{100 * share:.{digits}f} %"


def evenly_spaced(items: Sequence[Item], number: int | None) -> list[Item]:
    """``number`` of the items, at least 2, evenly spaced, with the first and the last; all if it is None or larger."""
    if number is None or number >= len(items):
        return list(items)
    return [items[round(place * (len(items) - 1) / (number - 1))] for place in range(number)]


def make_writable_folder(folder: Path) -> None:
    """Makes a folder and tries to write there, before the work and not after it; raises ``StorageError``."""
    make_folder(folder)
    probe = folder / ".probe"
    try:
        atomic_write(probe, b"")
        probe.unlink(missing_ok=True)  # another process may have tried at the same time
    except OSError as error:
        raise StorageError(error.errno, f"cannot write into {folder}: {os.strerror(error.errno or 0)}") from error


REPORT_PACKAGES = ("matplotlib", "scipy", "tensorboard")
"""Packages of the extra ``report``, for figures, fits and curves; playing and training do without."""


def missing_packages(packages: Sequence[str] = REPORT_PACKAGES) -> list[str]:
    """Packages of the extra ``report`` that are not installed."""
    return [name for name in packages if importlib.util.find_spec(name) is None]


def missing_message() -> str:
    """What to tell who asks for a report without the extra."""
    return f"this needs {', '.join(missing_packages())}: pip install 'crownhead[report]'"


def check_packages() -> None:
    """Raises ``ReportError`` unless the extra ``report`` is installed: before the work and not after it."""
    if missing_packages():
        raise ReportError(missing_message())


def write_report(folder: Path, report: Report) -> Path:
    """Writes ``report.md``, ``report.json``, ``report.html`` and a PNG file for each figure.

    Every file is written atomically, ``report.md`` first, by which ``check_title`` knows the report again, and the page
    last; the page holds its figures itself, so it can be sent alone. Files of other names in the folder stay.

    Returns:
        The path of ``report.html``.

    Raises:
        ReportError: two figures have the same name, or the data is not JSON; nothing is written.
        StorageError: the folder cannot be made, or a file in it cannot be written.
    """
    figures = list(report.figures())
    names = [figure.name for figure in figures]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ReportError(f"two figures are named {min(twice)!r}")
    try:
        data = json.dumps(report.data, indent=2, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ReportError(f"the data of report {report.title!r} is not JSON: {error}") from error
    markdown, page = to_markdown(report), to_html(report)
    make_folder(folder)
    remove_stale_temporaries(folder)
    atomic_write(folder / "report.md", markdown.encode())
    for figure in figures:
        atomic_write(folder / figure.file_name, figure.png)
    atomic_write(folder / "report.json", f"{data}\n".encode())
    atomic_write(folder / "report.html", page.encode())
    return folder / "report.html"


def check_title(folder: Path, title: str, option: str) -> None:
    """Raises ``ReportError`` if ``write_report`` would replace there what is no report whose title begins like this.

    Args:
        option: what named the folder, for the message.

    Raises:
        StorageError: the report there cannot be read.
    """
    path = folder / "report.md"
    if not path.exists():
        for other in (folder / "report.json", folder / "report.html"):
            if other.exists():
                raise ReportError(f"{option} {folder}: holds a {other.name} of something else; choose another folder")
        return
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            there = _MARKED_SIGN.sub(r"\1", lines.readline().removeprefix("# ").strip())
    except OSError as error:
        raise StorageError(error.errno, f"{path}: cannot be read: {os.strerror(error.errno or 0)}") from error
    if not there.startswith(title):
        raise ReportError(f"{option} {folder}: holds the report “{there}”; choose another folder")


def to_markdown(report: Report) -> str:
    """The report as Markdown with GitHub's tables; figures are links to the PNG files."""
    parts = [f"# {_marked(report.title)}"]
    for section in report.sections:
        parts += [f"## {_marked(section.title)}", *(block.markdown() for block in section.blocks)]
    return "\n\n".join(parts) + "\n"


def to_html(report: Report) -> str:
    """The report as one HTML page that needs no other file: style and figures are inside."""
    reader = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    tokens = reader.parse(to_markdown(report))
    images = {figure.file_name: base64.b64encode(figure.png).decode() for figure in report.figures()}
    for image in (child for token in tokens for child in token.children or () if child.type == "image"):
        image.attrSet("src", f"data:image/png;base64,{images[str(image.attrGet('src'))]}")
    head = f'<meta charset="utf-8">\n<title>{html.escape(report.title)}</title>\n<style>{_STYLE}</style>'
    body = reader.renderer.render(tokens, reader.options, {})
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}</body>\n</html>\n'
