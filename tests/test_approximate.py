"""Approximate trees: whole, with exact heights, near to the exact ones, and marked as such."""

from __future__ import annotations

import json
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from strategies import continuous_rows, wide_counts
from trees import leaf_sets, merged_sets, merged_values, same_tree

import fastrbhc
from fastrbhc import RBHC, Dendrogram, _build_approximate, _near_rows, linkage
from fastrbhc._engine.agglomeration.merge_log import MergeLog, finished
from fastrbhc._engine.agglomeration.shortlists import merge_along_shortlists
from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.comparison import row_dissimilarities
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.threads import Threads
from fastrbhc.families import as_family, geometry_of
from fastrbhc.families._places import places_of
from fastrbhc.tree.dendrogram import dendrogram_of_merges

FEW_FAMILIES = ("spherical_gaussian", "poisson", "gaussian")


def approximate(X, family="ward", **options):
    return linkage(X, family, neighbors="approximate", **options)


def blobs(n=400, d=8, k=10, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    return 6.0 * rng.normal(size=(k, d))[labels] + rng.normal(size=(n, d)), labels


def counts(n=400, d=12, k=10, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.7, 8.0, size=(k, d))[np.arange(n) % k]).astype(float)


def cost(tree, k):
    """The cost within the clusters of a cut."""
    return tree.heights[: tree.n_leaves - k].sum()


def cheapest(X, family="ward", k=10, **options):
    return cost(linkage(X, family, **options), k)


@pytest.mark.fast
@pytest.mark.parametrize("family", FEW_FAMILIES)
def test_few_rows_have_the_exact_tree(family):
    """Sixteen rows and fewer are all neighbours of one another."""
    for n in (2, 9, 16):
        X = continuous_rows(family, n, 3, seed=n)
        tree = approximate(X, family)
        exact = linkage(X, family, algorithm="greedy")
        assert merged_sets(tree).keys() == merged_sets(exact).keys()
        np.testing.assert_allclose(tree.heights, exact.heights, rtol=1e-10)


@pytest.mark.fast
@pytest.mark.parametrize("weighted", [False, True])
def test_lists_of_all_others_give_the_greedy_tree(weighted):
    """For a reducible d, values from before a merge are lower bounds."""
    rng = np.random.default_rng(0)
    n = 40 if weighted else 60
    X, weights = rng.normal(size=(n, 3)), rng.uniform(0.1, 9.0, n) if weighted else None
    family = as_family("ward")
    rows = family.observe(X).weighted(weights)
    geometry = geometry_of(family, rows)
    clusters = clusters_of_points(geometry, rows, mirrored=False)
    given = np.tile(np.arange(n, dtype=np.int32), (n, 1))
    log = MergeLog(np.empty((n - 1, 2), np.int64), np.empty(n - 1), np.arange(n), 0, n)
    with Threads([new_scratch(geometry, 3)]) as threads:
        owners = merge_along_shortlists(
            geometry, clusters, given, n - 1, 1, log, threads, lambda *_: None
        )
    assert np.unique(owners).size == 1
    leaf_weights = np.ones(n) if weights is None else weights
    tree = dendrogram_of_merges(*finished(log), leaf_weights)
    exact = linkage(X, "ward", sample_weight=weights)
    assert merged_sets(tree).keys() == merged_sets(exact).keys()
    np.testing.assert_allclose(tree.heights, exact.heights, rtol=1e-9)


@pytest.mark.parametrize("family", FEW_FAMILIES)
def test_heights_are_the_exact_d_of_what_was_merged(family):
    X = counts() if family == "poisson" else blobs(d=4)[0]
    for times in (np.ones(len(X), int), np.random.default_rng(1).integers(1, 5, len(X))):
        tree = approximate(X, family, sample_weight=times)
        assert (tree.n_trees, tree.threshold) == (1, np.inf)
        np.testing.assert_array_equal(np.sort(tree.merges.ravel()), np.arange(2 * len(X) - 2))
        below = [frozenset([leaf]) for leaf in range(len(X))] + leaf_sets(tree)
        for place in range(0, len(X) - 1, 23):
            parts = [sorted(below[node]) for node in tree.merges[place]]
            copies = [np.repeat(part, times[part]) for part in parts]
            expected = fastrbhc.dissimilarity(*(X[part] for part in copies), family)
            np.testing.assert_allclose(tree.heights[place], expected, rtol=1e-8)


@pytest.mark.parametrize(
    "family", ["ward", "poisson", "multinomial", "gaussian", "diagonal_gaussian", "cosine"]
)
def test_cuts_cost_little_more_than_those_of_the_exact_tree(family):
    several = {"n": 900, "k": 3}
    X = counts(**several) + 1.0 if family in ("poisson", "multinomial") else blobs(**several)[0]
    tree, exact = approximate(X, family), linkage(X, family)
    if family == "poisson":  # it is an approximation
        assert not np.array_equal(tree.heights, exact.heights)
    for k in (5, 10, 40, 150):
        assert cost(tree, k) < 1.05 * cost(exact, k)


def test_far_blobs_are_the_last_to_join():
    X, labels = blobs(n=720, k=12)
    tree = approximate(1_000.0 * np.eye(8)[labels % 8] * (1 + labels // 8)[:, None] + X)
    assert tree.n_trees == 1
    assert adjusted_rand_score(tree.cut(n_clusters=12), labels) == 1.0


def test_pieces_of_the_graph_are_searched_for_neighbours_again(monkeypatch):
    """If more clusters are left than are to merge exactly."""
    searched = []

    def counting(places, *others):
        searched.append(places.shape[0])
        return _near_rows.near_rows(places, *others)

    monkeypatch.setattr(_build_approximate, "near_rows", counting)
    monkeypatch.setattr(_build_approximate, "N_NEIGHBORS", 2)
    monkeypatch.setattr(_build_approximate, "SHARE_LEFT", 0.02)
    X, labels = blobs(k=20)
    tree = approximate(X)
    assert len(searched) > 1
    assert searched == sorted(searched, reverse=True)
    assert tree.n_trees == 1
    assert adjusted_rand_score(tree.cut(n_clusters=20), labels) == 1.0
    wide = wide_counts("poisson", 400, 500, seed=3)
    assert approximate(wide, "poisson", n_jobs=1).n_trees == 1


def test_without_neighbours_all_merges_are_exact(monkeypatch):
    monkeypatch.setattr(
        _build_approximate, "near_rows", lambda places, k, _: np.full((len(places), k), -1, "i4")
    )
    X, _ = blobs(n=120)
    assert merged_sets(approximate(X)).keys() == merged_sets(linkage(X, "ward")).keys()


def test_repeated_rows_merge_first_and_count_as_weights():
    X, _ = blobs(n=150)
    copies = approximate(np.repeat(X, 3, axis=0))
    weighted = approximate(X, sample_weight=np.full(150, 3.0))
    assert np.count_nonzero(copies.heights == 0.0) == 300
    np.testing.assert_allclose(copies.heights[300:], weighted.heights, rtol=1e-12)
    light = approximate(X, sample_weight=(np.arange(150) % 3 > 0).astype(float))
    assert light.n_trees == 1
    assert approximate(np.ones((30, 2))).heights.tolist() == [0.0] * 29


def test_neither_the_order_of_rows_nor_threads_nor_chance_decide():
    X, _ = blobs(n=300)
    tree, order = approximate(X), np.random.default_rng(1).permutation(300)
    assert same_tree(approximate(X), tree)
    assert same_tree(approximate(X, n_jobs=1), tree)
    assert merged_values(approximate(X[order]), X[order]) == merged_values(tree, X)


def test_sparse_rows():
    X = wide_counts("poisson", 500, 400, seed=7)
    tree = approximate(sparse.csr_array(X), "poisson")
    assert tree.n_trees == 1
    for k in (3, 20, 100):
        assert cost(tree, k) < 1.05 * cheapest(X, "poisson", k, neighbors="inverted")


def test_products_with_categories():
    rng = np.random.default_rng(5)
    X, labels = blobs(d=2)
    table = np.column_stack([X, labels % 3, rng.integers(4, size=400)])
    family = {"ward": [0, 1], "categorical": [2, 3]}
    tree = approximate(table, family)
    assert tree.n_trees == 1
    for k in (5, 40):
        assert cost(tree, k) < 1.05 * cheapest(table, family, k)


def test_a_tree_says_that_it_is_approximate():
    X, _ = blobs()
    tree, exact = approximate(X), linkage(X, "ward")
    assert (tree.approximate, tree.certified) == (True, False)
    assert (exact.approximate, exact.certified) == (False, True)
    assert repr(tree).startswith("<Dendrogram: 400 leaves, 399 merges, approximate, heights up to")
    assert "approximat" in tree._repr_html_()
    assert "approximat" not in repr(exact) + exact._repr_html_()
    for copy in (Dendrogram.from_json(tree.to_json()), pickle.loads(pickle.dumps(tree))):
        assert same_tree(copy, tree)
        assert copy.approximate
        assert copy.origin == tree.origin
    assert "approximate" not in json.loads(exact.to_json())
    wrong = json.loads(tree.to_json()) | {"approximate": "yes"}
    with pytest.raises(ValueError, match="approximate 'yes'"):
        Dendrogram.from_json(json.dumps(wrong))


def test_a_threshold_cuts_the_whole_tree():
    X, labels = blobs()
    tree = approximate(X)
    forest = approximate(X, threshold=100.0)
    assert forest.threshold == 100.0
    assert forest.approximate
    np.testing.assert_array_equal(forest.cut(), tree.cut(threshold=100.0))
    gap = approximate(X, threshold="gap")
    assert adjusted_rand_score(gap.cut(), labels) == 1.0


def test_the_estimator_takes_it():
    X, labels = blobs()
    model = clone(RBHC("ward", n_clusters=10, neighbors="approximate")).fit(X)
    assert adjusted_rand_score(model.labels_, labels) == 1.0
    assert model.dendrogram_.approximate
    np.testing.assert_array_equal(model.predict(X[:5]), model.labels_[:5])


@pytest.mark.fast
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"audit": True}, r"tree.approximation\(X\)"),
        ({"algorithm": "nn_chain"}, "leave one of them out"),
        ({"missing": "ignore"}, "missing='ignore' is not there"),
        ({"connectivity": [[0, 1]]}, "those of the graph"),
    ],
)
def test_options_without_a_meaning_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        approximate(np.arange(10.0).reshape(5, 2), **options)


@pytest.mark.fast
def test_an_error_names_the_extra_if_pynndescent_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    with pytest.raises(ImportError, match=r"pynndescent.*fastrbhc\[approximate\]"):
        approximate(np.arange(10.0).reshape(5, 2))
    assert linkage([[0.0], [1.0]], "ward").n_trees == 1


@pytest.mark.fast
def test_what_pynndescent_finds_is_without_the_row_itself(monkeypatch):
    """Rows at the same place may come first, and some rows may have too few; `make
    test-approximate` calls the library itself.
    """
    found = np.array([[0, 1, 2], [0, 2, 1], [0, 1, 3], [3, -1, -1]])
    asked = {}

    def descent(places, **options):
        asked.update(options)
        return SimpleNamespace(neighbor_graph=(found, None))

    monkeypatch.setitem(sys.modules, "pynndescent", SimpleNamespace(NNDescent=descent))
    monkeypatch.setattr(_near_rows, "MOST_COMPARED", 0)
    rows = _near_rows.near_rows(np.zeros((4, 2), np.float32), 2, 1)
    assert rows.tolist() == [[1, 2], [0, 2], [0, 1], [-1, -1]]
    assert (asked["n_neighbors"], asked["random_state"], asked["n_jobs"]) == (3, 0, 1)


@pytest.mark.parametrize("family", ["poisson", "exponential", "negative_binomial", "multinomial"])
def test_distances_of_places_find_the_nearest_rows(family):
    """Of the fifteen nearest by distance one is the nearest by d, nearly always."""
    X = counts(n=300) + (0.1 if family in ("exponential", "multinomial") else 0.0)
    record = as_family(family)
    points = record.observe(X)._replace(weights=None)
    geometry, some = geometry_of(record, points), np.arange(0, 300, 6)
    clusters = clusters_of_points(geometry, points)
    d = row_dissimilarities(geometry, clusters, points.take(some))
    d[np.arange(some.size), some] = np.inf
    found = _near_rows.near_rows(places_of(record, points), 15, 1)
    hits = (found[some] == d.argmin(axis=1)[:, None]).any(axis=1)
    assert np.count_nonzero(hits) >= 48
