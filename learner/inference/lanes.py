"""Vectors of eight float32 numbers as a type of Numba's, for kernels that leave nothing to LLVM's vectoriser.

Values of type ``Lanes`` live in one register with AVX, in two or more elsewhere. Arrays are one-dimensional and
contiguous, places in them are counted in numbers, and bounds are not checked.
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
LARGEST_SHORT = 32767
VECTOR = ir.VectorType(ir.FloatType(), WIDTH)
INDEX = ir.IntType(32)
SHORT = ir.IntType(16)


class Lanes(types.Type):
    """Numba's type of a vector of ``WIDTH`` float32 numbers."""

    def __init__(self) -> None:
        super().__init__("Lanes")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, VECTOR)


LANES = Lanes()


def emit_place(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Pointer to a number of an array."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def emit_inside(builder: Any, pointer: Any, numbers: int) -> Any:
    """Pointer to what lies ``numbers`` numbers behind another."""
    return builder.gep(pointer, [ir.Constant(INDEX, numbers)])


def emit_load(builder: Any, place: Any) -> Any:
    loaded = builder.load(builder.bitcast(place, VECTOR.as_pointer()))
    loaded.align = 4
    return loaded


def emit_store(builder: Any, array_type: Any, value: Any, place: Any) -> None:
    """Writes a vector; as short integers, rounded to the nearest, where the array holds such."""
    if array_type.dtype == types.int16:
        value = _emit_rounded(builder, value)
    builder.store(value, builder.bitcast(place, value.type.as_pointer())).align = 2


def _emit_rounded(builder: Any, value: Any) -> Any:
    """Short integers; what is too large for them becomes the largest."""
    for operator_, bound in (("<", LARGEST_SHORT), (">", -LARGEST_SHORT)):
        limit = ir.Constant(VECTOR, [float(bound)] * WIDTH)
        value = builder.select(builder.fcmp_ordered(operator_, value, limit), value, limit)
    kind = ir.FunctionType(VECTOR, [VECTOR])
    whole = builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.rint.v{WIDTH}f32"), [value])
    return builder.trunc(builder.fptosi(whole, ir.VectorType(INDEX, WIDTH)), ir.VectorType(SHORT, WIDTH))


def emit_spread(builder: Any, number: Any) -> Any:
    undefined = ir.Constant(ir.VectorType(number.type, WIDTH), ir.Undefined)
    single = builder.insert_element(undefined, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(INDEX, WIDTH), [0] * WIDTH))


def emit_multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, in one step where the processor has it (``llvm.fma`` would call a function where it has not)."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{WIDTH}f32"), [a, b, c])


def emit_bent(builder: Any, value: Any, slope: Any) -> Any:
    """``value`` where it is positive, ``slope`` times it elsewhere."""
    zero = ir.Constant(VECTOR, [0.0] * WIDTH)
    return builder.select(builder.fcmp_ordered(">", value, zero), value, builder.fmul(value, slope))


@intrinsic
def load(typingctx: Any, array: Any, at: Any) -> Any:
    """``array[at : at + 8]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return emit_load(builder, emit_place(context, builder, signature.args[0], *args))

    return LANES(array, types.intp), codegen


@intrinsic
def store(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
    """``array[at : at + 8] = value``, rounded if the array is int16."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit_store(builder, array, args[2], emit_place(context, builder, array, args[0], args[1]))
        return context.get_dummy_value()

    return types.void(array, types.intp, LANES), codegen


@intrinsic
def spread(typingctx: Any, number: Any) -> Any:
    """A vector of eight times the same number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return emit_spread(builder, args[0])

    return LANES(types.float32), codegen


@intrinsic
def multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return emit_multiply_add(builder, *args)

    return LANES(LANES, LANES, LANES), codegen


@intrinsic
def bent(typingctx: Any, value: Any, slope: Any) -> Any:
    """The activation: ``value`` where it is positive, ``slope`` times it elsewhere."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return emit_bent(builder, *args)

    return LANES(LANES, LANES), codegen


def _define_operator(function: Any, instruction: str) -> None:
    """Makes ``function`` of two vectors that instruction of LLVM; an ``overload`` would be one more function each."""

    @infer_global(function)
    class _Typing(ConcreteTemplate):
        cases: ClassVar[list[Any]] = [signature(LANES, LANES, LANES)]

    @lower_builtin(function, Lanes, Lanes)
    def compute(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args)


for _function, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _define_operator(_function, _instruction)
