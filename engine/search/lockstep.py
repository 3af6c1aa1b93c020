"""``LockstepSearch``: many searches, one per slot, whose leaves are evaluated in one batch."""

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bitboard import turned
from ..board import Board
from ..encoding import NUM_POLICY
from ..movegen import MAX_MOVES
from ..outcomes import LOSS, UNKNOWN, WIN
from ..tablebase.probing import no_tables
from . import root as root_kernels
from .config import SearchConfig
from .evaluator import Evaluator, LeafOracle
from .in_flight import drop_leaves
from .kernels import backup_leaves, select_leaves
from .leaf_judge import LeafJudge
from .state import MAX_HISTORY, Settings, new_state
from .step_loop import CompiledEvaluator
from .tree import MAX_PLIES, NODE

_NODES_PER_SIMULATION = 16  # more than the children that a position has on average; a full arena only stops growing
_MOST_NODES = 16_000_000  # nodes of one tree, 0.9 GB; memory is used as the tree grows, in games 4 nodes a simulation
_MOST_NUMBERED = (1 << 31) - 1  # nodes of all trees: their numbers are int32
_SPARE_NODES = 4 * MAX_MOVES
MOST_STEPS = 256  # steps of one board in one call of a search by time, 8 ms of a wide network; signals wait for its end
_MOST_LEAVES = 1 << 14  # leaves in one call for many games, for the same reason
_FEWEST_STEPS = 8  # however many games there are


class Ending(enum.IntEnum):
    """State of a slot's game at its root."""

    RUNNING = root_kernels.RUNNING
    LOST = root_kernels.LOST  # the side to move has no move
    REPETITION = root_kernels.REPETITION
    REVERSIBLE = root_kernels.REVERSIBLE


@dataclass(frozen=True)
class Targets:
    """Training targets from the searches of n slots, seen by the sides to move at their roots.

    Attributes:
        positions: uint32 [n, 4]: own, opp, kings, reversible plies.
        wdl: float32 [n, 3]: probabilities of win, draw, loss.
        policies: float32 [n, MAX_MOVES]: the improved policies; each sums to 1.
        counts: int64 [n]: number of distinct legal moves, which is the number of columns used in ``policies``.
    """

    positions: np.ndarray
    wdl: np.ndarray
    policies: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class SearchResult:
    """What a search found, seen by the side to move at the root. n = number of distinct legal moves.

    Attributes:
        visits: int32 [n].
        priors: float32 [n].
        values: float32 [n], mean P(win) - P(loss) after the move.
        draws: float32 [n], mean P(draw) after the move.
        proofs: int32 [n], ``WIN``, ``DRAW``, ``LOSS`` or ``UNKNOWN``.
        proof_plies: int32 [n], plies from after the move to the proven end; numbers from ``tree.NO_DISTANCE`` on mean
            that the distance is unknown (tables without distances).
        policy: float32 [n], the improved policy (training target), sums to 1.
        wdl: float32 [3], win, draw, loss at the root.
        position: uint32 [4]: own, opp, kings, reversible plies.
    """

    visits: np.ndarray
    priors: np.ndarray
    values: np.ndarray
    draws: np.ndarray
    proofs: np.ndarray
    proof_plies: np.ndarray
    policy: np.ndarray
    wdl: np.ndarray
    position: np.ndarray

    @property
    def simulations(self) -> int:
        """Sum of the visits of all moves."""
        return int(self.visits.sum())


def _check_finite(wdl_logits: np.ndarray) -> None:
    if not np.isfinite(wdl_logits).all():
        raise ValueError("the evaluator answered with win/draw/loss logits that are not finite numbers")


class LockstepSearch:
    """Search trees of ``slots`` games. A search allocates no memory, except in an oracle.

    ``set_board`` gives a slot its position and ``start`` its number of simulations. ``step`` then advances every
    started slot by up to ``leaves_in_flight`` evaluations. ``active`` tells which slots have not reached their target;
    in the others ``play`` makes a move. Every slot has its own random generator, so games do not affect one another.

    Args:
        config: settings of the search.
        slots: number of games.
        max_simulations: largest number that ``start`` accepts, by which arenas are sized; None: that of ``config``.
        seed: seed of the random generators.
        leaf_oracle: gives exact values of leaves with few pieces, see ``LeafOracle``.

    Raises:
        ValueError: ``config`` needs an oracle and there is none, or the trees would be too large.
    """

    def __init__(
        self,
        config: SearchConfig,
        slots: int,
        max_simulations: int | None = None,
        seed: int = 0,
        leaf_oracle: LeafOracle | None = None,
    ) -> None:
        if config.oracle != "off" and leaf_oracle is None:
            raise ValueError(f"the search's oracle is {config.oracle!r}, but no leaf_oracle was given")
        self.config = config
        self.slots = slots
        self.max_simulations = config.num_simulations if max_simulations is None else max_simulations
        capacity = min(_NODES_PER_SIMULATION * (self.max_simulations + 1), _MOST_NODES) + _SPARE_NODES
        if slots * capacity > _MOST_NUMBERED:
            raise ValueError(f"{slots} trees of {capacity} nodes are too many nodes to be numbered: search fewer games")
        self._state = new_state(config, slots, capacity)
        self._settings = Settings.of(config)
        self._nodes, self._slots = self._state.nodes, self._state.slots
        self._scratch = np.zeros(capacity, NODE)
        self._moved = np.zeros(capacity, np.int32)
        self._num_waiting = 0
        self._counts = np.zeros((3, MAX_MOVES), np.int32)
        self._means = np.zeros((3, MAX_MOVES), np.float32)
        self._generators = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(slots)]
        self._judge = None if leaf_oracle is None else LeafJudge(leaf_oracle, self._state)
        self._tables = no_tables() if leaf_oracle is None else leaf_oracle.compiled()

    def reseed(self, slot: int, seed: int) -> None:
        """Restarts the slot's random numbers."""
        self._generators[slot] = np.random.default_rng(seed)

    def generator(self, slot: int) -> np.random.Generator:
        """The slot's random generator."""
        return self._generators[slot]

    def set_board(self, slot: int, board: Board) -> Ending:
        """Makes the board's position, with the history needed for repetitions, the slot's root; returns its state."""
        self._end(slot)
        state, root = self._slots[slot], self._nodes[self._slots[slot]["root"]]
        *before, _ = history = board.history()[-MAX_HISTORY - 1 :]
        for target, (own, opp, kings) in zip([*self._state.histories[slot, : len(before)], root], history, strict=True):
            target["own"], target["opp"] = turned(np.uint32(opp)), turned(np.uint32(own))
            target["kings"] = turned(np.uint32(kings))
        state["num_history"] = len(before)
        root["reversible"] = min(board.reversible_plies, MAX_PLIES)
        root_kernels.clear_root(self._state, slot)
        root_kernels.judge_root(self._state, slot)
        return Ending(int(state["ending"]))

    def _root(self, slot: int) -> Any:
        return self._nodes[self._slots[slot]["root"]]

    @property
    def tree_nodes(self) -> int:
        """Largest number of nodes of a tree."""
        return len(self._scratch)

    def tree(self, slot: int) -> tuple[np.ndarray, int, int]:
        """All nodes (``tree.NODE``, read only), and first and end of the slot's nodes; the first one is the root."""
        state = self._slots[slot]
        return self._nodes, int(state["root"]), int(state["used"])

    def num_legal(self, slot: int) -> int:
        """Number of distinct legal moves at the root."""
        return int(self._slots[slot]["num_legal"])

    def positions(self, slots: np.ndarray) -> np.ndarray:
        """Positions at the roots of ``slots`` (int64 [n]), seen by the sides to move.

        Returns:
            uint32 [n, 4]: own, opp, kings, reversible plies.
        """
        positions = np.empty((len(slots), 4), np.uint32)
        root_kernels.read_positions(self._state, slots, positions)
        return positions

    def start(self, slot: int, simulations: int | None = None, explore: bool = True, pondering: bool = False) -> None:
        """Begins the search of a slot's root.

        Args:
            simulations: sum of the visits of all root moves at which the search ends, including those kept from an
                earlier tree; None: that of the configuration.
            explore: whether to add Dirichlet noise to the priors of the root.
            pondering: whether the side with the contempt for draws is the opponent of the side to move.

        Raises:
            ValueError: there is no legal move, or more simulations than the arenas are sized for.
        """
        self.start_all(np.array([slot]), np.array([self._checked(simulations)]), [explore], pondering)

    def start_all(
        self, slots: np.ndarray, simulations: np.ndarray, explore: Sequence[bool], pondering: bool = False
    ) -> None:
        """``start`` for ``slots`` (int64 [n]), each with its own ``simulations`` (int64 [n]) and ``explore``."""
        for most in simulations.tolist():
            self._checked(most)
        config, noises = self.config, np.zeros(len(slots), np.float32)
        counts = self._slots["num_legal"][slots].tolist()
        if 0 in counts:
            raise ValueError("the side to move has no legal move: there is nothing to search")
        self._end(slots)
        for i, (slot, count) in enumerate(zip(slots.tolist(), counts, strict=True)):
            if explore[i] and config.noise_fraction > 0:
                drawn = self._generators[slot].standard_gamma(config.dirichlet_scale / count, size=count) + 1e-9
                self._state.noises[slot, :count] = drawn / drawn.sum()
                noises[i] = config.noise_fraction
        few = 0 if self._judge is None else self._judge.max_pieces
        searcher = np.float32(-1 if pondering else 1)
        root_kernels.start_roots(self._state, slots, simulations, noises, searcher, few)

    def extend(self, slot: int, simulations: int) -> None:
        """Continues a search that has reached its target, up to ``simulations`` visits of all root moves in total.

        Raises:
            ValueError: more simulations than the arenas are sized for.
        """
        self._slots[slot]["target"], self._slots[slot]["active"] = self._checked(simulations), 1

    def _checked(self, simulations: int | None) -> int:
        simulations = self.config.num_simulations if simulations is None else simulations
        if not 0 <= simulations <= self.max_simulations:
            raise ValueError(f"{simulations} simulations requested, but the trees are sized for {self.max_simulations}")
        return simulations

    def plan_until(self, deadline: float) -> None:
        """Ends the planning of conversions (see ``conversion``) at a time of ``time.perf_counter``.

        With a finite time the search does not wait for tables' blocks of leaves either, only for those of root moves.
        """
        if self._judge is not None:
            self._judge.deadline = deadline
        if self._tables is not None:
            self._tables.waits[0] = deadline == math.inf

    def select(self) -> int:
        """Descends to the next leaf in every started slot without a waiting leaf; returns the number of waiting leaves.

        Slots that reach their target become inactive. They may be started again before another ``select``, so that the
        next evaluation has a leaf of every game.
        """
        judged = self._num_waiting
        try:
            self._num_waiting = self._select(judged)
            return self._settle(judged)
        except BaseException:
            self._drop_all()
            raise

    def _settle(self, judged: int) -> int:
        """Settles waiting leaves that the oracle knows, except the first ``judged``, and selects others in their place;
        returns the number of waiting leaves."""
        while self._judge is not None and judged < self._num_waiting:
            found, judged = self._num_waiting, self._judge.settle(judged, self._num_waiting)
            if judged == found:
                break
            self._num_waiting = self._select(judged)
        return self._num_waiting

    def _drop_all(self) -> None:
        """Drops all leaves that wait: else they would count as visited for ever, and more leaves than there is room for
        would wait at the next step. Counts them anew: Ctrl-C may come before compiled code has told their number."""
        n = int(self._slots["waiting"].sum())
        self._num_waiting = int(drop_leaves(self._state, n, np.ones(self.slots, np.bool_)))

    def _end(self, slots: int | np.ndarray) -> None:
        """Ends the searches of ``slots``: their leaves wait no more."""
        if self._num_waiting and self._slots["waiting"][slots].any():
            ended = np.zeros(self.slots, np.bool_)
            ended[slots] = True
            self._num_waiting = int(drop_leaves(self._state, self._num_waiting, ended))
        self._slots["active"][slots] = 0

    def _select(self, waiting: int) -> int:
        return int(select_leaves(self._state, self._settings, 0, self.slots, waiting))

    def evaluate(self, evaluator: Evaluator) -> int:
        """Evaluates the waiting leaves and backs their values up; returns their number.

        Raises:
            ValueError: see ``back_up``.
        """
        n, self._num_waiting = self._num_waiting, 0
        if n:
            try:
                policy, wdl = evaluator.evaluate(self._state.leaves[:n])
                self.back_up(n, policy, wdl)
            except BaseException:
                self._drop_all()
                raise
        return n

    def back_up(self, n: int, policy_logits: np.ndarray | None, wdl_logits: np.ndarray) -> None:
        """Backs up the evaluations of the first ``n`` waiting leaves.

        Args:
            policy_logits: float32 [n, NUM_POLICY]; None for equal priors.
            wdl_logits: float32 [n, 3].

        Raises:
            ValueError: an array has another shape, a win/draw/loss logit is not finite, or a policy logit is no number
                or infinite (minus infinity is allowed: a move without a prior; where no move has one, they are equal).
        """
        shape = (n, NUM_POLICY) if policy_logits is None else policy_logits.shape
        if shape != (n, NUM_POLICY) or wdl_logits.shape != (n, 3):
            shapes = f"{shape} and {wdl_logits.shape}, not ({n}, {NUM_POLICY}) and ({n}, 3)"
            raise ValueError(f"the evaluator answered {n} positions with arrays of shapes {shapes}")
        _check_finite(wdl_logits)
        if policy_logits is not None:
            if not (policy_logits < np.inf).all():
                raise ValueError("the evaluator answered with policy logits that are infinite or no numbers")
            self._state.policy[:n] = policy_logits
        self._state.wdl[:n] = wdl_logits
        backup_leaves(self._state, self._settings, n, policy_logits is not None)

    def step(self, evaluator: Evaluator) -> int:
        """``select`` and ``evaluate``, which advances every started slot; returns the number of evaluations."""
        self.select()
        return self.evaluate(evaluator)

    def steps(self, evaluator: Evaluator, most: int) -> int:
        """Makes up to ``most`` steps in compiled code if the evaluator is a ``CompiledEvaluator``, else one step.

        Args:
            most: largest number of steps; 0 only compiles.

        Returns:
            Number of evaluations; 0 if there is nothing left to do.
        """
        if self._num_waiting or self._tables is None or not isinstance(evaluator, CompiledEvaluator):
            return self.step(evaluator) if most else 0
        try:
            counts = evaluator.search(self._state, self._settings, self._tables, most)
            self._num_waiting = counts.waiting
            _check_finite(self._state.wdl)  # of the last leaves: weights that give no numbers do so again and again
            self._settle(0)
        except BaseException:
            self._drop_all()
            self._state.wdl[:] = 0
            raise
        return counts.judged + self.evaluate(evaluator)

    def run(self, evaluator: Evaluator) -> int:
        """Steps until every started slot has reached its target; returns the number of evaluations."""
        total = 0
        while n := self.many_steps(evaluator):
            total += n
        return total

    def many_steps(self, evaluator: Evaluator) -> int:
        """``steps`` with as many steps as one call can make without delaying signals too long."""
        return self.steps(evaluator, max(_FEWEST_STEPS, _MOST_LEAVES // len(self._state.depths)))

    def stop(self) -> None:
        """Ends all searches at once; their results so far remain."""
        self._drop_all()
        self._slots["active"] = 0

    def active(self) -> np.ndarray:
        """bool [slots]: whether each slot's search has not reached its target."""
        return self._slots["active"] != 0

    def simulations(self, slot: int) -> int:
        """Sum of the visits of all root moves, see ``SearchResult.simulations``."""
        root = self._root(slot)
        first = int(root["first_child"])
        return int(self._nodes["visits"][first : first + int(root["num_children"])].sum())

    def result(self, slot: int) -> SearchResult:
        """What the slot's search has found so far."""
        targets = self.targets(np.array([slot]))
        count = root_kernels.read_moves(self._state, slot, self._counts, self._means)
        counts, means = self._counts[:, :count].copy(), self._means[:, :count].copy()
        return SearchResult(
            visits=counts[0],
            priors=means[0],
            values=means[1],
            draws=means[2],
            proofs=counts[1],
            proof_plies=counts[2],
            policy=targets.policies[0, :count],
            wdl=targets.wdl[0],
            position=targets.positions[0],
        )

    def targets(self, slots: np.ndarray) -> Targets:
        """Training targets from the searches of ``slots`` (int64 [n])."""
        n = len(slots)
        targets = Targets(
            self.positions(slots),
            np.zeros((n, 3), np.float32),
            np.zeros((n, MAX_MOVES), np.float32),
            np.zeros(n, np.int64),
        )
        root_kernels.read_targets(self._state, slots, targets.wdl, targets.policies, targets.counts)
        return targets

    def choose(self, slot: int, temperature: float = 0.0) -> int:
        """Index of the root move to play, in the order of ``movegen.generate(distinct=True)``."""
        return self._best(slot, temperature, self._generators[slot].random())

    def _best(self, slot: int, temperature: float, uniform: float) -> int:
        return int(root_kernels.choose_root(self._state, slot, float(temperature), uniform))

    def play(self, slot: int, move: int, through_forced: bool = False) -> tuple[int, Ending]:
        """Plays root move number ``move``; keeps its subtree if ``config.reuse_tree`` is set and it is still valid.

        Args:
            through_forced: whether to play the following moves, too, while only one is legal.

        Returns:
            Plies played (forced moves all have index 0), and the state of the game.

        Raises:
            ValueError: there is no such move.
        """
        if not 0 <= move < self.num_legal(slot):
            raise ValueError(f"move {move} of {self.num_legal(slot)} legal moves (counted from 0)")
        self._end(slot)
        plies = root_kernels.play_root(
            self._state, slot, move, self.config.reuse_tree, through_forced, self._scratch, self._moved
        )
        return int(plies), Ending(int(self._slots[slot]["ending"]))

    def play_all(self, slots: np.ndarray, temperatures: Sequence[float]) -> np.ndarray:
        """``choose`` and ``play`` (through forced moves) in ``slots`` (int64 [n]), each with its own temperature.

        Returns:
            int64 [n, 3]: the move's index, plies played, and the state of the game (``Ending``).
        """
        uniforms = [self._generators[slot].random() for slot in slots.tolist()]
        draws = np.column_stack([temperatures, uniforms])
        self._end(slots)
        return root_kernels.play_chosen(self._state, slots, draws, self.config.reuse_tree, self._scratch, self._moved)

    def principal_variation(self, slot: int) -> list[int]:
        """Indices of moves from the root on: the move to play, then the proven best or most visited children."""
        line: list[int] = []
        node = self._root(slot)
        while node["num_children"]:
            first = int(node["first_child"])
            children = self._nodes[first : first + int(node["num_children"])]
            if not children["visits"].any() and (children["proof"] == UNKNOWN).all():
                break
            if line:
                plies, rank = children["proof_plies"].astype(np.int64), children["visits"].astype(np.int64)
                rank = np.where(children["proof"] == WIN, (1 << 40) - plies, rank)
                rank = np.where(children["proof"] == LOSS, plies - (1 << 40), rank)
                best = int(np.lexsort((-children["value_sum"], -rank))[0])
            else:
                best = self._best(slot, 0.0, 0.0)
            line.append(best)
            node = children[best]
        return line
