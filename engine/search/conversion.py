"""The way from a won position to the next irreversible move that keeps the win, where tables give no distance.

Between two captures or man moves only kings walk. The positions that they can walk through, the winner making no move
that gives the win away, form a small graph; breadth-first search from the position at hand finds the nearest moves that
convert, and ranks (plies to the conversion, the winner hurrying, the loser delaying) follow backwards from there, as in
the retrograde analysis of whole tables. Ranks fall with every ply played, so a plan is never a circle.
"""

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from ..bitboard import turned
from ..movegen import DISTINCT, generate, new_moves
from .tree import LOSS, WIN

if TYPE_CHECKING:
    from .leaf_oracle import LeafOracle

_MAX_REMEMBERED = 1_000_000
_SECOND_TRY = 20_000  # positions of a plan where a larger one failed: the conversion may be near by now
_CHUNK = 8192  # positions whose moves are judged together

Words = tuple[int, int, int]


class ConversionPlanner:
    """Plans conversions, and remembers the ranks of the positions on the way.

    Args:
        oracle: exact; its distances are not used.
        max_positions: a plan that needs more positions than this is given up.
    """

    def __init__(self, oracle: "LeafOracle", max_positions: int = 400_000) -> None:
        self._oracle = oracle
        self._max_positions = max_positions
        self._ranks: dict[Words, int] = {}
        self._given_up: set[tuple[int, int, int, int]] = set()  # men that stood, kings that walked: too many positions

    def ranks(self, root: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Plies to the conversion after each move of a won position.

        Args:
            root: uint32 [4], won for the side to move.
            moves: uint32 [n, 4], the positions after its moves, seen by the opponent.

        Returns:
            int16 [n]; -1 for moves that are not known to lead to one.
        """
        found = self._remembered(moves)
        walkers = _walkers(root)
        if found.max(initial=-1) < 0:
            most = _SECOND_TRY if walkers in self._given_up else self._max_positions
            self._plan(root, min(most, self._max_positions))
            found = self._remembered(moves)
            if found.max(initial=-1) < 0:
                self._given_up.add(walkers)
        return found

    def _remembered(self, moves: np.ndarray) -> np.ndarray:
        return np.array([self._ranks.get((a, b, c), -1) for a, b, c, _ in moves.tolist()], np.int16)

    def _plan(self, root: np.ndarray, max_positions: int) -> None:
        graph = _Graph(root, max_positions)
        winner = True
        while graph.ranks[0] < 0 and graph.expand(self._oracle, winner):
            if not winner:
                graph.solve()
            winner = not winner
        graph.solve()
        if graph.ranks[0] < 0:
            return
        if len(self._ranks) > _MAX_REMEMBERED:
            self._ranks.clear()
        lost = np.flatnonzero(~graph.winner[: graph.size] & (graph.ranks[: graph.size] >= 0))
        for (own, opp, kings), rank in zip(graph.positions[lost].tolist(), graph.ranks[lost].tolist(), strict=True):
            key = (own, opp, kings)
            self._ranks[key] = min(rank, self._ranks.get(key, rank))


def _walkers(position: np.ndarray) -> tuple[int, int, int, int]:
    """What stays the same between two irreversible moves: the men of both sides, and the numbers of their kings."""
    own, opp, kings = (int(word) for word in position[:3])
    return own & ~kings, opp & ~kings, (own & kings).bit_count(), (opp & kings).bit_count()


class _Graph:
    """Positions reached so far, numbered breadth-first, and the reversible moves between them.

    Attributes:
        size: number of positions; the first ``expanded`` of them have their edges.
        positions: uint32 [capacity, 3], seen by the side to move.
        winner: bool [capacity]: the winner is to move.
        ranks: int16 [capacity], -1: unknown.
    """

    def __init__(self, root: np.ndarray, max_positions: int) -> None:
        self._max_positions = max_positions
        self.size, self.expanded, self._num_edges = 1, 0, 0
        self.positions = np.zeros((1024, 3), np.uint32)
        self.winner = np.zeros(1024, bool)
        self.ranks = np.full(1024, -1, np.int16)
        self._lost_way = np.zeros(1024, bool)  # the loser has a way out that the oracle does not know as won
        self._first_edge = np.zeros(1025, np.int64)
        self._edges = np.zeros(4096, np.int32)
        self._index = np.full(4096, -1, np.int32)
        self.positions[0], self.winner[0] = root[:3], True
        _enter(self._index, self.positions, 0, 0)
        self._moves = new_moves()

    def expand(self, oracle: "LeafOracle", winner: bool) -> bool:
        """Expands the positions of the outermost layer; returns whether there were any and room for them."""
        last = self.size
        if self.expanded == last:
            return False
        while self.expanded < last:
            first, end = self.expanded, min(last, self.expanded + _CHUNK)
            children, counts = _children(self.positions, first, end, self._moves)
            if self.size + len(children) > self._max_positions:
                return False
            outcomes, _ = oracle.judge(children)
            self._make_room(len(children))
            self.size, self._num_edges = _link(
                self.positions,
                self.winner,
                self.ranks,
                self._lost_way,
                self._first_edge,
                self._edges,
                self._index,
                first,
                end,
                winner,
                children,
                counts,
                outcomes,
                self.size,
                self._num_edges,
            )
            self.expanded = end
        return True

    def _make_room(self, more: int) -> None:
        def grown(array: np.ndarray, needed: int, fill: int) -> np.ndarray:
            if needed <= len(array):
                return array
            larger = np.full((max(needed, 2 * len(array)), *array.shape[1:]), fill, array.dtype)
            larger[: len(array)] = array
            return larger

        needed = self.size + more
        self.positions, self.winner = grown(self.positions, needed, 0), grown(self.winner, needed, 0)
        self.ranks, self._lost_way = grown(self.ranks, needed, -1), grown(self._lost_way, needed, 0)
        self._first_edge = grown(self._first_edge, needed + 1, 0)
        self._edges = grown(self._edges, self._num_edges + more, 0)
        if 2 * needed > len(self._index):
            self._index = np.full(1 << (4 * needed).bit_length(), -1, np.int32)
            _enter(self._index, self.positions, 0, self.size - 1)

    def solve(self) -> None:
        """Ranks all positions that can be ranked."""
        _solve(self.winner, self.ranks, self._lost_way, self._first_edge, self._edges, self.expanded)


@njit(cache=True)
def _slot_of(index, positions, own, opp, kings):
    """Where a position stands in the hash table, or the free place for it."""
    state = np.uint64(own) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(opp) * np.uint64(0xD1B54A32D192ED03)
    state = (state ^ (state >> np.uint64(32))) + np.uint64(kings) * np.uint64(0xA24BAED4963EE407)
    state = (state ^ (state >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    mask = index.shape[0] - 1
    place = np.int64(state >> np.uint64(33)) & mask
    while index[place] >= 0:
        i = index[place]
        if positions[i, 0] == own and positions[i, 1] == opp and positions[i, 2] == kings:
            return place
        place = (place + 1) & mask
    return place


@njit(cache=True)
def _enter(index, positions, first, last):
    """Enters positions ``first`` to ``last`` (included) into the hash table."""
    for i in range(first, last + 1):
        index[_slot_of(index, positions, positions[i, 0], positions[i, 1], positions[i, 2])] = i


@njit(cache=True)
def _children(positions, first, end, moves):
    """All moves of positions: uint32 [m, 4], the last word 0 after an irreversible move, else 1; and their counts."""
    counts = np.zeros(end - first, np.int64)
    for i in range(first, end):
        counts[i - first] = generate(positions[i, 0], positions[i, 1], positions[i, 2], moves, DISTINCT)
    children = np.empty((counts.sum(), 4), np.uint32)
    n = 0
    for i in range(first, end):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        for j in range(generate(own, opp, kings, moves, DISTINCT)):
            quiet = moves[j].opp == opp and (moves[j].own & ~moves[j].kings) == (own & ~kings)
            children[n, 0], children[n, 1] = turned(moves[j].opp), turned(moves[j].own)
            children[n, 2], children[n, 3] = turned(moves[j].kings), np.uint32(1 if quiet else 0)
            n += 1
    return children, counts


@njit(cache=True)
def _link(
    positions,
    winner,
    ranks,
    lost_way,
    first_edge,
    edges,
    index,
    first,
    end,
    winner_moves,
    children,
    counts,
    outcomes,
    size,
    num_edges,
):
    """Gives positions ``first`` to ``end`` their edges; returns the new numbers of positions and edges."""
    wanted = LOSS if winner_moves else WIN
    n = 0
    for i in range(first, end):
        first_edge[i] = num_edges
        converts = False
        for j in range(n, n + counts[i - first]):
            converts |= winner_moves and outcomes[j] == LOSS and children[j, 3] == 0
            lost_way[i] |= not winner_moves and outcomes[j] != WIN
        if converts:
            ranks[i] = 1
        for j in range(n, n + counts[i - first]):
            if converts or lost_way[i] or outcomes[j] != wanted or children[j, 3] == 0:
                continue
            place = _slot_of(index, positions, children[j, 0], children[j, 1], children[j, 2])
            if index[place] < 0:
                index[place] = size
                positions[size, 0], positions[size, 1] = children[j, 0], children[j, 1]
                positions[size, 2] = children[j, 2]
                winner[size] = not winner_moves
                size += 1
            edges[num_edges] = index[place]
            num_edges += 1
        if counts[i - first] == 0:
            ranks[i] = 0
        n += counts[i - first]
    first_edge[end] = num_edges
    return size, num_edges


@njit(cache=True)
def _solve(winner, ranks, lost_way, first_edge, edges, expanded):
    changed = True
    while changed:
        changed = False
        for i in range(expanded - 1, -1, -1):
            low, high, complete = np.int64(1 << 14), np.int64(0), True
            for edge in range(first_edge[i], first_edge[i + 1]):
                rank = np.int64(ranks[edges[edge]])
                if rank < 0:
                    complete = False
                else:
                    low, high = min(low, rank), max(high, rank)
            if winner[i]:
                new = low + 1 if low < 1 << 14 else np.int64(-1)
            else:
                new = high + 1 if complete and not lost_way[i] else np.int64(-1)
            if new >= 0 and (ranks[i] < 0 or new < ranks[i]):
                ranks[i] = new
                changed = True
