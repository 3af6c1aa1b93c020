"""Endgame tables in the search: leaves with a known value become proven nodes and need no evaluation.

Tables do not include draws by repetition and by 80 plies. A draw by the tables is certain all the same: each side can
avoid a loss, and the rules only add draws. A win by the tables is certain in two cases:

    right after an irreversible move: both counts begin again (lc0 probes its tables under this condition)
    at distance d <= 80 - reversible plies, if no position since the last irreversible move has occurred twice: the
    distance falls with every ply, so no position is repeated on the shortest way

Otherwise the value is only a bound: the node is searched further, and its evaluation is mixed with the table's value.

A root that the tables cover is not marked itself. All its moves are looked up at once, and of the winning moves only
the shortest are marked. If the tables have no distances, ``conversion`` finds the shortest way to the next irreversible
move that keeps the win; a game can have only few such moves, so it ends. Plies of such proofs count from
``NO_DISTANCE``.

With many pieces and little time there is no plan, and a move of a man that keeps the win may make it harder. There the
evaluator leads: moves that do not win are left out, and only leaves with fewer pieces than the root are looked up, as
the tables give all others the same value. If half of the 80 plies pass without progress, such a root is planned, too.

In a drawn root with several moves that keep the draw the evaluator leads as well, to where opponents err more easily.

``probe_leaves`` looks up blocks that are in memory, within the compiled step loop. ``LeafJudge`` does the rest: blocks
that must be read from disk first, and roots.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from ..draw_rules import REVERSIBLE_PLIES_TO_DRAW
from ..movegen import MAX_MOVES
from ..outcomes import DRAW, LOSS, UNKNOWN, WIN
from ..tablebase.probing import KNOWN, NOT_LOADED, probe_loaded
from . import judging
from .conversion import ConversionPlanner
from .evaluator import LeafOracle
from .state import SearchState
from .tree import NO_DISTANCE

_PLANNED_PIECES = 5  # most pieces of roots that are planned in any time; larger plans took longer than moves of 0.1 s
_PATIENCE = REVERSIBLE_PLIES_TO_DRAW // 2  # reversible plies from which on roots with more pieces are planned, too


@njit(cache=True)
def probe_leaves(state, tables, first, n):
    """Looks up waiting leaves ``first`` to ``n - 1`` and writes ``state.outcomes`` and ``state.plies``.

    Returns:
        Number of leaves with a known value; -1 if ``LeafJudge`` must settle the batch, since the tables cover a root in
        it, or a block is not in memory and may be asked for. All outcomes are UNKNOWN then.
    """
    inside, asks = 0, tables.waits[0] != 0 or tables.resting[0] == 0
    for i in range(first, n):
        if not judging.is_covered(state, i):
            continue
        own, opp, kings = state.leaves[i, 0], state.leaves[i, 1], state.leaves[i, 2]
        lane = state.waiting[i]
        value, plies, found = probe_loaded(own, opp, kings, tables)
        if state.depths[lane] == 0 or (found == NOT_LOADED and asks):
            for earlier in range(first, i):
                state.outcomes[state.waiting[earlier]] = UNKNOWN
            return -1
        if found == KNOWN:
            state.outcomes[lane] = DRAW - value
            state.plies[lane] = plies
            inside += 1
    return inside


class LeafJudge:
    """Settles those waiting leaves of a ``LockstepSearch`` whose values its oracle knows.

    Args:
        oracle: must be exact.

    Attributes:
        deadline: time of ``time.perf_counter`` at which planning of a conversion stops; ``inf`` for none. With a
            deadline, the search does not wait for leaves' blocks to be read from disk.
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
        """Largest number of pieces of a leaf that can be settled."""
        return self._oracle.max_pieces

    def judges_root(self, root: Any) -> bool:
        """Whether the oracle may cover the moves of ``root`` (a node). Their earlier results are then dropped, since
        kept proofs may not be of the shortest wins."""
        return int(root["own"] | root["opp"]).bit_count() <= self._oracle.max_pieces

    def settle(self, first: int, n: int) -> int:
        """Looks up waiting leaves ``first`` to ``n - 1`` and backs up those whose value is certain.

        Returns:
            Number of leaves that still wait, including the earlier ones; they are at the front of ``state.waiting``.
        """
        state = self._state
        rows = judging.covered_rows(state, first, n)
        if len(rows) == 0:
            return n
        lanes = state.waiting[rows]
        state.outcomes[lanes], state.plies[lanes] = self._oracle.judge(state.leaves[rows], self.deadline == math.inf)
        n = int(judging.settle_leaves(state, first, n))
        kept = first
        for row in range(first, n):
            lane = int(state.waiting[row])
            at_root = state.depths[lane] == 0 and self.judges_root(state.nodes[state.paths[lane, 0]])
            if not (at_root and self._settle_root(lane, state.leaves[row])):
                judging.keep_leaf(state, row, kept)
                kept += 1
        return kept

    def _settle_root(self, lane: int, root: np.ndarray) -> bool:
        state, slot = self._state, lane // self._lanes
        count = judging.read_moves(state, slot, self._moves)
        moves, pieces = self._moves[:count], int(root[0] | root[1]).bit_count()
        outcomes, plies = self._oracle.judge(moves)
        draws = outcomes == DRAW
        if draws.any() and (draws | (outcomes == WIN)).all():
            searched = draws & (draws.sum() > 1)  # a single one needs no search
            judging.settle_root(state, lane, np.where(searched, np.uint8(UNKNOWN), outcomes), plies, 0)
            self._lead(slot, DRAW, outcomes, pieces)
            return False
        plans = self.deadline == math.inf or pieces <= _PLANNED_PIECES or int(root[3]) >= _PATIENCE
        known = outcomes
        if not plans:
            quiet = np.bitwise_count(moves[:, 0] | moves[:, 1]) == pieces
            known = np.where(quiet & (outcomes == LOSS) & (plies < 0), np.uint8(UNKNOWN), outcomes)
        decided = bool(judging.settle_root(state, lane, known, plies, 0))
        if decided or not judging.has_open_win(state, slot, outcomes):
            return decided
        if plans:
            ranks = self._planner.ranks(root, moves, self.deadline)
            if judging.settle_root(state, lane, outcomes, ranks, NO_DISTANCE):
                return True
        self._lead(slot, WIN, outcomes, pieces)
        return False

    def _lead(self, slot: int, known: int, outcomes: np.ndarray, pieces: int) -> None:
        """Has the evaluator choose among the moves that do not lose in a root of ``pieces`` whose outcome is known."""
        judging.mark_losing_moves(self._state, slot, outcomes)
        self._state.slots[slot]["known"], self._state.slots[slot]["covered"] = known, pieces - 1
