"""Where results and progress are shown."""

from typing import Any

from rich import console as rich_console
from rich.progress import Progress, ProgressColumn


class Console(rich_console.Console):
    """A console that shows text as it is: rich would turn ``:beginner:`` into a picture, and ``[x]`` into a style.

    ``options``: those of rich.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, markup=False, **options)


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
