"""One column of a separable family: lower bounds of a pair, and the variance function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import ALL_FAMILIES

from fastrbhc import families
from fastrbhc._engine.geometry.contract import ROUNDING
from fastrbhc._engine.geometry.separable_columns import (
    divergence,
    pair_bound,
    unknown_variance,
    variance_function,
)

SEPARABLE = [name for name in ALL_FAMILIES if families.as_family(name).separable]


def values_of(name):
    """Mean statistics that a family may meet; those of logarithms lie anywhere."""
    family = families.as_family(name)
    domain = family.domain
    if name == "multinomial" or np.isfinite(domain.upper):
        return st.floats(0.0, min(domain.upper, 1.0))
    if family.quadratic:
        return st.floats(-1e100, 1e100)
    return st.floats(0.0 if domain.includes_lower else 1e-100, 1e100)


VALUES = {name: values_of(name) for name in SEPARABLE}


WITH_VARIANCES = [
    name
    for name in SEPARABLE
    if type(families.as_family(name)).variance_function is not unknown_variance
]


def value_of_a_pair(family, value0, value1, step, share):
    mean = share * value0 + (1.0 - share) * value1
    there = divergence(family, value0, mean, -(1.0 - share) * step)
    back = divergence(family, value1, mean, share * step)
    assert min(there, back) >= 0.0
    return share * there + (1.0 - share) * back


def bound_does_not_exceed_value(family, value0, value1, step, share):
    assume(not 0.0 < step * step < 1e-300)  # squares with fewer digits: docs/reliability.md
    with np.errstate(over="ignore"):  # then the bound is 0
        bound = pair_bound(family, value0, value1, step, share, 1.0 - share)
    assert 0.0 <= bound * ROUNDING <= value_of_a_pair(family, value0, value1, step, share)


SHARES = st.floats(1e-9, 1.0 - 1e-9)


@pytest.mark.fast
@pytest.mark.parametrize("name", SEPARABLE)
@settings(max_examples=300)
@given(data=st.data())
def test_the_bound_of_a_pair_never_exceeds_its_value(name, data):
    family = families.as_family(name)
    value0, value1 = (np.float64(data.draw(VALUES[name])) for _ in range(2))
    share = data.draw(SHARES)
    bound_does_not_exceed_value(family, value0, value1, value1 - value0, share)


@pytest.mark.fast
@pytest.mark.parametrize("name", SEPARABLE)
@settings(max_examples=300)
@given(data=st.data())
def test_the_bound_of_nearly_equal_values_never_exceeds_theirs(name, data):
    """The step is known to more digits than the values."""
    family = families.as_family(name)
    value0, share = np.float64(data.draw(VALUES[name])), data.draw(SHARES)
    step = value0 * 10.0 ** data.draw(st.floats(-30.0, -3.0)) * data.draw(st.sampled_from([-1, 1]))
    if name in {"bernoulli", "binomial", "multinomial"} and step > 1.0 - value0:
        step = -step  # stay among the values up to 1
    bound_does_not_exceed_value(family, value0, value0 + step, step, share)


@pytest.mark.fast
@pytest.mark.parametrize("name", WITH_VARIANCES)
def test_bounds_of_pairs_are_near_where_values_are_alike(name):
    family = families.as_family(name)
    for ratio in np.array([0.5, 0.8, 1.25, 2.0]):
        for share in (0.1, 0.5, 0.9):
            value = value_of_a_pair(family, 0.4, 0.4 * ratio, 0.4 * (ratio - 1.0), share)
            bound = pair_bound(family, 0.4, 0.4 * ratio, 0.4 * (ratio - 1.0), share, 1.0 - share)
            assert bound == pytest.approx(value, rel=0.06)


@pytest.mark.fast
@pytest.mark.parametrize("name", WITH_VARIANCES)
def test_the_variance_is_one_over_the_second_derivative(name):
    """Never smaller, in single precision either."""
    family = families.as_family(name)
    for mean in np.array([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999]):
        step = 1e-6 * min(mean, 1.0 - mean)
        curvature = 2.0 * divergence(family, mean + step, mean, step) / step**2
        bounded = np.isfinite(family.domain.upper)
        largest = 1.0 + 1e-5 + 2.0**-19 * curvature * bounded
        assert 1.0 - 1e-5 <= variance_function(family, mean) * curvature <= largest
        assert variance_function(family, np.float32(mean)).dtype == np.float32
        assert variance_function(family, np.float32(mean)) * curvature >= 1.0 - 1e-5
