"""Double-double arithmetic against 60 digits, relative to the size of the operands."""

from __future__ import annotations

import exact
import numpy as np
import pytest

from fastrbhc._engine.math.double_double import (
    add,
    divide,
    multiply,
    two_product,
    two_sum,
    weighted_mean,
)

pytestmark = pytest.mark.fast

exactly = exact.exactly
TRIALS = 300


def draw_number(rng):
    """A float of either sign and any moderate size."""
    return float(rng.choice([-1.0, 1.0]) * rng.uniform(1.0, 2.0) * 2.0 ** rng.integers(-100, 100))


def draw_pair(rng):
    """A double-double: the second float lies below the last digit of the first."""
    high = draw_number(rng)
    return two_sum(high, high * 2.0**-53 * float(rng.uniform(-1.0, 1.0)))


def value(pair):
    return exactly(pair[0]) + exactly(pair[1])


def assert_close(computed, reference, size):
    assert abs(value(computed) - reference) <= 1e-30 * abs(size)
    assert computed[0] == computed[0] + computed[1]  # the second part is below the first


def test_sums_are_exact():
    rng = np.random.default_rng(0)
    for _ in range(TRIALS):
        a, b = draw_number(rng), draw_number(rng)
        assert value(two_sum(a, b)) == exactly(a) + exactly(b)
        assert two_sum(a, b) == two_sum(b, a)


def test_products_are_exact():
    rng = np.random.default_rng(1)
    for _ in range(TRIALS):
        a, b = draw_number(rng), draw_number(rng)
        assert value(two_product(a, b)) == exactly(a) * exactly(b)
        assert two_product(a, b) == two_product(b, a)


@pytest.mark.parametrize(("a", "b"), [(0.0, 3.0), (1.0, 1.0), (0.1, 0.2), (1e16, 1.0), (1e9, -1e9)])
def test_sums_and_products_of_plain_numbers(a, b):
    assert value(two_sum(a, b)) == exactly(a) + exactly(b)
    assert value(two_product(a, b)) == exactly(a) * exactly(b)


def test_multiply():
    rng = np.random.default_rng(2)
    for _ in range(TRIALS):
        factor, pair = draw_number(rng), draw_pair(rng)
        reference = exactly(factor) * value(pair)
        assert_close(multiply(factor, *pair), reference, reference)


def test_add():
    rng = np.random.default_rng(3)
    for trial in range(TRIALS):
        pair0, pair1 = draw_pair(rng), draw_pair(rng)
        if trial % 2:  # similar sizes
            pair1 = multiply(pair0[0] / pair1[0] * rng.uniform(0.5, 2.0), *pair1)
        computed = add(*pair0, *pair1)
        size = abs(value(pair0)) + abs(value(pair1))
        assert abs(value(computed) - (value(pair0) + value(pair1))) <= 1e-30 * size
        assert computed == add(*pair1, *pair0)


def test_divide():
    rng = np.random.default_rng(4)
    for _ in range(TRIALS):
        pair, divisor = draw_pair(rng), draw_number(rng)
        reference = value(pair) / exactly(divisor)
        assert_close(divide(*pair, divisor), reference, reference)


@pytest.mark.parametrize("weights", ["whole", "fractional"])
def test_weighted_mean(weights):
    rng = np.random.default_rng(5)
    for trial in range(TRIALS):
        pair0, pair1 = draw_pair(rng), draw_pair(rng)
        if trial % 2:  # means that agree in ten digits
            pair1 = multiply(1.0 + 1e-10 * rng.uniform(-1.0, 1.0), *pair0)
        weight0, weight1 = (float(w) for w in rng.integers(1, 10**6, 2))
        if weights == "fractional":
            weight0, weight1 = weight0 * float(rng.random()), weight1 * float(rng.random())
        total0, total1 = exactly(weight0) * value(pair0), exactly(weight1) * value(pair1)
        n = exactly(weight0) + exactly(weight1)
        computed = weighted_mean(weight0, *pair0, weight1, *pair1)
        size = (abs(total0) + abs(total1)) / n
        assert abs(value(computed) - (total0 + total1) / n) <= 1e-30 * size
        assert computed == weighted_mean(weight1, *pair1, weight0, *pair0)


@pytest.mark.parametrize("weight0", [1.0, 3.0, 0.1, 1e6])
def test_the_mean_of_equals_is_the_same_number(weight0):
    pair = divide(1.0, 0.0, 3.0)
    assert weighted_mean(weight0, *pair, 0.7, *pair) == pair
