"""A second thread for the kernels: it computes a part of what an evaluation is asked.

To wake a sleeping thread takes about as long as a few positions, so a helper looks for work without pause for a moment
after it has done some: during a search it is always awake. What it has not begun when it is wanted is taken back, so
nobody waits for a core that others use.
"""

import threading
import time
import weakref
from typing import Any

import numpy as np
from numba import njit

from engine.encoding import NUM_POLICY

from .winograd import Buffers, Weights, forward
from .words import pause, read_word, replace_word, write_word

_TASK, _ASLEEP, _ENDED = range(3)
_NOTHING, _BEGUN, _DONE = 0, -1, -2  # of the task; else how many positions are offered
_LOOKS = 20_000  # for work, before a helper goes to sleep: about a millisecond
_LOOKS_TO_YIELD = 1_000  # for an answer, before the core is offered to others


class Helper:
    """Evaluates up to so many positions in a thread of its own, which ends with this object.

    Args:
        weights, buffers: see ``winograd.forward``; the buffers are the helper's alone.
        positions: that there is room for.
    """

    def __init__(self, weights: Weights, buffers: Buffers, positions: int) -> None:
        self._words = np.zeros(3, np.int64)
        self._positions = np.zeros((positions, 4), np.uint32)
        self._policy_logits = np.zeros((positions, NUM_POLICY), np.float32)
        self._wdl_logits = np.zeros((positions, 3), np.float32)
        self._task = self._positions, weights, buffers, self._policy_logits, self._wdl_logits
        self._wake = threading.Event()
        # Ended from the start: this only compiles, which is not for a thread that may outlive the program.
        _serve(np.ones_like(self._words), *self._task)
        threading.Thread(target=_help, args=(self._words, self._wake, self._task), name="helper", daemon=True).start()
        weakref.finalize(self, _end, self._words, self._wake)

    def offer(self, positions: np.ndarray) -> None:
        """Offers 1 to as many positions as there is room for, uint32 [N, 4]; ``collect`` must follow."""
        if self._words[_TASK] != _NOTHING:  # an interrupt came before the last answer was collected
            self._settle()
        self._positions[: len(positions)] = positions
        _offer(self._words, len(positions))
        if self._words[_ASLEEP]:
            self._wake.set()

    def collect(self, policy_logits: np.ndarray, wdl_logits: np.ndarray) -> None:
        """Fills in the answer, float32 [N, 128] and [N, 3]; what has not been begun is computed here and now."""
        n = len(wdl_logits)
        if not self._settle():
            forward(self._positions[:n], *self._task[1:3], self._policy_logits, self._wdl_logits)
        policy_logits[:], wdl_logits[:] = self._policy_logits[:n], self._wdl_logits[:n]

    def _settle(self) -> bool:
        """Takes the task back, or waits until it is done; whether it is done."""
        while (state := _taken_back(self._words)) == _BEGUN:
            time.sleep(0)
        return state == _DONE


def _help(words: np.ndarray, wake: threading.Event, task: tuple[Any, ...]) -> None:
    while _serve(words, *task):
        wake.wait()
        wake.clear()


def _end(words: np.ndarray, wake: threading.Event) -> None:
    words[_ENDED] = 1
    wake.set()


@njit(nogil=True, cache=True)
def _offer(words, positions):
    write_word(words, _TASK, positions)


@njit(nogil=True, cache=True)
def _taken_back(words):
    """``_NOTHING`` if the task was taken back, ``_DONE`` if it is done, ``_BEGUN`` if it is not done yet."""
    for _ in range(_LOOKS_TO_YIELD):
        state = read_word(words, _TASK)
        if state in (_DONE, _NOTHING) or (state > 0 and replace_word(words, _TASK, state, _NOTHING)):
            write_word(words, _TASK, _NOTHING)
            return min(state, _NOTHING)
        pause()
    return _BEGUN


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
