"""Ctrl-C at safe places only: Python raises it between any two instructions, in the middle of a lock's as well.

So does SIGTERM, by which schedulers end a program, where its handler is that of Ctrl-C (``crownhead.main``).
"""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def interrupt_noted() -> Iterator[Callable[[], bool]]:
    """Yields whether the user has interrupted the program since; a second Ctrl-C interrupts at once.

    In other threads than the main one, and where the program handles interrupts in its own way, nothing changes.
    """
    times: list[int] = []
    usual = signal.default_int_handler
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is usual]
    if threading.current_thread() is not threading.main_thread():
        numbers.clear()

    def handle(handler: Callable[[int, Any], Any]) -> None:
        for number in numbers:
            signal.signal(number, handler)

    def note(number: int, frame: Any) -> None:
        times.append(number)
        handle(usual)

    handle(note)
    try:
        yield lambda: bool(times)
    finally:
        handle(usual)


@contextmanager
def interrupt_held() -> Iterator[None]:
    """Puts an interrupt off to the end of the ``with`` statement, which then raises ``KeyboardInterrupt``; see
    ``interrupt_noted``."""
    with interrupt_noted() as interrupted:
        yield
    if interrupted():
        raise KeyboardInterrupt


def map_threads(executor: Executor, work: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
    """``executor.map`` to its end, in order; an interrupt meanwhile is raised then.

    Whoever waits for threads is inside a lock nearly all the time; an interrupt there ends as another error than
    ``KeyboardInterrupt`` (``RuntimeError``: cannot release un-acquired lock).
    """
    with interrupt_held():
        return list(executor.map(work, *arguments))
