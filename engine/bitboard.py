"""The board as bits: geometry, the square-to-bit map, and the few bit operations that every kernel uses.

A position is three 32-bit words, always seen by the side to move: ``own``, ``opp`` (the opponent) and ``kings`` (of
both sides). The side to move starts on rows 0-2 and moves towards row 7, whichever colour it plays.

Squares are counted 0-31 row by row from the side to move, so for Black ``square = PDN number - 1`` and for White
``square = 32 - PDN number``. Bits are laid out so that a diagonal step is a *rotation*::

    bit = (u + 7 v + 4) mod 32        u, v: diagonals crossed going forward-right, forward-left

One step along the four diagonals is a rotation by +1, +7, -1, -7, each followed by one mask that removes what wrapped
around an edge, and the offset 4 makes turning the board by 180 degrees the reversal of the word. (Row-by-row bits would
need a different shift on odd and even rows.)
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

NUM_SQUARES = 32
NUM_DIRECTIONS = 4
ROTATIONS = (1, 7, 31, 25)  # forward-right, forward-left, back-left, back-right; direction d ^ 2 undoes direction d


def row_column(number: int) -> tuple[int, int]:
    """Row and column (0-7) of a PDN number 1-32: row 0 is Black's back row, column 0 is White's left."""
    row, place = divmod(number - 1, 4)
    return row, 2 * place + (row % 2 == 0)


def _column(square: int) -> int:
    return row_column(square + 1)[1]


def _bit_of(square: int) -> int:
    row, column = row_column(square + 1)
    return ((row + column - 1) // 2 + 7 * ((row - column + 7) // 2) + 4) % 32


BIT_OF_SQUARE = np.array([_bit_of(square) for square in range(NUM_SQUARES)], np.uint8)
SQUARE_OF_BIT = np.argsort(BIT_OF_SQUARE).astype(np.uint8)


def mask_of(squares: Any) -> int:
    """The word with the bits of these squares (0-31) set."""
    return sum(1 << int(BIT_OF_SQUARE[square]) for square in squares)


def squares_of(word: int) -> list[int]:
    """The squares (0-31) whose bits are set, in increasing order."""
    return sorted(int(SQUARE_OF_BIT[bit]) for bit in range(NUM_SQUARES) if word >> bit & 1)


def _landings(row_step: int, column_step: int) -> int:
    """The squares that one step in this direction can reach from a square on the board."""
    inside = [
        square
        for square in range(NUM_SQUARES)
        if 0 <= square // 4 - row_step < 8 and 0 <= _column(square) - column_step < 8
    ]
    return mask_of(inside)


REACH = (_landings(1, 1), _landings(1, -1), _landings(-1, -1), _landings(-1, 1))
FAR_ROW = mask_of(range(28, 32))  # the mover's men are crowned here
HOME_ROW = mask_of(range(4))  # the opponent's men are crowned here


@intrinsic
def _ctpop(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint32(types.uint32), codegen


@intrinsic
def _cttz(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint32(types.uint32), codegen


@intrinsic
def _bitreverse(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitreverse(args[0])

    return types.uint32(types.uint32), codegen


@intrinsic
def _float_of_bits(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def borrowed(typingctx: Any, arrays: Any) -> Any:
    """The same array, or (named) tuple of arrays and numbers, without reference counts; the caller keeps arrays alive.

    Numba counts references at every call that passes an array on, atomically: a third of the search's time. Kernels
    borrow their arrays once and pass these on.
    """

    def borrow(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.Number | types.Boolean):
            return value
        if not isinstance(kind, types.Array):
            members = [borrow(context, builder, k, builder.extract_value(value, i)) for i, k in enumerate(kind)]
            return context.make_tuple(builder, kind, members)
        view = context.make_array(kind)(context, builder, value=value)
        view.meminfo = ir.Constant(view.meminfo.type, None)
        view.parent = ir.Constant(view.parent.type, None)
        return view._getvalue()

    return arrays(arrays), lambda context, builder, signature, args: borrow(context, builder, arrays, args[0])


@njit(cache=True, inline="always")
def exp32(x):
    """exp(x) for float32 x <= 0 with a relative error below 6e-6; below -87 it gives about 1e-38.

    2 ** (n + f) with n an integer and |f| <= 1/2: n goes into the exponent bits, f through a Taylor polynomial. The C
    library's expf took a third of the whole search.
    """
    t = max(np.float32(x) * np.float32(1.4426950408889634), np.float32(-126.0))
    n = np.float32(np.floor(t + np.float32(0.5)))
    f = np.float32((t - n) * np.float32(0.6931471805599453))
    p = np.float32(1 / 120)
    p = p * f + np.float32(1 / 24)
    p = p * f + np.float32(1 / 6)
    p = p * f + np.float32(0.5)
    p = p * f + np.float32(1.0)
    p = p * f + np.float32(1.0)
    return np.float32(p * _float_of_bits(np.int32((np.int32(n) + 127) << 23)))


@njit(cache=True)
def popcount(word):
    """Number of set bits."""
    return _ctpop(np.uint32(word))


@njit(cache=True)
def lowest_bit(word):
    """Index of the lowest set bit; undefined for 0."""
    return _cttz(np.uint32(word))


@njit(cache=True)
def turned(word):
    """The board turned by 180 degrees: the other side's view of the same squares."""
    return _bitreverse(np.uint32(word))


@njit(cache=True)
def rotated(word, rotation):
    """``word`` rotated left by 0 < rotation < 32 bits: every piece moved one step, edges not yet masked."""
    word = np.uint32(word)
    return np.uint32(np.uint32(word << np.uint32(rotation)) | (word >> np.uint32(32 - rotation)))


@njit(cache=True)
def step(word, direction):
    """Every piece of ``word`` moved one square in ``direction`` (0-3); those that would leave the board vanish."""
    return np.uint32(rotated(word, ROTATIONS[direction]) & np.uint32(REACH[direction]))
