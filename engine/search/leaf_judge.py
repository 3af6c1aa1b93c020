"""Endgame knowledge in the search: leaves that an oracle can judge become proven nodes and cost no evaluation.

A table knows neither draws by repetition nor the 80-ply rule. A table draw is a draw in spite of both: each side can
avoid losing, and the rules add draws only. A table win is taken as proven where it will last:

    right after an irreversible move    both counts begin anew (the condition under which lc0 probes its tables)
    at distance d <= 80 - reversible plies, no position of this stretch having occurred twice
                                        the distance falls with every ply, so nothing comes back on the shortest way

Elsewhere it is a bound: the node is searched on, and its evaluation is mixed with the table's verdict.

A root inside the tables is never marked itself: all its moves are judged at once, and of those that win only the
shortest stay. Where tables give no distance, ``conversion`` measures the way to the next irreversible move that keeps
the win; those are few in any game, so it ends. Plies of such proofs count from ``NO_DISTANCE`` on.

An oracle that can be wrong is asked only where the root has more pieces than it knows: on the way into an endgame. Once
there, all leaves would look alike, and nothing would show the way to win.
"""

from typing import Any

import numpy as np

from ..movegen import MAX_MOVES
from . import judging
from .conversion import ConversionPlanner
from .leaf_oracle import LeafOracle
from .tree import DRAW, LOSS, NO_DISTANCE, UNKNOWN, WIN

_TRUST = np.float32(0.9)  # share of the oracle in the value of a leaf it knows but that is searched on
_WDL = np.zeros((4, 3), np.float32)
_WDL[WIN, 0] = _WDL[DRAW, 1] = _WDL[LOSS, 2] = 1


class LeafJudge:
    """Settles the waiting leaves of a ``LockstepSearch`` as far as its oracle knows them.

    Args:
        exact: the oracle is never wrong, so that a root's moves may be judged without a search. An oracle that can be
            wrong is asked about leaves alone, and only below a root with more pieces than it knows.
        nodes, slots, paths, depths, pledges, histories, leaves, waiting: arrays of the search, see ``kernels``.
    """

    def __init__(
        self,
        oracle: LeafOracle,
        exact: bool,
        nodes: np.ndarray,
        slots: np.ndarray,
        paths: np.ndarray,
        depths: np.ndarray,
        pledges: np.ndarray,
        histories: np.ndarray,
        leaves: np.ndarray,
        waiting: np.ndarray,
    ) -> None:
        self._oracle = oracle
        self._exact = exact
        self._planner = ConversionPlanner(oracle)
        self._depths = depths
        self._lanes = len(depths) // len(slots)
        self._trees = (nodes, slots, paths, depths, pledges, histories)
        self._leaves, self._waiting = leaves, waiting
        self._verdicts = np.zeros(len(depths), np.uint8)  # of the leaves that are searched on, by lane
        self._any_verdict = False
        self._moves = np.zeros((MAX_MOVES, 4), np.uint32)

    @property
    def max_pieces(self) -> int:
        """No leaf with more of them is settled."""
        return self._oracle.max_pieces

    def judges_root(self, root: Any) -> bool:
        """Whether the moves of a root (a node) will be judged; what a search found of them before is then dropped.

        Kept proofs could hold another way to win than the shortest.
        """
        return self._exact and int(root["own"] | root["opp"]).bit_count() <= self._oracle.max_pieces

    def settle(self, first: int, n: int) -> int:
        """Judges the waiting leaves ``first`` to ``n`` and backs up those that are decided.

        Returns:
            How many leaves still wait, all told; they stand at the front of ``leaves`` and ``waiting``.
        """
        leaves, waiting = self._leaves[first:n], self._waiting[first:n]
        self._verdicts[waiting] = UNKNOWN
        known = self._within(leaves, waiting)
        if len(known) == 0:
            return n
        outcomes, plies = self._oracle.judge(leaves[known])
        decided = np.zeros(n - first, bool)
        decided[known] = judging.settle_leaves(*self._trees, waiting[known], outcomes, plies)
        self._verdicts[waiting[known]] = outcomes
        self._any_verdict = True
        for row in known[self._depths[waiting[known]] == 0].tolist():
            lane = int(waiting[row])
            decided[row] = self._settle_root(lane, leaves[row], int(self._verdicts[lane]))
        left = np.flatnonzero(~decided)
        end = first + len(left)
        self._leaves[first:end], self._waiting[first:end] = leaves[left], waiting[left]
        return end

    def _within(self, leaves: np.ndarray, waiting: np.ndarray) -> np.ndarray:
        """The leaves that the oracle is asked about."""
        most = self._oracle.max_pieces
        few = judging.rows_of_few(leaves, most)
        if not self._exact and len(few):
            nodes, slots = self._trees[:2]
            roots = nodes[slots["root"][waiting[few] // self._lanes]]
            few = few[np.bitwise_count(roots["own"] | roots["opp"]) > most]
        return few

    def _settle_root(self, lane: int, root: np.ndarray, outcome: int) -> bool:
        slot = lane // self._lanes
        count = judging.read_moves(*self._trees[:2], slot, self._moves)
        outcomes, plies = self._oracle.judge(self._moves[:count])
        decided = bool(judging.settle_root(*self._trees, lane, outcomes, plies, 0))
        if decided or outcome != WIN or not judging.has_open_win(*self._trees[:2], slot, outcomes):
            return decided
        ranks = self._planner.ranks(root, self._moves[:count])
        return bool(judging.settle_root(*self._trees, lane, outcomes, ranks, NO_DISTANCE))

    def mixed(self, wdl_logits: np.ndarray, n: int) -> np.ndarray:
        """The evaluator's answer for the ``n`` waiting leaves, float32 [n, 3], with what the oracle knows of them."""
        if not self._any_verdict:
            return wdl_logits
        self._any_verdict = False
        verdicts = self._verdicts[self._waiting[:n]]
        rows = np.flatnonzero(verdicts != UNKNOWN)
        mixed = np.array(wdl_logits, np.float32)
        shares = np.exp(mixed[rows] - mixed[rows].max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        mixed[rows] = np.log(_TRUST * _WDL[verdicts[rows]] + (1 - _TRUST) * shares + np.float32(1e-30))
        return mixed
