"""Rows as points for estimates of density."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from fastrbhc.families import as_family
from fastrbhc.selection.coordinates import MOST_COORDINATES, _floor, points_of_rows


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.9, 0.1], [0.25] * 4, [0.7, 0.1, 0.1, 0.1]])
def test_distinct_values_gain_four_fifths_of_their_entropy(shares):
    shares = np.array(shares)
    ratio = _floor(np.arange(shares.size, dtype=float), 50.0 * shares, 0.8)
    gain = 0.5 * (np.log(1.0 + 1.0 / ratio) + 1.0 / (1.0 + ratio))
    entropy = -(shares * np.log(shares)).sum()
    assert gain == pytest.approx(0.8 * entropy, rel=1e-9)


def test_values_that_are_all_different_have_no_floor_to_speak_of():
    assert _floor(np.random.default_rng(0).normal(size=1_000), np.ones(1_000), 0.8) < 1e-3


def test_copies_have_the_floor_of_weights():
    column, copies = np.array([0.0, 1.0, 4.0]), np.array([3, 1, 2])
    reference = _floor(column.repeat(copies), np.ones(6), 0.5)
    assert _floor(column, copies.astype(float), 0.5) == pytest.approx(reference, rel=1e-12)


@pytest.mark.parametrize("name", ["ward", "gaussian", "diagonal_gaussian"])
def test_units_do_not_matter(name):
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(50, 3)), rng.uniform(1.0, 3.0, 50)
    reference = points_of_rows(as_family(name), X, weights)
    computed = points_of_rows(as_family(name), X * [1e3, 1.0, 1e-6] + [5.0, -7.0, 0.0], weights)
    np.testing.assert_allclose(computed.values, reference.values, atol=1e-9)
    np.testing.assert_allclose(computed.floor, reference.floor, rtol=1e-9)


def test_points_are_centred_and_floors_are_shares_of_variances():
    rng = np.random.default_rng(2)
    X, weights = rng.poisson(3.0, (60, 2)).astype(float), rng.uniform(1.0, 3.0, 60)
    points = points_of_rows(as_family("poisson"), X, weights)
    roots = 2.0 * np.sqrt(X + 0.375)
    np.testing.assert_allclose(points.values, roots - np.average(roots, axis=0, weights=weights))
    variances = np.average(points.values**2, axis=0, weights=weights)
    floors = [_floor(column, weights, 0.5) for column in X.T]
    np.testing.assert_allclose(points.floor, np.diag(floors * variances))


@pytest.mark.parametrize("d", [2, 8])
def test_shares_are_as_widely_spread_whatever_the_total(d):
    rng = np.random.default_rng(3)
    totals = np.array([20, 2_000]).repeat(3_000)
    X = rng.multinomial(totals, np.full(d, 1.0 / d)).astype(float)
    values = as_family("multinomial").coordinates(X)
    small, large = values[:3_000].var(axis=0), values[3_000:].var(axis=0)
    np.testing.assert_allclose(small, large, rtol=0.3)
    # They add up to 1, and so there is one direction without any variance.
    assert np.linalg.matrix_rank(values - values.mean(axis=0), tol=1e-6) == d - 1


def test_shares_that_are_no_counts_are_taken_as_they_are():
    # Units of a row are no totals: they do not say how widely it varies.
    rng = np.random.default_rng(3)
    shares, units = rng.dirichlet(np.full(4, 5.0), 50), rng.uniform(0.5, 20.0, (50, 1))
    values = as_family("multinomial").coordinates(shares * units)
    total = 1.0 / np.mean(1.0 / units)
    roots = 2.0 * np.sqrt(total * shares + 0.375)
    normal = np.sqrt(total * np.average(shares, axis=0, weights=units[:, 0]) + 0.375)
    normal /= np.linalg.norm(normal)
    reference = roots - np.outer(roots @ normal, normal)
    np.testing.assert_allclose(values - np.outer(values @ normal, normal), reference)


def test_constant_columns_are_left_out():
    X = np.column_stack([np.arange(9.0), np.full(9, 3.0), np.arange(9.0) ** 2])
    points = points_of_rows(as_family("ward"), X, np.ones(9))
    assert points.values.shape == (9, 2)
    assert points.floor.shape == (2, 2)


def test_columns_whose_squares_underflow_are_left_out():
    rng = np.random.default_rng(4)
    X = np.column_stack([1e-200 * rng.normal(size=9), np.ones(9)])
    points = points_of_rows(as_family("von_mises_fisher"), X, np.ones(9))
    assert points.values.shape == (9, 0)


def test_of_many_columns_the_principal_axes():
    rng = np.random.default_rng(3)
    # Twenty directions in fifty columns: the principal axes lose nothing.
    X = rng.normal(size=(80, 20)) @ rng.normal(size=(20, 50))
    points = points_of_rows(as_family("ward"), X, np.ones(80))
    assert points.values.shape == (80, MOST_COORDINATES)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(pdist(points.values), pdist(standardised), rtol=1e-9)
    assert np.linalg.eigvalsh(points.floor).min() > 0.0


def test_columns_that_are_the_same_in_all_rows_are_left_out():
    rng = np.random.default_rng(3)
    X = np.column_stack([np.zeros(60), rng.poisson(9.0, (60, 3)) + 1.0])
    family = as_family("multinomial")
    points = points_of_rows(family, X, np.ones(60))
    reference = points_of_rows(family, X[:, 1:], np.ones(60))
    assert points.values.shape == reference.values.shape
    assert np.diag(points.floor).max() < 1e3 * points.values.var(axis=0).max()
