"""The logarithm of the Bessel function, against mpmath."""

from __future__ import annotations

import mpmath
import pytest

from fastrbhc._engine.math.bessel import log_bessel

ORDERS = [-0.5, 0.0, 0.5, 1.0, 2.5, 9.0, 23.5, 24.0, 40.0, 499.0, 5000.0]


@pytest.mark.fast
@pytest.mark.parametrize("order", ORDERS)
def test_any_argument(order):
    with mpmath.workdps(50):
        nu = mpmath.mpf(order)
        for x in (1e-8, 1e-3, 0.1, 1.0, 10.0, 100.0, 1e3, 1e6, 1e9):
            bessel = mpmath.besseli(nu, mpmath.mpf(x))
            reference = mpmath.log(bessel) - nu * mpmath.log(mpmath.mpf(x) / 2)
            reference += mpmath.loggamma(nu + 1)
            assert abs(log_bessel(order, x) - reference) <= 2e-14 * max(1, abs(reference)), x
    assert log_bessel(order, 0.0) == 0.0
