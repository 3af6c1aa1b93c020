"""Child processes: they ignore Ctrl-C, and end when the process that started them has ended."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker


@contextlib.contextmanager
def no_interrupt() -> Iterator[None]:
    """Ctrl-C is for this process alone: one that is started meanwhile does not get it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it with the first process would let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def follow_parent() -> None:
    """Makes a new process ignore Ctrl-C, and end when the one that started it has gone for any reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def give_way() -> None:
    """This process takes what processor time others leave: a learner beside actors waits for none of them."""
    if hasattr(os, "nice"):
        os.nice(10)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
