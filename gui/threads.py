"""Background threads: how they begin, and how the program ends while they are still at work. No pygame."""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")
WORKERS = ("thinker", "player", "ponder", "endgames", "annotator")  # names of threads
LAST_WORK_S = 1.5
LAST_WORK_AFTER_AN_ERROR_S = 20.0  # the error has to be told, which ``leave`` would prevent


def in_thread(name: str, work: Callable[[], Result]) -> "Future[Result]":
    """Does work in a thread of its own, which nobody has to wait for."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def wait_for_threads(seconds: float) -> bool:
    """Lets players and oracles finish what they are at, and says whether they have: a thread inside a network's library
    must not outlive the interpreter, which would abort."""
    workers = [thread for thread in threading.enumerate() if thread.name in WORKERS]
    deadline = time.monotonic() + seconds
    for thread in workers:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in workers)


def leave() -> None:
    """Ends the process at once, everything being stored: what is still at work may compile for half a minute, and the
    interpreter must not be taken down under it."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)
