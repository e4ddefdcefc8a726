"""The report on approximate trees, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from trees import leaf_sets

import fastrbhc
from fastrbhc import _build_approximate, linkage
from fastrbhc.approximation import ApproximationReport, CutComparison


def rough_tree(monkeypatch, X, family, **options):
    """A tree with so few neighbours that it is often wrong."""
    monkeypatch.setattr(_build_approximate, "N_NEIGHBORS", 2)
    monkeypatch.setattr(_build_approximate, "SHARE_LEFT", 0.05)
    tree = linkage(X, family, neighbors="approximate", **options)
    monkeypatch.undo()
    return tree


def nearest_by_brute_force(tree, X, family, weights):
    """Whether each merge joined a nearest pair, from the definition, and the d lost."""
    sets = [frozenset([leaf]) for leaf in range(tree.n_leaves)] + leaf_sets(tree)
    alive = {frozenset([leaf]) for leaf in range(tree.n_leaves)}
    found, lost, least = [], 0.0, 0.0

    def d(*parts):
        rows = (np.repeat(sorted(part), weights[sorted(part)]) for part in parts)
        return fastrbhc.dissimilarity(*(X[places] for places in rows), family)

    for merge in tree.merges:
        a, b = (sets[node] for node in merge)
        height = d(a, b)
        others = alive - {a, b}
        nearest = min([height, *(d(own, x) for own in (a, b) for x in others)])
        found.append(height - nearest <= 1e-10 * height)
        lost, least = lost + height - nearest, least + nearest
        alive = others | {a | b}
    return found, lost / least


@pytest.mark.parametrize("family", ["ward", "poisson", "gaussian"])
def test_shares_are_those_of_brute_force(monkeypatch, family):
    rng = np.random.default_rng(0)
    X = rng.poisson(9.0, size=(40, 3)).astype(float) + 0.01 * rng.random((40, 3))
    weights = rng.integers(1, 4, 40)
    tree = rough_tree(monkeypatch, X, family, sample_weight=weights)
    report = tree.approximation(X, n_merges=1_000, n_clusters=[4])
    found, excess = nearest_by_brute_force(tree, X, family, weights)
    assert (report.merges, report.nearest) == (39, sum(found))
    assert report.nearest < 39
    assert report.excess == pytest.approx(excess, rel=1e-6)
    lower, upper = report.interval
    assert lower < report.share < upper


def test_costs_of_all_rows_are_sums_of_heights(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 4))
    tree, exact = rough_tree(monkeypatch, X, "ward"), linkage(X, "ward")
    again = linkage(X, "ward", neighbors="approximate")
    report = tree.approximation(X, n_clusters=[3, 20])
    assert report.n_rows == 150
    for cut, k in zip(report.cuts, (3, 20), strict=True):
        costs = [one.heights[: 150 - k].sum() for one in (tree, exact, again)]
        np.testing.assert_allclose((cut.cost, cut.exact, cut.again), costs, rtol=1e-9)
        labels = (one.cut(n_clusters=k) for one in (tree, exact))
        assert cut.agreement == adjusted_rand_score(*labels)
        assert (cut.n_clusters, cut.present) == (k, k)


def test_a_sample_of_rows_has_the_clusters_that_are_in_it():
    rng = np.random.default_rng(2)
    X = 9.0 * rng.normal(size=(20, 5)).repeat(30, axis=0) + rng.normal(size=(600, 5))
    tree = linkage(X, "ward", neighbors="approximate")
    report = tree.approximation(X, n_rows=100, n_clusters=[20, 200])
    assert report.n_rows == 100
    assert report.cuts[0].present == 20
    assert report.cuts[0].agreement == 1.0
    assert report.cuts[0].excess == pytest.approx(0.0, abs=1e-9)
    assert report.cuts[1].present <= 100
    assert str(report) == str(tree.approximation(X, n_rows=100, n_clusters=[20, 200]))
    assert report != tree.approximation(X, n_rows=100, n_clusters=[20, 200], random_state=1)


def test_exact_trees_have_nearest_pairs_only():
    X = np.random.default_rng(3).normal(size=(200, 2))
    X[:50] = X[50:100]
    report = linkage(X, "ward").approximation(X, n_merges=500)
    assert (report.merges, report.nearest, report.excess) == (149, 149, 0.0)
    assert not report.approximate


def test_sparse_rows():
    X = np.random.default_rng(4).poisson(0.05, size=(300, 400)).astype(float)
    X[:, 0] += 1.0
    from scipy.sparse import csr_array

    tree = linkage(csr_array(X), "poisson", neighbors="inverted")
    report = tree.approximation(csr_array(X), n_merges=30, n_clusters=[5])
    dense = tree.approximation(X, n_merges=30, n_clusters=[5])
    assert report.nearest == dense.nearest == 30
    np.testing.assert_allclose(report.cuts[0][2:5], dense.cuts[0][2:5], rtol=1e-9)


def test_verdicts_in_words():
    cut = CutComparison(10, 10, 102.0, 100.0, 99.96, 0.5)
    report = ApproximationReport(True, 9_000, 200, 150, 0.0123, 5_000, (cut,))
    assert report.sentence == (
        "150 of 200 merges drawn at random joined a nearest pair (95 % interval 68 to 81 %), and d "
        "was 1.2 % above that of nearest pairs; cuts of such a tree of a sample cost as much as "
        "those of the exact tree."
    )
    assert str(report).splitlines()[2:] == [
        "Cuts beside the exact tree of a sample of 5,000 rows",
        "  clusters   cost above   again   agreement",
        "        10        2.0 %   0.0 %        0.50",
    ]
    assert "2.0 %" in report._repr_html_()
    two = (cut, cut._replace(cost=99.0))
    whole = ApproximationReport(True, 5_000, 200, 200, 0.0, 5_000, two)
    assert whole.sentence.endswith(
        "its cuts cost between 1.0 % less and 2.0 % more than those of the exact one."
    )
    equal = ApproximationReport(True, 2, 0, 0, 0.0, 2, (cut._replace(cost=0.0, exact=0.0),))
    assert equal.sentence.startswith("All rows are equal")
    assert report.to_pandas()["excess"].tolist() == pytest.approx([0.02])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_clusters": [0]}, ValueError, "at least 1"),
        ({"n_clusters": [31]}, ValueError, "more than the number of rows"),
        ({"n_clusters": 2.5}, TypeError, "whole number"),
        ({"n_merges": 0}, ValueError, "n_merges has to be at least 1"),
        ({"n_rows": 1}, ValueError, "at least 2"),
    ],
)
def test_bad_options(options, error, words):
    X = np.random.default_rng(5).normal(size=(30, 2))
    with pytest.raises(error, match=words):
        linkage(X, "ward").approximation(X, **options)


def test_trees_that_have_no_report():
    X = np.random.default_rng(6).normal(size=(30, 2))
    with pytest.raises(ValueError, match="threshold=None"):
        linkage(X, "ward", threshold=0.1).approximation(X)
    with pytest.raises(ValueError, match="20 rows and the tree has 30"):
        linkage(X, "ward").approximation(X[:20])
    with pytest.raises(ValueError, match="no graph"):
        linkage(X, "ward", connectivity=fastrbhc.grid(30)).approximation(X)
    light = linkage(X, "ward", sample_weight=np.arange(30) > 0)
    with pytest.raises(ValueError, match="weight 0"):
        light.approximation(X)
