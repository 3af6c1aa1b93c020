"""Products of matrices, two tiles at a time, as an intrinsic of Numba's."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .lanes import (
    INDEX,
    LANES,
    SHORT,
    VECTOR,
    WIDTH,
    emit_bent,
    emit_inside,
    emit_load,
    emit_multiply_add,
    emit_place,
    emit_spread,
    emit_store,
)

ROWS = 4
"""Rows of a tile, the part of a matrix product kept in registers; it has ``WIDTH`` columns."""
BLOCK = 2 * WIDTH
"""Columns of a product that are computed together."""
LARGEST_SUM = 2**31 - 1
"""Limit of a sum of products of 16-bit integers: it is kept in 32 bits."""


def _multiplied(builder: Any, tile_a: Any, tile_b: Any, sums: list[list[Any]]) -> None:
    """Adds the product of a tile of ``a`` and eight rows of ``b``, in float32."""
    for i in range(WIDTH):
        factors = [emit_load(builder, emit_inside(builder, tile_b, i * BLOCK + half)) for half in (0, WIDTH)]
        for row in range(ROWS):
            number = emit_spread(builder, builder.load(emit_inside(builder, tile_a, row * WIDTH + i)))
            for total, factor in zip(sums[row], factors, strict=True):
                builder.store(emit_multiply_add(builder, number, factor, builder.load(total)), total)


def _multiplied_shorts(builder: Any, tile_a: Any, tile_b: Any, sums: list[list[Any]]) -> None:
    """The same in short integers: ``b`` holds two rows side by side."""
    shorts = ir.VectorType(SHORT, 2 * WIDTH)
    for i in range(0, WIDTH, 2):
        pairs = [emit_inside(builder, tile_b, i * BLOCK + half) for half in (0, 2 * WIDTH)]
        factors = [builder.load(builder.bitcast(pair, shorts.as_pointer()), align=2) for pair in pairs]
        for row in range(ROWS):
            place = builder.bitcast(emit_inside(builder, tile_a, row * WIDTH + i), INDEX.as_pointer())
            pair = builder.bitcast(emit_spread(builder, builder.load(place, align=2)), shorts)
            for total, factor in zip(sums[row], factors, strict=True):
                builder.store(builder.add(builder.load(total), emit_pair_products(builder, pair, factor)), total)


def emit_pair_products(builder: Any, a: Any, b: Any) -> Any:
    """The products of sixteen short integers each, added in pairs of neighbours: one instruction (``pmaddwd``)."""
    integers = ir.VectorType(INDEX, WIDTH)
    product = builder.mul(*(builder.sext(side, ir.VectorType(INDEX, 2 * WIDTH)) for side in (a, b)))
    even, odd = (
        builder.shuffle_vector(
            product,
            ir.Constant(product.type, ir.Undefined),
            ir.Constant(integers, list(range(first, 2 * WIDTH, 2))),
        )
        for first in (0, 1)
    )
    return builder.add(even, odd)


@intrinsic
def multiply_tiles(
    typingctx: Any,
    a: Any,
    a_at: Any,
    b: Any,
    b_at: Any,
    tiles: Any,
    scale: Any,
    scale_at: Any,
    bias: Any,
    bias_at: Any,
    out: Any,
    out_at: Any,
    slope: Any,
) -> Any:
    """Two tiles of a product of matrices, side by side; each column times its scale plus its bias, bent by ``slope``.

    A tile is ``ROWS`` x ``WIDTH`` numbers, row after row. From ``a_at`` on lie as many of ``a`` as given, from left to
    right; ``b`` has ``BLOCK`` columns, from ``b_at`` on row after row. The sums stay in registers, and all places
    within a tile are known when this is compiled: strides would take up registers, too.

    ``a`` and ``b`` are float32, or int16 with the rows of ``b`` in pairs, the two numbers of a column side by side. No
    sum of these may exceed ``LARGEST_SUM``.
    """
    shorts = a.dtype == types.int16

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, a_at, b, b_at, tiles, scale, scale_at, bias, bias_at, out, out_at, slope = args
        kind_a, kind_b, kind_scale, kind_bias, kind_out = (signature.args[i] for i in (0, 2, 5, 7, 9))
        nothing = (
            ir.Constant(ir.VectorType(INDEX, WIDTH), [0] * WIDTH) if shorts else ir.Constant(VECTOR, [0.0] * WIDTH)
        )
        sums = [[cgutils.alloca_once_value(builder, nothing) for _ in range(0, BLOCK, WIDTH)] for _ in range(ROWS)]
        with cgutils.for_range(builder, tiles) as loop:
            first_a, first_b = (builder.mul(loop.index, ir.Constant(loop.index.type, WIDTH * n)) for n in (ROWS, BLOCK))
            tile_a = emit_place(context, builder, kind_a, a, builder.add(a_at, first_a))
            tile_b = emit_place(context, builder, kind_b, b, builder.add(b_at, first_b))
            (_multiplied_shorts if shorts else _multiplied)(builder, tile_a, tile_b, sums)
        tile_out = emit_place(context, builder, kind_out, out, out_at)
        scales, biases = (
            [emit_load(builder, emit_inside(builder, emit_place(context, builder, *of), half)) for half in (0, WIDTH)]
            for of in ((kind_scale, scale, scale_at), (kind_bias, bias, bias_at))
        )
        for row in range(ROWS):
            for half, total in enumerate(sums[row]):
                found = builder.load(total)
                number = builder.sitofp(found, VECTOR) if shorts else found
                value = emit_bent(builder, emit_multiply_add(builder, number, scales[half], biases[half]), slope)
                emit_store(builder, kind_out, value, emit_inside(builder, tile_out, (half * ROWS + row) * WIDTH))
        return context.get_dummy_value()

    index = types.intp
    return types.void(a, index, b, index, index, scale, index, bias, index, out, index, LANES), codegen
