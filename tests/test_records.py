"""Records: kernels and Python see the same fields."""

from __future__ import annotations

import copy
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import errors
from numpy.typing import NDArray

from fastrbhc._engine.jit import PLAIN_PYTHON, kernel
from fastrbhc._engine.records import Record, record, replaced

compiled_only = pytest.mark.skipif(PLAIN_PYTHON, reason="an ordinary object in plain Python")
every_mode = pytest.mark.fast


class Pair(NamedTuple):
    left: float
    right: int


@record
class Inner:
    values: NDArray[np.float64]
    factor: float


@record
class Outer:
    inner: Inner
    other: Inner
    names: NDArray[Any]
    bounds: tuple[float, int]
    pair: Pair
    count: int
    flag: bool = False
    scale: float = 1.0


@kernel
def total(inner):
    result = 0.0
    for value in inner.values:
        result += value
    return inner.factor * result


@kernel
def read_all(outer, out):
    out[0] = total(outer.inner)
    out[1] = total(outer.other)
    out[2] = outer.names[1]
    low, high = outer.bounds
    out[3], out[4] = low, high
    out[5], out[6] = outer.pair.left, outer.pair.right
    out[7], out[8], out[9] = outer.count, outer.flag, outer.scale


@kernel
def change_numbers(outer):
    outer.count += 2
    outer.flag = not outer.flag
    outer.scale = outer.count / 4
    outer.inner.factor = 9


@kernel
def change_entries(inner, value):
    inner.values[0] = value


@kernel
def corner(inner):
    return inner.values[0, 2]


@kernel
def assign_to_array(inner):
    inner.values = inner.values


@kernel
def read_unknown(inner):
    return inner.value


@kernel
def write_unknown(inner):
    inner.value = 1.0


def example(names=np.arange(3)):  # noqa: B008
    return Outer(
        Inner(np.arange(4.0), 2.0),
        Inner(np.ones(3), 0.5),
        names,
        (0.25, 7),
        Pair(1.5, -2),
        count=3,
        flag=True,
    )


@every_mode
def test_kernels_read_what_python_has_written():
    out = np.empty(10)
    read_all(example(), out)
    assert out.tolist() == [12.0, 1.5, 1.0, 0.25, 7.0, 1.5, -2.0, 3.0, 1.0, 1.0]


@every_mode
def test_kernels_and_python_change_the_same_numbers():
    outer = example()
    outer.count, outer.flag, outer.scale = 5, False, 0.5
    change_numbers(outer)
    assert (outer.count, outer.flag, outer.scale) == (7, True, 1.75)
    assert outer.inner.factor == 9.0
    assert total(outer.inner) == 54.0
    assert type(outer.count) is int
    assert type(outer.flag) is bool


@every_mode
def test_kernels_write_to_the_arrays_themselves():
    values = np.zeros(3)
    inner = Inner(values, 1.0)
    change_entries(inner, 4.0)
    assert inner.values is values
    assert values.tolist() == [4.0, 0.0, 0.0]
    values[1] = 3.0
    assert total(inner) == 7.0


@every_mode
def test_two_records_may_share_a_third():
    shared = Inner(np.ones(2), 1.0)
    first, second = replaced(example(), inner=shared), replaced(example(), inner=shared)
    change_numbers(first)
    assert second.inner.factor == 9.0


@every_mode
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64, np.bool_, np.uint8])
def test_arrays_of_other_types(dtype):
    out = np.empty(10)
    read_all(example(np.array([0, 1, 1], dtype)), out)
    assert out[2] == 1.0


@every_mode
@pytest.mark.parametrize(
    "arranged",
    [np.ascontiguousarray, np.asfortranarray, lambda array: np.repeat(array, 2, axis=1)[:, ::2]],
    ids=["by row", "by column", "with gaps"],
)
def test_arrays_in_other_layouts(arranged):
    array = arranged(np.arange(12.0).reshape(3, 4))
    assert corner(Inner(array, 1.0)) == 2.0


@every_mode
def test_numbers_of_numpy_are_numbers():
    outer = replaced(example(), count=np.int32(4), flag=np.bool_(False), scale=np.float32(0.5))
    change_numbers(outer)
    assert (outer.count, outer.flag, outer.scale) == (6, True, 1.5)


@every_mode
def test_a_replaced_field_leaves_the_other_record_alone():
    outer = example()
    changed = replaced(outer, count=10, names=np.arange(5))
    changed.scale = 3.0
    assert (outer.count, outer.names.size, outer.scale) == (3, 3, 1.0)
    assert (changed.count, changed.names.size) == (10, 5)
    assert changed.inner is outer.inner


@every_mode
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_and_pickles_have_memory_of_their_own(copied):
    outer = example()
    outer.count = 8
    other = copied(outer)
    change_numbers(other)
    change_entries(other.inner, 5.0)
    assert (outer.count, outer.inner.factor, outer.inner.values[0]) == (8, 2.0, 0.0)
    assert (other.count, other.inner.factor, other.inner.values[0]) == (10, 9.0, 5.0)
    out = np.empty(10)
    read_all(other, out)
    assert out[0] == 9.0 * 11.0


@every_mode
def test_what_a_record_has_to_be_given():
    values = np.zeros(1)
    assert Inner(factor=1.0, values=values).values is values
    with pytest.raises(TypeError, match="Inner: missing or unknown fields: factor"):
        Inner(values)
    with pytest.raises(TypeError, match="Inner: missing or unknown fields: other"):
        Inner(values, 1.0, other=3)
    with pytest.raises(TypeError, match="Inner: too many values"):
        Inner(values, 1.0, 2.0)
    with pytest.raises(TypeError, match="Inner: too many values"):
        Inner(values, 1.0, factor=2.0)
    with pytest.raises(AttributeError, match="value"):
        Inner(values, 1.0).value  # noqa: B018


@compiled_only
def test_what_a_record_cannot_hold():
    with pytest.raises(TypeError, match="cannot hold 'text'"):
        Inner("text", 1.0)
    with pytest.raises(TypeError, match="cannot hold None"):
        Inner(None, 1.0)


@compiled_only
def test_only_numbers_change():
    outer = example()
    with pytest.raises(AttributeError, match="inner of Outer is fixed"):
        outer.inner = Inner(np.zeros(1), 1.0)
    with pytest.raises(AttributeError, match="names of Outer is fixed"):
        outer.names = np.arange(3)
    with pytest.raises(AttributeError, match="bounds of Outer is fixed"):
        outer.bounds = (1.0, 2)
    with pytest.raises(AttributeError, match="unknown of Outer is fixed"):
        outer.unknown = 3


@compiled_only
def test_kernels_that_would_change_more_are_not_compiled():
    inner = Inner(np.zeros(1), 1.0)
    with pytest.raises(errors.NumbaError, match="values of Inner is fixed: only numbers change"):
        assign_to_array(inner)
    with pytest.raises(errors.NumbaError, match="Unknown attribute 'value'"):
        read_unknown(inner)
    with pytest.raises(errors.NumbaError, match="value"):
        write_unknown(inner)


@compiled_only
def test_types_are_told_apart_by_class_and_fields():
    @record
    class Inner:
        values: NDArray[np.float64]
        factor: float

    def type_of(cls, values, factor):
        return cls(values, factor)._numba_type_

    first = type_of(globals()["Inner"], np.zeros(2), 1.0)
    assert type_of(globals()["Inner"], np.ones(5), 2.0) is first
    others = [
        type_of(globals()["Inner"], np.zeros((2, 2)), 1.0),
        type_of(globals()["Inner"], np.zeros(2, np.float32), 1.0),
        type_of(globals()["Inner"], np.zeros(2), 1),
        type_of(Inner, np.zeros(2), 1.0),
    ]
    assert len({str(kind) for kind in [first, *others]}) == 5
    assert pickle.loads(pickle.dumps(first)) is first


@every_mode
def test_in_plain_python_a_record_is_an_ordinary_object():
    outer = example()
    assert isinstance(outer, Record)
    assert hasattr(outer, "_numba_type_") is not PLAIN_PYTHON
    assert repr(outer.inner) == "Inner(values, factor)"
