"""The step loop of every search: select leaves, judge them, back them up; compiled with the evaluator inside.

``search_steps`` is compiled into each function that hands it the function that judges; see ``uniform`` and the kernels
of the networks. An evaluator that is no compiled code takes the same steps one by one through Python
(``LockstepSearch.step``).

Games are searched in groups: the trees of a few games stay in the processor's cache while they make many steps.
"""

from typing import NamedTuple, Protocol, runtime_checkable

from numba import njit

from ..bitboard import borrowed
from ..tablebase.probing import Tables
from .evaluator import Evaluator
from .judging import settle_leaves
from .kernels import backup_leaves, select_leaves
from .leaf_judge import probe_leaves
from .state import SearchState, Settings

GROUP = 16  # games that take their steps before others do


class StepCounts(NamedTuple):
    """What became of a call.

    Attributes:
        judged: evaluations of positions.
        waiting: leaves that still wait, for tables that must be read first; they are for Python to settle and judge.
    """

    judged: int
    waiting: int


@runtime_checkable
class CompiledEvaluator(Evaluator, Protocol):
    """An evaluator whose kernels the step loop calls without Python in between."""

    def search(self, state: SearchState, settings: Settings, tables: Tables, steps: int) -> StepCounts:
        """Lets every active game make up to ``steps`` steps; 0 only compiles."""
        ...


@njit(inline="always")
def search_steps(state, settings, tables, judge, network, steps):
    """Lets every active game make up to ``steps`` steps.

    Args:
        tables: ``Tables``; those without pieces settle nothing.
        judge: compiled function ``judge(state, network, n)``: writes what the network says of the first n waiting
            leaves into ``state.policy`` and ``state.wdl``; returns whether there is a policy.
        network: whatever ``judge`` wants.

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
    """Selects leaves that the tables do not settle; their number, negative where ``LeafJudge`` is wanted."""
    settled = 0
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
