"""Where results and progress are shown."""

from typing import Any

from rich import console as rich_console
from rich.progress import Progress, ProgressColumn


class Console(rich_console.Console):
    """A console that shows names as they are: of ``:beginner:`` rich would make a picture. ``options``: see there."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)


def progress_console(quiet: bool) -> Console:
    """Standard error. On a terminal somebody is watching, also where only a command's result is wanted (``quiet``)."""
    console = Console(stderr=True)
    console.quiet = quiet and not console.is_terminal
    return console


class Display(Progress):
    """Live lines on a terminal; elsewhere none, and only what is printed to its console is seen, unless ``quiet``."""

    def __init__(self, quiet: bool, *columns: ProgressColumn) -> None:
        console = progress_console(quiet)
        super().__init__(*columns, console=console, disable=not console.is_terminal)
