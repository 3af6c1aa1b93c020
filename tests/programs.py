"""Runs Crownhead's command line: as a process, which tests can interrupt or kill, or within the test's process."""

import contextlib
import io
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import crownhead

ROOT = Path(__file__).parents[1]
PATIENCE = 300.0  # seconds to wait for anything: a program may compile for minutes on a busy machine
Found = TypeVar("Found")


def crownhead_program(*arguments: object) -> list[str]:
    """The command ``crownhead ARGUMENTS`` of this checkout, to be run in ``ROOT``; it starts as the installed command
    does.

    It is not ``python -m``: if the interrupt came inside code run by ``exec`` (as in dataclasses and Numba), Python
    would then end by the signal and not with the program's exit code, although the interrupt was caught.
    """
    return [sys.executable, "-c", "from crownhead import main; main()", *map(str, arguments)]


def wait_until(
    condition: Callable[[], Found],
    process: subprocess.Popen[Any] | None = None,
    seconds: float = PATIENCE,
    log: Path | None = None,
    what: str = "what the test waits for",
) -> Found:
    """Waits until a condition is true, and returns its value. Rests longer than a look takes, for others to work.

    Args:
        condition: called repeatedly.
        process: the test fails if this process ends before.
        seconds: longest wait; then the test fails.
        log: shown if the test fails.
        what: named if the test fails.
    """
    deadline = time.monotonic() + seconds
    while True:
        begin, has_ended = time.monotonic(), process is not None and process.poll() is not None
        if found := condition():
            return found
        said = log.read_text() if log else ""
        assert not has_ended, f"the program ended too early\n{said}"
        assert begin < deadline, f"{seconds} s have passed, and never: {what}\n{said}"
        time.sleep(max(0.02, 4 * (time.monotonic() - begin)))


def until(look: Callable[[], Found], what: str, seconds: float = PATIENCE) -> Found:
    """``wait_until`` for something that is named."""
    return wait_until(look, seconds=seconds, what=what)


def crownhead_here(*arguments: object, folder: Path = ROOT, given: str = "") -> subprocess.CompletedProcess[str]:
    """Runs ``crownhead ARGUMENTS`` in this process, which saves the seconds for starting a program.

    Args:
        folder: working directory.
        given: text of standard input.
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
