"""Further threads for the kernels: each computes a part of what an evaluation is asked.

To wake a sleeping thread takes about as long as a few positions, so a helper looks for work without pause for a moment
after it has done some: during a search it is always awake. What it has not begun when it is wanted is taken back, so
nobody waits for a core that others use.
"""

import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from engine.encoding import NUM_POLICY

from .winograd import Buffers, Weights, forward
from .words import give_way, pause, read_word, replace_word, write_word

_TASK, _ASLEEP, _ENDED = range(3)
_NOTHING, _BEGUN, _DONE = 0, -1, -2  # of the task; else how many positions are offered
_LOOKS = 20_000  # for work, before a helper goes to sleep: about a millisecond
_LOOKS_TO_YIELD = 1_000  # for an answer, before the core is offered to others


class Desks(NamedTuple):
    """Where H helpers find their work, up to P positions each, and leave their answers; theirs alone.

    Attributes:
        words: int64 [H, 3], by which they agree with whoever asks.
        positions: uint32 [H, P, 4].
        policy_logits, wdl_logits: float32 [H, P, 128] and [H, P, 3].
    """

    words: np.ndarray
    positions: np.ndarray
    policy_logits: np.ndarray
    wdl_logits: np.ndarray


def new_desks(helpers: int, positions: int) -> Desks:
    """Room for so many helpers, who may be none, with so many positions each."""
    return Desks(
        np.zeros((helpers, 3), np.int64),
        np.zeros((helpers, positions, 4), np.uint32),
        np.zeros((helpers, positions, NUM_POLICY), np.float32),
        np.zeros((helpers, positions, 3), np.float32),
    )


class Helper:
    """A thread that works at a desk and ends with this object.

    Args:
        weights, buffers: see ``winograd.forward``; the buffers are the helper's alone.
        desks: of which it takes number ``number``.
    """

    def __init__(self, weights: Weights, buffers: Buffers, desks: Desks, number: int) -> None:
        self._words, positions, *answers = (array[number] for array in desks)
        task = positions, weights, buffers, *answers
        self._wake = threading.Event()
        # Ended from the start: this only compiles, which is not for a thread that may outlive the program.
        _serve(np.ones_like(self._words), *task)
        threading.Thread(target=_help, args=(self._words, self._wake, task), name="helper", daemon=True).start()
        weakref.finalize(self, _end, self._words, self._wake)

    def wake(self) -> None:
        """To be called before ``forward_together``: the helper may sleep, and does nothing then."""
        if self._words[_ASLEEP]:
            self._wake.set()


def _help(words: np.ndarray, wake: threading.Event, task: tuple[Any, ...]) -> None:
    while _serve(words, *task):
        wake.wait()
        wake.clear()


def _end(words: np.ndarray, wake: threading.Event) -> None:
    words[_ENDED] = 1
    wake.set()


@njit(nogil=True, cache=True)
def share(positions, threads, thread):
    """First and end of a thread's equal part of so many positions; thread 0 gets the most.

    Two positions fill a tile, so that is how many go together.
    """
    pairs = (positions + 1) // 2
    first, end = (pairs * thread + threads - 1) // threads, (pairs * (thread + 1) + threads - 1) // threads
    return min(2 * first, positions), min(2 * end, positions)


@njit(nogil=True, cache=True)
def _copy(rows, to):
    """A loop, because an assignment has Numba compile error messages for seconds."""
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            to[row, column] = rows[row, column]


@njit(nogil=True, cache=True)
def forward_together(positions, weights, buffers, desks, policy_logits, wdl_logits):
    """``winograd.forward``, shared with the helpers at the desks; as many positions as all of them have room for."""
    n, threads = positions.shape[0], desks.words.shape[0] + 1
    for thread in range(1, threads):
        first, end = share(n, threads, thread)
        if end > first:
            _copy(positions[first:end], desks.positions[thread - 1])
            write_word(desks.words[thread - 1], _TASK, end - first)
    for thread in range(threads):  # one call of ``forward`` in all: it is compiled into every place that calls it
        first, end = share(n, threads, thread)
        if thread == 0 or (end > first and _taken_back(desks.words[thread - 1])):
            forward(positions[first:end], weights, buffers, policy_logits[first:end], wdl_logits[first:end])
        else:
            _copy(desks.policy_logits[thread - 1, : end - first], policy_logits[first:end])
            _copy(desks.wdl_logits[thread - 1, : end - first], wdl_logits[first:end])


@njit(nogil=True, cache=True)
def _taken_back(words):
    """Takes the task back, or waits until it is done; whether it was taken back."""
    looks = 0
    while True:
        state = read_word(words, _TASK)
        if state == _DONE:
            write_word(words, _TASK, _NOTHING)
            return False
        if state > 0 and replace_word(words, _TASK, state, _NOTHING):
            return True
        looks += 1
        if looks % _LOOKS_TO_YIELD == 0:
            give_way()
        pause()


@njit(nogil=True, cache=True)
def _serve(words, positions, weights, buffers, policy_logits, wdl_logits):
    """Does what is offered, until nothing has been for a while; whether there may be more later."""
    write_word(words, _ASLEEP, 0)
    looks = 0
    while read_word(words, _ENDED) == 0:
        n = read_word(words, _TASK)
        if n > 0 and replace_word(words, _TASK, n, _BEGUN):
            forward(positions[:n], weights, buffers, policy_logits, wdl_logits)
            write_word(words, _TASK, _DONE)
            looks = 0
        elif looks == _LOOKS:
            write_word(words, _ASLEEP, 1)
            if read_word(words, _TASK) <= 0:  # else it was offered before the offerer could see that nobody is awake
                return True
            write_word(words, _ASLEEP, 0)
            looks = 0
        else:
            pause()
            looks += 1
    return False
