"""The functions behind the entropies, against 60 digits."""

from __future__ import annotations

import exact
import mpmath
import numpy as np
import pytest

from fastrbhc.families._entropy import entropy_divergence, log_excess

pytestmark = pytest.mark.fast

exactly = exact.exactly
SMALL = np.geomspace(1e-40, 0.3, 400)  # on both sides of where the series ends
LARGE = np.geomspace(0.3, 1e9, 100)
# u/(2 + u) = ±0.1 is where the series ends.
EDGES = np.concatenate([np.nextafter(edge, [-1.0, edge, 1.0]) for edge in (2.0 / 9.0, -2.0 / 11.0)])
GRID = np.concatenate([-SMALL, SMALL, LARGE, EDGES, np.linspace(-0.999, -0.3, 100)])


def close_relatively(computed, reference):
    return abs(computed - reference) <= 1e-14 * abs(reference)


def test_entropy_divergence():
    for u in GRID:
        x = exactly(float(u))
        assert close_relatively(entropy_divergence(1.0, u), (1 + x) * mpmath.log1p(x) - x), u


def test_entropy_divergence_near_and_at_minus_one():
    for ratio in (2.0**-20, 2.0**-40, 2.0**-53):
        u = ratio - 1.0
        reference = exactly(ratio) * mpmath.log(exactly(ratio)) - exactly(u)
        assert close_relatively(entropy_divergence(1.0, u), reference)
    assert entropy_divergence(1.0, -1.0) == 1.0
    assert (
        entropy_divergence(1.0, np.nextafter(-1.0, -2.0)) == 1.0
    )  # rounding may step over the edge
    assert entropy_divergence(1.0, 0.0) == 0.0


def test_log_excess():
    for u in GRID:
        x = exactly(float(u))
        assert close_relatively(log_excess(1.0 + u, u), x - mpmath.log1p(x)), u


def test_log_excess_of_tiny_ratios():
    """1 + u has lost all its digits there; the ratio has them all."""
    for ratio in np.geomspace(1e-300, 1e-3, 50):
        reference = exactly(float(ratio)) - 1 - mpmath.log(exactly(float(ratio)))
        assert close_relatively(log_excess(ratio, ratio - 1.0), reference)
    assert log_excess(1.0, 0.0) == 0.0
