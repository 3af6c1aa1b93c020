"""Alpha-beta with a wide network: win, draw and loss are the scores of leaves, before them those of endgame tables, and
moves that the policy thinks unlikely are searched less deep.

Leaves come one at a time here, so a layer is rows of weights times a vector, not a product of matrices.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.bitboard import borrowed, popcount
from engine.encoding import MAX_HOPS, NUM_POLICY, move_logit
from engine.movegen import MAX_MOVES
from engine.players.alphabeta import LOGISTIC_SCALE
from engine.players.alphabeta_kernels import SearchState, search_with
from engine.players.evaluation import DRAW
from engine.search import LeafOracle
from engine.tablebase.probing import KNOWN, NOT_LOADED, Tables, no_tables, probe_loaded

from ..wide import NUM_PHASES, WideNetwork
from .lanes import WIDTH
from .shorts import DOTS, dot_rows
from .tiles import BLOCK
from .wide_evaluator import pack_wide, room_for
from .wide_kernels import WideBuffers, WideWeights, list_hops, phase_of, policy_of, sum_units, units_of

_TABLE_WIN = 10_000  # less than a win that the search has seen
_MOST_MISSED = 256
_PLIES_PER_NAT = np.float32(0.9)  # that a move is searched less deep, by how much less likely than the likeliest it is
_FROM_THE_FIRST = np.float32(0.8)  # plies that come on top before rounding down
_MOST_REDUCED = 5
_FARTHEST = np.float32(500.0)  # nats
_ORDERS_PER_NAT = np.float32(1000.0)  # of the numbers by which moves are put in order
_SURE = 1e-4  # least expected score, and most behind 1, that is told apart


class _Network(NamedTuple):
    """Weights of a wide network for one position at a time.

    Attributes:
        weights: of the wide layer, and what the others are multiplied by.
        hidden: int16 [phases * hidden * units], a row for each unit of the hidden layers.
        wdl, wdl_bias: float32 [phases, 3, hidden] and [phases, 3].
        sums: float32 [DOTS]. values: float32 [hidden].
        policy: float32 [1, 128]. codes: uint64 [MAX_MOVES]. hops: int64 [MAX_HOPS].
        tables: those without pieces know nothing.
        missed: uint32 [n, 4], positions inside the tables whose blocks were not in memory; ``num_missed``: int64 [1].
    """

    weights: WideWeights
    buffers: WideBuffers
    hidden: np.ndarray
    wdl: np.ndarray
    wdl_bias: np.ndarray
    sums: np.ndarray
    values: np.ndarray
    policy: np.ndarray
    codes: np.ndarray
    hops: np.ndarray
    tables: Tables
    missed: np.ndarray
    num_missed: np.ndarray


class WideNodeSearch:
    """Searches with the values of a wide network; an ``engine.players.alphabeta.NodeSearch``.

    Args:
        oracle: of endgames, if there is any; it must have compiled tables.
    """

    def __init__(self, network: WideNetwork, oracle: LeafOracle | None = None) -> None:
        tables = no_tables() if oracle is None else oracle.compiled()
        assert tables is not None
        weights = pack_wide(network)
        phases = [phase.state_dict() for phase in network.phases]
        hidden = weights.hidden.reshape(NUM_PHASES, -1, units_of.py_func(weights) // 2, BLOCK, 2)
        self._network = _Network(
            weights=weights,
            buffers=room_for(weights, 1),
            hidden=np.ascontiguousarray(hidden.transpose(0, 1, 3, 2, 4)).ravel(),
            wdl=np.stack([phase["wdl.weight"].numpy() for phase in phases]),
            wdl_bias=np.stack([phase["wdl.bias"].numpy() for phase in phases]),
            sums=np.zeros(DOTS, np.float32),
            values=np.zeros(weights.hidden_bias.size // NUM_PHASES, np.float32),
            policy=np.zeros((1, NUM_POLICY), np.float32),
            codes=np.zeros(MAX_MOVES, np.uint64),
            hops=np.empty(MAX_HOPS, np.int64),
            tables=tables,
            missed=np.zeros((_MOST_MISSED, 4), np.uint32),
            num_missed=np.zeros(1, np.int64),
        )
        self._oracle = oracle

    def __call__(self, state: SearchState, budget: int) -> bool:
        finished = bool(_search_nodes(state, budget, self._network))
        missed, self._network.num_missed[0] = int(self._network.num_missed[0]), 0
        if self._oracle is not None and missed:
            self._oracle.judge(self._network.missed[:missed])  # loads their blocks for the leaves to come
        return finished


@njit(inline="always")
def _judge(line, now, network):
    """The score of a leaf: a won one counts more than all that the network can say, by which it is told from others."""
    own, opp, kings = line[now, 0], line[now, 1], line[now, 2]
    value = np.int64(0)
    if popcount(own | opp) <= network.tables.max_pieces[0]:
        value, _, found = probe_loaded(own, opp, kings, network.tables)
        if found == KNOWN and value == 0:
            return np.int64(DRAW)
        if found == NOT_LOADED and network.num_missed[0] < network.missed.shape[0]:
            network.missed[network.num_missed[0]] = line[now]
            network.num_missed[0] += 1
    return _judge_by_network(line[now], network) + value * _TABLE_WIN


@njit(inline="always")
def _judge_by_network(position, network):
    phase, weights, values = phase_of(position, network.weights), network.weights, network.values
    sum_units(position, phase, weights, network.buffers, 0)
    units, begins, first = units_of(weights), network.buffers.begins, phase * values.size
    for unit in range(0, values.size, DOTS):
        for i in range(DOTS):
            begins[i] = (first + unit + i) * units
        dot_rows(network.buffers.units, 0, units // WIDTH, network.hidden, begins, 0, network.sums)  # type: ignore[call-arg]
        for i in range(DOTS):
            at = first + unit + i
            value = weights.hidden_bias[at] + weights.hidden_scale[at] * network.sums[i]
            values[unit + i] = max(value, np.float32(0.0))
    win, draw, loss = network.wdl_bias[phase, 0], network.wdl_bias[phase, 1], network.wdl_bias[phase, 2]
    for unit in range(values.size):
        win += network.wdl[phase, 0, unit] * values[unit]
        draw += network.wdl[phase, 1, unit] * values[unit]
        loss += network.wdl[phase, 2, unit] * values[unit]
    return _score(win, draw, loss)


@njit(inline="always")
def _rate(state, ply, network):
    """Likely moves first; others the less deep the less likely they are."""
    frame, position, policy = state.frames[ply], state.line[state.search[0].root + ply], network.policy
    count, codes = np.int64(frame.num_moves), network.codes
    sum_units(position, phase_of(position, network.weights), network.weights, network.buffers, 0)
    for i in range(count):
        codes[i] = state.moves[ply, i].code
    policy_of(0, list_hops(codes, count, network.buffers, network.hops), network.weights, network.buffers, policy)
    highest = np.float32(-np.inf)
    for i in range(count):
        highest = max(highest, move_logit(policy, 0, codes[i]))
    for i in range(count):
        behind = min(highest - move_logit(policy, 0, codes[i]), _FARTHEST)
        state.reductions[ply, i] = min(np.int32(_PLIES_PER_NAT * behind + _FROM_THE_FIRST), _MOST_REDUCED)
        if i != frame.table_move:
            state.order[ply, i] = np.int32(_ORDERS_PER_NAT * (_FARTHEST - behind))


@njit(cache=True)
def _score(win, draw, loss):
    """Logits as hundredths of a man: the score by which a logistic curve expects as many points."""
    most = max(win, draw, loss)
    win, draw, loss = np.exp(win - most), np.exp(draw - most), np.exp(loss - most)
    expected = min(max((win + draw / 2) / (win + draw + loss), _SURE), 1 - _SURE)
    return np.int64(np.rint(LOGISTIC_SCALE * np.log(expected / (1 - expected))))


@njit(cache=True, nogil=True)
def _search_nodes(state, budget, network):
    return search_with(borrowed(state), budget, _judge, _rate, borrowed(network))  # type: ignore[call-arg]
