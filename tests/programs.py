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


def until(look: Callable[[], Found], what: str, seconds: float = PATIENCE) -> Found:
    """Calls ``look`` until its result is true, and returns it. Rests longer than ``look`` takes, for others to work."""
    deadline = time.monotonic() + seconds
    while True:
        begin = time.monotonic()
        if found := look():
            return found
        assert begin < deadline, f"{seconds} s have passed, and never: {what}"
        time.sleep(max(0.02, 4 * (time.monotonic() - begin)))


def wait_until(
    condition: Callable[[], object],
    process: subprocess.Popen[Any] | None = None,
    seconds: float = PATIENCE,
    log: Path | None = None,
) -> None:
    """Waits until a condition holds.

    Args:
        condition: called repeatedly.
        process: the test fails if this process ends before.
        seconds: longest wait; then the test fails.
        log: shown if the test fails.
    """
    deadline = time.monotonic() + seconds

    def holds() -> bool:
        has_ended, is_late = process is not None and process.poll() is not None, time.monotonic() > deadline
        if condition():
            return True
        said = log.read_text() if log else ""
        assert not has_ended, f"the program ended too early\n{said}"
        assert not is_late, f"{seconds} s have passed\n{said}"
        return False

    until(holds, "an end of the wait", 2 * seconds)


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
