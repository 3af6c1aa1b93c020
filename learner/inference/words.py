"""Words of memory by which two threads of compiled code agree, as intrinsics of Numba's.

All are atomic and seen by every thread in one order (sequentially consistent). Arrays are one-dimensional int64.
"""

import os
import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .lanes import emit_place

_ORDER = "seq_cst"
_ALIGNMENT = 8
_HAS_YIELD = os.name == "posix"
_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64")


@intrinsic
def read_word(typingctx: Any, array: Any, at: Any) -> Any:
    """``array[at]`` as it is now."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(emit_place(context, builder, signature.args[0], *args), _ORDER, _ALIGNMENT)

    return types.int64(array, types.intp), codegen


@intrinsic
def write_word(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
    """``array[at] = value``; what was written before it is seen by whoever reads it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = emit_place(context, builder, signature.args[0], args[0], args[1])
        builder.store_atomic(args[2], place, _ORDER, _ALIGNMENT)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), codegen


@intrinsic
def replace_word(typingctx: Any, array: Any, at: Any, old: Any, new: Any) -> Any:
    """``array[at] = new`` if it is ``old``; whether it was."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = emit_place(context, builder, signature.args[0], args[0], args[1])
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], _ORDER, _ORDER), 1)

    return types.boolean(array, types.intp, types.int64, types.int64), codegen


@intrinsic
def pause(typingctx: Any) -> Any:
    """Tells the processor that a loop waits, where it has an instruction for that."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _HAS_PAUSE:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def give_way(typingctx: Any) -> Any:
    """Offers the core to others, where the system has a call for that."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _HAS_YIELD:
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), codegen
