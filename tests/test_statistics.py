"""Statistics of points and of groups of rows."""

from __future__ import annotations

import copy

import exact
import numpy as np
import pytest
from strategies import ALL_FAMILIES

from fastrbhc import dissimilarity, families
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters import portions
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.record import selected
from fastrbhc._engine.records import Record

every_family = pytest.mark.parametrize("name", ALL_FAMILIES)


def draw(name, rng, n, n_features):
    domain = families.as_family(name).domain
    if np.isfinite(domain.upper):
        return domain.upper * rng.uniform(size=(n, n_features))
    return max(domain.lower, 0.0) + rng.poisson(4.0, (n, n_features)) + 1.0


def geometry_and_rows(name, X):
    family = families.as_family(name)
    return family.geometry(X.shape[1]), family.observe(X)


def assert_same_record(computed, reference):
    for name in reference._fields:
        value, expected = getattr(computed, name), getattr(reference, name)
        if isinstance(expected, Record):
            assert_same_record(value, expected)
        else:
            np.testing.assert_array_equal(value, expected)


def test_points():
    rng = np.random.default_rng(0)
    means, residuals = rng.normal(size=(5, 2)), 1e-20 * rng.normal(size=(5, 2))
    weights = rng.uniform(1.0, 9.0, 5)
    geometry = families.Gaussian(smoothing=0.5).geometry(2)
    clusters = statistics.clusters_of_points(geometry, Observations(means, residuals, weights))
    np.testing.assert_array_equal(clusters.means, means.T)
    np.testing.assert_array_equal(clusters.residuals, residuals.T)
    np.testing.assert_array_equal(clusters.weights, weights)
    np.testing.assert_array_equal(clusters.ranks, np.arange(5))
    assert not clusters.scatter.any()
    # A point: log dets relative to εI, the largest eigenvalue, the mark of a single point, log det
    # over d, and its error.
    expected = [0.0, 0.0, 0.5, 1.0, 0.0, 0.0]
    np.testing.assert_allclose(clusters.cached, np.tile(expected, (5, 1)))


def test_points_without_weights_have_weight_one():
    geometry = families.Poisson().geometry(1)
    clusters = statistics.clusters_of_points(geometry, Observations(np.array([[1.0], [2.0]])))
    np.testing.assert_array_equal(clusters.weights, [1.0, 1.0])


def test_the_frame_holds_all_means():
    X = np.array([[0.0, 100.0], [4.0, 102.0], [1.0, 101.5]])
    geometry = families.SphericalGaussian().geometry(2)
    clusters = statistics.clusters_of_points(geometry, Observations(X))
    np.testing.assert_array_equal(clusters.mirror.centre, [2.0, 101.0])
    assert clusters.mirror.radius == 2.0
    np.testing.assert_array_equal(
        clusters.mirror.values, np.float32([[-1.0, 1.0, -0.5], [-0.5, 0.5, 0.25]])
    )


@every_family
def test_groups_against_numpy(name):
    rng = np.random.default_rng(1)
    X, labels = draw(name, rng, 30, 3), np.r_[0, 1, 2, 3, rng.integers(0, 4, 26)]
    sample_weight = rng.integers(0, 4, 30) + (np.arange(30) < 4)
    geometry, rows = geometry_and_rows(name, X)
    weights = sample_weight * (1.0 if rows.weights is None else rows.weights)
    clusters = statistics.clusters_of_groups(geometry, rows._replace(weights=weights), labels, 4)
    for group in range(4):
        which = labels == group
        mean = np.average(rows.means[which], axis=0, weights=weights[which])
        if families.as_family(name).domain.needs_nonzero_row:
            mean /= np.linalg.norm(mean)  # directions are stored in place of means
        assert clusters.weights[group] == pytest.approx(weights[which].sum(), rel=1e-14)
        np.testing.assert_allclose(clusters.means[:, group], mean, rtol=1e-13)
        if name == "gaussian":
            scatter = np.cov(rows.means[which].T, aweights=weights[which], bias=True)
            total = weights[which].sum() * scatter[np.tril_indices(3)]
            leading = clusters.scatter[group, : total.size]
            np.testing.assert_allclose(leading, total, rtol=1e-10, atol=1e-12)
        if name == "diagonal_gaussian":
            variances = np.average((rows.means[which] - mean) ** 2, axis=0, weights=weights[which])
            leading = clusters.scatter[group, : variances.size]
            np.testing.assert_allclose(leading, variances, rtol=1e-10, atol=1e-12)


def test_means_of_groups_have_thirty_digits():
    X = np.random.default_rng(2).uniform(1.0, 2.0, (50, 1))
    geometry, rows = geometry_and_rows("spherical_gaussian", X)
    clusters = statistics.clusters_of_groups(geometry, rows, np.zeros(50, np.int64), 1)
    reference = sum(exact.exactly(float(x)) for x in X[:, 0]) / 50
    computed = exact.exactly(clusters.means[0, 0]) + exact.exactly(clusters.residuals[0, 0])
    assert abs(computed - reference) < 1e-29


@every_family
def test_dissimilarities_go_over_all_pairs_by_rows(name):
    rng = np.random.default_rng(3)
    X, labels = draw(name, rng, 12, 2), np.arange(12) % 4
    geometry, rows = geometry_and_rows(name, X)
    clusters = statistics.clusters_of_groups(geometry, rows, labels, 4)
    reference = [
        dissimilarity(X[labels == i], X[labels == j], name)
        for i in range(4)
        for j in range(i + 1, 4)
    ]
    np.testing.assert_array_equal(statistics.dissimilarities(geometry, clusters), reference)


@every_family
def test_nearest_clusters(name):
    rng = np.random.default_rng(4)
    X, labels, new = draw(name, rng, 30, 2), np.arange(30) % 5, draw(name, rng, 20, 2)
    geometry, rows = geometry_and_rows(name, X)
    clusters = statistics.clusters_of_groups(geometry, rows, labels, 5)
    before = copy.deepcopy(clusters)
    _, new_rows = geometry_and_rows(name, new)
    reference = [
        np.argmin([dissimilarity(X[labels == group], row[None], name) for group in range(5)])
        for row in new
    ]
    computed = statistics.nearest_clusters(geometry, clusters, new_rows)
    np.testing.assert_array_equal(computed, reference)
    assert_same_record(clusters, before)


def test_of_equally_near_clusters_the_first():
    geometry, rows = geometry_and_rows("spherical_gaussian", np.array([[1.0], [-1.0]]))
    clusters = statistics.clusters_of_points(geometry, rows)
    new = Observations(np.array([[0.0], [-0.1]]))
    assert statistics.nearest_clusters(geometry, clusters, new).tolist() == [0, 1]


def test_selected_slots_are_copies():
    geometry, rows = geometry_and_rows("gaussian", np.random.default_rng(5).normal(size=(4, 2)))
    clusters = statistics.clusters_of_points(geometry, rows)
    turned = selected(clusters, np.array([3, 0, 2]))
    np.testing.assert_array_equal(turned.means, clusters.means[:, [3, 0, 2]])
    np.testing.assert_array_equal(turned.mirror.values, clusters.mirror.values[:, [3, 0, 2]])
    np.testing.assert_array_equal(turned.ranks, [3, 0, 2])
    np.testing.assert_array_equal(turned.cached, clusters.cached[[3, 0, 2]])
    assert turned.n_slots == 3
    turned.means[:] = 0.0
    turned.mirror.centre[:] = 7.0
    turned.mirror.radius = 7.0
    assert clusters.means.all()
    assert (clusters.mirror.centre != 7.0).all()
    assert clusters.mirror.radius != 7.0


@pytest.mark.parametrize("name", ["poisson", "multinomial", "gaussian"])
def test_portions_leave_no_trace(name, monkeypatch):
    rng = np.random.default_rng(5)
    X, labels = rng.poisson(9.0, (50, 3)) + 1.0, np.arange(50) % 4
    family = families.as_family(name)
    geometry, rows = family.geometry(3), family.observe(X)
    reference = statistics.clusters_of_groups(geometry, rows, labels, 4)
    nearest = statistics.nearest_clusters(geometry, reference, rows)
    monkeypatch.setattr(portions, "_PORTION", 1)
    computed = statistics.clusters_of_groups(geometry, rows, labels, 4)
    assert_same_record(computed, reference)
    np.testing.assert_array_equal(statistics.nearest_clusters(geometry, computed, rows), nearest)
