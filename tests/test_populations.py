"""Populations of one mode that resemble given rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata

from fastrbhc import linkage
from fastrbhc.assessment.populations import one_mode, populations
from fastrbhc.families import as_family


def equal(n):
    return np.full(n, 1.0 / n)


def heaps(rng):
    return np.r_[rng.normal(size=150), rng.normal(size=150) + 6.0]


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(size=300),
        lambda rng: rng.exponential(size=300),
        lambda rng: -rng.lognormal(sigma=0.5, size=300),
        lambda rng: rng.poisson(2.0, 300).astype(float),
        heaps,
    ],
    ids=["normal", "exponential", "lognormal", "poisson", "heaps"],
)
def test_one_mode_with_the_mean_and_the_variance_of_the_values(draw):
    values = draw(np.random.default_rng(0))
    edges, below = one_mode(values, equal(300))
    masses = np.diff(below)
    steps = np.diff(masses / np.diff(edges))
    falls = np.flatnonzero(steps < -1e-12)
    assert not (steps[falls.min(initial=steps.size) :] > 1e-12).any()
    centres = 0.5 * (edges[1:] + edges[:-1])
    np.testing.assert_allclose(masses @ centres, values.mean(), atol=0.02 * values.std())
    variance = masses @ np.square(centres - masses @ centres)
    np.testing.assert_allclose(variance, values.var(), rtol=0.02)


@pytest.mark.parametrize("shape", ["normal", "exponential", "lognormal"])
def test_one_mode_stays_near_values_that_have_one(shape):
    values = getattr(np.random.default_rng(1), shape)(size=2_000)
    edges, below = one_mode(values, equal(2_000))
    distance = np.abs(np.interp(np.sort(values), edges, below) - np.arange(2_000) / 2_000)
    assert distance.max() < 0.03


def test_one_mode_of_two_heaps_fills_the_gap():
    values = heaps(np.random.default_rng(2))
    edges, below = one_mode(values, equal(300))
    empty = np.interp([2.5, 3.5], edges, below)
    assert empty[1] - empty[0] > 0.05
    assert np.count_nonzero((values > 2.5) & (values < 3.5)) < 5


def test_one_mode_with_weights():
    rng = np.random.default_rng(3)
    values, weights = rng.normal(size=50), rng.integers(1, 4, 50)
    copies = np.repeat(values, weights)
    edges, below = one_mode(values, weights / weights.sum())
    expected_edges, expected_below = one_mode(copies, equal(copies.size))
    np.testing.assert_allclose(edges, expected_edges)
    np.testing.assert_allclose(below, expected_below)


def two_heaps(rng):
    X = np.r_[rng.normal(size=(500, 3)), rng.normal(size=(500, 3)) + 5.0]
    return X @ rng.normal(size=(3, 3))


def test_uniform_draws_have_the_mean_and_the_covariance_of_the_rows():
    rng = np.random.default_rng(4)
    X = two_heaps(rng)
    uniform, _ = populations(X, None, as_family("ward"))
    drawn = np.concatenate([uniform(rng) for _ in range(20)])
    size = np.sqrt(np.diag(np.cov(X.T)))
    assert (np.abs(drawn.mean(axis=0) - X.mean(axis=0)) < 0.05 * size).all()
    assert (np.abs(np.cov(drawn.T) - np.cov(X.T)) < 0.05 * np.outer(size, size)).all()


def normal_scores(X):
    return ndtri((rankdata(X, axis=0) - 0.5) / len(X))


def test_unimodal_draws_have_the_columns_and_the_ranks_of_the_rows():
    rng = np.random.default_rng(5)
    X = two_heaps(rng)
    _, unimodal = populations(X, None, as_family("ward"))
    drawn = np.concatenate([unimodal(rng) for _ in range(20)])
    assert (np.abs(drawn.mean(axis=0) - X.mean(axis=0)) < 0.05 * X.std(axis=0)).all()
    np.testing.assert_allclose(drawn.std(axis=0), X.std(axis=0), rtol=0.05)
    np.testing.assert_allclose(
        np.corrcoef(normal_scores(drawn).T), np.corrcoef(normal_scores(X).T), atol=0.05
    )


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
    np.testing.assert_array_equal(np.sort(drawn.sum(axis=1)), np.sort((counts + 1.0).sum(axis=1)))
    assert as_family("poisson").draw_one_cluster(counts + 0.5, rng) is None
    assert as_family("poisson").draw_one_cluster(counts * 1e300, rng) is None
    assert as_family("gaussian").draw_one_cluster(counts, rng) is None
    drawn = as_family("exponential").draw_one_cluster(counts + 1.0, rng)
    np.testing.assert_allclose(drawn.mean(axis=0), 5.0, rtol=0.2)


def test_columns_without_variation():
    X = np.column_stack([np.ones(50), np.random.default_rng(5).normal(size=50)])
    for draw in populations(X, None, as_family("ward")):
        assert (draw(np.random.default_rng(0))[:, 0] == 1.0).all()


@pytest.mark.parametrize("units", [(1.0, 1000.0), (0.001, 1.0)])
def test_draws_for_scaled_columns_do_not_depend_on_units(units):
    X = np.round(np.random.default_rng(8).normal(size=(200, 2)) * [1.0, 30.0])
    families = [linkage(rows, "auto").family for rows in (X, X * units)]
    reference, computed = (
        populations(X, None, families[0]),
        populations(X * units, None, families[1]),
    )
    for here, there in zip(reference, computed, strict=True):
        drawn = here(np.random.default_rng(9))
        np.testing.assert_allclose(there(np.random.default_rng(9)) / units, drawn, atol=1e-9)
        assert np.isin(drawn[:, 0], X[:, 0]).all()  # a column of few values has no others
