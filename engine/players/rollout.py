"""UCT: Monte-Carlo tree search with UCB1 and uniformly random roll-outs, without any knowledge beyond the rules.

Kocsis & Szepesvári, "Bandit based Monte-Carlo Planning", ECML 2006. Every simulation walks down the tree by UCB1, adds
one node, plays random moves to the end of the game and adds the result to every node on its path. One compiled function
does this; it can be paused and resumed. The tree lies in an arena that is allocated once per player.
"""

import math
import time
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..board import Board, Move
from ..movegen import DISTINCT, MAX_MOVES, generate, new_moves
from ..random_words import new_random, random_below
from ..records import record
from .base import OneByOne, check_range, search_moves
from .kernels import drawn, new_line, play, start_line
from .watching import MoveThought, Purpose, Thought, Unit

NODE = record(
    [
        ("total", np.float64),  # sum of values for the side that moved into the node
        ("value", np.float64),  # result for the side to move, if the game is over here
        ("visits", np.int32),
        ("move", np.int32),  # number of the move that leads here, in the order of generate(distinct=True)
        ("num_moves", np.int32),  # 0 if the game is over
        ("num_children", np.int32),
        ("first_child", np.int32),
        ("next_sibling", np.int32),  # NO_NODE after the last
    ]
)
NO_NODE = -1
MAX_SIMULATIONS = 1_000_000  # 76 bytes of arena each
ENDLESS = 200_000  # roll-outs of searches that ignore the player's own limit
_LEAST_VISITS = 10  # fewest visits of a move in the expected line
_SLICE = 32  # roll-outs between two checks of the clock, about a millisecond
MAX_ROLL_OUT_PLIES = 1000  # a longer roll-out counts as a draw; random games seldom reach 200
SQRT_2 = 2.0**0.5  # UCB1 (Auer, Cesa-Bianchi & Fischer 2002) for rewards in [0, 1]


@njit(cache=True)
def roll_out(line, now, moves, random):
    """Plays uniformly random moves from position ``now`` to the end; returns the value (-1, 0, 1) for its side to move.

    Args:
        line: [now + 1 + MAX_ROLL_OUT_PLIES or more, 4], see ``kernels``; overwritten after ``now``.
        moves: buffer [MAX_MOVES] of ``MOVE``.
        random: state of ``next_random``.
    """
    lost = -1.0
    for _ in range(MAX_ROLL_OUT_PLIES):
        n = generate(line[now, 0], line[now, 1], line[now, 2], moves, DISTINCT)
        if n == 0:
            return lost
        if drawn(line, now):
            return 0.0
        play(line, now, moves[random_below(random, n)])
        now += 1
        lost = -lost
    return 0.0


@njit(cache=True)
def _write_node(node, move, line, now, moves):
    """Fills a new node for position ``now`` of the line; a finished game gets its exact value."""
    num_moves = generate(line[now, 0], line[now, 1], line[now, 2], moves, DISTINCT)
    node.total = 0.0
    node.value = -1.0 if num_moves == 0 else 0.0
    node.visits = 0
    node.move = move
    node.num_moves = 0 if drawn(line, now) else num_moves
    node.num_children = 0
    node.first_child = NO_NODE
    node.next_sibling = NO_NODE


class Arena(NamedTuple):
    """A tree of at most N nodes and the buffers of its search. Node 0 is the root.

    Attributes:
        line: [root + N + MAX_ROLL_OUT_PLIES or more, 4], the game's history up to the root, see ``kernels``.
        nodes: [N] of ``NODE``.
        positions: uint32 [N, 4], the line entry of each node.
        path: int32 [N], nodes on the path of the current simulation.
        moves: buffer [MAX_MOVES] of ``MOVE``.
        random: state of ``next_random``.
    """

    line: np.ndarray
    nodes: np.ndarray
    positions: np.ndarray
    path: np.ndarray
    moves: np.ndarray
    random: np.ndarray


@njit(cache=True)
def _select_child(nodes, parent):
    """The child with the largest upper confidence bound. UCB1 is for values in [0, 1]; here they lie in [-1, 1], so the
    exploration term is doubled."""
    log_visits = np.log(nodes[parent].visits)
    best, best_bound = NO_NODE, -np.inf
    child = nodes[parent].first_child
    while child != NO_NODE:
        visits = nodes[child].visits
        bound = nodes[child].total / visits + 2.0 * SQRT_2 * np.sqrt(log_visits / visits)
        if bound > best_bound:
            best, best_bound = child, bound
        child = nodes[child].next_sibling
    return best


@njit(cache=True)
def _untried_move(nodes, parent, random):
    """Draws the number of a move that has no child yet, all equally likely."""
    tried = np.zeros(MAX_MOVES, np.bool_)
    child = nodes[parent].first_child
    while child != NO_NODE:
        tried[nodes[child].move] = True
        child = nodes[child].next_sibling
    skip = random_below(random, nodes[parent].num_moves - nodes[parent].num_children)
    move = 0
    while tried[move] or skip > 0:
        if not tried[move]:
            skip -= 1
        move += 1
    return move


@njit(cache=True)
def _expand(arena, parent, new, now):
    """Adds node ``new`` for an untried move of ``parent``, and its position to the line.

    ``now``: the parent's index in the line.
    """
    line, nodes, moves = arena.line, arena.nodes, arena.moves
    move = _untried_move(nodes, parent, arena.random)
    generate(line[now, 0], line[now, 1], line[now, 2], moves, DISTINCT)
    play(line, now, moves[move])
    _write_node(nodes[new], move, line, now + 1, moves)
    arena.positions[new] = line[now + 1]
    nodes[new].next_sibling = nodes[parent].first_child
    nodes[parent].first_child = new
    nodes[parent].num_children += 1


@njit(cache=True)
def _back_up(nodes, path, depth, value):
    """Adds a value to all nodes of the path; the value is for the side to move in the path's last node."""
    for i in range(depth, -1, -1):
        value = -value
        nodes[path[i]].visits += 1
        nodes[path[i]].total += value


@njit(cache=True)
def most_visited(nodes):
    """Number of the root's move with the most visits; among equals, the one with the highest total value."""
    best = nodes[0].first_child
    child = nodes[best].next_sibling
    while child != NO_NODE:
        more = nodes[child].visits - nodes[best].visits
        if more > 0 or (more == 0 and nodes[child].total > nodes[best].total):
            best = child
        child = nodes[child].next_sibling
    return nodes[best].move


@njit(cache=True)
def plant(arena, root):
    """Starts a new tree: node 0 gets position ``root`` of the line."""
    line, nodes, moves = arena.line, arena.nodes, arena.moves
    _write_node(nodes[0], 0, line, root, moves)
    nodes[0].num_moves = generate(line[root, 0], line[root, 1], line[root, 2], moves, DISTINCT)  # the game goes on here


@njit(cache=True, nogil=True)
def uct_search(arena, root, size, simulations):
    """Continues the search that ``plant`` began at position ``root`` of the line; returns the new number of nodes.

    Args:
        size: current number of nodes in the tree.
        simulations: simulations to make, at least 1.
    """
    line, nodes, path = arena.line, arena.nodes, arena.path
    for _ in range(simulations):
        node, depth = 0, 0
        path[0] = 0
        while 0 < nodes[node].num_moves == nodes[node].num_children:
            node = _select_child(nodes, node)
            depth += 1
            path[depth] = node
            line[root + depth] = arena.positions[node]
        if nodes[node].num_moves > 0:
            _expand(arena, node, size, root + depth)
            node = size
            size += 1
            depth += 1
            path[depth] = node
        over = nodes[node].num_moves == 0
        value = nodes[node].value if over else roll_out(line, root + depth, arena.moves, arena.random)
        _back_up(nodes, path, depth, value)
    return size


class RolloutSearch:
    """UCT of one board, see ``watching.Thinking``. The arena is allocated once and used for one board after another.

    Args:
        simulations: roll-outs per board.
        random: state of ``next_random``.
    """

    unit: Unit = "roll-outs"

    def __init__(self, simulations: int, random: np.ndarray) -> None:
        self.simulations = simulations
        self._nodes = np.zeros(simulations + 1, NODE)
        self._arena = Arena(
            new_line(simulations + 1 + MAX_ROLL_OUT_PLIES),
            self._nodes,
            np.zeros((simulations + 1, 4), np.uint32),
            np.zeros(simulations + 1, np.int32),
            new_moves(),
            random,
        )
        self._moves: list[Move] = []
        self._board = Board()
        self._root, self._size = 0, 1

    def set_board(self, board: Board) -> None:
        """Starts a new search of a board; raises ``PlayerError`` if the board has no legal move."""
        self._moves, self._board = search_moves(board), board.copy()
        self._root, self._size = start_line(board, self._arena.line), 1
        plant(self._arena, self._root)

    @property
    def count(self) -> int:
        return int(self._nodes[0]["visits"])

    @property
    def progress(self) -> float:
        return self.count / self.simulations

    def advance(self, seconds: float) -> bool:
        deadline = time.perf_counter() + seconds
        while left := self.simulations - self.count:
            self._size = uct_search(self._arena, self._root, self._size, min(_SLICE, left))
            if time.perf_counter() >= deadline:
                break
        return self.count < self.simulations

    def choose(self) -> Move:
        return self._moves[most_visited(self._nodes)]

    def thought(self) -> Thought:
        known, best = [], self.choose()
        for child in self._children(self._nodes[0]):
            value = float(child["total"]) / int(child["visits"])
            known.append(MoveThought(self._moves[child["move"]], int(child["visits"]), value=value))
        known.sort(key=lambda thought: (thought.move == best, thought.visits), reverse=True)
        value = -float(self._nodes[0]["total"]) / self.count
        return Thought(tuple(known), self._expected_line(), value, None, self.count)

    def _children(self, node: Any) -> list[Any]:
        children, index = [], int(node["first_child"])
        while index != NO_NODE:
            children.append(self._nodes[index])
            index = int(children[-1]["next_sibling"])
        return children

    def _expected_line(self) -> tuple[Move, ...]:
        """The best move and then the most visited replies, while they have at least ``_LEAST_VISITS`` visits."""
        line, board, node = [self.choose()], self._board.copy(), self._nodes[0]
        while True:
            number = search_moves(board).index(line[-1])
            board.push(line[-1])
            node = next(child for child in self._children(node) if child["move"] == number)
            replies = self._children(node)
            most = max(replies, key=lambda child: int(child["visits"]), default=None)
            if most is None or most["visits"] < _LEAST_VISITS:
                return tuple(line)
            line.append(search_moves(board)[most["move"]])


class RolloutPlayer(OneByOne):
    """UCT with random roll-outs; a forced move costs no simulation.

    Args:
        simulations: roll-outs per move, 1 to ``MAX_SIMULATIONS``.
        seed: seed of the random numbers.

    Raises:
        PlayerError: the number of roll-outs is out of range.
    """

    def __init__(self, simulations: int, seed: int = 0) -> None:
        self.simulations = check_range("the number of roll-outs", simulations, MAX_SIMULATIONS)
        self.name = f"rollout:{simulations}"
        self._random = new_random(seed)
        self._search = RolloutSearch(simulations, self._random)
        self._endless: RolloutSearch | None = None

    def seed(self, seed: int) -> None:
        self._random[:] = new_random(seed)

    def choose_from(self, board: Board, moves: list[Move]) -> Move:
        self._search.set_board(board)
        self._search.advance(math.inf)  # in slices, so that Ctrl-C is heard
        return self._search.choose()

    def begin(self, board: Board, purpose: Purpose = "move") -> RolloutSearch:
        search = self._search
        if purpose != "move":
            search = self._endless = self._endless or RolloutSearch(max(ENDLESS, self.simulations), self._random)
        search.set_board(board)
        return search
