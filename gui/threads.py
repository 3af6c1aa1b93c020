"""Background threads: starting them, and ending the program while they still run. No pygame."""

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
WORKERS = ("thinker", "player", "ponder", "endgames", "annotator")  # threads to wait for
LAST_WORK_S = 1.5
LAST_WORK_AFTER_AN_ERROR_S = 20.0  # ``leave`` would prevent the error message


def in_thread(name: str, work: Callable[[], Result]) -> "Future[Result]":
    """Runs ``work`` in a daemon thread; the future gets its result or exception."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def wait_for_threads(seconds: float) -> bool:
    """Waits at most ``seconds`` for the threads of players and oracles; returns whether all have ended. If a thread
    inside a network's library outlives the interpreter, the process aborts."""
    workers = [thread for thread in threading.enumerate() if thread.name in WORKERS]
    deadline = time.monotonic() + seconds
    for thread in workers:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in workers)


def leave() -> None:
    """Ends the process at once; everything must be stored already. Threads may still compile for half a minute, and the
    interpreter must not shut down while they run."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)
