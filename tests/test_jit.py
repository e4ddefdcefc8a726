"""Kernels and contracts: methods of records, allocation, and several Python threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import NumbaError

import fastrbhc
from fastrbhc._engine.jit import (
    PLAIN_PYTHON,
    contract,
    contract_with_default,
    kernel,
    open_contract,
)


class First(NamedTuple):
    factor: float

    def scaled(thing, x):
        return thing.factor * x


class Second(NamedTuple):
    shift: int

    def scaled(thing, x):
        return x + thing.shift

    def named(thing):
        return 2


@contract
def scaled(thing, x):
    """Declared."""


@contract_with_default
def named(thing):
    """Declared."""
    return 1


@kernel
def scale_all(thing, values):
    for k in range(values.size):
        values[k] = scaled(thing, values[k])
    return named(thing)


@pytest.mark.fast
def test_contracts_run_the_method_of_the_record():
    for thing, reference, name in [(First(3.0), [3.0, 6.0], 1), (Second(10), [11.0, 12.0], 2)]:
        values = np.array([1.0, 2.0])
        assert scale_all(thing, values) == name == named(thing)
        assert values.tolist() == reference == [scaled(thing, 1.0), scaled(thing, 2.0)]


class Polynomial(NamedTuple):
    degree: int

    def value(thing, x):
        return np.array([x**k for k in range(thing.degree + 1)]).sum()


@open_contract
def value(thing, x):
    """Declared."""


@kernel
def sum_of_values(thing, x, y):
    return value(thing, x) + value(thing, y)


@pytest.mark.fast
def test_what_users_write_may_allocate():
    assert sum_of_values(Polynomial(2), 2.0, 3.0) == 7.0 + 13.0


@pytest.mark.skipif(PLAIN_PYTHON, reason="nothing is compiled")
def test_kernels_may_not():
    @kernel
    def zeros(n):
        return np.zeros(n).sum()

    with pytest.raises(NumbaError, match=r"array passed into the function|NRT required"):
        zeros(3)


def test_several_python_threads_at_once():
    X = np.random.default_rng(0).normal(size=(1500, 10))
    reference = fastrbhc.linkage(X, "ward", n_jobs=1)
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(lambda _: fastrbhc.linkage(X, "ward", n_jobs=2), range(4)))
    for tree in trees:
        np.testing.assert_array_equal(tree.merges, reference.merges)
        np.testing.assert_array_equal(tree.heights, reference.heights)
