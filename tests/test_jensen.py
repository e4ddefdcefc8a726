"""The Jensen gap of log determinants, against as many digits as it takes."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from fastrbhc._engine.math.cholesky import factor_shape
from fastrbhc._engine.math.jensen import jensen_gap


@mpmath.workdps(700)
def exact_gap(S0, S1, w0, w1, smoothing):
    """w log det A − w0 log det Σ0 − w1 log det Σ1, from the definition."""
    w0, w1, smoothing = mpmath.mpf(w0), mpmath.mpf(w1), mpmath.mpf(smoothing)
    d = S0.shape[0]

    def log_det(scatter, weight):
        return mpmath.log(mpmath.det(scatter / weight + smoothing * mpmath.eye(d)))

    exact0, exact1 = mpmath.matrix(S0.tolist()), mpmath.matrix(S1.tolist())
    both = log_det(exact0 + exact1, w0 + w1)
    return (w0 + w1) * both - w0 * log_det(exact0, w0) - w1 * log_det(exact1, w1)


def computed_gap(S0, S1, w0, w1, smoothing):
    d = S0.shape[0]
    triangle = np.tril_indices(d)
    scatter = np.zeros((2, d * (d + 1)))
    scatter[0, : len(triangle[0])], scatter[1, : len(triangle[0])] = S0[triangle], S1[triangle]
    rows, columns = factor_shape(d)
    work = np.full((2 * rows, columns), np.nan)
    ridge = (w0 + w1) * smoothing
    gap = jensen_gap(scatter, 0, 1, w0, w1, d, ridge, work)
    assert jensen_gap(scatter, 1, 0, w1, w0, d, ridge, work) == gap
    return gap


def scatter_of(rng, n_rows, d):
    rows = rng.normal(size=(n_rows, d))
    return rows.T @ rows


@pytest.mark.fast
@pytest.mark.parametrize("d", [1, 2, 5, 9])
@pytest.mark.parametrize("scale", [1e-140, 1e-12, 1e-3, 1.0, 1e5, 1e10])
def test_any_size_of_the_scatter_against_the_smoothing(d, scale):
    rng = np.random.default_rng(0)
    for n0, n1 in ((1, 1), (3, 2), (40, 7)):
        S0, S1 = scale * scatter_of(rng, n0, d), scale * scatter_of(rng, n1, d)
        reference = exact_gap(S0, S1, n0 + 1.0, n1 + 1.0, 0.01)
        computed = computed_gap(S0, S1, n0 + 1.0, n1 + 1.0, 0.01)
        assert abs(computed - reference) <= 1e-12 * reference


@pytest.mark.fast
@pytest.mark.parametrize("difference", [1e-1, 1e-5, 1e-10, 1e-14])
def test_covariances_alike(difference):
    rng = np.random.default_rng(1)
    for w0, w1 in ((1.0, 1.0), (3.0, 7.0), (1e6, 1.0), (1e-9, 1e9)):
        covariance = scatter_of(rng, 8, 4)
        other = covariance * (1.0 + difference * np.diag(rng.uniform(size=4)))
        S0, S1 = w0 * covariance, w1 * other
        reference = exact_gap(S0, S1, w0, w1, 0.01)
        assert abs(computed_gap(S0, S1, w0, w1, 0.01) - reference) <= 1e-12 * reference


@pytest.mark.fast
def test_equal_covariances_have_no_gap():
    scatter = scatter_of(np.random.default_rng(2), 8, 4)
    assert computed_gap(scatter, 2.0 * scatter, 3.0, 6.0, 0.01) <= 1e-60
