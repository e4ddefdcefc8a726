"""Trees and forests against the definition, SciPy and certificates."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from certificates import certify_greedy, certify_nn_chain
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from scipy.sparse import csr_array
from strategies import FAMILIES, continuous, continuous_rows, data_sets
from trees import leaf_sets, same_tree

from fastrbhc import dissimilarity, linkage

CERTIFICATES = {"greedy": certify_greedy, "nn_chain": certify_nn_chain}
both_algorithms = pytest.mark.parametrize("algorithm", CERTIFICATES)
every_family = pytest.mark.parametrize("family", FAMILIES)


# The dissimilarity


@pytest.mark.fast
@every_family
def test_dissimilarity_is_the_definition(family):
    X = continuous_rows(family, 12, 3, seed=1)
    for size in range(1, 12):
        ones = np.ones(12)
        reference = naive.dissimilarity(X[:size], ones[:size], X[size:], ones[size:], family)
        assert dissimilarity(X[:size], X[size:], family) == pytest.approx(reference, rel=1e-9)


@pytest.mark.fast
@every_family
def test_heights_are_dissimilarities_of_the_parts(family):
    X = continuous_rows(family, 12, 2, seed=2)
    tree = linkage(X, family)
    sets = [[leaf] for leaf in range(12)] + [sorted(leaves) for leaves in leaf_sets(tree)]
    for (a, b), height in zip(tree.merges, tree.heights, strict=True):
        assert dissimilarity(X[sets[a]], X[sets[b]], family) == pytest.approx(height, rel=1e-12)


@pytest.mark.fast
@given(data=continuous("spherical_gaussian"))
def test_ward_is_scipys_ward(data):
    tree = linkage(data.X, "ward")
    reference = hierarchy.linkage(data.X, "ward")
    np.testing.assert_array_equal(tree.merges, np.sort(reference[:, :2], axis=1))
    np.testing.assert_allclose(2.0 * np.sqrt(tree.heights), reference[:, 2], rtol=1e-9)
    np.testing.assert_array_equal(tree.weights, reference[:, 3])


@both_algorithms
def test_ward_is_scipys_ward_on_more_rows(algorithm):
    X = np.random.default_rng(8).normal(size=(700, 3))
    tree = linkage(X, "ward", algorithm=algorithm)
    reference = hierarchy.linkage(X, "ward")
    np.testing.assert_array_equal(tree.merges, np.sort(reference[:, :2], axis=1))
    np.testing.assert_allclose(2.0 * np.sqrt(tree.heights), reference[:, 2], rtol=1e-9)


# Thresholds


@pytest.mark.fast
@every_family
@given(data=st.data())
def test_forest_is_the_first_part_of_the_tree(family, data):
    X, weights = data.draw(data_sets(family))
    whole = linkage(X, family, sample_weight=weights)
    threshold = data.draw(st.sampled_from(whole.heights))
    forest = linkage(X, family, sample_weight=weights, threshold=threshold)
    count = len(forest.merges)
    assert count == np.count_nonzero(whole.levels < threshold)
    np.testing.assert_array_equal(forest.merges, whole.merges[:count])
    np.testing.assert_array_equal(forest.heights, whole.heights[:count])
    np.testing.assert_array_equal(forest.cut(threshold=threshold), whole.cut(threshold=threshold))


@pytest.mark.fast
def test_forest_is_the_first_part_of_a_tree_with_inversions():
    inversions = 0
    for seed in (4, 9, 13, 26):
        X = np.random.default_rng(seed).normal(size=(25, 2))
        whole = linkage(X, "gaussian")
        inversions += whole.n_inversions
        for threshold in whole.heights:
            for level in (threshold, np.nextafter(threshold, np.inf)):
                forest = linkage(X, "gaussian", threshold=level)
                count = len(forest.merges)
                np.testing.assert_array_equal(forest.merges, whole.merges[:count])
                np.testing.assert_array_equal(forest.heights, whole.heights[:count])
                np.testing.assert_array_equal(
                    forest.cut(threshold=level), whole.cut(threshold=level)
                )
    assert inversions >= 5


@pytest.mark.fast
@both_algorithms
@every_family
def test_merging_is_strictly_below_the_threshold(family, algorithm):
    X = continuous_rows(family, 2, 2, seed=3)
    height = linkage(X, family, algorithm=algorithm).heights[0]
    assert linkage(X, family, algorithm=algorithm, threshold=height).n_trees == 2
    above = np.nextafter(height, np.inf)
    assert linkage(X, family, algorithm=algorithm, threshold=above).n_trees == 1


@pytest.mark.fast
@both_algorithms
def test_threshold_zero_merges_nothing(algorithm):
    X = np.array([[1.0], [1.0], [2.0]])
    forest = linkage(X, "ward", algorithm=algorithm, threshold=0.0)
    assert forest.n_trees == 3
    assert forest.cut(threshold=0.0).tolist() == [0, 1, 2]


@pytest.mark.fast
@both_algorithms
def test_smallest_threshold_merges_copies_only(algorithm):
    X = np.array([[1.0], [1.0], [2.0]])
    forest = linkage(X, "ward", algorithm=algorithm, threshold=5e-324)
    assert forest.cut(threshold=5e-324).tolist() == [0, 0, 1]


@pytest.mark.fast
def test_infinite_threshold_is_none():
    X = continuous_rows("poisson", 15, 2, seed=4)
    assert same_tree(linkage(X, "poisson", threshold=np.inf), linkage(X, "poisson"))


# Small and plain data


@pytest.mark.fast
@both_algorithms
@every_family
def test_two_rows(family, algorithm):
    X = continuous_rows(family, 2, 3, seed=18)
    tree = linkage(X, family, algorithm=algorithm)
    assert tree.merges.tolist() == [[0, 1]]
    assert tree.heights[0] == pytest.approx(dissimilarity(X[:1], X[1:], family), rel=1e-14)


@pytest.mark.fast
@both_algorithms
@every_family
def test_one_column(family, algorithm):
    X = continuous_rows(family, 12, 1, seed=19)
    tree = linkage(X, family, algorithm=algorithm)
    CERTIFICATES[algorithm](tree, X, None, family)
    assert tree.n_trees == 1


@pytest.mark.fast
@both_algorithms
def test_on_a_line_wards_clusters_are_intervals(algorithm):
    X = continuous_rows("spherical_gaussian", 25, 1, seed=19)
    tree = linkage(X, "ward", algorithm=algorithm)
    for k in range(1, 26):
        labels = tree.cut(n_clusters=k)[np.argsort(X[:, 0])]
        assert np.count_nonzero(np.diff(labels)) == k - 1


@pytest.mark.fast
@both_algorithms
@every_family
@pytest.mark.parametrize("n", [2, 3, 7])
def test_identical_rows(family, algorithm, n):
    X = np.repeat(continuous_rows(family, 1, 3, seed=20), n, axis=0)
    tree = linkage(X, family, algorithm=algorithm)
    np.testing.assert_array_equal(tree.heights, np.zeros(n - 1))
    assert tree.weights[-1] == n
    assert tree.cut(threshold=1e-300).tolist() == [0] * n


@pytest.mark.fast
def test_many_copies_make_a_shallow_tree():
    tree = linkage(np.ones((1000, 1)), "ward")
    depth = np.zeros(tree.n_leaves + len(tree.merges), int)
    for node, pair in enumerate(tree.merges, start=tree.n_leaves):
        depth[node] = 1 + depth[pair].max()
    assert depth.max() == 10


def test_names_of_columns_are_remembered():
    X = np.array([[1.0, 2.0], [3.0, 5.0], [9.0, 9.0]])
    tree = linkage(csr_array(X), "poisson", feature_names=np.array(["cat", "dog"]))
    assert tree.feature_names == ("cat", "dog")
    assert list(tree.summary(X, n_clusters=1).columns[-2:]) == ["mean_cat", "mean_dog"]
