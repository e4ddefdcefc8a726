"""Eight numbers at a time, in one vector register.

A loop of eight steps is unrolled by the compiler and then left as scalar code. For eight boxes, or
the eight slots of a leaf, the vector is therefore a value of its own: it is loaded from eight
adjacent entries, supports +, −, × and ÷ like a number, and compares its entries with a limit. On
machines with shorter registers the compiler uses two or four of them.

In plain Python the vector is an array of eight.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending as _extending
from numba import njit, typeof
from numba.core import cgutils, errors, types
from numpy.typing import NDArray

from fastrbhc._engine.interrupts import compiling
from fastrbhc._engine.jit import config, instruction

# Numba's own annotations are recent and partial.
extending: Any = _extending
lower_builtin = extending.lower_builtin

LANES = 8

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_OPERATIONS = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}


def load(array: NDArray[np.float64], place: tuple[int, ...]) -> Any:
    """Eight entries of an array along its last axis, starting at a place.

    Entries in single precision have to be adjacent.
    """
    first = place[-1]
    return np.asarray(array[place[:-1]][first : first + LANES], np.float64)


def store(array: NDArray[np.float64], values: Any) -> None:
    """Write eight numbers to the first entries of an array."""
    array[:LANES] = values


def rows_from(boxes: NDArray[np.float64], row: int) -> NDArray[np.float64]:
    """The boxes without the first rows of each, for reading; in kernels at no cost."""
    return boxes[:, row:]


def broadcast(value: float) -> Any:
    """The same number in all eight lanes."""
    return np.full(LANES, value)


def larger(values: Any, others: Any) -> Any:
    """The larger of the two in each lane; the second where one is NaN."""
    return np.where(values > others, values, others)


def smaller(values: Any, others: Any) -> Any:
    """The smaller of the two in each lane; the second where one is NaN."""
    return np.where(values < others, values, others)


def at_most(values: Any, limit: float) -> int:
    """Bit mask of the lanes that are at most the limit: bit s stands for lane s."""
    return int(np.dot(np.asarray(values) <= limit, 1 << np.arange(LANES)))


def lowest_set_bit(bits: int) -> int:
    """The position of the lowest bit that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


def is_vectorizable(function: Any, *arguments: Any) -> bool:
    """Whether a function of numbers can be compiled for eight of them as the last argument."""
    if config.DISABLE_JIT:
        return True
    kinds = [typeof(argument) for argument in arguments]
    try:
        with compiling():
            njit(function).compile((*kinds, _eight))
    except errors.NumbaError:
        return False
    return True


class Float64x8(types.Type):
    """Eight numbers, as kernels see them."""

    def __init__(self) -> None:
        super().__init__(name="eight_numbers")


_eight = Float64x8()


@extending.register_model(Float64x8)
class _VectorModel(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _is_number(kind: Any) -> bool:
    return isinstance(kind, types.Float | types.Integer)


def _repeat(builder: Any, value: Any) -> Any:
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    index = ir.IntType(32)
    first = builder.insert_element(nothing, value, ir.Constant(index, 0))
    return builder.shuffle_vector(
        first, nothing, ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
    )


def _as_vector(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if kind == _eight:
        return value
    return _repeat(builder, context.cast(builder, value, kind, types.float64))


def _add_operator(operation: Any, name: str) -> None:
    @extending.type_callable(operation)
    def type_of_result(context: Any) -> Any:
        def typer(a: Any, b: Any) -> Any:
            if (a == _eight and (b == _eight or _is_number(b))) or (b == _eight and _is_number(a)):
                return _eight
            return None

        return typer

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = (
            _as_vector(context, builder, kind, value)
            for kind, value in zip(signature.args, arguments, strict=True)
        )
        return getattr(builder, name)(a, b)

    for other in (Float64x8, types.Float, types.Integer):
        lower_builtin(operation, Float64x8, other)(code)
        if other is not Float64x8:
            lower_builtin(operation, other, Float64x8)(code)


for _operation, _name in _OPERATIONS.items():
    _add_operator(_operation, _name)


@lower_builtin(operator.neg, Float64x8)
def _negative(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fneg(arguments[0])


@extending.type_callable(operator.neg)
def _type_of_negative(context: Any) -> Any:
    return lambda a: _eight if a == _eight else None


def _address(context: Any, builder: Any, kind: Any, array: Any, places: list[Any]) -> Any:
    """The address of an entry of an array."""
    strides = cgutils.unpack_tuple(builder, array.strides, kind.ndim)
    offset = ir.Constant(ir.IntType(64), 0)
    for place, stride in zip(places, strides, strict=True):
        offset = builder.add(offset, builder.mul(place, stride))
    return builder.gep(builder.bitcast(array.data, ir.IntType(8).as_pointer()), [offset])


def check_range(context: Any, builder: Any, first: Any, count: int, length: Any) -> None:
    """Raise an IndexError unless entries first…first+count−1 exist, if indices are to be checked.

    Numba checks the indices of arrays. Instructions that compute addresses do it themselves.
    """
    if context.enable_boundscheck:
        least = builder.icmp_signed(">=", first, ir.Constant(first.type, 0))
        last = builder.add(first, ir.Constant(first.type, count))
        inside = builder.and_(least, builder.icmp_signed("<=", last, length))
        with cgutils.if_unlikely(builder, builder.not_(inside)):
            context.call_conv.return_user_exc(builder, IndexError, ("index is out of bounds",))


@instruction(load)
def _load(typing_context: Any, array: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, kinds = signature.args
        entries = context.make_array(kind)(context, builder, arguments[0])
        places = cgutils.unpack_tuple(builder, arguments[1], len(kinds))
        places = [
            context.cast(builder, entry, entry_kind, types.intp)
            for entry, entry_kind in zip(places, kinds, strict=True)
        ]
        lengths = cgutils.unpack_tuple(builder, entries.shape, kind.ndim)
        counts = [1] * (kind.ndim - 1) + [LANES]
        for entry, count, length in zip(places, counts, lengths, strict=True):
            check_range(context, builder, entry, count, length)
        first = _address(context, builder, kind, entries, places)
        if kind.dtype == types.float32:
            short = ir.VectorType(ir.FloatType(), LANES)
            values = builder.load(builder.bitcast(first, short.as_pointer()), align=4)
            return builder.fpext(values, _VECTOR)
        if kind.layout == "C":
            return builder.load(builder.bitcast(first, _VECTOR.as_pointer()), align=8)
        # Means that are stored by cluster.
        stride = cgutils.unpack_tuple(builder, entries.strides, kind.ndim)[-1]
        values = ir.Constant(_VECTOR, ir.Undefined)
        for s in range(LANES):
            number = ir.Constant(ir.IntType(64), s)
            pointer = builder.gep(first, [builder.mul(stride, number)])
            value = builder.load(builder.bitcast(pointer, ir.DoubleType().as_pointer()))
            values = builder.insert_element(values, value, number)
        return values

    return _eight(array, place), code


@instruction(store)
def _store(typing_context: Any, array: Any, values: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        entries = context.make_array(signature.args[0])(context, builder, arguments[0])
        length = builder.extract_value(entries.shape, 0)
        check_range(context, builder, ir.Constant(ir.IntType(64), 0), LANES, length)
        builder.store(arguments[1], builder.bitcast(entries.data, _VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(array, values), code


@instruction(rows_from)
def _rows_from(typing_context: Any, boxes: Any, row: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        entries = context.make_array(kind)(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, entries.strides, kind.ndim)[1]
        offset = builder.mul(arguments[1], stride)
        moved = builder.gep(builder.bitcast(entries.data, ir.IntType(8).as_pointer()), [offset])
        # The shape stays: an index stands for an entry so many rows further on.
        entries.data = builder.bitcast(moved, entries.data.type)
        return entries._getvalue()

    return boxes(boxes, types.int64), code


@instruction(broadcast)
def _broadcast(typing_context: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _as_vector(context, builder, signature.args[0], arguments[0])

    return _eight(value), code


def _choice(function: Any, relation: str) -> None:
    @instruction(function)
    def choose(typing_context: Any, values: Any, others: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            a, b = (
                _as_vector(context, builder, kind, value)
                for kind, value in zip(signature.args, arguments, strict=True)
            )
            return builder.select(builder.fcmp_ordered(relation, a, b), a, b)

        return _eight(values, others), code


_choice(larger, ">")
_choice(smaller, "<")


@instruction(at_most)
def _at_most(typing_context: Any, values: Any, limit: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        limits = _as_vector(context, builder, signature.args[1], arguments[1])
        flags = builder.fcmp_ordered("<=", arguments[0], limits)
        return builder.zext(builder.bitcast(flags, ir.IntType(LANES)), ir.IntType(64))

    return types.int64(values, limit), code


@instruction(lowest_set_bit)
def _lowest_set_bit(typing_context: Any, bits: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), code
