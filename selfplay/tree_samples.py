"""Training samples from inside the trees of a search (TreeStrap: Veness et al. 2009).

A search judges every position of its tree that it has visited often, so a tree gives many samples where a game's moves
give one. A sample's win/draw/loss is the mean of its visits, its policy their shares where there are enough of them.
Positions a few random moves further on come with the network's own opinion: a search that looks at ten times as many
positions meets such as no good search has visited often, and must know that a man less is a man less.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numba import njit

from engine.bitboard import popcount, turned
from engine.movegen import DISTINCT, generate, jumpers_of, new_moves
from engine.random_words import new_random, random_below
from engine.search import Evaluator, LockstepSearch
from engine.search.tree import UNKNOWN
from learner.batch import TrainingBatch, make_batch
from learner.checkpoint import CheckpointError, check_version, read_tensors, write_tensors

SCHEMA_VERSION = 1
SUFFIX = ".safetensors"
LEAST_VISITS = 32  # of a sample
LEAST_POLICY_VISITS = 128  # of one whose policy is learnt
MOST_OF_A_TREE = 1024
_MOST_RANDOM_MOVES = 3
_FEWEST_PIECES = 5  # of an offshoot: fewer are for the tables
_LONGEST = 64  # moves of an offshoot, captures included


@dataclass(frozen=True)
class TreeSamples:
    """N samples.

    Attributes:
        positions: uint32 [N, 4] (``engine.encoding``).
        wdl: float16 [N, 3], win, draw, loss for the side to move.
        lengths: uint8 [N], legal moves of the samples that have a policy, 0 for the others.
        probabilities: float16 [sum of lengths], in the order of ``movegen.generate(distinct=True)``.
    """

    positions: np.ndarray
    wdl: np.ndarray
    lengths: np.ndarray
    probabilities: np.ndarray

    def __len__(self) -> int:
        return len(self.positions)

    @staticmethod
    def joined(parts: "list[TreeSamples]") -> "TreeSamples":
        """All samples of ``parts``, of which there is at least one."""
        names = ("positions", "wdl", "lengths", "probabilities")
        return TreeSamples(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def save(self, path: Path, games: int) -> None:
        """Writes a file, whole or not at all.

        Args:
            games: that the samples come from.

        Raises:
            CheckpointError: it cannot be written.
        """
        tensors = {
            "positions": torch.from_numpy(self.positions.view(np.int32)),
            "wdl": torch.from_numpy(self.wdl),
            "lengths": torch.from_numpy(self.lengths),
            "probabilities": torch.from_numpy(self.probabilities),
        }
        write_tensors(path, tensors, {"schema_version": SCHEMA_VERSION, "games": games})

    @staticmethod
    def load(path: Path) -> "tuple[TreeSamples, int]":
        """The samples of a file and the number of games they come from.

        Raises:
            CheckpointError: it is missing, damaged, or something else.
        """
        tensors, info = read_tensors(path)
        check_version(path, info, SCHEMA_VERSION)
        try:
            positions = tensors["positions"].numpy().view(np.uint32)
            parts = [tensors[name].numpy() for name in ("wdl", "lengths", "probabilities")]
            samples, games = TreeSamples(positions, *parts), int(info["games"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path}: no file of tree samples") from error
        sizes = {len(samples.positions), len(samples.wdl), len(samples.lengths)}
        if len(sizes) != 1 or len(samples.probabilities) != int(samples.lengths.sum()):
            raise CheckpointError(f"{path}: its columns differ in length")
        return samples, games


class SampleReader:
    """Reads samples from the trees of a search."""

    def __init__(self, search: LockstepSearch) -> None:
        self._search = search
        self._seen = np.zeros(search.tree_nodes, np.uint8)
        self._positions = np.zeros((MOST_OF_A_TREE, 4), np.uint32)
        self._wdl = np.zeros((MOST_OF_A_TREE, 3), np.float32)
        self._lengths = np.zeros(MOST_OF_A_TREE, np.uint8)
        self._probabilities = np.zeros(MOST_OF_A_TREE * 48, np.float32)

    def read(self, slot: int) -> TreeSamples:
        """The samples of the tree in a slot, from the root on."""
        n, length = _read_tree(
            *self._search.tree(slot), self._seen, self._positions, self._wdl, self._lengths, self._probabilities
        )
        return TreeSamples(
            self._positions[:n].copy(),
            self._wdl[:n].astype(np.float16),
            self._lengths[:n].copy(),
            self._probabilities[:length].astype(np.float16),
        )


@njit(cache=True)
def _read_tree(nodes, root, end, seen, positions, wdl, lengths, probabilities):
    """Fills the arrays; returns numbers of samples and of probabilities.

    Positions that the graph shares are read once, by their children.
    """
    n, length = 0, 0
    for index in range(root, end):
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
        if visits < LEAST_VISITS or length + count > probabilities.shape[0]:
            continue
        seen[first - root] = 1
        value = min(max(value / visits, -1.0), 1.0)
        draw = min(max(draw / visits, 0.0), 1.0 - abs(value))
        positions[n, 0], positions[n, 1], positions[n, 2] = turned(node.opp), turned(node.own), turned(node.kings)
        positions[n, 3] = node.reversible
        wdl[n, 0], wdl[n, 1], wdl[n, 2] = (1 - draw + value) / 2, draw, (1 - draw - value) / 2
        lengths[n] = 0
        if visits >= LEAST_POLICY_VISITS:
            lengths[n] = count
            for child in range(first, first + count):
                probabilities[length] = nodes[child].visits / (visits - 1)
                length += 1
        n += 1
    for index in range(root, end):
        if nodes[index].num_children > 0:
            seen[nodes[index].first_child - root] = 0
    return n, length


def offshoots(positions: np.ndarray, network: Evaluator, seed: int) -> TreeSamples:
    """Positions a few random moves, and the captures that follow, after others: uint32 [N, 4], with one each at most.

    Their win/draw/loss is what the network says of them; they have no policy.
    """
    found = np.zeros_like(positions)
    found = found[: _walk(positions, new_random(seed), new_moves(1)[0], found)]
    wdl = np.zeros((0, 3), np.float32)
    if len(found):
        _, wdl = network.evaluate(found)
        wdl = np.exp(wdl - wdl.max(1, keepdims=True))
        wdl /= wdl.sum(1, keepdims=True)
    return TreeSamples(found, wdl.astype(np.float16), np.zeros(len(found), np.uint8), np.zeros(0, np.float16))


@njit(cache=True)
def _walk(positions, random, moves, found):
    """Writes the positions at the ends of random walks into ``found``; returns their number."""
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
            found[n, 0], found[n, 1], found[n, 2], found[n, 3] = own, opp, kings, 0
            n += 1
    return n


def training_batch(samples: TreeSamples, offsets: np.ndarray, rows: np.ndarray) -> TrainingBatch:
    """The samples in ``rows`` (int64 [B]) as a batch.

    Args:
        offsets: int64 [N + 1], where each sample's probabilities begin.
    """
    lengths = offsets[rows + 1] - offsets[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    taken = np.arange(starts[-1]) + np.repeat(offsets[rows] - starts[:-1], lengths)
    policy = samples.probabilities[taken].astype(np.float32)
    totals = np.bincount(np.repeat(np.arange(len(rows)), lengths), policy, len(rows)).astype(np.float32)
    policy /= np.repeat(totals, lengths)
    wdl = samples.wdl[rows].astype(np.float32)
    return make_batch(samples.positions[rows], policy, starts, lengths > 0, wdl / wdl.sum(1, keepdims=True))
