"""Bringing all values of tables into memory."""

from collections.abc import Callable
from pathlib import Path

from .dense import DenseTables, Step, in_steps
from .folder import default_folder
from .material import pairs_up_to
from .solve import Workers


def load_tables(
    folder: Path | None, pieces: int, threads: int | None = None, report: Callable[[Step], None] = lambda step: None
) -> DenseTables:
    """All values of 2 to ``pieces`` pieces: read from a folder's files where they are there, otherwise solved.

    Nothing is written. 2-5 pieces take 53 MB and a few seconds, 2-6 pieces 1.1 GB and some minutes.

    Args:
        folder: may be absent; ``default_folder()`` if None.
        report: told of every pair that has been filled in.

    Raises:
        TableFileError: a file in the folder is damaged or foreign.
    """
    place, tables = folder or default_folder(), DenseTables(pieces)
    with Workers(threads) as workers:
        for step in in_steps(pairs_up_to(pieces), lambda pair: tables.fill_from(place, pair, workers)[1]):
            report(step)
    return tables
