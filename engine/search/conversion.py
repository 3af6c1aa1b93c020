"""Finds the shortest way from a won position to the next irreversible move that keeps the win (the *conversion*).

This is for tables without distances. Between two captures or moves of men, only kings move. The positions that can
follow, while the winner keeps the win, form a small graph. A breadth-first search from the current position finds the
nearest conversions. From these, retrograde analysis computes ranks: plies to the conversion, which the winner shortens
and the loser delays. Ranks fall with every ply, so following them cannot lead in a circle.
"""

import math
import time
from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import turned
from ..draw_rules import is_reversible
from ..movegen import DISTINCT, generate, new_moves
from ..outcomes import LOSS, UNKNOWN, WIN
from .evaluator import LeafOracle

_MAX_REMEMBERED = 1_000_000
_SECOND_TRY = 20_000  # limit of positions after a larger plan has failed: the conversion may be nearer by now
_CHUNK = 128  # positions expanded between two checks of the clock: one or two milliseconds

Words = tuple[int, int, int]
Walkers = tuple[int, int, int, int]


class ConversionPlanner:
    """Plans conversions, and stores the ranks of the positions on the way.

    A plan is continued at the next position with the same men and the same numbers of kings, if it ran out of time or
    does not reach that position yet.

    Args:
        oracle: exact tables; their distances are not used.
        max_positions: largest number of positions of a plan; a plan that needs more is given up.
    """

    def __init__(self, oracle: LeafOracle, max_positions: int = 400_000) -> None:
        self._oracle = oracle
        self._max_positions = max_positions
        self._ranks: dict[Words, int] = {}
        self._given_up: set[Walkers] = set()  # their plans needed too many positions
        self._latest: tuple[Walkers, _Graph] | None = None

    def ranks(self, root: np.ndarray, moves: np.ndarray, deadline: float = math.inf) -> np.ndarray:
        """Plies from after each move of a won position to the conversion.

        Args:
            root: uint32 [4], position won for the side to move.
            moves: uint32 [n, 4], the positions after its moves, seen by the opponent.
            deadline: time of ``time.perf_counter`` at which planning stops. If it is finite, planning also stops where
                the oracle's answers must be read from disk first.

        Returns:
            int16 [n]; -1 for moves that are not known to lead to a conversion.
        """
        found = self._remembered(moves)
        if found.max(initial=-1) < 0:
            self._plan(root, deadline)
            found = self._remembered(moves)
        return found

    def _remembered(self, moves: np.ndarray) -> np.ndarray:
        return np.array([self._ranks.get((a, b, c), -1) for a, b, c, _ in moves.tolist()], np.int16)

    def _plan(self, root: np.ndarray, deadline: float) -> None:
        walkers = _walkers(root)
        if self._latest is None or self._latest[0] != walkers:
            most = _SECOND_TRY if walkers in self._given_up else self._max_positions
            self._latest = walkers, _Graph(min(most, self._max_positions))
        graph = self._latest[1]
        number = graph.enter(root)
        if not graph.grow(number, self._oracle, deadline):
            return
        if graph.is_ranked(number):
            self._remember(graph)
        else:
            self._given_up.add(walkers)
            self._latest = None

    def _remember(self, graph: "_Graph") -> None:
        if len(self._ranks) > _MAX_REMEMBERED:
            self._ranks.clear()
        words, ranks = graph.lost_positions()
        for (own, opp, kings), rank in zip(words.tolist(), ranks.tolist(), strict=True):
            key = (own, opp, kings)
            self._ranks[key] = min(rank, self._ranks.get(key, rank))


def _walkers(position: np.ndarray) -> Walkers:
    """What does not change between two irreversible moves: the men of both sides and their numbers of kings."""
    own, opp, kings = (int(word) for word in position[:3])
    return own & ~kings, opp & ~kings, (own & kings).bit_count(), (opp & kings).bit_count()


class _Arrays(NamedTuple):
    """Positions reached so far, numbered breadth-first, and the reversible moves (edges) between them.

    Attributes:
        sizes: int64 [2], numbers of positions and of edges.
        positions: uint32 [capacity, 3], seen by the side to move.
        winner: bool [capacity]: whether the winner is to move.
        ranks: int16 [capacity], -1: unknown.
        lost_way: bool [capacity]: whether the loser has a move after which the oracle does not give a win.
        first_edge: int64 [capacity + 1], index of each position's first edge.
        edges: int32 [capacity of edges], number of the position that each edge leads to.
        entries: int32 [a power of two], hash table of the numbers of positions; -1: free.
    """

    sizes: np.ndarray
    positions: np.ndarray
    winner: np.ndarray
    ranks: np.ndarray
    lost_way: np.ndarray
    first_edge: np.ndarray
    edges: np.ndarray
    entries: np.ndarray


class _Graph:
    """Grows ``_Arrays`` breadth-first from won positions."""

    def __init__(self, max_positions: int) -> None:
        self._max_positions = max_positions
        self._arrays = _Arrays(
            sizes=np.array([0, 0]),
            positions=np.zeros((1024, 3), np.uint32),
            winner=np.zeros(1024, bool),
            ranks=np.full(1024, -1, np.int16),
            lost_way=np.zeros(1024, bool),
            first_edge=np.zeros(1025, np.int64),
            edges=np.zeros(4096, np.int32),
            entries=np.full(4096, -1, np.int32),
        )
        self._expanded = self._layer_end = 0
        self._moves = new_moves()

    def enter(self, root: np.ndarray) -> int:
        """The number of a position with the winner to move, which is added if it is new."""
        self._make_room(1)
        return int(_numbered(self._arrays, root[0], root[1], root[2], True))

    def is_ranked(self, number: int) -> bool:
        """Whether the rank of a position is known."""
        return bool(self._arrays.ranks[number] >= 0)

    def lost_positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions with the loser to move and a known rank, uint32 [n, 3], and their ranks, int16 [n]."""
        size = self._arrays.sizes[0]
        lost = np.flatnonzero(~self._arrays.winner[:size] & (self._arrays.ranks[:size] >= 0))
        return self._arrays.positions[lost], self._arrays.ranks[lost]

    def grow(self, root: int, oracle: LeafOracle, deadline: float) -> bool:
        """Expands layers until the position with number ``root`` is ranked or it cannot go on.

        Returns:
            False if time ran out, or if there is a deadline and the oracle's answers must be read from disk first.
        """
        patient = deadline == math.inf
        while not self.is_ranked(root):
            while self._expanded < self._layer_end:
                if time.perf_counter() >= deadline:
                    return False
                end = min(self._layer_end, self._expanded + _CHUNK)
                children, counts, outcomes = _children(self._arrays, self._expanded, end, self._moves)
                if self._arrays.sizes[0] + len(children) > self._max_positions:
                    _solve(self._arrays, self._expanded)
                    return True
                open_ = outcomes == UNKNOWN
                outcomes[open_], _ = oracle.judge(children[open_], patient, distances=False)
                if not patient and (outcomes == UNKNOWN).any():
                    return False
                self._make_room(len(children))
                _link(self._arrays, self._expanded, end, children, counts, outcomes)
                self._expanded = end
            _solve(self._arrays, self._expanded)
            if self._layer_end == self._arrays.sizes[0]:
                return True
            self._layer_end = int(self._arrays.sizes[0])
        return True

    def _make_room(self, more: int) -> None:
        def grown(array: np.ndarray, needed: int, fill: int) -> np.ndarray:
            if needed <= len(array):
                return array
            larger = np.full((max(needed, 2 * len(array)), *array.shape[1:]), fill, array.dtype)
            larger[: len(array)] = array
            return larger

        old = self._arrays
        size, num_edges = (int(number) for number in old.sizes)
        needed = size + more
        arrays = _Arrays(
            sizes=old.sizes,
            positions=grown(old.positions, needed, 0),
            winner=grown(old.winner, needed, 0),
            ranks=grown(old.ranks, needed, -1),
            lost_way=grown(old.lost_way, needed, 0),
            first_edge=grown(old.first_edge, needed + 1, 0),
            edges=grown(old.edges, num_edges + more, 0),
            entries=old.entries,
        )
        if 2 * needed > len(old.entries):
            arrays = arrays._replace(entries=np.full(1 << (4 * needed).bit_length(), -1, np.int32))
            _enter(arrays.entries, arrays.positions, 0, size - 1)
        self._arrays = arrays


@njit(cache=True)
def _slot_of(index, positions, own, opp, kings):
    """Place of a position in the hash table ``index``, or the free place for it."""
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
def _numbered(graph, own, opp, kings, winner):
    """The number of a position in the graph (``_Arrays``), which is added if it is new."""
    place, size = _slot_of(graph.entries, graph.positions, own, opp, kings), graph.sizes[0]
    if graph.entries[place] < 0:
        graph.entries[place] = size
        graph.positions[size, 0], graph.positions[size, 1], graph.positions[size, 2] = own, opp, kings
        graph.winner[size] = winner
        graph.sizes[0] = size + 1
    return graph.entries[place]


@njit(cache=True)
def _children(graph, first, end, moves):
    """Positions after all moves of positions ``first`` to ``end - 1``, and the number of moves of each.

    Returns:
        uint32 [m, 4]: own, opp, kings seen by the side to move, and 0 after an irreversible move or 1; int64 [n];
        uint8 [m]: outcomes of those that are in the graph, for the side to move, else UNKNOWN.
    """
    positions, counts = graph.positions, np.zeros(end - first, np.int64)
    for i in range(first, end):
        counts[i - first] = generate(positions[i, 0], positions[i, 1], positions[i, 2], moves, DISTINCT)
    children, outcomes = np.empty((counts.sum(), 4), np.uint32), np.full(counts.sum(), UNKNOWN, np.uint8)
    n = 0
    for i in range(first, end):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        for j in range(generate(own, opp, kings, moves, DISTINCT)):
            children[n, 0], children[n, 1] = turned(moves[j].opp), turned(moves[j].own)
            children[n, 2], children[n, 3] = turned(moves[j].kings), np.uint32(is_reversible(own, opp, kings, moves[j]))
            known = graph.entries[_slot_of(graph.entries, positions, children[n, 0], children[n, 1], children[n, 2])]
            if known >= 0:  # with the same forces, a mistake may give the opponent a won position of the graph
                outcomes[n] = WIN if graph.winner[known] else LOSS
            n += 1
    return children, counts, outcomes


@njit(cache=True)
def _link(graph, first, end, children, counts, outcomes):
    """Adds the edges of positions ``first`` to ``end - 1`` to the graph (``_Arrays``), and the positions they lead to.

    ``children`` and ``counts`` are from ``_children``; ``outcomes``: the oracle's outcomes of ``children``.
    """
    num_edges, n = graph.sizes[1], 0
    for i in range(first, end):
        winner_moves = graph.winner[i]
        wanted = LOSS if winner_moves else WIN
        graph.first_edge[i] = num_edges
        converts = False
        for j in range(n, n + counts[i - first]):
            converts |= winner_moves and outcomes[j] == LOSS and children[j, 3] == 0
            graph.lost_way[i] |= not winner_moves and outcomes[j] != WIN
        if converts:
            graph.ranks[i] = 1
        for j in range(n, n + counts[i - first]):
            if converts or graph.lost_way[i] or outcomes[j] != wanted or children[j, 3] == 0:
                continue
            graph.edges[num_edges] = _numbered(graph, children[j, 0], children[j, 1], children[j, 2], not winner_moves)
            num_edges += 1
        if counts[i - first] == 0:
            graph.ranks[i] = 0
        n += counts[i - first]
    graph.first_edge[end] = num_edges
    graph.sizes[1] = num_edges


@njit(cache=True)
def _solve(graph, expanded):
    """Computes the ranks of all positions below ``expanded`` that follow from known ones."""
    ranks = graph.ranks
    changed = True
    while changed:
        changed = False
        for i in range(expanded - 1, -1, -1):
            low, high, complete = np.int64(1 << 14), np.int64(0), True
            for edge in range(graph.first_edge[i], graph.first_edge[i + 1]):
                rank = np.int64(ranks[graph.edges[edge]])
                if rank < 0:
                    complete = False
                else:
                    low, high = min(low, rank), max(high, rank)
            if graph.winner[i]:
                new = low + 1 if low < 1 << 14 else np.int64(-1)
            else:
                new = high + 1 if complete and not graph.lost_way[i] else np.int64(-1)
            if new >= 0 and (ranks[i] < 0 or new < ranks[i]):
                ranks[i] = new
                changed = True
