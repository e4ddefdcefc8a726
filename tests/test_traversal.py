"""Walks through trees, against recursion and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster import hierarchy
from trees import chain, forest_with_ties, leaf_sets

from fastrbhc import linkage
from fastrbhc._engine.traversal import best_overlaps, common_labels, leaf_spans, subtree_sums


def depth_first(tree, node):
    if node < tree.n_leaves:
        return [node]
    left, right = tree.merges[node - tree.n_leaves].tolist()
    return depth_first(tree, left) + depth_first(tree, right)


def rows(seed, n=40):
    return np.random.default_rng(seed).normal(size=(n, 2))


@pytest.mark.fast
@pytest.mark.parametrize("seed", [0, 1])
def test_the_order_of_leaves_is_that_of_scipy(seed):
    tree = linkage(rows(seed), "ward")
    order = tree.leaves_order()
    np.testing.assert_array_equal(order, hierarchy.leaves_list(tree.to_scipy()))
    assert order.tolist() == depth_first(tree, 2 * 40 - 2)


@pytest.mark.fast
def test_trees_of_a_forest_follow_one_another_by_their_first_rows():
    tree = forest_with_ties()
    order, trees = tree.leaves_order(), [[0, 1, 2, 3], [4, 5], [6]]
    assert [sorted(part) for part in np.split(order, [4, 6])] == trees
    assert sorted(tree.leaves_order()) == list(range(7))


@pytest.mark.fast
def test_leaves_of_every_node_stand_side_by_side():
    for tree in (linkage(rows(2), "ward"), forest_with_ties(), chain(30)):
        order = tree.leaves_order()
        starts, sizes = leaf_spans(tree.merges, tree.n_leaves)
        sets = [{leaf} for leaf in range(tree.n_leaves)] + leaf_sets(tree)
        for node, leaves in enumerate(sets):
            assert set(order[starts[node] : starts[node] + sizes[node]]) == leaves
            assert tree.members(node).tolist() == sorted(leaves)


@pytest.mark.fast
def test_labels_that_all_leaves_share():
    tree = linkage(rows(3), "ward")
    labels = np.random.default_rng(3).integers(-1, 3, 40)
    common = common_labels(tree.merges, labels)
    for node, leaves in enumerate(leaf_sets(tree), start=40):
        found = {int(labels[leaf]) for leaf in leaves}
        assert common[node] == (found.pop() if len(found) == 1 else -1)


@pytest.mark.parametrize("node", [-1, 7, 1.0, True, "0"])
def test_nodes_that_are_not_there(node):
    with pytest.raises((ValueError, TypeError), match="node"):
        linkage([[0.0], [1.0], [5.0], [7.0]], "ward").members(node)


def test_a_chain_may_be_as_deep_as_it_is_long():
    tree = chain(200_000)
    assert tree.members(399_998).size == 200_000
    assert tree.members(200_003).tolist() == [0, 1, 2, 3, 4]
    # A leaf is to the left of the chain below it, except for the first two.
    np.testing.assert_array_equal(tree.leaves_order(), np.r_[np.arange(199_999, 1, -1), 0, 1])
    assert tree.cut(n_clusters=3).tolist()[-3:] == [0, 1, 2]


@pytest.mark.fast
def test_overlaps_with_the_best_node():
    tree, rng = linkage(rows(5), "ward"), np.random.default_rng(5)
    labels, weights = rng.integers(0, 3, 40), rng.integers(0, 4, 40).astype(float)
    sets = [{leaf} for leaf in range(40)] + leaf_sets(tree)

    def weight(leaves):
        return sum(weights[leaf] for leaf in leaves)

    def jaccard(a, b):
        return weight(a & b) / weight(a | b) if weight(a | b) else 0.0

    clusters = [set(np.flatnonzero(labels == label).tolist()) for label in range(3)]
    reference = [max(jaccard(cluster, leaves) for leaves in sets) for cluster in clusters]
    computed = best_overlaps(tree.merges, labels, weights, 4)
    np.testing.assert_allclose(computed, [*reference, 0.0])


@pytest.mark.fast
def test_sums_over_subtrees():
    tree = forest_with_ties()
    reference = [
        sum(h for h, below in zip(tree.heights, leaf_sets(tree), strict=True) if below <= leaves)
        for leaves in leaf_sets(tree)
    ]
    computed = subtree_sums(tree.merges, tree.heights, tree.n_leaves)
    np.testing.assert_allclose(computed, reference)
