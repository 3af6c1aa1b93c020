"""Where progress is shown."""

from rich.console import Console
from rich.progress import Progress, ProgressColumn


def progress_console(quiet: bool) -> Console:
    """Standard error. On a terminal somebody is watching, also where only a command's result is wanted (``quiet``)."""
    console = Console(emoji=False, stderr=True)
    console.quiet = quiet and not console.is_terminal
    return console


class Display(Progress):
    """Live lines on a terminal; elsewhere none, and only what is printed to its console is seen, unless ``quiet``."""

    def __init__(self, quiet: bool, *columns: ProgressColumn) -> None:
        console = progress_console(quiet)
        super().__init__(*columns, console=console, disable=not console.is_terminal)
