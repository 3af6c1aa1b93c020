"""Tree search where the networks of an oracle and their searches leave doubt.

Rounds of quiet moves (``resolve``) try all of them, and so end after some plies. A Monte-Carlo tree search follows few
moves, but to the exact tables of few pieces. Where an oracle is unsure about more pieces than these have, the
champion's student searches, in rounds of ever more simulations, and both answers are weighed::

    P(outcome) ∝ own(outcome) ^ a * tree(outcome) ^ b * e ^ c, where c counts for draws only

The weights were fitted for each number of pieces and of simulations on positions with exact values. A win or loss that
the tree proves is certain.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from engine.board import Board
from engine.fen import Color, format_fen
from engine.outcomes import LOSS, UNKNOWN, WIN
from engine.search import BOARD_SEARCH, LockstepSearch, SearchConfig, SearchResult
from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.folder import SHIPPED

from ..checkpoint import Checkpoint, CheckpointError
from ..inference import NetworkEvaluator, make_evaluator
from ..shipped import CHAMPION_FOLDER, shipped_weights
from ..student import load_student
from ..wide import SHOT_VISITS
from .probabilities import log_probabilities, softmax

SIMULATIONS = (20_000, 100_000, 400_000)
ASK_BELOW, STOP_AT = 0.999, 0.99
_LEAST = np.float32(1e-4)  # of what a tree's means say: they never exclude anything


class TreeRound(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What a tree of so many ``simulations`` counts: the exponents a and b and the constant c above."""

    simulations: int = Field(ge=1, le=1_000_000)
    own: float
    tree: float
    draw: float

    def weighed(self, own: np.ndarray, tree: np.ndarray) -> np.ndarray:
        """Probabilities float32 [N, 3] from those of the oracle and the means of the trees, both float32 [N, 3]."""
        logits = self.own * log_probabilities(own) + self.tree * log_probabilities(np.maximum(tree, _LEAST))
        logits[:, 1] += self.draw
        return softmax(logits.astype(np.float32))


class TreeWeights(BaseModel, frozen=True, extra="forbid"):
    """What trees count about positions of so many ``pieces``; ``rounds``: with ever more simulations."""

    pieces: int
    rounds: tuple[TreeRound, ...] = Field(min_length=1)


class TreeSettings(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """When trees are searched, and what they count; a part of ``oracle.json``.

    Attributes:
        weights: for ever more pieces. The first ones are for fewer pieces, too, the last ones also for more.
        ask_below: positions of which the oracle is at least as sure are not searched.
        stop_at: no further round from this confidence on.
        network: digest of the network that searched then.
    """

    weights: tuple[TreeWeights, ...] = Field(min_length=1)
    ask_below: float = Field(ASK_BELOW, gt=0, le=1)
    stop_at: float = Field(STOP_AT, gt=0, le=1)
    network: str = ""

    @property
    def calibrated(self) -> int:
        """Most pieces of the positions that weights were fitted on."""
        return self.weights[-1].pieces

    @property
    def most_simulations(self) -> int:
        return max(one.simulations for weights in self.weights for one in weights.rounds)

    def rounds_for(self, pieces: int) -> tuple[TreeRound, ...]:
        """The rounds of a position of so many pieces."""
        return next((one for one in self.weights if pieces <= one.pieces), self.weights[-1]).rounds


class TreeAnswer(NamedTuple):
    """What a tree says of its root: mean win, draw, loss float32 [3] for the side to move, and what it has proven, WIN,
    LOSS or UNKNOWN."""

    wdl: np.ndarray
    proof: int


class ChampionTrees:
    """Trees of the shipped champion's student, with the shipped tables. Everything is loaded at the first search.

    Args:
        most: largest number of simulations.
    """

    def __init__(self, most: int) -> None:
        self._most = most

    @cached_property
    def _tables(self) -> Tablebase:
        return open_tablebase(SHIPPED, shipped=False)

    @property
    def fewest(self) -> int:
        """Fewest pieces of positions that are worth it; the tables know the others."""
        return self._tables.max_pieces + 1

    @cached_property
    def _student(self) -> Checkpoint:
        folder = shipped_weights() / CHAMPION_FOLDER
        student = load_student(folder)
        if student is None:
            raise CheckpointError(f"{folder}: there is no student, which tree searches of the oracle need")
        return student

    @property
    def network(self) -> str:
        """Digest of the network that searches."""
        return self._student.info.digest

    @cached_property
    def _evaluator(self) -> NetworkEvaluator:
        return make_evaluator(self._student.network)

    @cached_property
    def _search(self) -> LockstepSearch:
        changes = {"num_simulations": self._most, "shot_visits": SHOT_VISITS}
        config: SearchConfig = BOARD_SEARCH.impartial().model_copy(update=changes)
        return LockstepSearch(config, 1, leaf_oracle=self._tables)

    def answers(self, position: np.ndarray, simulations: Sequence[int]) -> Iterator[TreeAnswer]:
        """What a tree of a position uint32 [4] says after each of these numbers of simulations, which grow."""
        search = self._search
        search.set_board(0, Board(format_fen(Color.BLACK, *(int(word) for word in position[:3]))))
        for number, most in enumerate(simulations):
            if number == 0:
                search.start(0, most, explore=False)
            else:
                search.extend(0, most)
            search.run(self._evaluator)
            result = search.result(0)
            yield TreeAnswer(result.wdl, _proof(result))


def _proof(result: SearchResult) -> int:
    if (result.proofs == WIN).any():
        return WIN
    return LOSS if (result.proofs == LOSS).all() else UNKNOWN


class TreeSearch:
    """Searches trees where an oracle is unsure; see above."""

    def __init__(self, settings: TreeSettings, trees: ChampionTrees | None = None) -> None:
        self.settings = settings
        self._trees = trees or ChampionTrees(settings.most_simulations)

    @property
    def fewest(self) -> int:
        """Fewest pieces of positions that are searched."""
        return self._trees.fewest

    @cached_property
    def calibrated(self) -> int:
        """Most pieces that the weights were fitted on; 0 if another network searches than did then."""
        return self.settings.calibrated if self._trees.network == self.settings.network else 0

    def wanted(self, positions: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
        """The rows int64 [M] of positions uint32 [N, 4], judged with probabilities float32 [N, 3], to be searched."""
        unsure = np.flatnonzero(probabilities.max(1) < self.settings.ask_below)
        if len(unsure) == 0:
            return unsure
        pieces = np.bitwise_count(positions[unsure, 0] | positions[unsure, 1])
        return unsure[pieces >= self.fewest]

    def judged(self, position: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, int, bool]:
        """Judges a position uint32 [4] of which an oracle says ``own`` float32 [3].

        Returns:
            Probabilities float32 [3], the number of simulations made, and whether the verdict is proven.
        """
        shares, made = own, 0
        rounds = self.settings.rounds_for(int(np.bitwise_count(position[0] | position[1])))
        answers = self._trees.answers(position, [one.simulations for one in rounds])
        for one, answer in zip(rounds, answers, strict=False):
            made = one.simulations
            if answer.proof != UNKNOWN:
                return np.array([answer.proof == WIN, 0, answer.proof == LOSS], np.float32), made, True
            shares = one.weighed(own[np.newaxis], answer.wdl[np.newaxis])[0]
            if shares.max() >= self.settings.stop_at:
                break
        return shares, made, False


def fit_rounds(
    positions: np.ndarray,
    own: np.ndarray,
    classes: np.ndarray,
    simulations: Sequence[int],
    trees: ChampionTrees,
    report: Callable[[int], object] = lambda done: None,
) -> tuple[TreeRound, ...]:
    """The rounds whose weights make the right outcomes most likely.

    Args:
        positions: uint32 [N, 4], not decided yet. own: float32 [N, 3], what the oracle says of them without trees.
        classes: int64 [N], right ones: 0 win, 1 draw, 2 loss.
        report: told how many positions have been searched.
    """
    means = np.empty((len(positions), len(simulations), 3), np.float32)
    open_ = np.zeros(means.shape[:2], np.bool_)  # where nothing is proven
    for row, position in enumerate(positions):
        for number, answer in enumerate(trees.answers(position, simulations)):
            means[row, number], open_[row, number] = answer.wdl, answer.proof == UNKNOWN
        report(row + 1)
    return tuple(
        _fitted(most, own[open_[:, number]], means[open_[:, number], number], classes[open_[:, number]])
        for number, most in enumerate(simulations)
    )


def _fitted(simulations: int, own: np.ndarray, tree: np.ndarray, classes: np.ndarray) -> TreeRound:
    from scipy.optimize import minimize  # only fitting needs it

    if len(classes) == 0:
        raise ValueError(f"trees of {simulations} simulations have proven every position: draw more of them")

    def round_of(x: np.ndarray) -> TreeRound:
        return TreeRound(simulations=simulations, own=float(x[0]), tree=float(x[1]), draw=float(x[2]))

    def loss(x: np.ndarray) -> float:
        right = round_of(x).weighed(own, tree)[np.arange(len(classes)), classes]
        return float(-np.log(np.maximum(right.astype(np.float64), 1e-30)).mean())

    return round_of(minimize(loss, np.array([0.5, 1.0, -0.5]), method="Nelder-Mead").x)
