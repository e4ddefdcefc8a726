"""Trees with near neighbours of pynndescent itself: ``make test-approximate``.

It compiles for half a minute or more in every process, so these are not among the ordinary tests.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from fastrbhc import _near_rows, linkage


@pytest.fixture(autouse=True)
def _for_few_rows_too(monkeypatch):
    monkeypatch.setattr(_near_rows, "MOST_COMPARED", 0)


def rows(n=3_000, d=20, k=30):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % k
    return 5.0 * rng.normal(size=(k, d))[labels] + rng.normal(size=(n, d)), labels


def cost(tree, k):
    return tree.heights[: tree.n_leaves - k].sum()


def test_trees_are_whole_nearly_exact_and_the_same_each_time():
    X, labels = rows()
    tree, exact = linkage(X, "ward", neighbors="approximate"), linkage(X, "ward")
    assert tree.n_trees == 1
    for k in (5, 30, 300):
        assert cost(tree, k) < 1.03 * cost(exact, k)
    assert adjusted_rand_score(tree.cut(n_clusters=30), labels) == 1.0
    again = linkage(X, "ward", neighbors="approximate")
    assert np.array_equal(again.merges, tree.merges)
    alone = [linkage(X, "ward", neighbors="approximate", n_jobs=1) for _ in range(2)]
    assert np.array_equal(alone[0].merges, alone[1].merges)


def test_sparse_rows():
    rng = np.random.default_rng(1)
    rates = rng.gamma(0.05, 10.0, size=(20, 300))
    X = sparse.csr_array(rng.poisson(rates[np.arange(1_000) % 20] + 0.01).astype(float))
    tree = linkage(X, "poisson", neighbors="approximate")
    exact = linkage(X, "poisson", neighbors="inverted")
    assert tree.n_trees == 1
    for k in (5, 20, 200):
        assert cost(tree, k) < 1.05 * cost(exact, k)


def test_as_many_equal_places_as_one_likes():
    """Rows that differ by less than single precision are at the same place."""
    X = 1.0 + 1e-12 * np.random.default_rng(2).normal(size=(200, 3))
    X[0] = 9.0
    tree = linkage(X, "ward", neighbors="approximate")
    assert tree.n_trees == 1
    assert tree.cut(n_clusters=2).sum() == 1
