"""Oracles for tests: outcome and distance of all positions of two and three pieces, computed by brute force."""

from functools import cache
from itertools import combinations, product

import numpy as np
from numba import njit
from solved_tables import solve_tables

from engine.bitboard import FAR_ROW, turned
from engine.board import Board
from engine.fen import Color, format_fen
from engine.movegen import generate, new_moves
from engine.outcomes import DRAW, LOSS, WIN

HOME_ROW = int(turned(np.uint32(FAR_ROW)))
MOST_PIECES = 3


def _hash(positions: np.ndarray) -> np.ndarray:
    return _hashed(np.ascontiguousarray(positions[:, :3]).astype(np.uint32))


@njit(cache=True)
def _hash_of(own, opp, kings):
    state = np.uint64(own) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(opp) * np.uint64(0xD1B54A32D192ED03)
    state = (state ^ (state >> np.uint64(31))) + np.uint64(kings) * np.uint64(0xA24BAED4963EE407)
    return (state ^ (state >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True)
def _hashed(positions):
    keys = np.empty(len(positions), np.uint64)
    for i in range(len(positions)):
        keys[i] = _hash_of(positions[i, 0], positions[i, 1], positions[i, 2])
    return keys


@njit(cache=True)
def _successors(positions, keys, moves):
    """The moves (edges) of all positions.

    Returns:
        Index of the first edge of each position; index of the position that each edge leads to (-1: the opponent
        has no pieces); whether each edge is reversible.
    """
    first, edges, n = np.zeros(len(positions) + 1, np.int64), np.empty(len(positions) * 16, np.int64), 0
    quiet = np.zeros(len(edges), np.bool_)
    for i in range(len(positions)):
        for j in range(generate(positions[i, 0], positions[i, 1], positions[i, 2], moves, True)):
            own, opp = turned(moves[j].opp), turned(moves[j].own)
            same_men = (moves[j].own & ~moves[j].kings) == (positions[i, 0] & ~positions[i, 2])
            quiet[n] = moves[j].opp == positions[i, 1] and same_men
            edges[n] = -1 if own == 0 else np.searchsorted(keys, _hash_of(own, opp, turned(moves[j].kings)))
            n += 1
        first[i + 1] = n
    return first, edges[:n].copy(), quiet[:n].copy()


@njit(cache=True)
def _distances(first, edges):
    """(values 1, 0, -1; plies to the end, -1 for draws) by iterating over all positions until nothing changes."""
    n = len(first) - 1
    values, plies = np.zeros(n, np.int8), np.full(n, -1, np.int16)
    for distance in range(400):
        changed = False
        for i in range(n):
            if plies[i] >= 0:
                continue
            best, all_won = False, True
            for e in range(first[i], first[i + 1]):
                j = edges[e]
                done = distance > 0 if j < 0 else 0 <= plies[j] < distance
                lost = done and (j < 0 or values[j] < 0)
                best |= lost
                all_won &= done and not lost and values[j] > 0
            if best or all_won:
                values[i], plies[i] = (1 if best else -1), distance
                changed = True
        if not changed and distance > 0:
            break
    return values, plies


@njit(cache=True)
def _with_80_plies(first, edges, quiet, values):
    """Values int8 [81, n] by reversible plies, with the 80-ply rule; the longest win is shorter than 80 plies."""
    n = len(first) - 1
    found = np.zeros((81, n), np.int8)
    for reversible in range(80, -1, -1):
        for i in range(n):
            if reversible == 80 and first[i + 1] > first[i]:
                continue
            best = -1
            for e in range(first[i], first[i + 1]):
                j = edges[e]
                value = 1 if j < 0 else -(found[reversible + 1, j] if quiet[e] else values[j])
                best = max(best, value)
            found[reversible, i] = best
    return found


def _all_positions() -> np.ndarray:
    """All positions of two and three pieces in which both sides have pieces: uint32 [n, 3]."""
    bits = [1 << square for square in range(32)]
    found = []
    for own_count, opp_count in ((1, 1), (2, 1), (1, 2)):
        for squares in combinations(range(32), own_count + opp_count):
            for own_squares in combinations(squares, own_count):
                own = sum(bits[square] for square in own_squares)
                opp = sum(bits[square] for square in squares) ^ own
                forced = (own & FAR_ROW) | (opp & HOME_ROW)
                free = [bits[square] for square in squares if not bits[square] & forced]
                for crowned in product((0, 1), repeat=len(free)):
                    kings = sum(bit for bit, king in zip(free, crowned, strict=True) if king)
                    if not (own & FAR_ROW & ~(kings | forced)):
                        found.append((own, opp, kings | forced))
    return np.unique(np.array(found, np.uint32), axis=0)


class Endings:
    """All positions of two and three pieces.

    Attributes:
        positions: uint32 [n, 3].
        values: int8 [n], 1 win, 0 draw, -1 loss for the side to move.
        plies: int16 [n], distance to the end; -1 for draws.
    """

    def __init__(self) -> None:
        positions = _all_positions()
        order = np.argsort(_hash(positions))
        self.positions = positions[order]
        self._keys = _hash(self.positions)
        assert (np.diff(self._keys) > 0).all()
        self._graph = _successors(self.positions, self._keys, new_moves())
        self.values, self.plies = _distances(*self._graph[:2])

    def with_80_plies(self) -> np.ndarray:
        """Values int8 [81, n] by number of reversible plies, with the 80-ply rule but without repetitions."""
        assert self.plies.max() < 80
        return _with_80_plies(*self._graph, self.values)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Row numbers of positions in ``positions``."""
        rows = np.searchsorted(self._keys, _hash(positions)).clip(max=len(self._keys) - 1)
        assert np.array_equal(self.positions[rows], positions[:, :3])
        return rows


@cache
def endings() -> Endings:
    """The solved endings, cached."""
    return Endings()


class TableOracle:
    """A ``LeafOracle`` of the brute-force tables.

    Attributes:
        batches: sizes of the batches in calls of ``judge``.
    """

    max_pieces = MOST_PIECES

    def __init__(self, distances: bool) -> None:
        self.distances = distances
        self.batches: list[int] = []

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        self.batches.append(len(positions))
        assert positions.shape[1:] == (4,)
        assert positions.dtype == np.uint32
        assert (np.bitwise_count(positions[:, 0] | positions[:, 1]) <= self.max_pieces).all()
        outcomes, plies = np.full(len(positions), LOSS, np.uint8), np.zeros(len(positions), np.int16)
        alive = positions[:, 0] != 0  # a side without pieces has lost
        rows = endings().rows(positions[alive])
        outcomes[alive] = np.array([DRAW, WIN, LOSS], np.uint8)[endings().values[rows]]
        plies[alive] = endings().plies[rows]
        if not self.distances:
            plies[:] = -1
        return outcomes, plies

    def compiled(self) -> None:
        """Returns None: all positions go to ``judge``."""


@cache
def retrograde_values() -> np.ndarray:
    """Values int8 [n] of the same positions by the tables of ``engine.tablebase``."""
    return solve_tables(MOST_PIECES, 1).lookup(endings().positions)


def board_of(own: int, opp: int, kings: int, turn: Color = Color.BLACK) -> Board:
    """A board with this position."""
    return Board(format_fen(turn, int(own), int(opp), int(kings)))


def distance_of(board: Board) -> int:
    """Plies to the end of the game by the tables; -1: a draw."""
    return int(endings().plies[endings().rows(np.array([board.words()], np.uint32))[0]])
