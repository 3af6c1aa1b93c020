"""Vectors of eight float32 numbers as a type of Numba's, for kernels that leave nothing to LLVM's vectoriser.

Values of type ``Lanes`` live in one register with AVX, in two or more elsewhere. Arrays are one-dimensional and
contiguous, places in them are counted in numbers, and nothing looks whether a place lies inside the array.
"""

import operator
from typing import Any, ClassVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.core.typing.templates import ConcreteTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

WIDTH = 8
ROWS = 4
"""Of a tile of a matrix."""
BLOCK = 2 * WIDTH
"""Columns of a product that are computed together."""
LARGEST_SHORT = 32767
LARGEST_SUM = 2**31 - 1
_VECTOR = ir.VectorType(ir.FloatType(), WIDTH)
_INDEX = ir.IntType(32)
_SHORT = ir.IntType(16)


class Lanes(types.Type):
    """Numba's type of a vector of ``WIDTH`` float32 numbers."""

    def __init__(self) -> None:
        super().__init__("Lanes")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


_LANES = Lanes()


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Pointer to a number of an array."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def _load(builder: Any, place: Any) -> Any:
    loaded = builder.load(builder.bitcast(place, _VECTOR.as_pointer()))
    loaded.align = 4
    return loaded


def _store(builder: Any, value: Any, place: Any) -> None:
    """Writes a vector; as short integers, rounded to the nearest, where the array holds such."""
    if place.type.pointee == _SHORT:
        value = _rounded(builder, value)
    builder.store(value, builder.bitcast(place, value.type.as_pointer())).align = 2


def _rounded(builder: Any, value: Any) -> Any:
    """Short integers; what is too large for them becomes the largest."""
    for operator_, bound in (("<", LARGEST_SHORT), (">", -LARGEST_SHORT)):
        limit = ir.Constant(_VECTOR, [float(bound)] * WIDTH)
        value = builder.select(builder.fcmp_ordered(operator_, value, limit), value, limit)
    kind = ir.FunctionType(_VECTOR, [_VECTOR])
    whole = builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.rint.v{WIDTH}f32"), [value])
    return builder.trunc(builder.fptosi(whole, ir.VectorType(_INDEX, WIDTH)), ir.VectorType(_SHORT, WIDTH))


def _spread(builder: Any, number: Any) -> Any:
    undefined = ir.Constant(ir.VectorType(number.type, WIDTH), ir.Undefined)
    single = builder.insert_element(undefined, number, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(_INDEX, WIDTH), [0] * WIDTH))


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, in one step where the processor has it (``llvm.fma`` would call a function where it has not)."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{WIDTH}f32"), [a, b, c])


def _bent(builder: Any, value: Any, slope: Any) -> Any:
    """``value`` where it is positive, ``slope`` times it elsewhere."""
    zero = ir.Constant(_VECTOR, [0.0] * WIDTH)
    return builder.select(builder.fcmp_ordered(">", value, zero), value, builder.fmul(value, slope))


@intrinsic
def load(typingctx: Any, array: Any, at: Any) -> Any:
    """``array[at : at + 8]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, _place(context, builder, signature.args[0], *args))

    return _LANES(array, types.intp), codegen


@intrinsic
def store(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
    """``array[at : at + 8] = value``, rounded if the array is int16."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _store(builder, args[2], _place(context, builder, signature.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return types.void(array, types.intp, _LANES), codegen


@intrinsic
def spread(typingctx: Any, number: Any) -> Any:
    """A vector of eight times the same number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(builder, args[0])

    return _LANES(types.float32), codegen


@intrinsic
def multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _multiply_add(builder, *args)

    return _LANES(_LANES, _LANES, _LANES), codegen


@intrinsic
def bent(typingctx: Any, value: Any, slope: Any) -> Any:
    """The activation: ``value`` where it is positive, ``slope`` times it elsewhere."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _bent(builder, *args)

    return _LANES(_LANES, _LANES), codegen


def _define_operator(function: Any, instruction: str) -> None:
    """Makes ``function`` of two vectors that instruction of LLVM; an ``overload`` would be one more function each."""

    @infer_global(function)
    class _Typing(ConcreteTemplate):
        cases: ClassVar[list[Any]] = [signature(_LANES, _LANES, _LANES)]

    @lower_builtin(function, Lanes, Lanes)
    def compute(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args)


for _function, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _define_operator(_function, _instruction)


def _multiplied(builder: Any, tile_a: Any, tile_b: Any, sums: list[list[Any]]) -> None:
    """Adds the product of a tile of ``a`` and eight rows of ``b``, in float32."""
    for i in range(WIDTH):
        factors = [_load(builder, _inside(builder, tile_b, i * BLOCK + half)) for half in (0, WIDTH)]
        for row in range(ROWS):
            number = _spread(builder, builder.load(_inside(builder, tile_a, row * WIDTH + i)))
            for total, factor in zip(sums[row], factors, strict=True):
                builder.store(_multiply_add(builder, number, factor, builder.load(total)), total)


def _multiplied_shorts(builder: Any, tile_a: Any, tile_b: Any, sums: list[list[Any]]) -> None:
    """The same in short integers, whose products are added in pairs: ``b`` holds two rows side by side."""
    integers, shorts = ir.VectorType(_INDEX, WIDTH), ir.VectorType(_SHORT, 2 * WIDTH)
    for i in range(0, WIDTH, 2):
        pairs = [_inside(builder, tile_b, i * BLOCK + half) for half in (0, 2 * WIDTH)]
        factors = [builder.load(builder.bitcast(pair, shorts.as_pointer()), align=2) for pair in pairs]
        for row in range(ROWS):
            place = builder.bitcast(_inside(builder, tile_a, row * WIDTH + i), _INDEX.as_pointer())
            pair = builder.bitcast(_spread(builder, builder.load(place, align=2)), shorts)
            for total, factor in zip(sums[row], factors, strict=True):
                product = builder.mul(
                    *(builder.sext(side, ir.VectorType(_INDEX, 2 * WIDTH)) for side in (pair, factor))
                )
                even, odd = (
                    builder.shuffle_vector(
                        product,
                        ir.Constant(product.type, ir.Undefined),
                        ir.Constant(integers, list(range(first, 2 * WIDTH, 2))),
                    )
                    for first in (0, 1)
                )
                builder.store(builder.add(builder.load(total), builder.add(even, odd)), total)


def _inside(builder: Any, pointer: Any, place: int) -> Any:
    return builder.gep(pointer, [ir.Constant(_INDEX, place)])


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
            ir.Constant(ir.VectorType(_INDEX, WIDTH), [0] * WIDTH) if shorts else ir.Constant(_VECTOR, [0.0] * WIDTH)
        )
        sums = [[cgutils.alloca_once_value(builder, nothing) for _ in range(0, BLOCK, WIDTH)] for _ in range(ROWS)]
        with cgutils.for_range(builder, tiles) as loop:
            first_a, first_b = (builder.mul(loop.index, ir.Constant(loop.index.type, WIDTH * n)) for n in (ROWS, BLOCK))
            tile_a = _place(context, builder, kind_a, a, builder.add(a_at, first_a))
            tile_b = _place(context, builder, kind_b, b, builder.add(b_at, first_b))
            (_multiplied_shorts if shorts else _multiplied)(builder, tile_a, tile_b, sums)
        tile_out = _place(context, builder, kind_out, out, out_at)
        scales, biases = (
            [_load(builder, _inside(builder, _place(context, builder, *of), half)) for half in (0, WIDTH)]
            for of in ((kind_scale, scale, scale_at), (kind_bias, bias, bias_at))
        )
        for row in range(ROWS):
            for half, total in enumerate(sums[row]):
                found = builder.load(total)
                number = builder.sitofp(found, _VECTOR) if shorts else found
                value = _bent(builder, _multiply_add(builder, number, scales[half], biases[half]), slope)
                _store(builder, value, _inside(builder, tile_out, (half * ROWS + row) * WIDTH))
        return context.get_dummy_value()

    index = types.intp
    return types.void(a, index, b, index, index, scale, index, bias, index, out, index, _LANES), codegen
