"""Helpers for child processes, which ignore Ctrl-C and end together with the process that started them."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing import resource_tracker


@contextlib.contextmanager
def no_interrupt() -> Iterator[None]:
    """Inside this context, new processes start with Ctrl-C blocked; this process still receives it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else the first process would start it and unblock signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def follow_parent() -> None:
    """Makes this process ignore Ctrl-C, and end when its parent process ends for any reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    leave_with_parent(0.0)


def leave_with_parent(seconds: float) -> None:
    """Ends this process so many seconds after its parent process, if it has not ended by itself."""
    threading.Thread(target=_leave, args=(seconds,), daemon=True).start()


def give_way() -> None:
    """Lowers the priority of this process, so that actors do not slow down the learner."""
    if hasattr(os, "nice"):
        os.nice(10)


def _leave(seconds: float) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        time.sleep(seconds)
        os._exit(1)
