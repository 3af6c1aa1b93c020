"""Bringing all values of tables into memory."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .build import Step, pairs_up_to
from .dense import DenseTables
from .folder import default_folder
from .layout import layout_of
from .slice_file import SliceFile, file_name


def load_tables(
    folder: Path | None,
    pieces: int,
    threads: int | None = None,
    report: Callable[[Step], None] = lambda step: None,
) -> DenseTables:
    """All values of 2 to ``pieces`` pieces: from a folder's files as far as they are there, otherwise solved.

    Nothing is written. 2-5 pieces take 53 MB and a few seconds, 2-6 pieces 1.1 GB and some minutes.

    Args:
        folder: may be absent; ``default_folder()`` if None.
        report: told of every pair that has been filled in.

    Raises:
        TableFileError: a file in the folder is damaged or foreign.
    """
    folder = folder or default_folder()
    tables, threads = DenseTables(pieces), threads or os.cpu_count() or 1
    pairs, done = pairs_up_to(pieces), 0
    total = sum(layout_of(pair).words for pair in pairs)
    with ThreadPoolExecutor(threads) as executor:
        for pair in pairs:
            path = folder / file_name(pair, "wdl")
            there = path.exists()
            if there:
                with SliceFile(path, checked=True) as file:
                    tables.restore(file, executor, threads)
            else:
                tables.solve(pair, executor, threads)
            done += layout_of(pair).words
            report(Step(pair, done, total, not there))
    return tables
