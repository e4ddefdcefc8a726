"""Clusterings along λ, against cuts and the definition of the cost."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import xlogy
from trees import chain, forest_with_ties

from fastrbhc import linkage

pytestmark = pytest.mark.fast


def ward(x):
    return 0.5 * (x**2).sum(axis=-1)


def poisson(x):
    return (xlogy(x + 0.01, x + 0.01) - x - 0.01).sum(axis=-1)


def cost(X, weights, labels, phi):
    """Σ f({x}) − f(c) over the clusters, with f = n·φ(t)."""
    total = weights @ phi(X)
    for label in np.unique(labels):
        inside = labels == label
        n = weights[inside].sum()
        total -= n * phi(weights[inside] @ X[inside] / n)
    return total


@pytest.mark.parametrize(("family", "phi"), [("ward", ward), ("poisson", poisson)])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_step_is_a_cut(family, phi, weighted):
    rng = np.random.default_rng(0)
    X = rng.poisson(9.0, (30, 2)).astype(float)  # with ties and copies
    weights = rng.integers(1, 4, 30).astype(float) if weighted else np.ones(30)
    tree = linkage(X, family, sample_weight=weights)
    path = tree.path()
    for j, threshold in enumerate(path.thresholds):
        labels = tree.cut(threshold=threshold)
        assert path.n_clusters[j] == labels.max() + 1
        assert path.largest[j] == np.bincount(labels, weights).max()
        assert path.costs[j] == pytest.approx(cost(X, weights, labels, phi), abs=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: linkage(np.random.default_rng(4).normal(size=(25, 2)), "gaussian"),
        lambda: linkage([[i, j] for i in range(5) for j in range(5)], "ward"),
        forest_with_ties,
        lambda: chain(9),
    ],
    ids=["inversions", "grid", "forest", "chain"],
)
def test_all_clusterings_and_none_twice(make):
    tree = make()
    path = tree.path()
    limit = min(tree.threshold, 2.0 * tree.heights.max())
    candidates = [0.0, limit, *tree.heights, *(np.nextafter(tree.heights, np.inf))]
    counts = {int(tree.cut(threshold=min(c, limit)).max()) + 1 for c in candidates}
    assert path.n_clusters.tolist() == sorted(counts, reverse=True)
    assert (np.diff(path.thresholds) > 0.0).all()
    assert path.thresholds[-1] == tree.threshold
    assert path.n_clusters[-1] == tree.n_trees
    for threshold in np.append(tree.heights, limit):
        assert path.n_clusters[path.at(threshold)] == tree.cut(threshold=threshold).max() + 1


def test_ties_are_one_step():
    path = linkage([[0.0], [1.0], [10.0], [11.0], [50.0]], "ward").path()
    assert path.n_clusters.tolist() == [5, 3, 2, 1]
    assert path.costs.tolist()[:2] == [0.0, 0.5]


def test_copies_of_one_row():
    path = linkage(np.zeros((4, 2)), "ward").path()
    assert path.n_clusters.tolist() == [4, 1]
    assert path.thresholds.tolist() == [0.0, np.inf]


def test_nothing_was_merged():
    path = linkage([[0.0], [1.0]], "ward", threshold=0.1).path()
    assert (path.n_clusters.tolist(), path.thresholds.tolist()) == ([2], [0.1])
    assert (path.largest.tolist(), path.costs.tolist()) == ([1.0], [0.0])


def test_a_forest_ends_at_its_threshold():
    path = forest_with_ties().path()
    with pytest.raises(ValueError, match="up to threshold 20"):
        path.at(21.0)


def test_it_is_computed_once_and_shown():
    tree = linkage(np.random.default_rng(0).normal(size=(40, 2)), "ward")
    path = tree.path()
    assert tree.path() is path
    assert repr(path) == "<ClusteringPath: 40 clusterings, 40 to 1 clusters>"
    assert path.to_pandas().shape == (40, 4)
    page = path._repr_html_()
    assert page.count("<tr>") == 13
    assert "data:image/png;base64," in page
