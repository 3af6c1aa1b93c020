"""Training samples from inside search trees (TreeStrap: Veness et al. 2009).

A search also gives values of the positions inside its tree, so one tree gives many samples. The win/draw/loss of a
sample is the mean over its visits; its policy is the fraction of visits of each move, if there are enough visits.
Where trees are kept from move to move, the next full search gives the same positions again, with more visits.

Offshoots are positions a few random moves further on, with the network's own win/draw/loss. They train the network on
positions that searches meet but rarely visit often, such as those after the loss of a man.
"""

import numpy as np
from numba import njit
from pydantic import BaseModel, Field

from engine.bitboard import popcount, turned
from engine.movegen import DISTINCT, MAX_MOVES, generate, jumpers_of, new_moves
from engine.outcomes import UNKNOWN
from engine.random_words import new_random, random_below
from engine.search import Evaluator, LockstepSearch
from learner.endgame.probabilities import softmax

from .records import OFFSHOOT, TREE, Samples, found_samples

_MOST_RANDOM_MOVES = 3
_FEWEST_PIECES = 5  # fewest pieces of an offshoot: with fewer pieces the tables know the value
_LONGEST = 64  # most moves that lead to an offshoot, with captures


class TreeSampleConfig(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Which positions that are not in the game itself become samples."""

    most: int = Field(0, ge=0, le=4096, description="most samples from the tree of one full search; 0: none")
    least_visits: int = Field(32, ge=2, description="fewest visits of a position in the tree that becomes a sample")
    policy_visits: int = Field(128, ge=2, description="fewest visits at which such a sample has a policy target")
    offshoots: float = Field(
        0.0, ge=0, le=1, description="fraction of these samples that get another one a few random moves further on"
    )


class TreeReader:
    """Reads samples from the search trees of ``search``."""

    def __init__(self, search: LockstepSearch, config: TreeSampleConfig) -> None:
        self._search, self._config = search, config
        self._seen = np.zeros(search.tree_nodes, np.uint8)
        self._positions = np.zeros((config.most, 4), np.uint32)
        self._wdl = np.zeros((config.most, 3), np.float32)
        self._counts = np.zeros(config.most, np.int64)
        self._probabilities = np.zeros(config.most * MAX_MOVES, np.float32)

    def read(self, slot: int) -> Samples:
        """Samples of the tree in a slot, without its root, which is a position of the game."""
        found = self._positions, self._wdl, self._counts, self._probabilities
        least, policy = self._config.least_visits, self._config.policy_visits
        n, length = _read_tree(*self._search.tree(slot), self._seen, least, policy, found)
        counts, probabilities = self._counts[:n], self._probabilities[:length]
        return found_samples(TREE, self._positions[:n].copy(), self._wdl[:n], counts, probabilities)


@njit(cache=True)
def _read_tree(nodes, root, end, seen, least_visits, policy_visits, found):
    """Fills the arrays ``found``; returns the numbers of samples and of probabilities.

    Nodes that share their children (transpositions) are read once; ``seen`` marks children and is cleared at the end.
    """
    positions, wdl, counts, probabilities = found
    n, length = 0, 0
    for index in range(root + 1, end):
        node = nodes[index]
        first, count = node.first_child, np.int32(node.num_children)
        open_ = node.proof == UNKNOWN and node.judged != 0 and count > 1
        if not open_ or node.visits < 2 or seen[first - root] or n == positions.shape[0]:
            continue
        visits, value, draw = np.int64(1), node.raw_value, node.raw_draw
        for child in range(first, first + count):
            visits += nodes[child].visits
            value += nodes[child].value_sum
            draw += nodes[child].draw_sum
        if visits < least_visits:
            continue
        seen[first - root] = 1
        value = min(max(value / visits, -1.0), 1.0)
        draw = min(max(draw / visits, 0.0), 1.0 - abs(value))
        positions[n, 0], positions[n, 1], positions[n, 2] = turned(node.opp), turned(node.own), turned(node.kings)
        positions[n, 3] = node.reversible
        wdl[n, 0], wdl[n, 1], wdl[n, 2] = (1 - draw + value) / 2, draw, (1 - draw - value) / 2
        counts[n] = 0
        if visits >= policy_visits:
            counts[n] = count
            for child in range(first, first + count):
                probabilities[length] = nodes[child].visits / (visits - 1)
                length += 1
        n += 1
    for index in range(root, end):
        if nodes[index].num_children > 0:
            seen[nodes[index].first_child - root] = 0
    return n, length


def offshoots(positions: np.ndarray, evaluator: Evaluator, rng: np.random.Generator) -> Samples:
    """Samples at most one random walk away from each of ``positions`` (uint32 [N, 4]).

    A walk has 1 to ``_MOST_RANDOM_MOVES`` random moves and goes on while there are captures. It gives no sample if the
    game ends or few pieces are left. The win/draw/loss is the evaluator's; there is no policy.
    """
    ends = np.zeros_like(positions)
    ends = ends[: _walk(positions, new_random(int(rng.integers(1 << 62))), new_moves(1)[0], ends)]
    wdl = np.zeros((0, 3), np.float32)
    if len(ends):
        wdl = softmax(evaluator.evaluate(ends)[1])
    return found_samples(OFFSHOOT, ends, wdl, np.zeros(len(ends), np.int64), np.zeros(0))


@njit(cache=True)
def _walk(positions, random, moves, ends):
    """Writes the final positions of random walks into ``ends``; returns their number."""
    n = 0
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        wanted = 1 + random_below(random, _MOST_RANDOM_MOVES)
        count = 1
        for made in range(_LONGEST):
            count = generate(own, opp, kings, moves, DISTINCT)
            if count == 0 or (made >= wanted and jumpers_of(own, opp, kings) == 0):
                break
            move = moves[random_below(random, count)]
            own, opp, kings = turned(move.opp), turned(move.own), turned(move.kings)
        if count > 0 and popcount(own | opp) >= _FEWEST_PIECES:
            ends[n, 0], ends[n, 1], ends[n, 2], ends[n, 3] = own, opp, kings, 0
            n += 1
    return n
