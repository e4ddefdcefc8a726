"""d from rows to clusters and from clusters to all the others, against the definition."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import sparse
from strategies import ALL_FAMILIES, wide_counts
from test_statistics import assert_same_record, draw, geometry_and_rows

from fastrbhc import dissimilarity, linkage
from fastrbhc._engine.clusters.build import clusters_of_groups, nearest_clusters
from fastrbhc._engine.clusters.comparison import column_terms, row_dissimilarities, separations
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc.families import as_family, geometry_of

every_family = pytest.mark.parametrize("name", ALL_FAMILIES)


@every_family
def test_rows_and_clusters(name):
    rng = np.random.default_rng(0)
    X, labels, new = draw(name, rng, 30, 2), np.arange(30) % 4, draw(name, rng, 20, 2)
    geometry, rows = geometry_and_rows(name, X)
    _, new_rows = geometry_and_rows(name, new)
    clusters = clusters_of_groups(geometry, rows, labels, 4)
    before = copy.deepcopy(clusters)
    reference = [[dissimilarity(X[labels == c], x[None], name) for c in range(4)] for x in new]
    computed = row_dissimilarities(geometry, clusters, new_rows)
    np.testing.assert_allclose(computed, reference, rtol=1e-9)
    nearest = nearest_clusters(geometry, clusters, new_rows)
    np.testing.assert_array_equal(computed.argmin(axis=1), nearest)
    assert_same_record(clusters, before)


def test_clusters_without_weight_are_infinitely_far():
    X = np.array([[0.0], [1.0], [5.0]])
    geometry, rows = geometry_and_rows("ward", X)
    rows = weighted(rows, np.array([1.0, 1.0, 0.0]))
    clusters = clusters_of_groups(geometry, rows, np.array([0, 0, 1]), 2)
    computed = row_dissimilarities(geometry, clusters, geometry_and_rows("ward", X)[1])
    assert np.isinf(computed[:, 1]).all()
    assert np.isfinite(computed[:, 0]).all()
    assert separations(geometry, clusters)[0].tolist() == [0.0, 0.0]


@every_family
def test_clusters_and_the_rest(name):
    rng = np.random.default_rng(1)
    X, labels = draw(name, rng, 40, 3), np.arange(40) % 5
    geometry, rows = geometry_and_rows(name, X)
    clusters = clusters_of_groups(geometry, rows, labels, 5)
    reference = [dissimilarity(X[labels == c], X[labels != c], name) for c in range(5)]
    computed, together = separations(geometry, clusters)
    np.testing.assert_allclose(computed, reference, rtol=1e-8)
    chain = [dissimilarity(X[labels < c], X[labels == c], name) for c in range(1, 5)]
    np.testing.assert_allclose(together, np.sum(chain), rtol=1e-8)


def test_two_clusters_explain_the_same():
    X = np.random.default_rng(2).normal(size=(30, 2))
    tree = linkage(X, "ward")
    geometry, rows = geometry_and_rows("ward", X)
    clusters = clusters_of_groups(geometry, rows, tree.cut(n_clusters=2), 2)
    computed, together = separations(geometry, clusters)
    np.testing.assert_allclose(computed, tree.heights[-1])
    np.testing.assert_allclose(together, tree.heights[-1])


def sparse_and_dense_clusters(name, X, weights, labels):
    """The geometry and the clusters of the groups of sparse rows, and those of the dense rows."""
    family = as_family(name)
    for rows in (X, X.toarray()):
        points = weighted(family.observe(rows), weights)
        geometry = geometry_of(family, points)
        yield geometry, clusters_of_groups(geometry, points, labels, int(labels.max()) + 1)


@pytest.mark.parametrize("name", ["poisson", "multinomial", "bernoulli"])
@pytest.mark.parametrize("factor", [1.0, 0.1])  # sums of tenths are rounded
def test_sparse_clusters_and_the_rest(name, factor):
    X, labels = factor * wide_counts(name, 60, 500, 3), np.arange(60) % 6
    X = sparse.csr_array(X)
    weights = np.random.default_rng(3).integers(1, 4, 60) * factor
    weights[labels == 2] = 0.0  # a free slot
    computed, reference = (
        separations(geometry, clusters)
        for geometry, clusters in sparse_and_dense_clusters(name, X, weights, labels)
    )
    np.testing.assert_allclose(computed[0], reference[0], rtol=1e-10)
    assert computed[0][2] == 0.0
    assert computed[1] == pytest.approx(reference[1], rel=1e-10)


@pytest.mark.parametrize("name", ["ward", "poisson", "exponential", "bernoulli"])
def test_terms_of_the_columns_add_up_to_d(name):
    family = as_family(name)
    X = draw(name, np.random.default_rng(4), 30, 5)
    reference = dissimilarity(X[:10], X[10:], name)
    for centre in (np.zeros(5), X.mean(axis=0)):
        sums0, sums1 = (X[:10] - centre).sum(axis=0), (X[10:] - centre).sum(axis=0)
        smoothing = family.smoothing_map(5)
        terms = column_terms(family, smoothing, centre, sums0, 10.0, sums1, 20.0)
        assert terms.shape == (5,)
        assert terms.sum() == pytest.approx(reference, rel=1e-8)
