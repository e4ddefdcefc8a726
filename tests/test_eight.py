"""Eight numbers at a time: the same as one by one."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from test_kernel_cache import printed

from fastrbhc._engine.jit import config, kernel
from fastrbhc._engine.simd import (
    LANES,
    at_most,
    broadcast,
    is_vectorizable,
    larger,
    load,
    lowest_set_bit,
    smaller,
    store,
)

pytestmark = pytest.mark.fast

VALUES = np.array([-2.5, 0.0, 1.0, 1e300, np.inf, -np.inf, np.nan, 3.0])
OTHERS = np.array([2.0, -0.0, 1.0, 1e300, 5.0, 7.0, 1.0, np.nan])


@kernel
def calculate(values, others, number, results):
    a, b = load(values, (0,)), load(others, (0,))
    store(results[0], a + b)
    store(results[1], a - b)
    store(results[2], a * b)
    store(results[3], a / b)
    store(results[4], a + number)
    store(results[5], number - b)
    store(results[6], 3 * a)
    store(results[7], -a)
    store(results[8], larger(a, b))
    store(results[9], smaller(a, b))
    store(results[10], larger(a, 0.0))
    store(results[11], broadcast(number))


def test_arithmetic():
    results = np.zeros((12, LANES))
    with np.errstate(all="ignore"):
        calculate(VALUES, OTHERS, 0.3, results)
        reference = [
            *(f(VALUES, OTHERS) for f in (operator.add, operator.sub, operator.mul)),
            VALUES / OTHERS,
            VALUES + 0.3,
            0.3 - OTHERS,
            3 * VALUES,
            -VALUES,
            np.where(VALUES > OTHERS, VALUES, OTHERS),
            np.where(VALUES < OTHERS, VALUES, OTHERS),
            np.where(VALUES > 0.0, VALUES, 0.0),
            np.full(LANES, 0.3),
        ]
    np.testing.assert_array_equal(results, reference)


@kernel
def load_and_store(array, i, j, k, results):
    store(results, load(array, (i, j, k)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_any_place_of_an_array(order):
    array = np.asarray(np.arange(3.0 * 4 * 20).reshape(3, 4, 20), order=order)
    results = np.zeros(LANES)
    for i, j, k in [(0, 0, 0), (2, 3, 12), (1, 2, 5)]:
        load_and_store(array, i, j, k, results)
        np.testing.assert_array_equal(results, array[i, j, k : k + LANES])


def test_places_outside_are_noticed_where_indices_are_checked(tmp_path):
    code = """
        import numpy as np
        from fastrbhc._engine.geometry.float32_screen import near
        from fastrbhc._engine.jit import kernel
        from fastrbhc._engine.simd import load, store

        @kernel
        def copy(array, i, k, results):
            store(results, load(array, (i, k)))

        @kernel
        def bits(block, first, queries, query):
            return near(block, first, queries, query)

        def outcome(function, *arguments):
            try:
                function(*arguments)
            except IndexError as error:
                return str(error)
            return "fine"

        array, eight, seven = np.zeros((3, 20)), np.zeros(8), np.zeros(7)
        for values in (array, np.asfortranarray(array)):
            for i, k in [(0, 0), (2, 12), (0, 13), (0, -1), (3, 0), (-1, 0)]:
                print(outcome(copy, values, i, k, eight))
        print(outcome(copy, array, 0, 0, seven))
        block, queries = np.zeros((5, 32), np.float32), np.zeros((8, 7), np.float32)
        for first, query in [(0, 0), (16, 4), (17, 0), (0, 5), (-16, 0), (0, -4)]:
            print(outcome(bits, block, first, queries, query))
        print(outcome(bits, block, 0, queries[:, :4].copy(), 0))
    """
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_DISABLE_JIT": "0"}
    outside = ["fine"] * 2 + ["index is out of bounds"] * 4
    lines = printed(code, cache=tmp_path, variables=checked).splitlines()
    assert lines == 2 * outside + outside[-1:] + outside + outside[-1:]


@kernel
def list_at_most(values, limit, slots):
    near, count = at_most(load(values, (0,)), limit), 0
    while near:
        slots[count] = lowest_set_bit(near)
        near &= near - 1
        count += 1
    return count


@pytest.mark.parametrize("limit", [-np.inf, 0.0, 1.0, np.inf, np.nan])
def test_which_are_at_most_a_limit(limit):
    slots = np.zeros(LANES, np.int64)
    count = list_at_most(VALUES, limit, slots)
    assert slots[:count].tolist() == np.flatnonzero(limit >= VALUES).tolist()


def test_which_functions_take_eight():
    assert is_vectorizable(lambda factor, x: factor * x / (1 + x), 2.0)
    assert is_vectorizable(lambda x: np.float32(1.0) - x)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="arrays of plain Python take anything")
def test_functions_that_do_not():
    assert not is_vectorizable(lambda x: x if x > 0 else 0.0)
    assert not is_vectorizable(lambda x: np.sqrt(x))
