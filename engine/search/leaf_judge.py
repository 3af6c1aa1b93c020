"""Endgame tables in the search: leaves that they can judge become proven nodes and cost no evaluation.

A table knows neither draws by repetition nor the 80-ply rule. A table draw is a draw in spite of both: each side can
avoid losing, and the rules add draws only. A table win is taken as proven where it will last:

    right after an irreversible move    both counts begin anew (the condition under which lc0 probes its tables)
    at distance d <= 80 - reversible plies, no position of this stretch having occurred twice
                                        the distance falls with every ply, so nothing comes back on the shortest way

Elsewhere it is a bound: the node is searched on, and its evaluation is mixed with the table's verdict.

A root inside the tables is never marked itself: all its moves are judged at once, and of those that win only the
shortest stay. Where tables give no distance, ``conversion`` measures the way to the next irreversible move that keeps
the win; those are few in any game, so it ends. Plies of such proofs count from ``NO_DISTANCE`` on.

``probe_leaves`` asks tables whose blocks are in memory from within the compiled step loop; ``LeafJudge`` does what that
leaves undone: blocks that must be read from disk first, and roots.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from ..bitboard import popcount
from ..movegen import MAX_MOVES
from ..outcomes import DRAW, UNKNOWN, WIN
from ..tablebase.probing import KNOWN, NOT_LOADED, probe_loaded
from . import judging
from .conversion import ConversionPlanner
from .leaf_oracle import LeafOracle
from .state import SearchState
from .tree import NO_DISTANCE


@njit(cache=True)
def probe_leaves(state, tables, first, n):
    """Writes what the tables say of the waiting leaves ``first`` to ``n`` into ``state.outcomes`` and ``state.plies``.

    Returns:
        Number of leaves inside the tables; -1 where ``LeafJudge`` has to settle the batch: a root is among them, or a
        block is not in memory. Nothing has been written then.
    """
    inside = 0
    for i in range(first, n):
        own, opp, kings = state.leaves[i, 0], state.leaves[i, 1], state.leaves[i, 2]
        if popcount(own | opp) > tables.max_pieces[0]:
            continue
        lane = state.waiting[i]
        value, plies, found = probe_loaded(own, opp, kings, tables)
        if found == NOT_LOADED or state.depths[lane] == 0:
            for earlier in range(first, i):
                state.outcomes[state.waiting[earlier]] = UNKNOWN
            return -1
        if found == KNOWN:
            state.outcomes[lane] = DRAW - value
            state.plies[lane] = plies
            inside += 1
    return inside


class LeafJudge:
    """Settles the waiting leaves of a ``LockstepSearch`` as far as its oracle knows them.

    Args:
        oracle: never wrong.

    Attributes:
        deadline: by ``time.perf_counter``; the way to convert a win is looked for no longer, and a search that has one
            does not wait for leaves' blocks to be read from disk.
    """

    def __init__(self, oracle: LeafOracle, state: SearchState) -> None:
        self.deadline = math.inf
        self._oracle = oracle
        self._planner = ConversionPlanner(oracle)
        self._state = state
        self._lanes = len(state.depths) // len(state.slots)
        self._moves = np.zeros((MAX_MOVES, 4), np.uint32)

    @property
    def max_pieces(self) -> int:
        """No leaf with more of them is settled."""
        return self._oracle.max_pieces

    def judges_root(self, root: Any) -> bool:
        """Whether the moves of a root (a node) will be judged; what a search found of them before is then dropped.

        Kept proofs could hold another way to win than the shortest.
        """
        return int(root["own"] | root["opp"]).bit_count() <= self._oracle.max_pieces

    def settle(self, first: int, n: int) -> int:
        """Judges the waiting leaves ``first`` to ``n`` and backs up those that are decided.

        Returns:
            How many leaves still wait, the earlier ones included; they stand at the front of ``state.waiting``.
        """
        state = self._state
        few = first + judging.rows_of_few(state.leaves[first:n], self._oracle.max_pieces)
        if len(few) == 0:
            return n
        lanes = state.waiting[few]
        state.outcomes[lanes], state.plies[lanes] = self._oracle.judge(state.leaves[few], self.deadline == math.inf)
        n = int(judging.settle_leaves(state, first, n))
        kept = first
        for row in range(first, n):
            lane = int(state.waiting[row])
            outcome = int(state.outcomes[lane])
            at_root = state.depths[lane] == 0 and self.judges_root(state.nodes[state.paths[lane, 0]])
            if not (at_root and self._settle_root(lane, state.leaves[row], outcome)):
                judging.keep_leaf(state, row, kept)
                kept += 1
        return kept

    def _settle_root(self, lane: int, root: np.ndarray, outcome: int) -> bool:
        state, slot = self._state, lane // self._lanes
        count = judging.read_moves(state, slot, self._moves)
        outcomes, plies = self._oracle.judge(self._moves[:count])
        decided = bool(judging.settle_root(state, lane, outcomes, plies, 0))
        if decided or outcome != WIN or not judging.has_open_win(state, slot, outcomes):
            return decided
        ranks = self._planner.ranks(root, self._moves[:count], self.deadline)
        return bool(judging.settle_root(state, lane, outcomes, ranks, NO_DISTANCE))
