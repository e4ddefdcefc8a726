"""Rows of a tree: the order in which neighbours are similar, and where pairs are joined."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform
from trees import chain, forest_with_ties, leaf_sets

import fastrbhc
from fastrbhc import Dendrogram, linkage
from fastrbhc._engine.leaf_ordering import best_order
from fastrbhc.tree.leaf_order import distances_of_groups

pytestmark = pytest.mark.fast


def rows(seed, n=30, d=2):
    return np.random.default_rng(seed).normal(size=(n, d))


def whole_pairs(n):
    return np.array(list(combinations(range(n), 2)))


# Pairs


@pytest.mark.parametrize("family", ["ward", "gaussian"])
@pytest.mark.parametrize("seed", [4, 9])
def test_pairs_are_joined_where_scipy_joins_them(family, seed):
    tree = linkage(rows(seed, 25), family)
    if tree.n_inversions:
        with pytest.warns(UserWarning, match="raised"):
            Z = tree.to_scipy()
    else:
        Z = tree.to_scipy()
    np.testing.assert_array_equal(tree.cophenetic(whole_pairs(25)), hierarchy.cophenet(Z))


def joined_at(tree, a, b, values):
    """The first merge with both, among sets of leaves."""
    for leaves, value in zip(leaf_sets(tree), values, strict=True):
        if a in leaves and b in leaves:
            return value
    return np.inf


@pytest.mark.parametrize("raw_heights", [False, True])
@pytest.mark.parametrize(
    "tree",
    [
        forest_with_ties(),
        chain(12),
        linkage(rows(4, 25), "gaussian"),  # has inversions
        linkage(np.zeros((9, 1)), "ward"),
        linkage(rows(0, 6), "ward", threshold=1e-9),
    ],
)
def test_pairs_against_sets_of_leaves(tree, raw_heights):
    pairs = whole_pairs(tree.n_leaves)
    values = tree.heights if raw_heights else tree.levels
    reference = [joined_at(tree, a, b, values) for a, b in pairs.tolist()]
    computed = tree.cophenetic(pairs[:, ::-1], raw_heights=raw_heights)
    np.testing.assert_array_equal(computed, reference)


def test_a_pair_is_in_one_cluster_above_its_height():
    tree = linkage(rows(13, 25), "gaussian")
    assert tree.n_inversions
    pairs = whole_pairs(25)
    joined = tree.cophenetic(pairs)
    for level in [*tree.levels, 1.5 * tree.levels[-1]]:
        labels = tree.cut(threshold=level)
        np.testing.assert_array_equal(labels[pairs[:, 0]] == labels[pairs[:, 1]], joined < level)


def test_a_row_with_itself_and_other_shapes():
    tree = linkage([[0.0], [1.0], [5.0]], "ward")
    assert tree.cophenetic([1, 1]) == 0.0
    assert tree.cophenetic(np.zeros((2, 3, 2), int)).tolist() == np.zeros((2, 3)).tolist()
    assert tree.cophenetic(np.empty((0, 2))).shape == (0,)
    odds = Dendrogram(np.array([[0, 1]]), np.array([-2.0]), np.array([2.0]), 2)
    assert odds.cophenetic([[0, 0], [0, 1]]).tolist() == [-2.0, -2.0]


def test_long_chains_take_no_long_walks():
    n = 200_000
    tree = chain(n)
    a = np.arange(1, n)
    np.testing.assert_array_equal(tree.cophenetic(np.column_stack([a, 0 * a])), tree.levels)


@pytest.mark.parametrize(
    ("pairs", "error", "words"),
    [
        ([0, 1, 2], ValueError, r"shape \(3,\), expected \(m, 2\)"),
        (3, ValueError, r"shape \(\)"),
        ([[0.0, 1.0]], TypeError, "whole numbers"),
        ([[0, 30]], ValueError, "row 30 is not one of the tree's, which are 0 to 29"),
        ([[-1, 3]], ValueError, "row -1 is not"),
    ],
)
def test_pairs_that_are_none(pairs, error, words):
    with pytest.raises(error, match=words):
        linkage(rows(0), "ward").cophenetic(pairs)


# Order


def length(order, near):
    return near[order[:-1], order[1:]].sum()


def is_order_of(tree, order):
    """Whether the leaves of every node are adjacent."""
    place = np.argsort(order)
    return all(np.ptp(place[list(leaves)]) == len(leaves) - 1 for leaves in leaf_sets(tree))


@pytest.mark.parametrize("seed", range(4))
def test_no_other_order_is_shorter(seed):
    tree = linkage(rows(seed, 7), "ward")
    near = squareform(np.random.default_rng(seed).integers(1, 6, 21).astype(float))
    shortest = min(
        length(np.array(order), near)
        for order in permutations(range(7))
        if is_order_of(tree, np.array(order))
    )
    computed = best_order(tree.merges, 7, near)
    assert is_order_of(tree, computed)
    assert length(computed, near) == shortest


@pytest.mark.parametrize("n", [2, 3, 60, 150])
def test_not_longer_than_that_of_scipy(n):
    # SciPy's is longer for half of such trees, and exhaustive search agrees with this one.
    X = rows(n, n)
    tree, y = linkage(X, "ward"), pdist(X)
    reference = hierarchy.leaves_list(hierarchy.optimal_leaf_ordering(tree.to_scipy(), y))
    computed = best_order(tree.merges, n, squareform(y))
    assert is_order_of(tree, computed)
    found, other = (length(order, squareform(y)) for order in (computed, reference))
    assert 0.8 * other < found < (1.0 + 1e-12) * other


@pytest.mark.parametrize("family", ["ward", "poisson", "gaussian", "multinomial"])
def test_distances_are_those_of_groups_of_weight_one(family):
    X = np.random.default_rng(1).poisson(5.0, size=(12, 3)) + 1.0
    labels = np.repeat([0, 1, 2, 3], [1, 2, 4, 5])
    # Copies of rows, so that all groups have the same weight; d is proportional to it.
    copies = np.repeat(np.arange(12), np.array([20, 10, 5, 4])[labels])
    if family == "multinomial":  # a row weighs as much as its total
        X[:, 2] = 40.0 - X[:, 0] - X[:, 1]
    record = fastrbhc.families.as_family(family)
    computed = distances_of_groups(record, X, labels, np.ones(12))
    unit = 20.0 * (40.0 if family == "multinomial" else 1.0)
    for a, b in combinations(range(4), 2):
        groups = [X[copies[labels[copies] == one]] for one in (a, b)]
        reference = fastrbhc.dissimilarity(*groups, family) / unit
        assert computed[a, b] == computed[b, a] == pytest.approx(reference, rel=1e-9)


def test_neighbours_are_similar():
    X = np.random.default_rng(0).permutation(40)[:, None].astype(float)
    tree = linkage(X, "ward")
    order = tree.leaves_order(optimal=True, X=X)
    assert is_order_of(tree, order)
    assert abs(np.diff(X[order, 0])).max() == 1.0
    assert abs(np.diff(X[tree.leaves_order(), 0])).max() > 1.0


def test_rows_below_the_highest_nodes_stay_in_their_order():
    X = rows(2, 400)
    tree = linkage(X, "ward")
    order = tree.leaves_order(optimal=True, X=X, max_nodes=20)
    assert is_order_of(tree, order)
    labels, place = tree.cut(n_clusters=20), np.argsort(tree.leaves_order())
    assert (np.diff(place[order])[np.diff(labels[order]) == 0] == 1).all()
    assert not np.array_equal(order, tree.leaves_order())
    # The order of the nodes is the best one for the distances between them.
    first = [order[np.flatnonzero(labels[order] == k)[0]] for k in range(20)]
    near = distances_of_groups(tree.family, X, labels, np.ones(400))
    other = np.argsort(place[first])
    assert length(np.argsort(np.argsort(order)[first]), near) < length(other, near)


def test_the_trees_of_a_forest_are_ordered_one_by_one():
    forest = forest_with_ties()
    X = [[0.0], [1.0], [5.0], [6.0], [20.0], [21.5], [60.0]]
    assert forest.leaves_order(optimal=True, X=X).tolist() == [3, 2, 1, 0, 4, 5, 6]
    alone = linkage(X, "ward", threshold=0.1)
    assert alone.leaves_order(optimal=True, X=X).tolist() == list(range(7))
    assert alone.leaves_order(optimal=True, X=X, max_nodes=2).tolist() == list(range(7))


def test_sparse_rows_and_rows_with_gaps_have_orders_too():
    X = np.random.default_rng(3).poisson(0.3, size=(14, 20)).astype(float)
    tree = linkage(X, "poisson")
    reference = tree.leaves_order(optimal=True, X=X)
    computed = linkage(sparse.csr_array(X), "poisson").leaves_order(
        optimal=True, X=sparse.csr_array(X)
    )
    assert is_order_of(tree, computed)
    near = distances_of_groups(tree.family, X, np.arange(14), np.ones(14))
    np.testing.assert_allclose(length(computed, near), length(reference, near), rtol=1e-9)
    X[3, 5] = X[8, 1] = np.nan
    gaps = linkage(X, "poisson", missing="ignore")
    assert is_order_of(gaps, gaps.leaves_order(optimal=True, X=X))


def test_rows_without_weight():
    X = rows(5, 20)
    weights = np.r_[np.zeros(4), np.ones(16)]
    tree = linkage(X, "ward", sample_weight=weights)
    order = tree.leaves_order(optimal=True, X=X)
    assert is_order_of(tree, order)


def test_what_the_order_needs():
    tree = linkage(rows(0), "ward")
    with pytest.raises(ValueError, match=r"optimal=True\) needs X"):
        tree.leaves_order(optimal=True)
    with pytest.raises(ValueError, match="X is for"):
        tree.leaves_order(X=rows(0))
    with pytest.raises(ValueError, match="29 rows and the tree has 30"):
        tree.leaves_order(optimal=True, X=rows(0)[1:])
    with pytest.raises(ValueError, match="max_nodes is at most 5,000"):
        tree.leaves_order(optimal=True, X=rows(0), max_nodes=6000)
