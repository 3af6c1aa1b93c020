"""The arrays of a search of many games, in named tuples that all kernels take.

Each slot (game) has ``leaves_in_flight`` lanes. A lane is a place for a leaf that waits for its evaluation. Slot g owns
the lanes from g * lanes on, and the tree nodes from ``slots[g].root`` on.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..encoding import NUM_POLICY
from ..movegen import MAX_MOVES, new_moves
from ..outcomes import UNKNOWN
from ..records import record
from .config import SearchConfig
from .graph import table_size
from .shots import new_shot_frames
from .tree import NODE

MAX_DEPTH = 512
MAX_HISTORY = 96

SLOT = record(
    [
        ("root", np.int32),  # first node of the game
        ("used", np.int32),  # end of its nodes in use
        ("limit", np.int32),  # end of its nodes
        ("target", np.int32),  # simulations at the root at which the search ends
        ("waiting", np.int32),  # leaves that wait for their evaluation
        ("num_history", np.int32),  # positions in the history
        ("num_legal", np.int32),  # moves at the root
        ("covered", np.int32),  # most pieces of a leaf that is looked up in tables; 0: none is
        ("known", np.uint8),  # outcome of the root by the tables where the evaluator leads, see ``leaf_judge``
        ("noise", np.float32),  # fraction of noise in the root's priors
        ("draw_value", np.float32),  # value of a draw for the side to move at the root
        ("searcher", np.float32),  # 1: the side with the contempt for draws is to move at the root; -1: its opponent is
        ("tainted", np.uint8),  # the tree has draws by repetition that may not be draws from another root
        ("active", np.uint8),  # the search has not reached its target
        ("ending", np.uint8),  # state of the game, see ``lockstep.Ending``
    ]
)


class SearchState(NamedTuple):
    """All arrays of a search. G games, L lanes.

    Attributes:
        nodes: ``NODE`` [all nodes], the trees.
        slots: ``SLOT`` [G].
        histories: ``NODE`` [G, MAX_HISTORY], positions since the last irreversible move, before the root.
        noises: float32 [G, MAX_MOVES], noise in the priors of the root's moves.
        table: int32 [G * entries], nodes by position, see ``graph``; empty where positions are not shared.
        paths: int32 [L, MAX_DEPTH], nodes from the root to the leaf.
        depths: int32 [L], index of the leaf in its path.
        pledges: float32 [L, MAX_DEPTH, 2], value and draw, see ``in_flight``.
        codes: uint64 [L, MAX_MOVES], move codes of the leaf's children.
        outcomes: uint8 [L], the tables' outcome of the leaf for its side to move, see ``LeafOracle``.
        plies: int16 [L], the tables' distance to the end of the game; -1 if unknown.
        leaves: uint32 [L, 4], waiting positions: own, opp, kings, reversible plies, seen by the side to move.
        waiting: int32 [L], lanes of the waiting positions.
        policy: float32 [L, NUM_POLICY], the evaluator's policy logits of the waiting leaves.
        wdl: float32 [L, 3], its win/draw/loss logits.
        moves: buffer for generated moves.
        frames, shot_moves: buffers for the search of shots, see ``shots``.
    """

    nodes: np.ndarray
    slots: np.ndarray
    histories: np.ndarray
    noises: np.ndarray
    table: np.ndarray
    paths: np.ndarray
    depths: np.ndarray
    pledges: np.ndarray
    codes: np.ndarray
    outcomes: np.ndarray
    plies: np.ndarray
    leaves: np.ndarray
    waiting: np.ndarray
    policy: np.ndarray
    wdl: np.ndarray
    moves: np.ndarray
    frames: np.ndarray
    shot_moves: np.ndarray


class Settings(NamedTuple):
    """The fields of a ``SearchConfig`` that kernels need; ``sharpness`` is 1 / policy_temperature."""

    c_puct: np.float32
    fpu_reduction: np.float32
    virtual_loss: np.float32
    sharpness: np.float32
    shot_prior: np.float32
    shot_visits: np.int64
    draw_value: np.float32
    contempt_lead: np.float32

    @staticmethod
    def of(config: SearchConfig) -> "Settings":
        """Converts the settings to the types that the kernels are compiled for."""
        return Settings(
            np.float32(config.c_puct),
            np.float32(config.fpu_reduction),
            np.float32(config.virtual_loss),
            np.float32(1 / config.policy_temperature),
            np.float32(config.shot_prior),
            np.int64(config.shot_visits),
            np.float32(config.draw_value),
            np.float32(config.contempt_lead),
        )


def new_state(config: SearchConfig, games: int, nodes: int) -> SearchState:
    """Allocates the arrays for a number of games, each with a tree of at most ``nodes`` nodes."""
    lanes = games * config.leaves_in_flight
    slots = np.zeros(games, SLOT)
    slots["root"] = np.arange(games) * nodes
    slots["limit"], slots["known"] = slots["root"] + nodes, UNKNOWN
    return SearchState(
        nodes=np.zeros(games * nodes, NODE),
        slots=slots,
        histories=np.zeros((games, MAX_HISTORY), NODE),
        noises=np.zeros((games, MAX_MOVES), np.float32),
        table=np.zeros(games * table_size(nodes) if config.transpositions else 0, np.int32),
        paths=np.zeros((lanes, MAX_DEPTH), np.int32),
        depths=np.zeros(lanes, np.int32),
        pledges=np.zeros((lanes, MAX_DEPTH, 2), np.float32),
        codes=np.zeros((lanes, MAX_MOVES), np.uint64),
        outcomes=np.full(lanes, UNKNOWN, np.uint8),
        plies=np.zeros(lanes, np.int16),
        leaves=np.zeros((lanes, 4), np.uint32),
        waiting=np.zeros(lanes, np.int32),
        policy=np.zeros((lanes, NUM_POLICY), np.float32),
        wdl=np.zeros((lanes, 3), np.float32),
        moves=new_moves(),
        frames=new_shot_frames()[0],
        shot_moves=new_shot_frames()[1],
    )


@njit(cache=True, inline="always")
def lanes_of(state):
    """Number of lanes of each game."""
    return state.depths.shape[0] // state.slots.shape[0]


@njit(cache=True, inline="always")
def shares(state):
    """Whether positions are shared, see ``graph``."""
    return state.table.shape[0] > 0
