"""How many threads torch trains with: one or all, whichever is faster at the moment."""

import time
from collections.abc import Callable

import torch

_TRIALS = 3  # steps with each number; the slowest of them does not count
_HOPELESS = 2.0  # times a step with one thread: all threads are not tried further
_AGAIN_S = 60.0


class TorchTeam:
    """Makes the steps of a training with one torch thread or with all, whichever is faster; use it in a ``with``.

    On idle cores all are faster. But where one of them has to wait for a core, all do: on a busy machine a step then
    takes several times as long as with one, up to twenty times. So both are tried, and again every minute; a step that
    tries is a step like any other. Where torch has one thread to begin with, there is nothing to try.
    """

    def __init__(self) -> None:
        self._all = torch.get_num_threads()
        self._untried: list[int] = []
        self._seconds: dict[int, list[float]] = {}
        self._again = 0.0

    def __enter__(self) -> "TorchTeam":
        return self

    def __exit__(self, *error: object) -> None:
        torch.set_num_threads(self._all)

    def make(self, step: Callable[[], float]) -> float:
        if self._all == 1:
            return step()
        began = time.monotonic()
        if not self._untried and began >= self._again:
            self._untried, self._seconds = [self._all] * _TRIALS + [1] * _TRIALS, {1: [], self._all: []}
        if not self._untried:
            return step()
        threads = self._untried.pop()
        torch.set_num_threads(threads)
        value = step()
        self._judge(threads, time.monotonic() - began)
        return value

    def _judge(self, threads: int, took: float) -> None:
        """Notes a step that was tried; after the last one the faster number is taken."""
        self._seconds[threads].append(took)
        one, all_ = self._seconds[1], self._seconds[self._all]
        hopeless = bool(all_) and all_[-1] > _HOPELESS * min(one)
        if hopeless or not self._untried:
            faster = not hopeless and sum(sorted(all_)[:-1]) < sum(sorted(one)[:-1])
            torch.set_num_threads(self._all if faster else 1)
            self._untried, self._again = [], time.monotonic() + _AGAIN_S
