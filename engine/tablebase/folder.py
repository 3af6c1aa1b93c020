"""Where tables lie, and the command that builds what is lacking there."""

import os
import shlex
from pathlib import Path

import platformdirs

FOLDER_VARIABLE = "CROWNHEAD_TABLEBASE"
SHIPPED = Path(__file__).parent / "data"
SHIPPED_KINGS = Path(__file__).parent / "data_kings"
"""Distances of three kings against two: the only wins of 5 pieces in which a search finds no way (``conversion``)."""


def default_folder() -> Path:
    """The tables' folder: the environment variable ``CROWNHEAD_TABLEBASE``, or a folder in the user's cache."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    cache = platformdirs.user_cache_path("crownhead", appauthor=False)
    return Path(chosen).expanduser() if chosen else cache / "tablebase"


def build_advice(folder: Path, pieces: int | None, distance: bool) -> str:
    """The command line, between backquotes, that builds tables in a folder.

    Args:
        folder: left out of the command if it is the default one, or that of the tables that come with the package:
            what these lack is built in the default one.
        pieces: None leaves the number to the command.
    """
    words = ["crownhead tablebase build"]
    if pieces is not None:
        words.append(f"--pieces {pieces}")
    if distance:
        words.append("--distance")
    if folder not in (default_folder(), SHIPPED):
        words.append(f"--dir {shlex.quote(str(folder))}")
    return f"`{' '.join(words)}`"
