"""The tree: cuts, exports, inversions."""

from __future__ import annotations

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from strategies import FAMILIES, continuous_rows, data_sets
from trees import same_tree

import fastrbhc
from fastrbhc import linkage
from fastrbhc.families._interface import _REGISTER
from fastrbhc.tree.dendrogram import Dendrogram, dendrogram_of_merges
from fastrbhc.tree.origin import Chosen

pytestmark = pytest.mark.fast

# Seeds whose full-covariance trees have inversions, as the first test verifies.
SEEDS_WITH_INVERSIONS = (4, 9, 13, 25, 26)


def points_with_inversions(seed):
    return np.random.default_rng(seed).normal(size=(25, 2))


def tree_with_inversions(seed, **options):
    return linkage(points_with_inversions(seed), "gaussian", **options)


def labels_of_sets(tree, rows):
    """Labels after the given merges, by plain set union: heavy before light, low before high."""
    sets = {leaf: {leaf} for leaf in range(tree.n_leaves)}
    for row in rows:
        a, b = tree.merges[row]
        sets[tree.n_leaves + row] = sets.pop(a) | sets.pop(b)

    def place(node):
        row = node - tree.n_leaves
        level = max(subtree_heights(tree, row)) if row >= 0 else 0.0
        return -tree.node_weights[node], level, min(sets[node])

    labels = np.empty(tree.n_leaves, int)
    for number, node in enumerate(sorted(sets, key=place)):
        labels[list(sets[node])] = number
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
def test_clusters_are_numbered_by_weight_level_and_row(family, data):
    X, weights = data.draw(data_sets(family))
    tree = linkage(X, family, sample_weight=weights)
    k = data.draw(st.integers(1, len(X)))
    labels = tree.cut(n_clusters=k)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, labels_of_sets(tree, range(len(X) - k)))


def random_forest(rng, n, m, heights=None, weights=None):
    """Merges of random nodes; by default with weights, ties and inversions."""
    nodes, children = list(range(n)), []
    for i in range(m):
        pair = [nodes.pop(rng.integers(len(nodes))) for _ in range(2)]
        children.append(sorted(pair))
        nodes.append(n + i)
    heights = rng.integers(0, 9, m).astype(float) if heights is None else heights
    weights = rng.integers(0, 4, n).astype(float) if weights is None else weights
    return dendrogram_of_merges(np.array(children).reshape(-1, 2), heights, weights)


@pytest.mark.parametrize("weights", [None, np.ones(6000)], ids=["weights", "no weights"])
@pytest.mark.parametrize("ties", [True, False])
def test_more_clusters_than_a_simple_sort_takes(ties, weights):
    rng = np.random.default_rng(0)
    tree = random_forest(rng, 6000, 3500, None if ties else rng.random(3500), weights)
    np.testing.assert_array_equal(tree.cut(n_clusters=3000), labels_of_sets(tree, range(3000)))


@pytest.mark.parametrize("seed", range(10))
def test_a_list_of_cuts_is_a_column_each(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    tree = random_forest(rng, n, int(rng.integers(0, n)))
    numbers = rng.integers(tree.n_trees, n + 1, 5)
    for wanted in (numbers, numbers.tolist(), range(tree.n_trees, n + 1), [tree.n_trees], []):
        computed = tree.cut(n_clusters=wanted)
        assert computed.shape == (n, len(wanted))
        assert computed.dtype == np.int64
        for column, k in zip(computed.T, wanted, strict=True):
            np.testing.assert_array_equal(column, tree.cut(n_clusters=k))
    thresholds = [3.0, 0.0, np.inf, 8.5]
    reference = np.column_stack([tree.cut(threshold=threshold) for threshold in thresholds])
    np.testing.assert_array_equal(tree.cut(threshold=thresholds), reference)


def test_lists_are_checked_number_by_number():
    tree = linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
    with pytest.raises(ValueError, match="n_clusters=5 is more than the number of rows"):
        tree.cut(n_clusters=[2, 5])
    with pytest.raises(TypeError, match=r"whole number, got 2\.5"):
        tree.cut(n_clusters=[2.5])
    with pytest.raises(TypeError, match="threshold has to be a number"):
        tree.cut(threshold=["high"])
    with pytest.raises(TypeError, match="whole number"):
        tree.cut(n_clusters=[[2, 3]])


def clusters_without_crumbs(tree, undone, min_size):
    """The clusters by definition, from the roots down: {rows}, with what stays with them."""
    sets = [{leaf} for leaf in range(tree.n_leaves)]
    for a, b in tree.merges.tolist():
        sets.append(sets[a] | sets[b])

    def divide(node, crumbs):
        row = node - tree.n_leaves
        if row < 0:
            return [sets[node] | crumbs]
        a, b = sorted(tree.merges[row].tolist(), key=lambda part: (-len(sets[part]), part))
        if len(sets[b]) >= min_size:
            if row not in undone:
                return [sets[node] | crumbs]
            return divide(a, crumbs) + divide(b, set())
        below = divide(a, crumbs | sets[b])
        return below if len(below) > 1 else [sets[node] | crumbs]

    roots = set(range(len(sets))) - set(tree.merges.ravel().tolist())
    return [cluster for root in roots for cluster in divide(root, set())]


@pytest.mark.parametrize("seed", range(12))
def test_no_crumbs(seed):
    rng = np.random.default_rng(seed)
    n, min_size = int(rng.integers(20, 60)), int(rng.integers(2, 5))
    tree = random_forest(rng, n, n - 1)
    sizes = np.append(np.ones(n), tree.to_pandas()["size"].to_numpy())
    splits = np.flatnonzero(sizes[tree.merges].min(axis=1) >= min_size)
    assert splits.size > 1
    for k in range(1, splits.size + 2):
        undone = set(splits[splits.size + 1 - k :].tolist())
        reference = clusters_without_crumbs(tree, undone, min_size)
        labels = tree.cut(n_clusters=k, min_size=min_size)
        assert np.bincount(labels, minlength=k).min() >= min_size
        computed = {frozenset(np.flatnonzero(labels == label).tolist()) for label in range(k)}
        assert computed == set(map(frozenset, reference))
        weights = np.bincount(labels, tree.node_weights[:n])
        assert (np.diff(weights) <= 0.0).all()
    with pytest.raises(ValueError, match=f"more than the {splits.size + 1} clusters of at least"):
        tree.cut(n_clusters=splits.size + 2, min_size=min_size)
    for threshold in (0.0, 3.0, 8.5):
        k = 1 + np.count_nonzero(tree.levels[splits] >= threshold)
        np.testing.assert_array_equal(
            tree.cut(threshold=threshold, min_size=min_size),
            tree.cut(n_clusters=k, min_size=min_size),
        )
    several = tree.cut(n_clusters=[1, splits.size], min_size=min_size)
    np.testing.assert_array_equal(
        several[:, 1], tree.cut(n_clusters=splits.size, min_size=min_size)
    )
    for k in (1, 5, n):
        np.testing.assert_array_equal(tree.cut(n_clusters=k, min_size=1), tree.cut(n_clusters=k))


def test_size_is_the_number_of_rows_and_not_their_weight():
    X = [[0.0], [1.0], [5.0], [6.0], [7.0], [99.0]]
    tree = linkage(X, "ward", sample_weight=[1.0, 1.0, 1.0, 1.0, 1.0, 9.0])
    assert tree.cut(n_clusters=2).tolist() == [1, 1, 1, 1, 1, 0]
    assert tree.cut(n_clusters=2, min_size=2).tolist() == [1, 1, 0, 0, 0, 0]


def test_small_trees_of_a_forest_have_nothing_to_join():
    forest = linkage([[0.0], [1.0], [5.0], [6.0], [99.0]], "ward", threshold=2.0)
    with pytest.raises(ValueError, match=r"1 of the 3 trees .* fewer than min_size=2 rows"):
        forest.cut(min_size=2)
    assert forest.cut(min_size=1).tolist() == [0, 0, 1, 1, 2]
    with pytest.raises(ValueError, match="min_size"):
        forest.cut(min_size=0)


# What a tree remembers


def test_what_a_tree_remembers():
    frame = pd.DataFrame({"a": [0.0, 1.0, 5.0], "b": [2.0, 4.0, 9.0]})
    tree = linkage(frame, fastrbhc.families.Poisson(smoothing=0.5))
    assert tree.family == fastrbhc.families.Poisson(smoothing=0.5)
    assert (tree.n_features, tree.feature_names) == (2, ("a", "b"))
    assert tree.origin.version == fastrbhc.__version__
    assert tree.chosen is None
    assert linkage(frame.to_numpy(), "ward").feature_names is None
    none = linkage(frame, "ward", threshold=0.0)
    assert none.family.name == "spherical_gaussian"
    unknown = Dendrogram(tree.merges, tree.heights, tree.weights, 3)
    assert (unknown.family, unknown.n_features, unknown.feature_names) == (None, None, None)


@pytest.mark.parametrize("by", ["kmeans", "gap", "evidence", 30.0])
def test_the_threshold_of_a_forest_is_remembered(by):
    X = np.concatenate([continuous_rows("poisson", 20, 2, seed) + 60 * seed for seed in range(3)])
    forest = linkage(X, "poisson", threshold=by)
    assert forest.chosen == Chosen(forest.threshold, by if isinstance(by, str) else "given")
    np.testing.assert_array_equal(forest.cut(), forest.cut(threshold=forest.threshold))


def test_pickles_hold_what_a_tree_remembers():
    tree = linkage([[0.0], [1.0], [5.0]], "ward", threshold=2.0)
    for again in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree)):
        assert (again.origin, again.chosen) == (tree.origin, tree.chosen)
    old = Dendrogram.__new__(Dendrogram)
    state = {k: v for k, v in vars(tree).items() if k not in ("origin", "chosen")}
    old.__setstate__(state)  # from before trees remembered anything
    assert (old.origin, old.chosen, old.family) == (None, None, None)
    assert old.cut().tolist() == [0, 0, 1]


def test_pickles_are_read_without_the_class_of_a_family(monkeypatch):
    @fastrbhc.families.family(
        "of_a_notebook", separable=True, reducible=False, domain=fastrbhc.families.Domain()
    )
    class OfANotebook(NamedTuple):
        power: float = 2.0

        def divergence(family, value, mean, step):
            return step**family.power

    tree = linkage([[0.0], [1.0], [5.0]], OfANotebook())
    text = pickle.dumps(tree)
    assert pickle.loads(text).family == OfANotebook(2.0)
    monkeypatch.delitem(_REGISTER, "of_a_notebook")
    with pytest.warns(UserWarning, match="'of_a_notebook', which is not declared here"):
        again = pickle.loads(text)
    assert same_tree(again, tree)
    assert (again.family, again.n_features) == (None, 1)


def test_cut_of_a_small_tree():
    tree = linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
    assert tree.cut(threshold=0.25).tolist() == [0, 1, 2, 3]  # d < λ, strictly
    assert tree.cut(threshold=0.26).tolist() == [0, 0, 1, 2]
    assert tree.cut(threshold=np.inf).tolist() == [0, 0, 0, 0]


def test_cut_needs_one_of_two():
    tree = linkage([[0.0], [1.0]], "ward")
    with pytest.raises(ValueError, match="either threshold or n_clusters: no λ was chosen"):
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
