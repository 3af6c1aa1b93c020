"""Crownhead's command line: as a program of its own, which tests interrupt or kill, and within the test's process."""

import contextlib
import io
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import crownhead

ROOT = Path(__file__).parents[1]


def crownhead_program(*arguments: object) -> list[str]:
    """``crownhead ARGUMENTS`` of this checkout, to be run in ``ROOT``; started as the installed command does.

    Not by ``python -m``: Python then ends by the signal instead of the program's exit code, though the interrupt was
    caught, where it came inside a string that is executed (as dataclasses and Numba do).
    """
    return [sys.executable, "-c", "from crownhead import main; main()", *map(str, arguments)]


def crownhead_here(*arguments: object, folder: Path = ROOT, given: str = "") -> subprocess.CompletedProcess[str]:
    """``crownhead ARGUMENTS`` in this process, which spares the seconds in which a program starts.

    Args:
        folder: working directory.
        given: standard input.
    """
    words = ["crownhead", *map(str, arguments)]
    printed, said, on_sigterm = io.StringIO(), io.StringIO(), signal.getsignal(signal.SIGTERM)
    streams = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said)
    with streams[0], streams[1], contextlib.chdir(folder), patch.multiple(sys, argv=words, stdin=io.StringIO(given)):
        try:
            crownhead.main()
        except SystemExit as end:
            code = end.code
        finally:
            signal.signal(signal.SIGTERM, on_sigterm)
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, printed.getvalue(), said.getvalue())
