"""Ctrl-C at safe places only."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.interrupts import interrupt_held, interrupt_noted, map_threads

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")


@pytest.fixture(autouse=True)
def usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # whatever happened
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_threads_finish_their_work_before_an_interrupt() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number == 0:
            press()
        time.sleep(0.02)
        done.append(number)

    with ThreadPoolExecutor(2) as executor, pytest.raises(KeyboardInterrupt):
        map_threads(executor, work, range(8))
    assert sorted(done) == list(range(8))


def test_without_an_interrupt_nothing_changes() -> None:
    with ThreadPoolExecutor(2) as executor:
        assert map_threads(executor, pow, range(5), [2] * 5) == [0, 1, 4, 9, 16]
        with pytest.raises(ZeroDivisionError):
            map_threads(executor, lambda number: 1 // number, [1, 0])


def test_a_second_interrupt_does_not_wait() -> None:
    reached = []

    @interrupt_held()
    def impatient() -> None:
        press()
        reached.append(1)
        press()
        time.sleep(1.0)
        reached.append(2)

    with pytest.raises(KeyboardInterrupt):
        impatient()
    assert reached == [1]


def test_an_interrupt_is_noted_once_for_all_around_it() -> None:
    with interrupt_noted() as interrupted:
        assert not interrupted()
        with interrupt_held():  # who notes it first decides what becomes of it
            press()
        assert interrupted()


def test_other_threads_leave_interrupts_alone() -> None:
    seen = []

    def work() -> None:
        with interrupt_noted() as interrupted:
            seen.append((signal.getsignal(signal.SIGINT), interrupted()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(signal.default_int_handler, False)]
