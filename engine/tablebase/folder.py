"""The folders of tables, and the command that builds missing tables."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from ..files import StorageError

FOLDER_VARIABLE = "CROWNHEAD_TABLEBASE"
SHIPPED = Path(__file__).parent / "data"
SHIPPED_KINGS = Path(__file__).parent / "data_kings"
"""Distances of three kings against two, the only wins of 5 pieces for which ``conversion`` does not find a way."""


def default_folder() -> Path:
    """The folder of tables: from the environment variable ``CROWNHEAD_TABLEBASE``, or in the user's cache.

    Raises ``StorageError`` if the variable names a folder of a user who is not there.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    cache = platformdirs.user_cache_path("crownhead", appauthor=False)
    try:
        return Path(chosen).expanduser() if chosen else cache / "tablebase"
    except RuntimeError as error:
        raise StorageError(None, f"{FOLDER_VARIABLE} is {chosen!r}: there is no such user") from error


def build_advice(folder: Path, pieces: int | None, distance: bool, slices: Sequence[str] | None = None) -> str:
    """The command line, in backquotes, that builds tables in a folder.

    Args:
        folder: not in the command if it is the default one or that of the package, whose missing tables are built in
            the default one.
        pieces: largest number of pieces; None: the default of the command.
        distance: whether to build tables of distances, too.
        slices: names of those to build; None: all.
    """
    words = ["crownhead tablebase build"]
    if pieces is not None:
        words.append(f"--pieces {pieces}")
    if distance:
        words.append("--distance")
    if slices is not None:
        words.append(f"--slices {','.join(slices)}")
    if folder not in (default_folder(), SHIPPED, SHIPPED_KINGS):
        words.append(f"--dir {shlex.quote(str(folder))}")
    return f"`{' '.join(words)}`"
