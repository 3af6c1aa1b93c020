"""How many threads torch trains with: one or all, whichever is faster at the moment."""

import time
from collections.abc import Callable

import torch

_TRIALS = 3  # steps with each number; the slowest of them does not count
_AGAIN_S = 30.0


class TorchTeam:
    """Makes the steps of a training with one torch thread or with all, whichever is faster; use it in a ``with``.

    On idle cores all are faster. But where one of them has to wait for a core, all do: on a busy machine a step then
    takes several times as long as with one. So both are tried in turn, and again every half minute; a step that tries
    is a step like any other. Where torch has one thread to begin with, there is nothing to try.
    """

    def __init__(self) -> None:
        self._all = self._fastest = torch.get_num_threads()
        self._untried: list[int] = []
        self._seconds: dict[int, list[float]] = {}
        self._again = 0.0

    def __enter__(self) -> "TorchTeam":
        return self

    def __exit__(self, *error: object) -> None:
        torch.set_num_threads(self._all)

    def make(self, step: Callable[[], float]) -> float:
        """Makes one step and returns what it returns."""
        if self._all == 1:
            return step()
        began = time.monotonic()
        if not self._untried and began >= self._again:
            self._untried, self._seconds = [1, self._all] * _TRIALS, {1: [], self._all: []}
        trying = bool(self._untried)
        threads = self._untried.pop() if trying else self._fastest
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        value = step()
        if trying:
            self._seconds[threads].append(time.monotonic() - began)
            if not self._untried:
                self._fastest = min(self._seconds, key=lambda n: sum(sorted(self._seconds[n])[:-1]))
                self._again = time.monotonic() + _AGAIN_S
        return value
