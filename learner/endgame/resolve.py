"""Searches over many positions at once: captures to their end, and quiet moves beyond where judgements are unsure.

A network that judges quiescent positions alone is right far more often than one that must also see exchanges through.
So a position is *resolved*: captures are compulsory, all their sequences are followed until no capture is possible;
where the opponent would capture if it were to move, each answer to that is tried, once, and its captures followed; the
positions at the ends are judged, and judgements are carried back. That is the **capture search**. Every *round* after
it tries all quiet moves at the ends that still matter, each with the captures it provokes: at those that are unsure, as
is every position on the way to them. One round everywhere is the **one-ply search**. A side without pieces or moves has
lost.

**Judgements** are probabilities of win, draw and loss, and so are those carried back. A side to move takes the best
that any of its moves offers::

    P(win) = max over moves of the opponent's P(loss)       P(loss) = min over moves of the opponent's P(win)

and what is left is P(draw), never negative: the distribution of the maximum where the judgements of all moves err
in the same direction, as those of one network on neighbours do. It is exact where the judgements are. (If errors were
independent, each further move that might win would make a win more likely.) Where a position was judged before it was
searched, both answers count: the mean of their logarithms, the former with ``STATIC_WEIGHT``, errs less often than
either.

The judge is asked once a round, about all new ends.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from engine.bitboard import turned
from engine.movegen import DISTINCT, MAX_MOVES, MOVE, count_moves, generate, jumpers_of

from .data import FLAG_THREATENED, flags_of

Judge = Callable[[np.ndarray], np.ndarray]
"""Positions uint32 [N, 4] → probabilities float32 [N, 3] of win, draw and loss for the side to move."""

STATIC_WEIGHT = 0.2  # weight of a position's own judgement beside that of its moves; 0 would be plain negamax
EVERYWHERE = 2.0  # a threshold that no confidence reaches
MOST_EVALUATIONS = 2000  # a position that has taken as many gets no further round, where nothing else is said
AT_ONCE, STEADY, CHANGED, PROVEN = range(4)
"""How a verdict was reached: by captures alone; by rounds that agreed with it all along; by rounds that did not; or
by moves that win, or lose, whatever the judge may say."""
_FLOOR = np.float32(1e-6)  # least probability whose logarithm is taken
_SUREST = np.nextafter(np.float32(1), np.float32(0))  # no judgement is as certain as a proof
_END, _OPEN, _LOST = 0, 1, 2  # to be judged; its moves are among the nodes; no move or no piece
MOST_AT_ONCE = 1 << 22  # evaluations of the positions searched at a time: bounds the memory, to some hundred MB


class Resolved(NamedTuple):
    """What a search says of N positions.

    Attributes:
        probabilities: float32 [N, 3], win, draw and loss for the side to move.
        evaluations: int64 [N], how many positions the judge was asked about for each.
        rounds: uint8 [N], how many rounds of quiet moves each was given; where a tree was searched (``oracle.TREE``),
            one more than there can be.
        ways: uint8 [N], ``AT_ONCE``, ``STEADY``, ``CHANGED`` or ``PROVEN``.
    """

    probabilities: np.ndarray
    evaluations: np.ndarray
    rounds: np.ndarray
    ways: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """Verdicts int8 [N]: 1 win, 0 draw, -1 loss, whatever is most probable."""
        return (1 - self.probabilities.argmax(1)).astype(np.int8)

    @property
    def confidence(self) -> np.ndarray:
        """Probability float32 [N] of the verdicts."""
        return self.probabilities.max(1)


def resolve(
    positions: np.ndarray,
    judge: Judge,
    rounds: int = 0,
    threshold: float = EVERYWHERE,
    most: int = MOST_EVALUATIONS,
) -> Resolved:
    """Searches positions uint32 [N, 4].

    Args:
        rounds: 0 is the capture search; 1 with the threshold ``EVERYWHERE`` the one-ply search.
        threshold: only judgements with a smaller probability of the verdict are searched further.
        most: a position that has taken as many evaluations gets no further round.
    """
    parts, size = [], max(1, MOST_AT_ONCE // most)
    for start in range(0, max(1, len(positions)), size):
        part = positions[start : start + size]
        *_, last = search_rounds(part, judge, rounds, threshold, most)
        parts.append(last)
    return Resolved(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def search_rounds(
    positions: np.ndarray, judge: Judge, rounds: int, threshold: float, most: int = MOST_EVALUATIONS
) -> Iterator[Resolved]:
    """What ``resolve`` says after the capture search and after each round, as long as anything is unsure."""
    forest = _Forest(positions, judge)
    forest.grow_captures()
    yield forest.resolved()
    for _ in range(rounds):
        frontier = forest.unsure(threshold, most)
        if len(frontier) == 0:
            return
        forest.rounds[np.unique(forest.origins[frontier])] += 1
        forest.expand(frontier)
        forest.judge_ends()
        yield forest.resolved()


class _Forest:
    """The trees below N positions as one list of M nodes, the N first, parents before their children.

    Attributes:
        positions: uint32 [M, 4].
        parents, origins: int32 [M], the node whose move leads here (-1: none) and the one of the N it is below of.
        states: uint8 [M], ``_END``, ``_OPEN`` or ``_LOST``.
        judged: float32 [M, 3], what the judge said; negative where it was not asked.
        values: float32 [M, 3], probabilities carried back.
    """

    def __init__(self, positions: np.ndarray, judge: Judge) -> None:
        n = len(positions)
        self._judge = judge
        self.positions = np.empty((0, 4), np.uint32)
        self.parents, self.origins = np.empty(0, np.int32), np.empty(0, np.int32)
        self.states = np.empty(0, np.uint8)
        self.judged = self.values = np.empty((0, 3), np.float32)
        self.evaluations, self.rounds = np.zeros(n, np.int64), np.zeros(n, np.uint8)
        self._verdicts, self._changed = np.full(n, -1), np.zeros(n, np.bool_)
        self._append(positions, np.full(n, -1, np.int32), np.arange(n, dtype=np.int32))

    def _append(self, positions: np.ndarray, parents: np.ndarray, origins: np.ndarray) -> None:
        states = np.empty(len(positions), np.uint8)
        _classify(positions, states)
        self.positions = np.concatenate([self.positions, positions])
        self.parents = np.concatenate([self.parents, parents])
        self.origins = np.concatenate([self.origins, origins])
        self.states = np.concatenate([self.states, states])

    def grow_captures(self) -> None:
        """Appends captures to their end, answers to threats of capture after them, and has the ends judged."""
        self.expand(np.flatnonzero(self.states == _OPEN))
        self.expand(np.flatnonzero((self.states == _END) & (flags_of(self.positions) == FLAG_THREATENED)))
        self.judge_ends()

    def expand(self, frontier: np.ndarray) -> None:
        """Appends what the moves of these nodes lead to, and captures from there to their end."""
        while len(frontier):
            first = len(self.positions)
            self.states[frontier] = _OPEN
            children, parents = children_of(self.positions, frontier)
            self._append(children, parents, self.origins[parents])
            frontier = first + np.flatnonzero(self.states[first:] == _OPEN)

    def judge_ends(self) -> None:
        """Has the new ends judged and carries all judgements back."""
        judged = np.full((len(self.positions), 3), -1, np.float32)
        judged[: len(self.judged)] = self.judged
        new = np.flatnonzero((self.states == _END) & (judged[:, 0] < 0))
        if len(new):
            judged[new] = np.minimum(self._judge(self.positions[new]), _SUREST)
            self.evaluations += np.bincount(self.origins[new], minlength=len(self.evaluations))
        self.judged = judged
        self.values = np.empty_like(judged)
        _back_up(self.states, self.parents, judged, np.float32(STATIC_WEIGHT), self.values)
        verdicts = self.values[: len(self.rounds)].argmax(1)
        self._changed |= (verdicts != self._verdicts) & (self._verdicts >= 0)
        self._verdicts = verdicts

    def unsure(self, threshold: float, most: int) -> np.ndarray:
        """The ends to be searched further: they and all above them are unsure."""
        marked = np.zeros(len(self.positions), np.bool_)
        tired = self.evaluations >= most
        _mark(self.states, self.parents, self.origins, self.values, np.float32(threshold), tired, marked)
        return np.flatnonzero(marked & (self.states == _END))

    def resolved(self) -> Resolved:
        values = self.values[: len(self.rounds)].copy()
        ways = np.where(self._changed, CHANGED, np.where(self.rounds > 0, STEADY, AT_ONCE)).astype(np.uint8)
        ways[np.maximum(values[:, 0], values[:, 2]) >= 1] = PROVEN
        return Resolved(values, self.evaluations.copy(), self.rounds.copy(), ways)


def children_of(positions: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the distinct moves of some positions lead to.

    Args:
        positions: uint32 [N, 4]. chosen: int64 [K], the rows whose moves are made.

    Returns:
        Children uint32 [M, 4], each seen by its own side to move, and the rows of their parents, int32 [M].
    """
    room = _count_children(positions, chosen)
    children, parents = np.zeros((room, 4), np.uint32), np.empty(room, np.int32)
    n = _fill_children(positions, chosen, children, parents)
    return children[:n], parents[:n]


@njit(cache=True, nogil=True)
def _classify(positions, states):
    moves = np.empty(MAX_MOVES, MOVE)
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        if jumpers_of(own, opp, kings) != 0:
            states[i] = _OPEN
        elif count_moves(own, opp, kings, moves) == 0:
            states[i] = _LOST
        else:
            states[i] = _END if opp != 0 else _OPEN  # against nobody, whatever is moved has won


@njit(cache=True, nogil=True)
def _count_children(positions, frontier):
    """An upper bound of the number of children that ``_fill_children`` will write."""
    moves = np.empty(MAX_MOVES, MOVE)
    n = 0
    for i in frontier:
        n += count_moves(positions[i, 0], positions[i, 1], positions[i, 2], moves)
    return n


@njit(cache=True, nogil=True)
def _fill_children(positions, frontier, children, parents):
    moves = np.empty(MAX_MOVES, MOVE)
    n = 0
    for i in frontier:
        for j in range(generate(positions[i, 0], positions[i, 1], positions[i, 2], moves, DISTINCT)):
            children[n, 0] = turned(moves[j].opp)
            children[n, 1] = turned(moves[j].own)
            children[n, 2] = turned(moves[j].kings)
            parents[n] = i
            n += 1
    return n


@njit(cache=True, nogil=True)
def _mix(judged, value, weight):
    """``value`` [3] becomes the normalised geometric mean of both, ``judged`` [3] with this weight."""
    total = np.float32(0)
    for k in range(3):
        log = weight * np.log(max(judged[k], _FLOOR)) + (np.float32(1) - weight) * np.log(max(value[k], _FLOOR))
        value[k] = np.exp(log)
        total += value[k]
    for k in range(3):
        value[k] /= total


@njit(cache=True, nogil=True)
def _back_up(states, parents, judged, static_weight, values):
    zero, one = np.float32(0), np.float32(1)
    for i in range(states.shape[0]):
        values[i, 0], values[i, 1], values[i, 2] = zero, zero, one
    for i in range(states.shape[0] - 1, -1, -1):
        if states[i] == _END:
            values[i, 0], values[i, 1], values[i, 2] = judged[i, 0], judged[i, 1], judged[i, 2]
        elif states[i] == _OPEN:
            values[i, 1] = max(zero, one - values[i, 0] - values[i, 2])
            proven = max(values[i, 0], values[i, 2]) >= one
            if static_weight > zero and judged[i, 0] >= zero and not proven:
                _mix(judged[i], values[i], static_weight)
        above = parents[i]
        if above >= 0:
            values[above, 0] = max(values[above, 0], values[i, 2])
            values[above, 2] = min(values[above, 2], values[i, 0])


@njit(cache=True, nogil=True)
def _mark(states, parents, origins, values, threshold, tired, marked):
    for i in range(states.shape[0]):
        above = parents[i]
        if (above < 0 and not tired[origins[i]]) or (above >= 0 and marked[above]):
            confidence = max(values[i, 0], values[i, 1], values[i, 2])
            marked[i] = states[i] != _LOST and confidence < threshold
