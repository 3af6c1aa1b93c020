"""Sums and products of 16-bit integers, sixteen at a time, as intrinsics of Numba's; see ``lanes`` and ``tiles``.

Rows of a table lie one after the other; places are counted in numbers, and bounds are not checked. What
``sum_rows`` adds up may be negative; the products take zero in place of such numbers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .lanes import INDEX, SHORT, VECTOR, WIDTH, emit_inside, emit_place, emit_spread, emit_store
from .tiles import emit_pair_products

STRIP = 16 * WIDTH
"""Columns of a table that ``sum_rows`` adds up together; rows have whole strips."""
DOTS = 4
"""Products that ``dot_rows`` computes together."""
OUTPUTS = 4 * WIDTH
"""Products that ``multiply_positive`` computes together."""
_SHORTS = ir.VectorType(SHORT, 2 * WIDTH)
_INTEGERS = ir.VectorType(INDEX, WIDTH)
_MASK = ir.IntType(64)  # a bit for each pair of a strip
_NO_SHORTS = ir.Constant(_SHORTS, [0] * 2 * WIDTH)
_NO_INTEGERS = ir.Constant(_INTEGERS, [0] * WIDTH)


def _shorts(builder: Any, pointer: Any, at: int = 0) -> Any:
    return builder.load(builder.bitcast(emit_inside(builder, pointer, at), _SHORTS.as_pointer()), align=2)


def _positive(builder: Any, numbers: Any) -> Any:
    return builder.select(builder.icmp_signed(">", numbers, _NO_SHORTS), numbers, _NO_SHORTS)


@intrinsic
def sum_rows(
    typingctx: Any, table: Any, rows: Any, plus: Any, end: Any, column: Any, sums: Any, old: Any, new: Any
) -> Any:
    """Adds ``STRIP`` columns, from ``column`` on, of the rows of a table that begin at the first ``plus`` places in
    ``rows``, and takes away those of the places from there to ``end``.

    ``table`` and ``sums`` are int16, ``rows`` int64. What the sums are before lies in ``sums`` from ``old`` on (below
    0: nothing), and they are written there from ``new`` on. Meanwhile they stay in registers. They may overflow on the
    way.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table, rows, plus, end, column, sums, old, new = args
        kind_table, kind_rows, _, _, _, kind_sums, _, _ = signature.args
        totals = [cgutils.alloca_once_value(builder, _NO_SHORTS) for _ in range(0, STRIP, 2 * WIDTH)]
        with builder.if_then(builder.icmp_signed(">=", old, ir.Constant(old.type, 0))):
            before = emit_place(context, builder, kind_sums, sums, builder.add(old, column))
            for i, total in enumerate(totals):
                builder.store(_shorts(builder, before, i * 2 * WIDTH), total)
        for begin, stop, change in ((ir.Constant(end.type, 0), plus, builder.add), (plus, end, builder.sub)):
            with cgutils.for_range_slice(builder, begin, stop, ir.Constant(end.type, 1)) as (i_row, _):
                row = builder.load(emit_place(context, builder, kind_rows, rows, i_row))
                numbers = emit_place(context, builder, kind_table, table, builder.add(row, column))
                for i, total in enumerate(totals):
                    builder.store(change(builder.load(total), _shorts(builder, numbers, i * 2 * WIDTH)), total)
        after = emit_place(context, builder, kind_sums, sums, builder.add(new, column))
        for i, total in enumerate(totals):
            place = builder.bitcast(emit_inside(builder, after, i * 2 * WIDTH), _SHORTS.as_pointer())
            builder.store(builder.load(total), place, align=2)
        return context.get_dummy_value()

    index = types.intp
    return types.void(table, rows, index, index, index, sums, index, index), codegen


@intrinsic
def dot_rows(typingctx: Any, x: Any, x_at: Any, size: Any, table: Any, rows: Any, first: Any, out: Any) -> Any:
    """The products of a row of ``size`` numbers with the rows of a table at ``rows[first]`` and the next places.

    ``x`` and ``table`` are int16, ``rows`` int64; ``DOTS`` products are written to ``out``, float32. No product may be
    too large for 32 bits.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, x_at, size, table, rows, first, out = args
        kind_x, _, _, kind_table, kind_rows, _, kind_out = signature.args
        listed = emit_place(context, builder, kind_rows, rows, first)
        begins = [builder.load(emit_inside(builder, listed, i)) for i in range(DOTS)]
        totals = [cgutils.alloca_once_value(builder, _NO_INTEGERS) for _ in range(DOTS)]
        step = ir.Constant(size.type, 2 * WIDTH)
        with cgutils.for_range_slice(builder, ir.Constant(size.type, 0), size, step) as (at, _):
            numbers = _positive(
                builder, _shorts(builder, emit_place(context, builder, kind_x, x, builder.add(x_at, at)))
            )
            for begin, total in zip(begins, totals, strict=True):
                row = _shorts(builder, emit_place(context, builder, kind_table, table, builder.add(begin, at)))
                builder.store(builder.add(builder.load(total), emit_pair_products(builder, numbers, row)), total)
        kind = ir.FunctionType(INDEX, [_INTEGERS])
        add_up = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{WIDTH}i32")
        written = emit_place(context, builder, kind_out, out, ir.Constant(INDEX, 0))
        for i, total in enumerate(totals):
            found = builder.sitofp(builder.call(add_up, [builder.load(total)]), VECTOR.element)
            builder.store(found, emit_inside(builder, written, i))
        return context.get_dummy_value()

    return types.void(x, types.intp, types.intp, table, rows, types.intp, out), codegen


@intrinsic
def multiply_positive(typingctx: Any, x: Any, x_at: Any, size: Any, table: Any, table_at: Any, out: Any) -> Any:
    """The products of a row of ``size`` numbers, whole strips, with ``OUTPUTS`` columns, written to ``out``, float32.

    ``x`` and ``table`` are int16; the columns begin at ``table_at`` with two rows at a time, the two numbers of a
    column side by side. Rows that meet two numbers not above zero, most of them, are not read. No product may be too
    large for 32 bits.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, x_at, size, table, table_at, out = args
        kind_x, _, _, kind_table, _, kind_out = signature.args
        totals = [cgutils.alloca_once_value(builder, _NO_INTEGERS) for _ in range(0, OUTPUTS, WIDTH)]
        left = cgutils.alloca_once(builder, _MASK)
        zero, step = ir.Constant(size.type, 0), ir.Constant(size.type, STRIP)
        with cgutils.for_range_slice(builder, zero, size, step) as (first, _):
            numbers = emit_place(context, builder, kind_x, x, builder.add(x_at, first))
            begin = builder.add(table_at, builder.mul(first, ir.Constant(size.type, OUTPUTS)))
            rows = emit_place(context, builder, kind_table, table, begin)
            builder.store(_pairs_above_zero(builder, numbers), left)
            with _while_bits(builder, left) as bit:
                pair = builder.bitcast(
                    builder.gep(numbers, [builder.shl(bit, ir.Constant(_MASK, 1))]), INDEX.as_pointer()
                )
                both = _positive(builder, builder.bitcast(emit_spread(builder, builder.load(pair, align=2)), _SHORTS))
                row = builder.gep(rows, [builder.mul(bit, ir.Constant(_MASK, 2 * OUTPUTS))])
                for i, total in enumerate(totals):
                    products = emit_pair_products(builder, both, _shorts(builder, row, i * 2 * WIDTH))
                    builder.store(builder.add(builder.load(total), products), total)
        written = emit_place(context, builder, kind_out, out, ir.Constant(INDEX, 0))
        for i, total in enumerate(totals):
            value = builder.sitofp(builder.load(total), VECTOR)
            emit_store(builder, kind_out, value, emit_inside(builder, written, i * WIDTH))
        return context.get_dummy_value()

    return types.void(x, types.intp, types.intp, table, types.intp, out), codegen


def _pairs_above_zero(builder: Any, numbers: Any) -> Any:
    """A bit for each pair of a strip: whether one of its two numbers is above zero."""
    mask = ir.Constant(_MASK, 0)
    for i in range(0, STRIP, 2 * WIDTH):
        pairs = builder.bitcast(_positive(builder, _shorts(builder, numbers, i)), _INTEGERS)
        bits = builder.bitcast(builder.icmp_unsigned("!=", pairs, _NO_INTEGERS), ir.IntType(WIDTH))
        mask = builder.or_(mask, builder.shl(builder.zext(bits, _MASK), ir.Constant(_MASK, i // 2)))
    return mask


@contextmanager
def _while_bits(builder: Any, left: Any) -> Iterator[Any]:
    """A loop over the numbers of the bits of a mask in memory, which it clears one after the other."""
    check, body, end = (builder.append_basic_block(f"bits.{name}") for name in ("check", "body", "end"))
    builder.branch(check)
    builder.position_at_end(check)
    mask = builder.load(left)
    builder.cbranch(builder.icmp_unsigned("!=", mask, ir.Constant(_MASK, 0)), body, end)
    builder.position_at_end(body)
    builder.store(builder.and_(mask, builder.sub(mask, ir.Constant(_MASK, 1))), left)
    yield builder.cttz(mask, ir.Constant(ir.IntType(1), 1))
    builder.branch(check)
    builder.position_at_end(end)
