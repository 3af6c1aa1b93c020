"""Sums and products of 16-bit integers, sixteen at a time, as intrinsics of Numba's; see ``lanes`` and ``tiles``.

Rows of a table lie one after the other; places are counted in numbers, and nothing looks whether they lie inside.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .lanes import INDEX, SHORT, VECTOR, WIDTH, emit_inside, emit_place
from .tiles import ROWS, emit_pair_products

STRIP = 16 * WIDTH
"""Columns of a table that ``sum_rows`` adds up together."""
DOTS = 4
"""Products that ``dot_rows`` computes together."""
_SHORTS = ir.VectorType(SHORT, 2 * WIDTH)
_HALF = ir.VectorType(SHORT, WIDTH)
_TILE = ROWS * WIDTH  # numbers from eight of a row to the next eight


def _vector(builder: Any, pointer: Any, kind: Any, at: int = 0) -> Any:
    return builder.load(builder.bitcast(emit_inside(builder, pointer, at), kind.as_pointer()), align=2)


@intrinsic
def sum_rows(typingctx: Any, table: Any, rows: Any, count: Any, column: Any, out: Any, out_at: Any) -> Any:
    """Adds up ``STRIP`` columns, from ``column`` on, of the rows that begin at the first ``count`` places in ``rows``.

    Negative sums become zero. ``table`` and ``out`` are int16, ``rows`` int64; ``out`` holds tiles. The sums stay in
    registers. No sum may be too large for an int16, whichever of the rows have been added.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table, rows, count, column, out, out_at = args
        kind_table, kind_rows, _, _, kind_out, _ = signature.args
        zero = ir.Constant(_SHORTS, [0] * 2 * WIDTH)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(0, STRIP, 2 * WIDTH)]
        with cgutils.for_range(builder, count) as loop:
            row = builder.load(emit_place(context, builder, kind_rows, rows, loop.index))
            numbers = emit_place(context, builder, kind_table, table, builder.add(row, column))
            for i, total in enumerate(sums):
                found = _vector(builder, numbers, _SHORTS, i * 2 * WIDTH)
                builder.store(builder.add(builder.load(total), found), total)
        tiles = emit_place(context, builder, kind_out, out, out_at)
        for i, total in enumerate(sums):
            value = builder.load(total)
            value = builder.select(builder.icmp_signed(">", value, zero), value, zero)
            for half in (0, 1):
                lanes = ir.Constant(ir.VectorType(INDEX, WIDTH), list(range(half * WIDTH, (half + 1) * WIDTH)))
                place = emit_inside(builder, tiles, (2 * i + half) * _TILE)
                part = builder.shuffle_vector(value, zero, lanes)
                builder.store(part, builder.bitcast(place, _HALF.as_pointer()), align=2)
        return context.get_dummy_value()

    return types.void(table, rows, types.intp, types.intp, out, types.intp), codegen


@intrinsic
def dot_rows(typingctx: Any, x: Any, x_at: Any, tiles: Any, table: Any, rows: Any, first: Any, sums: Any) -> Any:
    """The products of a row in tiles with the rows of a table that begin at ``rows[first]`` and the next places.

    ``x`` and ``table`` are int16, ``rows`` int64; ``DOTS`` products are written to ``sums``, float32. ``tiles``, the
    number of them in the row, is even. No product may be too large for 32 bits.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, x_at, tiles, table, rows, first, sums = args
        kind_x, _, _, kind_table, kind_rows, _, kind_sums = signature.args
        index = tiles.type
        listed = emit_place(context, builder, kind_rows, rows, first)
        begins = [builder.load(emit_inside(builder, listed, i)) for i in range(DOTS)]
        zero = ir.Constant(ir.VectorType(INDEX, WIDTH), [0] * WIDTH)
        totals = [cgutils.alloca_once_value(builder, zero) for _ in range(DOTS)]
        both = ir.Constant(ir.VectorType(INDEX, 2 * WIDTH), list(range(2 * WIDTH)))
        with cgutils.for_range(builder, builder.sdiv(tiles, ir.Constant(index, 2))) as loop:
            pair = builder.mul(loop.index, ir.Constant(index, 2 * _TILE))
            tile = emit_place(context, builder, kind_x, x, builder.add(x_at, pair))
            numbers = builder.shuffle_vector(_vector(builder, tile, _HALF), _vector(builder, tile, _HALF, _TILE), both)
            for begin, total in zip(begins, totals, strict=True):
                at = builder.add(begin, builder.mul(loop.index, ir.Constant(index, 2 * WIDTH)))
                row = _vector(builder, emit_place(context, builder, kind_table, table, at), _SHORTS)
                builder.store(builder.add(builder.load(total), emit_pair_products(builder, numbers, row)), total)
        kind = ir.FunctionType(INDEX, [zero.type])
        add_up = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{WIDTH}i32")
        written = emit_place(context, builder, kind_sums, sums, ir.Constant(index, 0))
        for i, total in enumerate(totals):
            found = builder.sitofp(builder.call(add_up, [builder.load(total)]), VECTOR.element)
            builder.store(found, emit_inside(builder, written, i))
        return context.get_dummy_value()

    return types.void(x, types.intp, types.intp, table, rows, types.intp, sums), codegen
