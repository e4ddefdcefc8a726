"""Logarithms and powers as double-doubles, against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from fastrbhc._engine.math.powers import exp_digits, log_digits, power_digits

exactly = mpmath.mpf


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(80):
        yield


def relative_error(computed, reference):
    high, low = (exactly(float(part)) for part in computed)
    return float(abs((high + low - reference) / reference))


def values(rng, n=60):
    near_one = 1.0 + 1e-8 * rng.uniform(-1.0, 1.0, n)
    ends = [0.5, 2.0, 1.0 - 2.0**-53, 1.0 + 2.0**-52]
    return [
        *10.0 ** rng.uniform(-120.0, 120.0, n),
        *10.0 ** rng.uniform(-1.0, 1.0, n),
        *near_one,
        *ends,
    ]


@pytest.mark.fast
def test_logarithms():
    for x in values(np.random.default_rng(0)):
        assert relative_error(log_digits(float(x)), mpmath.log(exactly(float(x)))) < 1e-30
    assert log_digits(1.0) == (0.0, 0.0)


@pytest.mark.fast
def test_exponential_function():
    for x in np.random.default_rng(1).uniform(-250.0, 250.0, 60).tolist():
        assert (
            relative_error(exp_digits(x, 1e-17 * x), mpmath.exp(exactly(x) + exactly(1e-17 * x)))
            < 1e-28
        )
    assert exp_digits(0.0, 0.0) == (1.0, 0.0)
    assert exp_digits(1e4, 0.0) == (np.inf, 0.0)


@pytest.mark.fast
@pytest.mark.parametrize("exponent", [0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 17.0, 65.0])
def test_powers(exponent):
    for x in values(np.random.default_rng(2)):
        if abs(exponent * np.log10(x)) < 120.0:
            reference = exactly(float(x)) ** exactly(exponent)
            assert relative_error(power_digits(float(x), exponent), reference) < 1e-28


@pytest.mark.fast
def test_whole_powers_of_whole_numbers_are_exact():
    assert power_digits(3.0, 20.0) == (3.0**20, 0.0)
    high, low = power_digits(1e9 + 1.0, 3.0)
    assert int(high) + int(low) == (10**9 + 1) ** 3
    assert power_digits(0.0, 1.5) == (0.0, 0.0)
