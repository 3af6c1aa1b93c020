"""Lossless coding of chess endings of three and four men, as this project's codec of draughts tables does it.

Ending by ending, in the order of ``chess_endings.endings``, both directions do the same:

1. Captures, promotions, mates and stalemates settle what they can.
2. The positions with White to move that are still open are coded, word by word (``chess_moves``): a minimax search of
   two plies (``chess_look_ahead``) settles, without a bit, what follows from values known by now. Of each other
   position up to two bits are coded (won? if not, lost?; only what can be), as a mix of adaptive models expects them
   (``learner.endgame.mixing``), whose contexts are what the search saw, the values of positions nearby, and the
   squares of three men.
3. Black's values follow by looking one step ahead.

There is no network. All arithmetic is on integers, so every machine decodes alike.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numba import njit

from engine.tablebase.coder import STATE_SIZE, finish_encoding, start_decoding, start_encoding
from learner.endgame.mixing import FRESH_MODEL, UNIT, WEIGHT_BITS, code_mixed

from .chess_endings import LOST, NOT_WON, Endings, Rules, Solved, endings
from .chess_look_ahead import AHEAD_BITS, Black, White, new_buffers, search_word
from .chess_moves import BLACK, IMAGES, PAWN, WHITE, bit_of, shifted

WON, DRAWN, UNKNOWN = 1, 2, 3  # a position's state; LOST is 0
NUM_INPUTS = 8  # of the mixer: a constant, and a model in each of seven families of contexts
_FAMILY_BITS = 20
_HASH = np.uint64(0x9E3779B97F4A7C15)
_DECISIONS = 4  # won? and lost?, where the other is possible too and where it is not
_FIRST_WEIGHT = (3 << WEIGHT_BITS) // 10
_BYTES_OF_A_KING = 64 * 64 * 64 * 2 * 3  # at most three bytes a bit, two bits a position
_PLACE = 3  # length of the coder's state


class ChessCodecError(ValueError):
    """Coded chess endings that are damaged, foreign or of another version."""


class Coded(NamedTuple):
    """What coding gave.

    Attributes:
        data: the coded bits; empty after decoding.
        positions: positions that were coded by bits.
        digest: SHA-256 of all values, in hexadecimal.
    """

    data: bytes
    positions: int
    digest: str


@njit(cache=True)
def _enter(known, images, twins, squares, state):
    """Enters the value of a position, and of its mirror images: 2 with pawns, 8 without; of ``twins`` in either order.

    Args:
        squares: of White's king, Black's king, third man, roamer.
    """
    for image in range(images):
        white, black = IMAGES[image, squares[0]], IMAGES[image, squares[1]]
        third = IMAGES[image, squares[2]] if known.lost.shape[2] > 1 else 0
        roamer = IMAGES[image, squares[3]]
        for _ in range(2 if twins else 1):
            bit = bit_of(roamer)
            known.unknown[white, black, third] &= ~bit
            if state == LOST:
                known.lost[white, black, third] |= bit
            else:
                known.may_lose[white, black, third] &= ~bit
            if state != WON:
                known.not_won[white, black, third] |= bit
            third, roamer = roamer, third


@njit(cache=True)
def _state(known, white, black, third, bit):
    """A position's state; ``UNKNOWN`` beyond the edge, where there is no bit."""
    if bit == 0 or known.unknown[white, black, third] & bit != 0:
        return UNKNOWN
    if known.not_won[white, black, third] & bit == 0:
        return WON
    return LOST if known.lost[white, black, third] & bit != 0 else DRAWN


@njit(cache=True)
def _left_and_below(known, white, black, third, bit, man):
    """Two states: with a man (0: White's king, 1: Black's, 2: the third man) one file to the left, one rank below."""
    square = white if man == 0 else (black if man == 1 else third)
    states = 0
    for step, inside in ((1, square & 7 > 0), (8, square >= 8)):
        state = UNKNOWN
        if inside and not (man == 2 and known.lost.shape[2] == 1):
            there = square - step
            if man == 0:
                state = _state(known, there, black, third, bit)
            elif man == 1:
                state = _state(known, white, there, third, bit)
            else:
                state = _state(known, white, black, there, bit)
        states = 4 * states + state
    return states


@njit(cache=True)
def _contexts(known, word, roamer, ahead, decision, used):
    """Sets ``used`` int64 [NUM_INPUTS]: the model of each family for a position."""
    white, black, third = word
    bit = bit_of(roamer)
    near = 0
    for files, ranks in ((-1, 0), (0, -1), (-1, -1), (1, -1)):
        near = 4 * near + _state(known, white, black, third, shifted(bit, files, ranks))
    kings = 16 * _left_and_below(known, white, black, third, bit, 0)
    kings += _left_and_below(known, white, black, third, bit, 1)
    around = (kings * 16 + _left_and_below(known, white, black, third, bit, 2)) * 256 + near
    used[1] = ahead
    used[2] = ahead * 256 + near
    used[3] = ahead * 256 + kings
    used[4] = around
    used[5] = (white * 64 + black) * 64 + roamer
    used[6] = (black * 64 + third) * 64 + roamer
    used[7] = (white * 64 + third) * 64 + roamer
    for i in range(1, NUM_INPUTS):
        mixed = np.uint64(used[i] * _DECISIONS + decision) * _HASH
        used[i] = np.int64(mixed >> np.uint64(64 - _FAMILY_BITS)) + (i << _FAMILY_BITS)


@njit(cache=True)
def _code_position(known, word, roamer, truth, possible, ahead, memory, coding):
    """Codes one position; returns its state.

    Args:
        truth: its state; not used when decoding.
        possible: whether it may be won, and lost, by what is known.
        ahead: what the search saw of it.
        memory: models, weights, and three buffers [NUM_INPUTS], [NUM_INPUTS], [1].
        coding: coder, data and whether it decodes.
    """
    models, weights, used, inputs, scratch = memory
    for question in range(2):
        if possible[question]:
            decision = 2 * question + possible[1 - question]
            _contexts(known, word, roamer, ahead, decision, used)
            inputs[0] = UNIT
            asked = WON if question == 0 else LOST
            mixer = weights[decision, ahead >> 5]
            answer, _ = code_mixed(truth == asked, models, used, mixer, inputs, scratch, coding)
            if answer:
                return asked
    return DRAWN


@njit(cache=True)
def _code_king(white, ending, images, known, against, truth, learned, buffers, coding):
    """Codes the open positions with White's king on a square; returns their number.

    Args:
        known: ``White``. against: ``Black``.
        truth: lost and won positions; not used when decoding.
        learned: models and weights. buffers: ``Buffers``.
        coding: coder, data and whether it decodes.
    """
    lost, won = truth
    twins = ending.third == ending.roamer and ending.third_color == ending.roamer_color
    used, inputs, scratch = np.zeros(NUM_INPUTS, np.int64), np.zeros(NUM_INPUTS, np.int64), np.zeros(1, np.uint32)
    memory = learned[0], learned[1], used, inputs, scratch
    ahead, coded = np.zeros(64, np.int64), 0
    for black in range(64):
        for third in range(known.lost.shape[2]):
            if known.unknown[white, black, third] == 0:
                continue
            found = search_word(white, black, third, ending, known, against, buffers, ahead)
            for roamer in range(64):
                bit = bit_of(roamer)
                if known.unknown[white, black, third] & bit == 0:  # not at all, or as an image of one before
                    continue
                word = white, black, third
                if found.won & bit != 0:
                    state = WON
                elif found.lost & bit != 0:
                    state = LOST
                else:
                    state = LOST if lost[word] & bit != 0 else (WON if won[word] & bit != 0 else DRAWN)
                    possible = found.may_win & bit != 0, found.may_lose & bit != 0
                    coded += possible[0] or possible[1]
                    state = _code_position(known, word, roamer, state, possible, ahead[roamer], memory, coding)
                _enter(known, images, twins, (white, black, third, roamer), state)
    return coded


class EndingCoder:
    """Codes endings one after another, in the same order in both directions.

    Args:
        data: what was coded, when decoding; None when encoding.
    """

    def __init__(self, data: bytes | None = None) -> None:
        self._decoding = data is not None
        self._coder, self._digest = np.zeros(STATE_SIZE, np.int64), sha256()
        self._parts: list[bytes] = []
        self._positions = 0
        if data is not None:
            self._data = np.frombuffer(data or bytes(1), np.uint8).copy()
            start_decoding(self._coder, self._data, 0, len(data))
        else:
            self._data = np.zeros(_BYTES_OF_A_KING, np.uint8)
            start_encoding(self._coder)

    def code(self, rules: Rules, truth: Solved | None = None) -> Solved:
        """Codes an ending; returns its values.

        Args:
            truth: its values, when encoding.

        Raises:
            ChessCodecError: they contradict the rules, so that decoding would not restore them.
        """
        ending, legal, stalemate, forced = rules.ending, rules.legal, rules.stalemate, rules.forced
        known = _start(rules)
        against = Black(legal[BLACK], stalemate[BLACK], forced[LOST, BLACK], forced[NOT_WON, BLACK])
        images = 2 if PAWN in (ending.third, ending.roamer) else len(IMAGES)
        models = np.full(NUM_INPUTS << _FAMILY_BITS, FRESH_MODEL, np.uint32)
        learned = models, np.full((_DECISIONS, 1 << AHEAD_BITS - 5, NUM_INPUTS), _FIRST_WEIGHT, np.int64)
        wanted = (known.lost, known.lost) if truth is None else (truth.sets[LOST, WHITE], truth.won[WHITE])
        buffers, coding = new_buffers(ending.thirds), (self._coder, self._data, self._decoding)
        for white in range(64):
            self._positions += _code_king(white, ending, images, known, against, wanted, learned, buffers, coding)
            if not self._decoding:
                self._parts.append(self._data[: self._coder[_PLACE]].tobytes())
                self._coder[_PLACE] = 0
        lost, not_won = np.stack([known.lost, known.lost]), np.stack([known.not_won, known.not_won])
        not_won[BLACK] = legal[BLACK] & ~rules.winning(BLACK, lost[WHITE], legal[BLACK])
        lost[BLACK] = rules.losing(BLACK, not_won[WHITE], not_won[BLACK])
        sets = np.stack([lost, not_won, legal])
        if truth is not None and not np.array_equal(sets, truth.sets):
            raise ChessCodecError(
                f"the values of {ending.name} are not what the rules of chess make of smaller endings"
            )
        self._digest.update(sets.astype("<u8", copy=False).data)
        return Solved(sets)

    def finish(self) -> Coded:
        """What was coded, after the last ending."""
        if not self._decoding:
            self._parts.append(self._data[: finish_encoding(self._coder, self._data)].tobytes())
        return Coded(b"".join(self._parts), self._positions, self._digest.hexdigest())


def _start(rules: Rules) -> White:
    """What is known of positions with White to move before any is coded."""
    legal, stalemate = rules.legal[WHITE], rules.stalemate[WHITE]
    mated = rules.losing(WHITE, rules.legal[BLACK], legal)
    safe, unknown = rules.forced[NOT_WON, WHITE], legal & ~stalemate & ~mated & ~rules.forced[LOST, WHITE]
    return White(legal, safe, mated, mated | stalemate, unknown, mated | unknown & ~safe)


def code_endings(
    tables: Endings, data: bytes | None = None, report: Callable[[float], object] = lambda share: None
) -> Coded:
    """Codes all endings, in about a minute, or fills in ``tables``, which are empty, from coded ``data``.

    The digest of what is decoded is the caller's to compare.

    Args:
        report: gets the share that is done.
    """
    coder, every = EndingCoder(data), endings()
    for number, ending in enumerate(every):
        report(number / len(every))
        if data is None:
            coder.code(tables.rules_of(ending), tables.solved[ending])
        else:
            tables.solved[ending] = coder.code(tables.rules_of(ending))
    return coder.finish()
