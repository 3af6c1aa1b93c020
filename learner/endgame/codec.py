"""Lossless neural coding of win/draw/loss tables: a network predicts, an arithmetic coder stores how wrong it was.

Pair by pair, in the order in which tables are solved, both directions do the same:

1. Captures and promotions are settled from the pairs before, and so is what one step into a settled position of the
   other side decides: a capture search of two plies, which costs no bits.
2. The positions with the first side to move that are still open are coded, each as one or two bits (won? if not, and
   if it can be, lost?). A network in whole numbers judges each; where it is not sure, also the positions one step
   further on, unless these follow from values known by now (a minimax search of two plies). Its log-odds are mixed
   (``mixing``) with what adaptive models expect whose contexts are these judgements and the values, known by now, of
   the positions one and two steps away.
3. The second side's values follow by looking one step ahead.

All arithmetic that decides what is decoded is on integers, so every machine decodes alike.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numba import njit

from engine.bitboard import lowest_bit, step
from engine.tablebase.coder import STATE_SIZE, finish_encoding, start_decoding, start_encoding
from engine.tablebase.dense import DenseTables, Step, in_steps
from engine.tablebase.layout import NUM_KINDS, layout_of, rank_of
from engine.tablebase.material import Material, pairs_up_to
from engine.tablebase.solve import Grid, canonical_places, grids_of, place_word, seen_by_mover
from engine.tablebase.solver import Workers
from engine.tablebase.wdl_codec import DRAWN, LOST, NOT_YET, WON

from .integer_network import IntegerNetwork, judge_integer, new_buffers
from .look_ahead import look_ahead, state_at
from .mixing import FRESH_MODEL, ONE, UNIT, WEIGHT_BITS, add_logits, clip_logit, code_mixed

NUM_INPUTS = 12  # inputs of the mixer: the network, and a model in each of eleven families of contexts
_FAMILY_BITS = 16
_SURE = 6 * UNIT  # log-odds from which on the network is believed without a look ahead
_NUM_DECISIONS = 4  # won? and lost?, where a loss is possible and where it is not
_MAX_KNOWN = 7
_FIRST_WEIGHT = (3 << WEIGHT_BITS) // 10
_MAX_NEIGHBOURS = 40
_CHUNK_WORDS = 1 << 13
_WORD_BYTES = 28 * 2 * 3  # at most three bytes a bit, two bits a position
_PLACE = 3  # length of the coder's state
_NEAR = 9  # states of positions with the roamer elsewhere, see ``_look_around``
_TWO_STEPS = np.array([[2, 2], [3, 3], [2, 3], [2, 1], [3, 0]])  # two steps of the roamer: back, and sideways


class CodecError(ValueError):
    """A coded file that is damaged, foreign or of another format, or coding that cannot be done."""


class Corrections(NamedTuple):
    """What coding needed.

    Attributes:
        data: the coded bits; empty after decoding.
        positions: coded. exceptions: bits that the mixed prediction thought less likely.
        digest: SHA-256 of all values, in hexadecimal.
    """

    data: bytes
    positions: int
    exceptions: int
    digest: str


class _Side(NamedTuple):
    """The positions of a pair of slices with the first side to move, each uint32 [words, 2].

    Attributes:
        values: won and lost positions known so far; coded ones are added.
        unknown: positions without a value yet, and those that may be lost; coded ones are removed.
        truth: the values; not used when decoding.
    """

    values: np.ndarray
    unknown: np.ndarray
    truth: np.ndarray


class _Learned(NamedTuple):
    """What has been learned: the network, models uint32 of all contexts, the mixers' weights int64 [decisions, known,
    NUM_INPUTS]."""

    network: IntegerNetwork
    models: np.ndarray
    weights: np.ndarray


@njit(cache=True)
def _find_neighbours(grid, ranks, taken, word, neighbours):
    """Words one step of a piece away, ``neighbours`` int64 [N, 2] with the side that steps; returns their number."""
    n = 0
    for kind in range(NUM_KINDS):
        entry = grid.base[kind] + ranks[kind]
        for i in range(grid.first[entry], grid.first[entry + 1]):
            if grid.targets[i] & taken == 0 and n < neighbours.shape[0]:
                neighbours[n, 0] = word + grid.jumps[i]
                neighbours[n, 1] = kind >> 1
                n += 1
    return n


@njit(cache=True)
def _look_around(word, bit, neighbours, n, values, unknown, around, near):
    """Counts the values around a position.

    Args:
        around: int64 [2, 4], set: by the side that steps and by state, among the words one step away.
        near: int64 [_NEAR], set: states with the roamer one step away in each direction, then two (``_TWO_STEPS``).
    """
    around[:] = 0
    for i in range(n):
        around[neighbours[i, 1], state_at(neighbours[i, 0], bit, values, unknown)] += 1
    for direction in range(4):
        near[direction] = state_at(word, step(bit, direction), values, unknown)
    for i in range(_TWO_STEPS.shape[0]):
        place = step(step(bit, _TWO_STEPS[i, 0]), _TWO_STEPS[i, 1])
        near[4 + i] = state_at(word, place, values, unknown)


@njit(cache=True, inline="always")
def _fine(logit):
    """Log-odds in 64 steps."""
    return min(max((logit + 12 * UNIT) * 64 // (24 * UNIT), 0), 63)


@njit(cache=True)
def _contexts(logit, ahead, place, around, near, decision, used):
    """Sets ``used`` int64 [NUM_INPUTS]: the model of each family for this judgement and these surroundings."""
    fine = _fine(logit)
    coarse = min(max((logit + 6 * UNIT) * 16 // (12 * UNIT), 0), 15)
    counts = np.int64(0)
    for side in range(2):
        for state in range(3):
            counts = counts * 3 + min(around[side, state], 2)
    total = np.int64(0)
    for state in range(3):
        total = total * 4 + min(around[0, state] + around[1, state], 3)
    back = near[2] * 4 + near[3]
    further = np.int64(0)
    for i in range(5):
        further = further * 4 + near[4 + i]
    used[1] = back * 64 + total
    used[2] = counts * 16 + back
    used[3] = further * 16 + back
    used[4] = fine
    used[5] = (coarse * 16 + back) * 64 + total
    used[6] = (coarse * 16 + back) * 16 + near[4] * 4 + near[5]
    used[7] = fine * 27 + counts // 27
    used[8] = place * 64 + fine
    used[9] = ahead
    used[10] = ahead * 64 + fine
    used[11] = (ahead * 16 + back) * 27 + counts // 27
    for i in range(1, NUM_INPUTS):
        used[i] += (i * _NUM_DECISIONS + decision) << _FAMILY_BITS


@njit(cache=True)
def _set_copies(grid, ranks, word, bit, others, result, values, unknown):
    """Enters a position's value, also where one of the roamer's fellows is left out instead of it."""
    base = word - ranks[grid.roamer] * grid.strides[grid.roamer]
    alike = np.uint32(others | bit)
    left = alike
    while left != 0:
        place = np.uint32(left & (~left + np.uint32(1)))
        left ^= place
        at = base + grid.strides[grid.roamer] * rank_of(np.uint32(alike ^ place), grid.roamer)
        unknown[at, 0] &= ~place
        if result < DRAWN:
            values[at, result] |= place


@njit(cache=True, inline="always")
def _is_open(logits, can_lose):
    """Whether the network is not sure of a position."""
    won = logits[0] - (add_logits(logits[1], logits[2]) if can_lose else logits[1])
    return abs(won) < _SURE or (can_lose and won < 0 and abs(logits[2] - logits[1]) < _SURE)


@njit(cache=True)
def _code_value(truth, can_lose, logits, looked, ahead, place, around, near, memory, coding):
    """Codes one position; returns its state, and how many bits were held for less likely.

    Args:
        truth: its state; not used when decoding.
        can_lose: whether what is known by now allows a loss.
        logits: int64 [3], the network's. looked: whether ``ahead`` (``look_ahead``) is set.
        place: bit of the roamer. around, near: see ``_look_around``.
        memory: models and weights (``_Learned``), and three buffers [NUM_INPUTS], [NUM_INPUTS], [1].
        coding: coder, data and whether it decodes.
    """
    models, weights, used, inputs, scratch = memory
    known = min(np.sum(around[:, :NOT_YET]), _MAX_KNOWN)
    surprises = 0
    for question in range(2 if can_lose else 1):
        if question == WON:
            logit = logits[0] - (add_logits(logits[1], logits[2]) if can_lose else logits[1])
        else:
            logit = logits[2] - logits[1]
        decision = 2 * question + can_lose
        inputs[0] = clip_logit(logit)
        _contexts(logit, _fine(ahead[question]) if looked else 64, place, around, near, decision, used)
        mixer = weights[decision, 2 * known + looked]
        answer, probability = code_mixed(truth == question, models, used, mixer, inputs, scratch, coding)
        surprises += (probability > ONE // 2) != (answer == 1)
        if answer:
            return question, surprises
    return DRAWN, surprises


@njit(cache=True, nogil=True)
def _code_words(low, high, grid, side, theirs, learned, coding, tally):
    """Codes the open positions of words ``low`` to ``high``.

    Args:
        side: ``_Side``. theirs: see ``look_ahead``. learned: ``_Learned``.
        coding: coder and data (``engine.tablebase.coder``), and whether it decodes.
        tally: int64 [2], positions and exceptions are added.
    """
    values, unknown, truth = side
    network = learned.network
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    neighbours, around = np.zeros((_MAX_NEIGHBOURS, 2), np.int64), np.zeros((2, 4), np.int64)
    near, logits, buffers = np.zeros(_NEAR, np.int64), np.zeros(3, np.int64), new_buffers(network)
    used, inputs, scratch = np.zeros(NUM_INPUTS, np.int64), np.zeros(NUM_INPUTS, np.int64), np.zeros(1, np.uint32)
    memory = learned.models, learned.weights, used, inputs, scratch
    ahead, further = np.zeros(2, np.int64), np.zeros(3, np.int64)
    judge = network, buffers, further, np.zeros(4, np.int64)
    for word in range(low, high):
        taken = place_word(grid, word, ranks, pieces)
        others = pieces[grid.roamer]
        places = np.uint32(canonical_places(grid.roamer, taken, others) & unknown[word, 0])
        if places == 0:
            continue
        n = _find_neighbours(grid, ranks, taken, word, neighbours)
        while places != 0:
            bit = np.uint32(places & (~places + np.uint32(1)))
            places ^= bit
            pieces[grid.roamer] = others | bit
            own, opp, kings = seen_by_mover(grid, pieces)
            judge_integer(own, opp, kings, network, buffers, logits)
            _look_around(word, bit, neighbours, n, values, unknown, around, near)
            state = WON if truth[word, 0] & bit != 0 else (LOST if truth[word, 1] & bit != 0 else DRAWN)
            can_lose = unknown[word, 1] & bit != 0
            looked = _is_open(logits, can_lose)
            if looked:
                look_ahead(own, opp, kings, grid, ranks, taken, word, bit, (values, unknown), theirs, judge, ahead)
            place = np.int64(lowest_bit(bit))
            result, surprises = _code_value(state, can_lose, logits, looked, ahead, place, around, near, memory, coding)
            tally[0] += 1
            tally[1] += surprises
            _set_copies(grid, ranks, word, bit, others, result, values, unknown)
        pieces[grid.roamer] = others


class _TableCoder:
    """Both directions of the codec; see the module's text.

    Args:
        data: what was coded, when decoding; None when encoding.
    """

    def __init__(self, network: IntegerNetwork, data: bytes | None, workers: Workers) -> None:
        self._workers, self._decoding = workers, data is not None
        models = np.full(NUM_INPUTS * _NUM_DECISIONS << _FAMILY_BITS, FRESH_MODEL, np.uint32)
        weights = np.full((_NUM_DECISIONS, 2 * (_MAX_KNOWN + 1), NUM_INPUTS), _FIRST_WEIGHT, np.int64)
        self._learned = _Learned(network, models, weights)
        self._coder, self._tally = np.zeros(STATE_SIZE, np.int64), np.zeros(2, np.int64)
        self._digest = sha256()
        self._parts: list[bytes] = []
        if data is not None:
            self._data = np.frombuffer(data, np.uint8).copy() if data else np.zeros(1, np.uint8)
            start_decoding(self._coder, self._data, 0, len(data))
        else:
            self._data = np.zeros(_CHUNK_WORDS * _WORD_BYTES, np.uint8)
            start_encoding(self._coder)

    def code_tables(self, tables: DenseTables, pieces: int, report: Callable[[Step], object]) -> Corrections:
        """Codes all pairs of 2 to ``pieces`` pieces; ``tables`` are filled in when decoding, else read."""
        for done in in_steps(pairs_up_to(pieces), lambda pair: self._code_pair(tables, pair)):
            report(done)
        if not self._decoding:
            self._parts.append(self._data[: finish_encoding(self._coder, self._data)].tobytes())
        positions, exceptions = self._tally.tolist()
        return Corrections(b"".join(self._parts), positions, exceptions, self._digest.hexdigest())

    def _code_pair(self, tables: DenseTables, pair: Material) -> bool:
        layout = layout_of(pair)
        grids = grids_of(layout)
        values, todo = np.zeros((2, layout.words, 2), np.uint32), np.zeros((2, layout.words, 2), np.uint32)
        for side in range(2):
            self._workers.settle(grids[side], tables.slices, tables.words, values[side], todo[side])
        self._workers.sweep(grids[0], values[0], todo[0], values[1])
        truth = values[0] if self._decoding else tables.slice_rows(pair)
        self._code_words(grids[0], _Side(values[0], todo[0], truth), (values[1], todo[1]))
        self._workers.sweep(grids[1], values[1], todo[1], values[0])
        self._digest.update(values.astype("<u4", copy=False).data)
        if self._decoding:
            tables.fill(pair, values)
            return True
        slices = [pair] if pair.symmetric else [pair, pair.swapped()]
        if not all(np.array_equal(values[side], tables.slice_rows(material)) for side, material in enumerate(slices)):
            raise CodecError(f"the tables of {pair.name} are not what the rules of the game make of smaller ones")
        return False

    def _code_words(self, grid: Grid, side: _Side, theirs: tuple[np.ndarray, np.ndarray]) -> None:
        coding = self._coder, self._data, self._decoding
        for low in range(0, grid.words, _CHUNK_WORDS):
            high = min(low + _CHUNK_WORDS, grid.words)
            _code_words(low, high, grid, side, theirs, self._learned, coding, self._tally)
            if not self._decoding:
                self._parts.append(self._data[: self._coder[_PLACE]].tobytes())
                self._coder[_PLACE] = 0


def coding_bytes(pieces: int) -> int:
    """Bytes that coding takes: the tables, and values and open positions of both sides of the largest pair."""
    return DenseTables.size(pieces) + 32 * max(layout_of(pair).words for pair in pairs_up_to(pieces))


def code_tables(
    tables: DenseTables,
    pieces: int,
    network: IntegerNetwork,
    data: bytes | None = None,
    threads: int | None = None,
    report: Callable[[Step], object] = lambda step: None,
) -> Corrections:
    """Codes the values of 2 to ``pieces`` pieces (5 take about a minute), or fills in the tables from coded ``data``.

    The digest of what is decoded is the caller's to compare.

    Raises:
        CodecError: the tables contradict themselves, so that decoding would not restore them.
    """
    with Workers(threads) as workers:
        return _TableCoder(network, data, workers).code_tables(tables, pieces, report)
