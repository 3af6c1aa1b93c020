"""Several batches of a search in one call, for evaluators that are compiled code themselves.

A batch of few positions takes a fast network so short a time that the way through Python, from selecting leaves to
remembering and backing up their answers, is a fifth of it. ``LockstepSearch.steps`` hands all arrays over instead.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from .evaluator import Evaluator
from .kernels import Settings


class SelectArguments(NamedTuple):
    """Those of ``kernels.select_leaves`` but the last."""

    nodes: np.ndarray
    slots: np.ndarray
    paths: np.ndarray
    depths: np.ndarray
    pledges: np.ndarray
    histories: np.ndarray
    codes: np.ndarray
    gumbels: np.ndarray
    schedule: np.ndarray
    settings: Settings
    frames: np.ndarray
    shot_moves: np.ndarray
    moves: np.ndarray
    scores: np.ndarray
    table: np.ndarray
    leaves: np.ndarray
    waiting: np.ndarray


class BackupArguments(NamedTuple):
    """Those of ``kernels.backup_leaves`` but the last three."""

    nodes: np.ndarray
    slots: np.ndarray
    paths: np.ndarray
    depths: np.ndarray
    pledges: np.ndarray
    codes: np.ndarray
    noises: np.ndarray
    waiting: np.ndarray
    table: np.ndarray
    sharpness: np.float32


class Memory(NamedTuple):
    """What a ``CachedEvaluator`` remembers, see ``cache``; batch number b of a call is ``now + b``."""

    keys: np.ndarray
    ages: np.ndarray
    answers: np.ndarray
    now: int


class BatchCounts(NamedTuple):
    """What became of a call: positions judged, how many of them were not remembered, and leaves that wait yet."""

    judged: int
    missing: int
    waiting: int


@runtime_checkable
class BatchSearcher(Evaluator, Protocol):
    """An evaluator that also makes whole batches of a search.

    Attributes:
        searches: whether it really does.
    """

    searches: bool

    def search(self, select: SelectArguments, backup: BackupArguments, few: int, batches: int) -> BatchCounts:
        """Selects, judges and backs up so many times, or until nothing is left to select.

        Args:
            few: a batch with a position of at most so many pieces is left waiting, and the call ends.
        """
        ...


@runtime_checkable
class RememberingSearcher(Evaluator, Protocol):
    """An evaluator that makes them with the memory of a ``CachedEvaluator``."""

    def search_remembering(
        self, select: SelectArguments, backup: BackupArguments, memory: Memory, few: int, batches: int
    ) -> BatchCounts:
        """See ``BatchSearcher.search``; what is remembered is not judged."""
        ...
