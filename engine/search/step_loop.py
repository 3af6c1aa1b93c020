"""The compiled step loop of a search: select leaves, evaluate them, back them up.

``search_steps`` is compiled into each function that passes it an evaluation function; see ``uniform`` and the kernels
of the networks. An evaluator without compiled code makes the same steps one by one in Python (``LockstepSearch.step``).

Games are searched in groups: the trees of a few games stay in the processor's cache while they make many steps.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numba import njit

from ..bitboard import borrowed
from ..tablebase.probing import Tables
from .evaluator import Evaluator
from .judging import settle_leaves
from .kernels import backup_leaves, select_leaves
from .leaf_judge import probe_leaves
from .state import SearchState, Settings

GROUP = 16  # games that make all their steps before the next ones begin


class StepCounts(NamedTuple):
    """Result of a call.

    Attributes:
        judged: number of positions evaluated.
        waiting: number of leaves that still wait: they need tables from disk or contain a root, so that Python must
            settle and evaluate them.
    """

    judged: int
    waiting: int


@runtime_checkable
class CompiledEvaluator(Evaluator, Protocol):
    """An evaluator whose kernels the step loop calls without Python in between."""

    def search(self, state: SearchState, settings: Settings, tables: Tables, steps: int) -> StepCounts:
        """Makes up to ``steps`` steps in every active game; 0 only compiles."""


@njit(inline="always")
def search_steps(state, settings, tables, judge, network, steps):
    """Makes up to ``steps`` steps in every active game.

    Args:
        tables: ``Tables``; if their ``max_pieces`` is 0 they are not used.
        judge: compiled function ``judge(state, network, n)``: writes the logits of the first n waiting leaves into
            ``state.policy`` and ``state.wdl``; returns whether there are policy logits.
        network: passed on to ``judge``.

    Returns:
        The numbers of ``StepCounts``.
    """
    state, tables = borrowed(state), borrowed(tables)
    judged, games = 0, state.slots.shape[0]
    for first in range(0, games, GROUP):
        end = min(first + GROUP, games)
        for _ in range(steps):
            n = _next_leaves(state, settings, tables, first, end)
            if n <= 0:
                if n < 0:
                    return judged, -n
                break
            has_policy = judge(state, network, n)
            backup_leaves(state, settings, n, has_policy)
            judged += n
    return judged, 0


@njit(cache=True, nogil=True)
def _next_leaves(state, settings, tables, first, end):
    """Selects leaves and settles those that the tables prove; returns the number of waiting leaves, negative if
    ``LeafJudge`` must settle some of them."""
    settled = np.int64(0)  # of a bare 0, Numba would compile all that is called here a second time
    while True:
        n = select_leaves(state, settings, first, end, settled)
        if tables.max_pieces[0] == 0 or n == settled:
            return n
        inside = probe_leaves(state, tables, settled, n)
        if inside < 0:
            return -n
        if inside == 0:
            return n
        settled = settle_leaves(state, settled, n)
        if settled == n:
            return n
