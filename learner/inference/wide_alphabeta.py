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
from engine.players.alphabeta_kernels import MAX_PLY, SearchState, search_with
from engine.players.evaluation import DRAW
from engine.players.kernels import new_line
from engine.search import LeafOracle
from engine.tablebase.probing import KNOWN, NOT_LOADED, Tables, no_tables, probe_loaded

from ..wide import WideNetwork
from .wide_evaluator import pack_wide, room_for
from .wide_kernels import WideBuffers, WideWeights, change_units, list_hops, phase_of, policy_of, results_of, sum_units

_TABLE_WIN = 10_000  # less than a win that the search has seen
_MOST_MISSED = 256
_FARTHEST_BACK = 6  # plies; from farther ones nearly as much has changed as there is to add up
_PLIES_PER_NAT = np.float32(0.9)  # plies less for a move, per nat that it is less likely than the likeliest
_FROM_THE_FIRST = np.float32(0.8)  # plies that come on top before rounding down
_MOST_REDUCED = 5
_FARTHEST = np.float32(500.0)  # nats
_ORDERS_PER_NAT = np.float32(1000.0)  # scale of the integers by which moves are sorted
_SURE = 1e-4  # least expected score, and most behind 1, that is told apart


class _Network(NamedTuple):
    """What the search knows.

    Attributes:
        weights, buffers: of the wide network, with room for the sums of each position of a line.
        summed: uint32 [N, 4], the positions of which there are sums.
        policy: float32 [1, 128]. codes: uint64 [MAX_MOVES]. hops: int64 [MAX_HOPS].
        tables: those without pieces know nothing.
        missed: uint32 [n, 4], positions inside the tables whose blocks were not in memory; ``num_missed``: int64 [1].
    """

    weights: WideWeights
    buffers: WideBuffers
    summed: np.ndarray
    policy: np.ndarray
    codes: np.ndarray
    hops: np.ndarray
    tables: Tables
    missed: np.ndarray
    num_missed: np.ndarray


class WideNodeSearch:
    """Searches with the values of a wide network; an ``engine.players.alphabeta.NodeSearch``.

    What the tables say of a leaf counts only if their blocks are in memory; those that are missing are loaded for the
    leaves to come. So the first search of an endgame may visit other nodes than later ones.

    Args:
        oracle: of endgames, if there is any; it must have compiled tables.
        patient: whether the search waits for the blocks; a search by time does not.
    """

    def __init__(self, network: WideNetwork, oracle: LeafOracle | None = None, patient: bool = True) -> None:
        tables = no_tables() if oracle is None else oracle.compiled()
        assert tables is not None
        weights = pack_wide(network)
        room = len(new_line(MAX_PLY + 1))
        self._network = _Network(
            weights=weights,
            buffers=room_for(weights, room),
            summed=np.zeros((room, 4), np.uint32),
            policy=np.zeros((1, NUM_POLICY), np.float32),
            codes=np.zeros(MAX_MOVES, np.uint64),
            hops=np.empty(MAX_HOPS, np.int64),
            tables=tables,
            missed=np.zeros((_MOST_MISSED, 4), np.uint32),
            num_missed=np.zeros(1, np.int64),
        )
        self._oracle, self._patient = oracle, patient

    def __call__(self, state: SearchState, budget: int) -> bool:
        finished = bool(_search_nodes(state, budget, self._network))
        missed, self._network.num_missed[0] = int(self._network.num_missed[0]), 0
        if self._oracle is not None and missed:
            self._oracle.judge(self._network.missed[:missed], self._patient)
        return finished


@njit(inline="always")
def _judge(line, now, network):
    """The score of a leaf: a won one counts more than all that the network can say, by which it is told from others."""
    own, opp, kings = line[now, 0], line[now, 1], line[now, 2]
    value = np.int64(0)
    if popcount(own | opp) <= network.tables.max_pieces[0]:
        value, _, found = probe_loaded(own, opp, kings, network.tables)
        if found != KNOWN:
            value = np.int64(0)  # the best of the moves whose tables are there says nothing
        elif value == 0:
            return np.int64(DRAW)
        if found == NOT_LOADED and network.num_missed[0] < network.missed.shape[0]:
            network.missed[network.num_missed[0]] = line[now]
            network.num_missed[0] += 1
    win, draw, loss = results_of(now, _sum(line, now, network), network.weights, network.buffers)
    return _score(win, draw, loss) + value * _TABLE_WIN


@njit(inline="always")
def _sum(line, now, network):
    """Adds up the wide layer of position ``now`` of the line, from an earlier one's sums where it can; its phase."""
    weights, buffers = network.weights, network.buffers
    phase = phase_of(line[now], weights)
    then = _last_summed(line, now, network.summed)
    if then == now:
        return phase
    if then >= 0 and phase_of(line[then], weights) == phase:
        change_units(line[then], line[now], phase, weights, buffers, then, now)
    else:
        sum_units(line[now], phase, weights, buffers, now)
    for word in range(4):
        network.summed[now, word] = line[now, word]
    return phase


@njit(inline="always")
def _last_summed(line, now, summed):
    """The last position with the same side to move of which there are sums; -1 if there is none near."""
    for then in range(now, max(now - _FARTHEST_BACK, 0) - 1, -2):
        if (
            summed[then, 0] == line[then, 0]
            and summed[then, 1] == line[then, 1]
            and summed[then, 2] == line[then, 2]
            and summed[then, 3] == line[then, 3]
        ):
            return then
    return -1


@njit(inline="always")
def _rate(state, ply, network):
    """Likely moves first; others the less deep the less likely they are."""
    frame, now, policy = state.frames[ply], state.search[0].root + ply, network.policy
    count, codes = np.int64(frame.num_moves), network.codes
    _sum(state.line, now, network)
    for i in range(count):
        codes[i] = state.moves[ply, i].code
    policy_of(now, list_hops(codes, count, network.buffers, network.hops), network.weights, network.buffers, policy[0])
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
