"""Memory that will soon be read, in no order, is asked for ahead of time."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numpy.typing import NDArray

from fastrbhc._engine.jit import instruction


def prefetch(array: NDArray[Any], place: int) -> None:
    """Ask for the cache line of an entry of a one-dimensional array.

    It is a hint to the processor: results are the same without it. Loads that depend on one
    another, as along a graph, wait for memory one after another otherwise.
    """


@instruction(prefetch)
def _prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        entries = context.make_array(kind)(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, entries.strides, kind.ndim)[-1]
        offset = builder.mul(arguments[1], stride)
        byte = ir.IntType(8).as_pointer()
        address = builder.gep(builder.bitcast(entries.data, byte), [offset])
        number = ir.IntType(32)
        kinds = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kinds)
        # For reading, to all levels of the cache, of data.
        builder.call(ask, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), code
