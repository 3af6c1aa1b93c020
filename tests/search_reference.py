"""A slow, plain implementation of ``engine.search``: objects and lists, one game at a time.

It shares only the move generator, the layout of the policy and ``exp32`` with the engine. A node is seen by the side to
move *in* it (the engine's nodes are seen by the side that moved into them), so signs differ. Sums are float32 in the
engine's order, so that both searches have exactly the same visits.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from shot_reference import plain_shots

from engine import movegen
from engine.bitboard import ROTATIONS, SQUARE_OF_BIT, exp32
from engine.board import Board
from engine.search import SearchConfig
from engine.search.shots import MOST_TOGETHER

F = np.float32
ZERO = F(0)
WIN, DRAW, LOSS = "win", "draw", "loss"  # proofs, for the side to move in the node
VALUES = {WIN: F(1), DRAW: F(0), LOSS: F(-1)}
Words = tuple[int, int, int]


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(0xD1B54A32D192ED03)
    return x ^ (x >> np.uint64(32))


_CELLS = _mix(np.arange(1, 132, dtype=np.uint64))


class HashEvaluator:
    """Pseudo-random answers that depend only on the position (not on the batch), and are the same on every machine.

    Logits are in [-2, 2).

    Attributes:
        seen: the evaluated positions, in order.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[int, ...]] = []

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.seen += [tuple(map(int, row)) for row in positions]
        state = np.full(len(positions), 1, np.uint64)
        for column in range(4):
            state = _mix(state + positions[:, column].astype(np.uint64) + np.uint64(column << 40))
        cells = _mix(state[:, None] + _CELLS[None, :])
        uniform = (cells >> np.uint64(40)).astype(F) / F(1 << 24)
        logits = F(4) * uniform - F(2)
        return np.ascontiguousarray(logits[:, :128]), np.ascontiguousarray(logits[:, 128:])


def turned(words: Words) -> Words:
    """The same board seen from the other side."""
    own, opp, kings = (int(f"{word:032b}"[::-1], 2) for word in words)
    return opp, own, kings


def hops_of(code: int) -> list[tuple[int, int]]:
    """(square it leaves, direction) of each hop of a move code; squares 0-31 are counted from the moving side."""
    bit, jump, hops = code & 31, 2 if code & 32 else 1, []
    for hop in range(code >> 6 & 31):
        direction = code >> (12 + 2 * hop) & 3
        hops.append((int(SQUARE_OF_BIT[bit]), direction))
        bit = (bit + jump * ROTATIONS[direction]) % 32
    return hops


@lru_cache(maxsize=100_000)  # because many searches meet the same positions
def distinct_moves(words: Words) -> tuple[tuple[int, Words], ...]:
    """(code, position after the move, seen by its side to move) of the distinct legal moves, in the engine's order."""
    buffer = movegen.new_moves()
    count = movegen.generate(*(np.uint32(word) for word in words), buffer, True)
    return tuple((code, turned((own, opp, kings))) for own, opp, kings, code in buffer[:count].tolist())


def softmax(logits: list[np.float32]) -> list[np.float32]:
    """Softmax in float32, summed in order."""
    highest = max(logits)
    exponentials = [F(exp32(logit - highest)) for logit in logits]
    total = F(0)
    for exponential in exponentials:
        total += exponential
    scale = F(1) / total
    return [exponential * scale for exponential in exponentials]


def judge(
    evaluator: HashEvaluator, words: Words, reversible: int, temperature: float = 1.0
) -> tuple[list[np.float32], np.float32, np.float32]:
    """Priors of the distinct moves, value and P(draw) of a position, from the evaluator."""
    policy, wdl = evaluator.evaluate(np.array([[*words, reversible]], np.uint32))
    logits = []
    for code, _ in distinct_moves(words):
        logit = F(0)
        for square, direction in hops_of(code):
            logit += policy[0, 32 * direction + square]
        logits.append(F(1 / temperature) * logit)
    win, draw, loss = (F(exp32(logit - wdl[0].max())) for logit in wdl[0])
    scale = F(1) / (win + draw + loss)
    return softmax(logits), (win - loss) * scale, draw * scale


@dataclass(eq=False)
class Node:
    """A position in the tree; ``value_sum``, ``draw_sum`` and ``proof`` are seen by the side to move in it."""

    words: Words
    reversible: int
    code: int = 0
    prior: np.float32 = ZERO
    children: list["Node"] = field(default_factory=list)
    visits: int = 0
    value_sum: np.float32 = ZERO
    draw_sum: np.float32 = ZERO
    proof: str | None = None
    proof_plies: int = 0
    raw: tuple[np.float32, np.float32] | None = None
    shared: bool = False
    waits: bool = False
    sought: bool = False
    pledges: list[tuple[np.float32, np.float32]] = field(default_factory=list)

    def mark(self, proof: str, plies: int) -> None:
        self.proof, self.proof_plies = proof, min(plies, 255)
        self.value_sum = F(VALUES[proof] * F(self.visits))
        self.draw_sum = F(self.visits if proof == DRAW else 0)

    def settle(self) -> bool:
        """Marks the node as proven if its children determine its value; returns whether they do."""
        lost = [child.proof_plies for child in self.children if child.proof == LOSS]
        drawn = [child.proof_plies for child in self.children if child.proof == DRAW]
        if lost:
            self.mark(WIN, min(lost) + 1)
        elif any(child.proof is None for child in self.children):
            return False
        elif drawn:
            self.mark(DRAW, max(drawn) + 1)
        else:
            self.mark(LOSS, max(child.proof_plies for child in self.children) + 1)
        return True

    @property
    def position_visits(self) -> int:
        """Visits of the position: its evaluation, and the visits of its children."""
        return (self.raw is not None) + sum(child.visits for child in self.children)

    def refresh(self) -> None:
        """Sets the node's sums to its visits times the mean of its position."""
        value, draw = self.raw or (F(0), F(0))
        for child in self.children:
            value, draw = F(value - child.value_sum), F(draw + child.draw_sum)
        share = F(F(self.visits) / F(max(self.position_visits, 1)))
        self.value_sum, self.draw_sum = F(value * share), F(draw * share)


class ReferenceSearch:
    """The search of one game, with the positions before it that count for repetitions."""

    def __init__(self, config: SearchConfig, board: Board) -> None:
        self.config = config
        self.history: list[Words] = board.history()[:-1]
        self.root = Node(board.words(), board.reversible_plies)
        self.tainted = False
        self.judged: dict[Words, Node] = {}  # position → node that may be shared
        self.raw_value = F(0)
        self.searcher = self.draw_value = F(0)

    def search(
        self, evaluator: HashEvaluator, simulations: int, noise: np.ndarray | None = None, pondering: bool = False
    ) -> None:
        """Searches until the visits of the root's moves sum to ``simulations``, or the root is proven.

        Args:
            noise: float32, Dirichlet noise of the root's moves; None: no noise.
            pondering: whether the side with the contempt for draws is the opponent of the side to move.
        """
        self.searcher = F(-1 if pondering else 1)
        if noise is not None and self.root.visits:
            self._mix_noise(noise)
        while self._unfinished(simulations):
            first = self.root.visits == 0
            for path in self._waiting_leaves(simulations):
                self._take_back(path)
                self._evaluate(evaluator, path)
            if first and noise is not None:
                self._mix_noise(noise)

    def _unfinished(self, simulations: int) -> bool:
        return self.root.visits == 0 or (self.root.visits <= simulations and self.root.proof is None)

    def _waiting_leaves(self, simulations: int) -> list[list[Node]]:
        """Paths to the leaves that are evaluated in the next batch; each already counts as a visit of its path."""
        lanes = min(self.config.leaves_in_flight, max(8, self.root.visits // 32))
        self.draw_value = self._worth_of_a_draw()
        paths: list[list[Node]] = []
        while len(paths) < lanes and self._unfinished(simulations):
            path, outcome = self._descend()
            if outcome == "waits already":
                break
            if outcome == "waits":
                paths.append(path)
                self._pledge(path)
                if len(path) == 1:
                    break
        return paths

    def _worth_of_a_draw(self) -> np.float32:
        """Value of a draw for the root's side to move: contempt grows with the searching side's value."""
        worth, lead = F(self.searcher * F(self.config.draw_value)), F(self.config.contempt_lead)
        if not lead or self.config.draw_value >= 0:
            return worth
        ahead = F(F(self.searcher * self.root.value_sum) / F(max(self.root.visits, 1)))
        return F(worth * F(np.clip(F(ahead / lead), 0, 1)))

    def _pledge(self, path: list[Node]) -> None:
        value = draw = F(0)
        for node in path:
            if node.visits:
                value, draw = F(node.value_sum / F(node.visits)), F(node.draw_sum / F(node.visits))
            else:
                value = -value
            node.pledges.append((F(value + F(self.config.virtual_loss)), draw))
            node.visits += 1
            node.value_sum, node.draw_sum = F(node.value_sum + node.pledges[-1][0]), F(node.draw_sum + draw)
        path[-1].waits = True

    def _take_back(self, path: list[Node]) -> None:
        for node in path:
            node.visits -= 1
            value, draw = node.pledges.pop(0)
            if node.proof is None:
                node.value_sum, node.draw_sum = F(node.value_sum - value), F(node.draw_sum - draw)
            else:
                node.mark(node.proof, node.proof_plies)
        path[-1].waits = False

    def _mix_noise(self, noise: np.ndarray) -> None:
        share = float(F(self.config.noise_fraction))
        for child, extra in zip(self.root.children, noise, strict=False):
            child.prior = F((1 - share) * float(child.prior) + share * float(extra))

    def _descend(self) -> tuple[list[Node], str]:
        """One simulation: its path, and "waits" (for an evaluation), "waits already", or "backed up"."""
        path = [self.root]
        while True:
            node = path[-1]
            if node.waits and node.proof is None:
                return path, "waits already"
            if node.proof is None and not node.children:
                moves = distinct_moves(node.words)
                proof = self._by_the_rules(path, len(moves))
                if proof is not None:
                    node.mark(proof, 0)
                    self._prove_above(path)
                elif twin := self._twin(path, moves):
                    node.children, node.raw = twin.children, twin.raw
                    node.shared = twin.shared = True
                    node.sought = twin.sought
                else:
                    self._expand(node, moves)
                    if len(moves) > 1 or len(path) == 1:
                        return path, "waits"
            if node.shared and len(path) > 1 and node.proof is None:
                node.settle()
            if node.proof is not None and self.config.transpositions:
                self._prove_above(path)
            known = node.shared and len(path) > 1 and node.visits < node.position_visits
            if node.proof is not None or known:
                self._backup(path, F(0), F(0))
                return path, "backed up"
            if self.config.shot_prior and node.visits >= self.config.shot_visits and not node.sought:
                node.sought = True
                self._raise_priors(node)
            path.append(self._select(node, F(self.draw_value * (1 if len(path) % 2 else -1))))

    def _prove_above(self, path: list[Node]) -> None:
        for parent in path[-2::-1]:
            if not parent.settle():
                return

    def _twin(self, path: list[Node], moves: list[tuple[int, Words]]) -> Node | None:
        """A node with the same position as the path's new end, whose children this should share; else None."""
        node = path[-1]
        if not self.config.transpositions or len(path) == 1 or len(moves) == 1 or node.reversible or node.visits:
            return None
        return self.judged.get(node.words)

    def _enter(self, node: Node) -> None:
        if node.raw is not None and not node.reversible and len(node.children) > 1:
            self.judged.setdefault(node.words, node)

    def _by_the_rules(self, path: list[Node], count: int) -> str | None:
        node = path[-1]
        if count == 0:
            return LOSS
        if len(path) == 1:
            return None
        if node.reversible >= 80:
            return DRAW
        earlier = [*self.history, *(other.words for other in path[:-1])]
        same = [words == node.words for words in earlier[-2 : -node.reversible - 1 : -2]]
        in_tree = sum(same[: (len(path) - 1) // 2])
        if in_tree:
            self.tainted = True
        return DRAW if in_tree or sum(same) >= 2 else None

    def _expand(self, node: Node, moves: list[tuple[int, Words]]) -> None:
        for code, words in moves:
            is_man = not node.words[2] >> (code & 31) & 1
            reversible = 0 if is_man or code & 32 else min(node.reversible + 1, 255)
            node.children.append(Node(words, reversible, code, F(F(1) / F(len(moves)))))

    def _evaluate(self, evaluator: HashEvaluator, path: list[Node]) -> None:
        node = path[-1]
        priors, value, draw = judge(evaluator, node.words, node.reversible, self.config.policy_temperature)
        for child, prior in zip(node.children, priors, strict=True):
            child.prior = prior
        node.raw = value, draw
        if len(path) == 1:
            self.raw_value = value
        else:
            self._enter(node)
        self._backup(path, value, draw)

    def _raise_priors(self, node: Node) -> None:
        shots, _ = plain_shots(node.words)
        wanted = min(F(self.config.shot_prior), F(MOST_TOGETHER / max(len(shots), 1)))
        low = [child for number, child in enumerate(node.children) if number in shots and child.prior < wanted]
        if not low:
            return
        raised, rest = ZERO, ZERO
        for child in node.children:
            if any(child is other for other in low):
                raised = F(raised + wanted)
            else:
                rest = F(rest + child.prior)
        scale = F(F(F(1) - raised) / rest)
        for child in node.children:
            child.prior = wanted if any(child is other for other in low) else F(child.prior * scale)

    def _backup(self, path: list[Node], value: np.float32, draw: np.float32) -> None:
        if self.config.transpositions:
            self._backup_shared(path, value, draw)
            return
        for node in reversed(path):
            if node.proof is not None:
                value, draw = VALUES[node.proof], F(node.proof == DRAW)
            node.visits += 1
            node.value_sum += value
            node.draw_sum += draw
            value = -value

    def _backup_shared(self, path: list[Node], value: np.float32, draw: np.float32) -> None:
        for node in reversed(path):
            node.visits += 1
            if node.proof is not None:
                node.mark(node.proof, node.proof_plies)
            elif node is path[-1] and not node.children:
                node.value_sum, node.draw_sum = F(node.value_sum + value), F(node.draw_sum + draw)
            else:
                node.refresh()

    def _select(self, node: Node, draw_value: np.float32) -> Node:
        if len(node.children) == 1:
            return node.children[0]
        tried = F(0)
        for child in node.children:
            if child.visits:
                tried += child.prior
        visits = F(max(node.visits, 1))
        mean = (node.value_sum + draw_value * node.draw_sum) / visits
        untried = mean - F(self.config.fpu_reduction) * F(math.sqrt(tried))
        exploration = F(self.config.c_puct) * F(math.sqrt(visits))

        def score(child: Node) -> np.float32:
            total = draw_value * child.draw_sum - child.value_sum
            value = total / F(child.visits) if child.visits else untried
            if child.proof == WIN:
                value -= F(1e6)
            return value + exploration * child.prior / F(1 + child.visits)

        return max(node.children, key=score)

    def values(self) -> list[float]:
        """Mean value of each root move for the side to move; 0 without visits."""
        return [float(-child.value_sum) / max(child.visits, 1) for child in self.root.children]

    def policy(self) -> list[float]:
        """The improved policy over the root's moves."""
        children = self.root.children
        weights = [float(child.visits) for child in children]
        won = any(child.proof == LOSS for child in children)
        lost = all(child.proof == WIN for child in children)
        for i, child in enumerate(children):
            if (won and child.proof != LOSS) or (child.proof == WIN and not lost):
                weights[i] = 0.0
        if sum(weights) == 0:
            return [float(child.prior) for child in children]
        return [weight / sum(weights) for weight in weights]

    def best(self) -> int:
        """Index of the move to play at temperature 0."""
        children, moves = self.root.children, range(len(self.root.children))
        won = [i for i in moves if children[i].proof == LOSS]
        if won:
            return min(won, key=lambda i: children[i].proof_plies)
        held = [i for i in moves if children[i].proof != WIN]
        if not held:
            return max(moves, key=lambda i: children[i].proof_plies)
        if not any(child.visits for child in children):
            return max(held, key=lambda i: children[i].prior)
        return max(held, key=lambda i: (children[i].visits, F(-children[i].value_sum / F(max(children[i].visits, 1)))))

    def play(self, index: int) -> None:
        """Plays a root move and keeps its subtree if it is still valid."""
        child = self.root.children[index]
        self.history = [*self.history, self.root.words] if child.reversible else []
        if self.config.reuse_tree and not self.tainted and child.children:
            self.root = child
            if child.shared and child.proof is None:
                child.visits = child.position_visits
                child.refresh()
            child.shared = False
        else:
            self.root, self.tainted = Node(child.words, child.reversible), False
        self._enter_anew()

    def _enter_anew(self) -> None:
        """Enters the nodes below the root that may be shared, level by level."""
        self.judged, level, seen = {}, [self.root], set()
        while level:
            families = [node.children for node in level if node.children and id(node.children) not in seen]
            level = []
            for children in families:
                if id(children) not in seen:
                    seen.add(id(children))
                    level += children
            for node in level:
                self._enter(node)
