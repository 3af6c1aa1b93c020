"""Where results and progress are shown."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

from rich import console as rich_console
from rich import table as rich_table
from rich.cells import cell_len
from rich.measure import Measurement
from rich.progress import Progress, ProgressColumn

_USUAL_WIDTH = 80  # where nobody says how wide the terminal is
_WIDEST = 10_000


class Console(rich_console.Console):
    """A console that shows text as it is: rich would turn ``:beginner:`` into a picture, and ``[x]`` into a style.

    ``options``: those of rich.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, markup=False, **options)
        self.width = self.width or _USUAL_WIDTH  # some programs that start others set COLUMNS to 0

    def print(self, *objects: Any, **options: Any) -> None:
        """As that of rich, which would also cut off the lines of a file or a pipe."""
        super().print(*objects, **{"crop": self.is_terminal, **options})


class Table(rich_table.Table):
    """A table as rich makes it, whose cells are never broken: columns of three letters are hard to read.

    Where headings are broken and it still has no room, each row is a text on a terminal; files get the wide table.
    """

    def __rich_console__(
        self, console: rich_console.Console, options: rich_console.ConsoleOptions
    ) -> rich_console.RenderResult:
        wide = options.update(max_width=_WIDEST)
        width = Measurement.get(console, wide, self).maximum
        compact = self._with_broken_headings()
        if width <= options.max_width:
            yield from super().__rich_console__(console, options)
        elif Measurement.get(console, wide, compact).maximum <= options.max_width:
            yield from rich_table.Table.__rich_console__(compact, console, options)
        elif not console.is_terminal:
            yield from super().__rich_console__(console, options.update(max_width=width))
        else:
            yield "\n".join([*filter(None, [str(self.title or "")]), *self._rows_as_texts()])

    def _with_broken_headings(self) -> "Table":
        compact = copy(self)
        compact.columns = [replace(column, width=_least_width(column)) for column in self.columns]
        return compact

    def _rows_as_texts(self) -> Iterator[str]:
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            named = zip((str(column.header) for column in self.columns), map(str, cells), strict=True)
            yield ", ".join(f"{name} {cell}".strip() for name, cell in named if cell)


def _least_width(column: rich_table.Column) -> int:
    """Columns of the terminal that its widest cell takes, or the longest word above them."""
    lines = (line for cell in column.cells for line in str(cell).splitlines())
    return max(map(cell_len, [*lines, *str(column.header).split(), ""]))


def progress_console(quiet: bool) -> Console:
    """A console on standard error. With ``quiet`` it shows nothing, unless it is a terminal, where somebody watches."""
    console = Console(stderr=True)
    console.quiet = quiet and not console.is_terminal
    return console


class Display(Progress):
    """Progress as live lines on a terminal. Elsewhere only what is printed is shown, and with ``quiet`` nothing."""

    def __init__(self, quiet: bool, *columns: ProgressColumn) -> None:
        console = progress_console(quiet)
        super().__init__(*columns, console=console, disable=not console.is_terminal)
