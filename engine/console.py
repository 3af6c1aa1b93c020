"""Where progress is shown."""

from rich.console import Console


def progress_console(quiet: bool) -> Console:
    """Standard error. On a terminal somebody is watching, also where only a command's result is wanted (``quiet``)."""
    console = Console(stderr=True)
    console.quiet = quiet and not console.is_terminal
    return console
