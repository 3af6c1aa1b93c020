"""Crownhead as a program of its own, for tests that start, interrupt or kill it."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def crownhead_program(*arguments: object) -> list[str]:
    """``crownhead ARGUMENTS`` of this checkout, to be run in ``ROOT``; started as the installed command does.

    Not by ``python -m``: Python then ends by the signal instead of the program's exit code, though the interrupt was
    caught, where it came inside a string that is executed (as dataclasses and Numba do).
    """
    return [sys.executable, "-c", "from crownhead import main; main()", *map(str, arguments)]
