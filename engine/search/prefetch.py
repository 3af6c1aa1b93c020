"""Prefetching: loads memory into the processor's cache before it is written."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_LINE_BYTES = 64
_LINES = 7  # enough for the seven children that a position has on average


@intrinsic
def prefetch(typingctx: Any, nodes: Any, index: Any) -> Any:
    """Loads the nodes from ``index`` on into the processor's cache for writing; they may lie beyond the array's end."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, value=args[0])
        number, line = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [line, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        first = builder.bitcast(builder.gep(view.data, [args[1]]), line)
        to_write, keep, data = (ir.Constant(number, flag) for flag in (1, 3, 1))
        for i in range(_LINES):
            place = builder.gep(first, [ir.Constant(ir.IntType(64), i * _LINE_BYTES)])
            builder.call(function, [place, to_write, keep, data])
        return context.get_dummy_value()

    return types.void(nodes, types.intp), codegen
