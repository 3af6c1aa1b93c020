"""Processes that play: how they are started. They ignore Ctrl-C and end together with the process that started them."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

_PRELOADED = "selfplay.actors.preloaded"
PATH_BEFORE = "CROWNHEAD_PATH_BEFORE"  # PYTHONPATH, for the server to restore


def player_context() -> "ForkServerContext | SpawnContext":
    """How to start processes that play.

    On Linux they are forks of a server process that has imported all that they need: each starts in milliseconds
    instead of seconds, and they share its memory. The server starts with the first call and ends with this process.
    """
    if sys.platform != "linux":  # on macOS libraries may fail after a fork; Windows has none
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    forkserver.set_forkserver_preload([_PRELOADED])
    with _blocked(signal.SIGINT, signal.SIGTERM), _own_path():  # a scheduler sends SIGTERM to the server, too
        forkserver.ensure_running()
    return multiprocessing.get_context("forkserver")


@contextlib.contextmanager
def _own_path() -> Iterator[None]:
    """Inside this context, new Pythons look for modules where this one does, and not in the current folder first."""
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONSAFEPATH", PATH_BEFORE)}
    path = os.pathsep.join(os.path.abspath(place) for place in sys.path)
    os.environ.update({"PYTHONPATH": path, "PYTHONSAFEPATH": "1", PATH_BEFORE: before["PYTHONPATH"] or ""})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def no_interrupt() -> Iterator[None]:
    """Inside this context, new processes start with Ctrl-C blocked; this process still receives it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    with _blocked(signal.SIGINT):
        yield


@contextlib.contextmanager
def _blocked(*signals: signal.Signals) -> Iterator[None]:
    resource_tracker.ensure_running()  # else the first process would start it and unblock signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def on_sigterm(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Sets this process's handler of SIGTERM, which is blocked in processes of ``player_context`` on Linux."""
    signal.signal(signal.SIGTERM, handler)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def follow_parent() -> None:
    """Makes this process ignore Ctrl-C, and end when its parent process ends for any reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    leave_with_parent(0.0)


def leave_with_parent(seconds: float) -> None:
    """Ends this process so many seconds after its parent process, if it has not ended by itself."""
    threading.Thread(target=_leave, args=(seconds,), daemon=True).start()


def give_way(nice: int) -> None:
    """Lowers the priority of this process by ``nice`` steps, so that actors do not slow down the learner."""
    if hasattr(os, "nice"):
        os.nice(nice)


def _leave(seconds: float) -> None:
    parent, server = multiprocessing.parent_process(), os.getppid()  # the same process without a server
    if parent is not None:
        while not multiprocessing.connection.wait([parent.sentinel], 1.0) and os.getppid() == server:
            pass
        time.sleep(seconds)
        os._exit(1)
