"""The tree: cuts, exports, inversions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from strategies import FAMILIES, continuous_rows, data_sets
from trees import same_tree

import fastrbhc
from fastrbhc import linkage
from fastrbhc.tree.dendrogram import Dendrogram, dendrogram_of_merges

pytestmark = pytest.mark.fast

# Seeds whose full-covariance trees have inversions, as the first test verifies.
SEEDS_WITH_INVERSIONS = (4, 9, 13, 25, 26)


def points_with_inversions(seed):
    return np.random.default_rng(seed).normal(size=(25, 2))


def tree_with_inversions(seed, **options):
    return linkage(points_with_inversions(seed), "gaussian", **options)


def labels_of_sets(tree, rows):
    """Labels after the given merges, by plain set union, numbered by first appearance."""
    sets = {leaf: {leaf} for leaf in range(tree.n_leaves)}
    for row in rows:
        a, b = tree.merges[row]
        sets[tree.n_leaves + row] = sets.pop(a) | sets.pop(b)
    labels = np.empty(tree.n_leaves, int)
    for number, members in enumerate(sorted(sets.values(), key=min)):
        labels[list(members)] = number
    return labels


def subtree_heights(tree, row):
    """The heights of a merge and of all merges below it."""
    heights = [tree.heights[row]]
    for child in tree.merges[row]:
        if child >= tree.n_leaves:
            heights += subtree_heights(tree, child - tree.n_leaves)
    return heights


@pytest.mark.parametrize("seed", SEEDS_WITH_INVERSIONS)
def test_these_trees_do_have_inversions(seed):
    tree = tree_with_inversions(seed)
    reference = sum(
        any(
            child >= tree.n_leaves and tree.heights[child - tree.n_leaves] > height
            for child in pair
        )
        for pair, height in zip(tree.merges, tree.heights, strict=True)
    )
    assert tree.n_inversions == reference > 0


def test_monotone_tree_has_no_inversions():
    assert linkage(points_with_inversions(0), "ward").n_inversions == 0


@pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
@pytest.mark.parametrize("seed", SEEDS_WITH_INVERSIONS)
def test_merges_are_listed_by_level(algorithm, seed):
    tree = tree_with_inversions(seed, algorithm=algorithm)
    reference = [max(subtree_heights(tree, row)) for row in range(len(tree.merges))]
    np.testing.assert_array_equal(tree.levels, reference)
    assert np.all(tree.merges[:, 0] < tree.merges[:, 1])
    assert np.all(tree.merges.max(axis=1) < tree.n_leaves + np.arange(len(tree.merges)))


@pytest.mark.parametrize("seed", SEEDS_WITH_INVERSIONS)
def test_greedy_merges_are_listed_as_they_were_made(seed):
    tree = tree_with_inversions(seed)
    np.testing.assert_array_equal(tree.steps, np.arange(len(tree.merges)))


@pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
@pytest.mark.parametrize("seed", SEEDS_WITH_INVERSIONS)
def test_cut_into_k_gives_k_clusters(algorithm, seed):
    tree = tree_with_inversions(seed, algorithm=algorithm)
    for k in range(1, tree.n_leaves + 1):
        labels = tree.cut(n_clusters=k)
        np.testing.assert_array_equal(labels, labels_of_sets(tree, range(tree.n_leaves - k)))
        assert len(set(labels)) == k


@pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
@pytest.mark.parametrize("seed", SEEDS_WITH_INVERSIONS)
def test_cut_keeps_clusters_whose_every_merge_is_below(algorithm, seed):
    tree = tree_with_inversions(seed, algorithm=algorithm)
    for threshold in [*tree.heights, 0.0, 1.001 * tree.heights.max(), np.inf]:
        rows = range(len(tree.merges))
        kept = [row for row in rows if max(subtree_heights(tree, row)) < threshold]
        np.testing.assert_array_equal(tree.cut(threshold=threshold), labels_of_sets(tree, kept))


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_labels_are_numbered_by_first_appearance(family, data):
    X, weights = data.draw(data_sets(family))
    tree = linkage(X, family, sample_weight=weights)
    k = data.draw(st.integers(1, len(X)))
    labels = tree.cut(n_clusters=k)
    first = [int(np.flatnonzero(labels == label)[0]) for label in range(k)]
    assert labels.dtype == np.int64
    assert set(labels) == set(range(k))
    assert first == sorted(first)


def test_cut_of_a_small_tree():
    tree = linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
    assert tree.cut(threshold=0.25).tolist() == [0, 1, 2, 3]  # d < λ, strictly
    assert tree.cut(threshold=0.26).tolist() == [0, 0, 1, 2]
    assert tree.cut(threshold=np.inf).tolist() == [0, 0, 0, 0]


def test_cut_needs_one_of_two():
    tree = linkage([[0.0], [1.0]], "ward")
    with pytest.raises(ValueError, match="either threshold or n_clusters"):
        tree.cut()
    with pytest.raises(ValueError, match="either threshold or n_clusters"):
        tree.cut(threshold=1.0, n_clusters=2)


def test_cut_takes_names_only():
    tree = linkage([[0.0], [1.0], [5.0]], "ward")
    message = (
        r"cut\(3\) could mean two things. Write cut\(n_clusters=3\) .* cut\(threshold=3\) for λ"
    )
    with pytest.raises(TypeError, match=message):
        tree.cut(3)
    with pytest.raises(TypeError, match="could mean two things"):
        tree.cut(1.0, n_clusters=2)


def test_pickles_hold_the_version(monkeypatch):
    tree = linkage([[0.0], [1.0], [5.0]], "ward")
    state = tree.__getstate__()
    assert state["_fastrbhc_version"] == fastrbhc.__version__
    assert same_tree(pickle.loads(pickle.dumps(tree)), tree)
    assert same_tree(copy.deepcopy(tree), tree)
    assert "_fastrbhc_version" not in vars(copy.copy(tree))
    old = Dendrogram.__new__(Dendrogram)
    old.__setstate__(vars(tree))  # from before versions
    assert same_tree(old, tree)
    monkeypatch.setattr(fastrbhc, "__version__", "12.0.1")
    with pytest.warns(UserWarning, match=r"this Dendrogram was written by .* and is read by 12\.0"):
        old.__setstate__(state)


def test_cut_refuses_what_a_forest_does_not_know():
    forest = linkage([[0.0], [1.0], [5.0], [7.0]], "ward", threshold=0.5)
    assert forest.n_trees == 3
    assert forest.cut(threshold=0.5).tolist() == [0, 0, 1, 2]
    with pytest.raises(ValueError, match=r"cannot be cut at 0\.6"):
        forest.cut(threshold=0.6)
    with pytest.raises(ValueError, match="less than the 3 trees"):
        forest.cut(n_clusters=2)


@pytest.mark.parametrize("k", [0, -1, 5])
def test_cut_refuses_impossible_numbers(k):
    with pytest.raises(ValueError, match="n_clusters"):
        linkage([[0.0], [1.0], [5.0], [7.0]], "ward").cut(n_clusters=k)


def test_cut_refuses_numbers_that_are_not_whole():
    with pytest.raises(TypeError, match="whole number"):
        linkage([[0.0], [1.0]], "ward").cut(n_clusters=1.5)


def check_accepted_by_scipy(Z, n):
    assert hierarchy.is_valid_linkage(Z, throw=True)
    assert hierarchy.is_monotonic(Z)
    assert Z.shape == (n - 1, 4)
    assert Z[-1, 3] == n
    assert sorted(hierarchy.leaves_list(Z)) == list(range(n))
    assert sorted(hierarchy.dendrogram(Z, no_plot=True)["leaves"]) == list(range(n))
    assert hierarchy.cophenet(Z).shape == (n * (n - 1) // 2,)
    assert hierarchy.to_tree(Z).get_count() == n
    for k in range(1, n + 1):
        assert len(set(hierarchy.cut_tree(Z, n_clusters=k).ravel())) == k


def same_partition(labels0, labels1):
    pairs = set(zip(labels0, labels1, strict=True))
    return len(pairs) == len(set(labels0)) == len(set(labels1))


def test_scipy_accepts_a_whole_tree():
    tree = linkage(points_with_inversions(0), "ward")
    Z = tree.to_scipy()
    check_accepted_by_scipy(Z, 25)
    np.testing.assert_array_equal(Z[:, :2], tree.merges)
    np.testing.assert_array_equal(Z[:, 2], tree.heights)
    for k in (2, 5, 9):
        assert same_partition(hierarchy.fcluster(Z, k, "maxclust"), tree.cut(n_clusters=k))


@pytest.mark.parametrize("seed", SEEDS_WITH_INVERSIONS)
def test_scipy_accepts_inversions(seed):
    tree = tree_with_inversions(seed)
    raised = np.count_nonzero(tree.levels > tree.heights)
    with pytest.warns(UserWarning, match=f"raised {raised} of 24 merges"):
        Z = tree.to_scipy()
    check_accepted_by_scipy(Z, 25)
    np.testing.assert_array_equal(Z[:, 2], tree.levels)
    for level in (Z[5, 2], Z[15, 2], Z[22, 2]):
        # SciPy keeps merges at the level itself.
        reference = tree.cut(threshold=level * (1.0 + 1e-12))
        assert same_partition(hierarchy.fcluster(Z, level, "distance"), reference)


@pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
@pytest.mark.parametrize("n_trees", [2, 3, 10, 24])
def test_scipy_accepts_a_forest(algorithm, n_trees):
    X = points_with_inversions(0)
    threshold = linkage(X, "ward").heights[25 - n_trees]
    forest = linkage(X, "ward", threshold=threshold, algorithm=algorithm)
    assert forest.n_trees == n_trees
    with pytest.warns(UserWarning, match=f"joined {n_trees} trees at the threshold"):
        Z = forest.to_scipy()
    check_accepted_by_scipy(Z, 25)
    below = threshold * (1.0 - 1e-12)
    assert same_partition(hierarchy.fcluster(Z, below, "distance"), forest.cut(threshold=threshold))


def test_scipy_accepts_a_forest_with_inversions():
    threshold = tree_with_inversions(4).levels[21]
    forest = tree_with_inversions(4, threshold=threshold)
    assert forest.n_trees > 1
    assert forest.n_inversions > 0
    with pytest.warns(UserWarning, match=r"raised .* and joined"):
        Z = forest.to_scipy()
    check_accepted_by_scipy(Z, 25)


def test_scipy_accepts_rows_that_were_never_merged():
    with pytest.warns(UserWarning, match="joined 4 trees"):
        Z = linkage([[0.0], [1.0], [5.0], [7.0]], "ward", threshold=0.1).to_scipy()
    check_accepted_by_scipy(Z, 4)


def test_scipy_counts_rows_and_not_weights():
    tree = linkage([[0.0], [1.0], [5.0]], "ward", sample_weight=[2.0, 3.0, 0.5])
    np.testing.assert_array_equal(tree.to_scipy()[:, 3], [2, 3])
    np.testing.assert_array_equal(tree.weights, [5.0, 5.5])


def test_numpy_export():
    tree = linkage([[0.0], [1.0], [5.0]], "ward", sample_weight=[2.0, 3.0, 0.5])
    exported = tree.to_numpy()
    np.testing.assert_array_equal(exported[:, :2], tree.merges)
    np.testing.assert_array_equal(exported[:, 2], tree.heights)
    np.testing.assert_array_equal(exported[:, 3], tree.weights)


def test_merges_made_out_of_order_are_sorted():
    """A chain may make a high merge before a low one."""
    children = np.array([[2, 3], [0, 1], [4, 5]])
    tree = dendrogram_of_merges(children, np.array([2.0, 1.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert tree.merges.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert tree.heights.tolist() == [1.0, 2.0, 5.0]
    assert tree.weights.tolist() == [3.0, 7.0, 10.0]
    assert tree.steps.tolist() == [1, 0, 2]


def test_parent_below_its_child_stays_behind_it():
    children = np.array([[0, 1], [2, 4], [3, 5]])
    tree = dendrogram_of_merges(children, np.array([3.0, 1.0, 2.0]), np.ones(4))
    assert tree.merges.tolist() == children.tolist()
    assert tree.levels.tolist() == [3.0, 3.0, 3.0]
    assert tree.n_inversions == 1
    assert tree.cut(threshold=2.5).tolist() == [0, 1, 2, 3]


def test_repr_tells_size_and_heights():
    X = [[0.0], [1.0], [5.0], [7.0]]
    assert repr(linkage(X, "ward")) == "<Dendrogram: 4 leaves, 3 merges, heights up to 15.125>"
    assert "3 trees below 0.5" in repr(linkage(X, "ward", threshold=0.5))
    assert "4 trees" in repr(linkage(X, "ward", threshold=0.0))


def test_a_tree_cannot_be_changed_by_mistake():
    tree = linkage([[0.0], [1.0]], "ward")
    assert isinstance(tree, Dendrogram)
    with pytest.raises(AttributeError):
        tree.heights = np.zeros(1)


def test_seeded_rows_have_trees_of_every_family():
    for family in FAMILIES:
        tree = linkage(continuous_rows(family, 10, 2, seed=0), family)
        assert (tree.n_leaves, tree.n_trees, tree.weights[-1]) == (10, 1, 10.0)
