"""Silhouettes, shares of the cost and lifetimes of clusters."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import ALL_FAMILIES, wide_counts
from test_statistics import draw, geometry_and_rows

from fastrbhc import dissimilarity, linkage
from fastrbhc.assessment.measures import (
    costs_of,
    explained_shares,
    levels_of,
    nodes_of_labels,
    parents_of,
    silhouettes,
)
from fastrbhc.families import as_family, geometry_of


@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_silhouettes_leave_the_row_out(name):
    X, labels = draw(name, np.random.default_rng(0), 18, 2), np.arange(18) % 3
    labels[labels == 2] = np.r_[2, np.zeros(5, int)]  # one row is alone
    geometry, rows = geometry_and_rows(name, X)
    reference = []
    for i, x in enumerate(X):
        others = np.arange(18) != i
        d = {
            c: dissimilarity(x[None], X[others & (labels == c)], name)
            for c in range(3)
            if (others & (labels == c)).any()
        }
        a, b = d.pop(int(labels[i]), None), min(d.values())
        reference.append(0.0 if a is None else (b - a) / max(a, b))
    # Clusters have at most eleven rows: in one of them, two rows are left out together.
    computed = silhouettes(geometry, rows, labels, 3)
    exact = ~np.isin(np.arange(18), np.flatnonzero(labels == 0)[[0, 10]])
    np.testing.assert_allclose(computed[exact], np.array(reference)[exact], rtol=1e-7)


def test_silhouettes_of_one_cluster_and_of_equal_rows():
    geometry, rows = geometry_and_rows("ward", np.zeros((6, 1)))
    assert np.isnan(silhouettes(geometry, rows, np.zeros(6, int), 1)).all()
    assert silhouettes(geometry, rows, np.arange(6) % 2, 2).tolist() == [0.0] * 6


def test_large_clusters_leave_a_tenth_out():
    rng = np.random.default_rng(1)
    X = np.r_[rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 9.0]
    geometry, rows = geometry_and_rows("ward", X)
    labels = np.repeat([0, 1], 200)
    means = np.array([X[:200].mean(axis=0), X[200:].mean(axis=0)])
    squares = np.square(X[:, None] - means).sum(axis=2)
    a, b = squares[np.arange(400), labels], squares[np.arange(400), 1 - labels]
    np.testing.assert_allclose(
        silhouettes(geometry, rows, labels, 2).mean(), (1.0 - a / b).mean(), atol=0.01
    )


@pytest.mark.parametrize("name", ["ward", "gaussian", "poisson"])
def test_shares_of_the_cost(name):
    X = draw(name, np.random.default_rng(2), 40, 2)
    tree = linkage(X, name)
    labels, total = tree.cut(n_clusters=4), tree.heights.sum()
    geometry, rows = geometry_and_rows(name, X)
    within = tree.heights[:-3].sum()
    shares, together = explained_shares(geometry, rows, labels, 4, within)
    reference = [dissimilarity(X[labels == c], X[labels != c], name) for c in range(4)]
    np.testing.assert_allclose(shares, np.array(reference) / total, rtol=1e-7)
    np.testing.assert_allclose(together, tree.heights[-3:].sum() / total, rtol=1e-7)


def test_equal_rows_explain_nothing():
    geometry, rows = geometry_and_rows("ward", np.ones((4, 1)))
    shares, together = explained_shares(geometry, rows, np.arange(4) % 2, 2, 0.0)
    assert shares.tolist() == [0.0, 0.0]
    assert together == 0.0


def test_nodes_and_lifetimes():
    tree = linkage([[0.0], [1.0], [5.0], [7.0], [30.0]], "ward")
    labels = np.array([2, 2, 0, 0, 1])
    nodes = nodes_of_labels(tree, labels, 3)
    assert nodes.tolist() == [6, 4, 5]
    parents = parents_of(tree, nodes)
    assert parents.tolist() == [7, 8, 7]
    assert levels_of(tree, nodes, 0.0).tolist() == [1.0, 0.0, 0.25]
    assert levels_of(tree, parents, np.inf)[0] == tree.levels[2]
    assert parents_of(tree, np.array([8])).tolist() == [-1]
    assert levels_of(tree, np.array([-1]), np.inf).tolist() == [np.inf]
    assert costs_of(tree)[[0, 5, 7]].tolist() == [0.0, 0.25, 0.25 + 1.0 + 15.125]


def test_rows_that_are_no_node():
    tree = linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
    assert nodes_of_labels(tree, np.array([0, 1, 0, 1]), 2).tolist() == [-1, -1]


@pytest.mark.parametrize("name", ["poisson", "multinomial", "bernoulli"])
def test_sparse_rows_have_the_measures_of_dense_ones(name):
    X, labels = wide_counts(name, 50, 400, 8), np.arange(50) % 4
    labels[labels == 3] = np.r_[3, np.zeros(11, int)]  # one row is alone
    family = as_family(name)
    found = []
    for rows in (family.observe(X), family.observe(X.toarray())):
        geometry = geometry_of(family, rows)
        shares, together = explained_shares(geometry, rows, labels, 4, 100.0)
        found.append(np.r_[silhouettes(geometry, rows, labels, 4), shares, together])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
