"""Populations of one mode that resemble given rows."""

from __future__ import annotations

import numpy as np
import pytest

from fastrbhc.assessment.populations import critical_bandwidths, populations
from fastrbhc.families import as_family


def equal(n):
    return np.full(n, 1.0 / n)


def n_modes(values, width):
    grid = np.linspace(values.min() - 3 * width, values.max() + 3 * width, 2_000)
    density = np.exp(-0.5 * ((grid[:, None] - values) / width) ** 2).sum(axis=1)
    rises = np.diff(density) > 0
    return int(np.count_nonzero(rises[:-1] & ~rises[1:]))


def test_the_critical_bandwidth_is_the_smallest_that_leaves_one_mode():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=300), np.r_[rng.normal(size=150), rng.normal(size=150) + 6.0]
    values = np.column_stack([one, two])
    widths = critical_bandwidths(values, equal(300))
    assert widths[0] < 0.6 < 2.0 < widths[1]
    for column, width in zip(values.T, widths, strict=True):
        assert n_modes(column, 1.05 * width) == 1
        assert n_modes(column, 0.8 * width) > 1


def test_draws_have_the_mean_and_the_covariance_of_the_rows():
    rng = np.random.default_rng(1)
    X = np.r_[rng.normal(size=(1_000, 3)), rng.normal(size=(1_000, 3)) + 5.0] @ rng.normal(
        size=(3, 3)
    )
    size = np.sqrt(np.diag(np.cov(X.T)))
    draws = populations(X, None, as_family("ward"))
    assert len(draws) == 2
    for draw in draws:
        drawn = np.concatenate([draw(rng) for _ in range(10)])
        assert (np.abs(drawn.mean(axis=0) - X.mean(axis=0)) < 0.05 * size).all()
        assert (np.abs(np.cov(drawn.T) - np.cov(X.T)) < 0.05 * np.outer(size, size)).all()


def test_weights_count_as_copies_for_mean_and_covariance():
    rng = np.random.default_rng(2)
    X, weights = rng.normal(size=(400, 2)), rng.integers(1, 5, 400).astype(float)
    X[weights == 4.0] += 3.0
    copies = np.repeat(X, weights.astype(int), axis=0)
    for draw in populations(X, weights, as_family("ward")):
        drawn = np.concatenate([draw(rng) for _ in range(30)])
        np.testing.assert_allclose(drawn.mean(axis=0), copies.mean(axis=0), atol=0.1)
        np.testing.assert_allclose(np.cov(drawn.T), np.cov(copies.T), atol=0.3)


@pytest.mark.parametrize("name", ["poisson", "multinomial", "bernoulli", "ward"])
def test_whole_numbers_stay_whole_and_in_the_domain(name):
    rng = np.random.default_rng(3)
    family = as_family(name)
    X = rng.binomial(1, 0.3, (200, 4)).astype(float)
    X = X[X.any(axis=1)]
    for draw in populations(X, None, family):
        drawn = draw(rng)
        assert drawn.shape == X.shape
        assert set(np.unique(drawn)) <= {0.0, 1.0}
        assert not family.domain.needs_positive_total or (drawn.sum(axis=1) > 0.0).all()


def test_the_family_draws_its_own_rows():
    rng = np.random.default_rng(4)
    counts = rng.poisson(4.0, (500, 2)).astype(float)
    drawn = as_family("poisson").draw_one_cluster(counts, rng)
    np.testing.assert_allclose(drawn.var(axis=0), 4.0, rtol=0.2)
    drawn = as_family("multinomial").draw_one_cluster(counts + 1.0, rng)
    np.testing.assert_array_equal(
        np.sort(drawn.sum(axis=1)), np.sort((counts + 1.0).sum(axis=1))
    )
    assert as_family("poisson").draw_one_cluster(counts + 0.5, rng) is None
    assert as_family("poisson").draw_one_cluster(counts * 1e300, rng) is None
    assert as_family("gaussian").draw_one_cluster(counts, rng) is None
    drawn = as_family("exponential").draw_one_cluster(counts + 1.0, rng)
    np.testing.assert_allclose(drawn.mean(axis=0), 5.0, rtol=0.2)


def test_columns_without_variation():
    X = np.column_stack([np.ones(50), np.random.default_rng(5).normal(size=50)])
    for draw in populations(X, None, as_family("ward")):
        assert (draw(np.random.default_rng(0))[:, 0] == 1.0).all()
